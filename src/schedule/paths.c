/* Heads and tails along the graph (see paths.h), and the plainest of all longest paths. */
#include "schedule/paths.h"

#include <moirai/schedule.h>

#include <stdlib.h>

#define OPS_PER_LOOK 16 /* at the clock */
#define MOST_STEPS 3e8  /* over pairs of more devices than a mask has */

/* Words of a set (problem.h). */
static inline const uint64_t *devices_of(const schedule_paths *x, int32_t op)
{
    return x->devices ? &x->devices[op] : x->p->op_devices + (int64_t)op * moirai_device_words(x->p);
}

static inline bool may_use(const schedule_paths *x, int32_t op, int32_t k)
{
    return devices_of(x, op)[k / 64] >> k % 64 & 1;
}

/* With many devices and edges the least of a class's transfers stands for all of them: paths are shorter, and still true. */
static void take_least(int64_t *even, const moirai_problem *p)
{
    int32_t K = p->n_devices;
    for (int32_t c = 0; c < p->n_classes; c++) {
        const int64_t *table = p->class_transfer_ns + (int64_t)c * K * K;
        even[c] = table[1];
        for (int32_t i = 0; i < K * K; i++)
            even[c] = i / K == i % K ? even[c] : UTIL_MIN(even[c], table[i]);
    }
}

/* What all transfers of a class of tensors between two devices take, -1 where they differ: most clusters have one kind of link, and O(K) steps
 * suffice then. NULL: not worth it, or no memory. */
static int64_t *find_even(const moirai_problem *p)
{
    int32_t K = p->n_devices;
    bool many = K > MOIRAI_MASK_DEVICES, worth = K > 2 && (many || p->n_classes <= p->n_edges);
    int64_t *even = worth ? util_alloc((size_t)p->n_classes, sizeof *even) : NULL;
    if (even && many && (double)K * K * p->n_edges > MOST_STEPS) {
        take_least(even, p);
        return even;
    }
    for (int32_t c = 0; even && c < p->n_classes; c++) {
        const int64_t *table = p->class_transfer_ns + (int64_t)c * K * K;
        even[c] = table[1];
        for (int32_t i = 0; i < K * K && even[c] >= 0; i++)
            even[c] = i / K == i % K || table[i] == even[c] ? even[c] : -1;
    }
    return even;
}

/* One tensor between `op` and `other`, its producer (forward) or a reader: to[k] is no sooner than over the best of other's devices, whose
 * times begin at other_ns. */
static void reach(int64_t *to, const schedule_paths *x, const int64_t *other_ns, int32_t op, int32_t other, int32_t t,
                  int64_t even, bool forward)
{
    const moirai_problem *p = x->p;
    const int32_t K = p->n_devices, *group = p->op_group;
    const int64_t *table = p->class_transfer_ns + (int64_t)p->tensor_class[t] * K * K;
    const uint64_t *mine = devices_of(x, op), *theirs = devices_of(x, other);
    const bool together = x->groups && group[op] != MOIRAI_NONE && group[op] == group[other];
    int64_t at[MOIRAI_MAX_DEVICES], least = SCHEDULE_NEVER_NS;
    for (int32_t begin = 0; begin < K; begin += 64)
        for (int32_t l = begin; l < UTIL_MIN(K, begin + 64); l++) {
            at[l] = SCHEDULE_NEVER_NS;
            if (theirs[begin / 64] >> (l - begin) & 1)
                at[l] = UTIL_MIN(at[l], other_ns[l] + moirai_op_ns(p, other, l));
            least = UTIL_MIN(least, at[l]);
        }
    for (int32_t k = 0; k < K; k++) {
        int64_t soonest = at[k];
        if (!(mine[k / 64] >> k % 64 & 1))
            continue;
        if (!together && even >= 0)
            soonest = UTIL_MIN(soonest, least + even);
        for (int32_t l = 0; l < K && !together && even < 0; l++)
            soonest = UTIL_MIN(soonest, at[l] + table[forward ? l * K + k : k * K + l]);
        to[k] = UTIL_MAX(to[k], soonest);
    }
}

static int64_t even_of(const moirai_problem *p, const int64_t *even, int32_t t)
{
    return even ? even[p->tensor_class[t]] : -1;
}

/* What is known of an operator without its neighbours. */
static void begin(int64_t *to, const schedule_paths *x, int32_t op)
{
    for (int32_t k = 0; k < x->p->n_devices; k++)
        to[k] = may_use(x, op, k) ? 0 : SCHEDULE_NEVER_NS;
}

static void heads_of(int64_t *head, const schedule_paths *x, int32_t op, const int64_t *even)
{
    const moirai_problem *p = x->p;
    int64_t K = p->n_devices;
    begin(head + op * K, x, op);
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++) {
        int32_t t = p->op_in[j], from = p->tensor_producer[t];
        reach(head + op * K, x, head + from * K, op, from, t, even_of(p, even, t), true);
    }
}

static void tails_of(int64_t *tail, const schedule_paths *x, int32_t op, const int64_t *even)
{
    const moirai_problem *p = x->p;
    int64_t K = p->n_devices;
    begin(tail + op * K, x, op);
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++)
        for (int32_t t = p->op_out[j], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t reader = p->edge_reader[e];
            reach(tail + op * K, x, tail + reader * K, op, reader, t, even_of(p, even, t), false);
        }
}

static bool time_is_up(const schedule_paths *x, int32_t done)
{
    return x->stop && done % OPS_PER_LOOK == 0 && util_stopped(x->stop);
}

void schedule_heads(int64_t *head, const schedule_paths *x)
{
    int64_t *even = find_even(x->p), K = x->p->n_devices;
    bool stopped = false;
    for (int32_t r = 0; r < x->p->n_ops; r++) {
        stopped = stopped || time_is_up(x, r);
        if (stopped)
            begin(head + x->p->topo[r] * K, x, x->p->topo[r]);
        else
            heads_of(head, x, x->p->topo[r], even);
    }
    free(even);
}

void schedule_tails(int64_t *tail, const schedule_paths *x)
{
    int64_t *even = find_even(x->p), K = x->p->n_devices;
    bool stopped = false;
    for (int32_t r = x->p->n_ops - 1; r >= 0; r--) {
        stopped = stopped || time_is_up(x, x->p->n_ops - 1 - r);
        if (stopped)
            begin(tail + x->p->topo[r] * K, x, x->p->topo[r]);
        else
            tails_of(tail, x, x->p->topo[r], even);
    }
    free(even);
}

int64_t schedule_longest_path(const schedule_paths *x)
{
    const moirai_problem *p = x->p;
    int64_t *head = util_alloc((size_t)p->n_ops * (size_t)p->n_devices, sizeof *head), longest = 0;
    if (!head)
        return -1;
    schedule_heads(head, x);
    for (int32_t op = 0; op < p->n_ops; op++) {
        int64_t least = SCHEDULE_NEVER_NS;
        for (int32_t k = 0; k < p->n_devices; k++)
            if (may_use(x, op, k))
                least = UTIL_MIN(least, head[(int64_t)op * p->n_devices + k] + moirai_op_ns(p, op, k));
        longest = UTIL_MAX(longest, least);
    }
    free(head);
    return longest;
}

/* ---- the critical path: every operator at its least time, transfers free ---- */

int64_t moirai_bound_critical_path(const moirai_problem *p)
{
    int64_t *finish = util_alloc((size_t)p->n_ops, sizeof *finish);
    int64_t longest = 0;
    for (int32_t i = 0; finish && i < p->n_ops; i++) /* as they lie: a million rows of 64 times are half a gigabyte */
        finish[i] = moirai_op_least_ns(p, i);
    for (int32_t r = 0; finish && r < p->n_ops; r++) {
        int32_t op = p->topo[r];
        int64_t start = 0;
        for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++)
            start = UTIL_MAX(start, finish[p->tensor_producer[p->op_in[j]]]);
        if (!util_add64(&finish[op], start, finish[op]))
            finish[op] = start; /* a shorter path is still a bound */
        longest = UTIL_MAX(longest, finish[op]);
    }
    free(finish);
    return longest; /* out of memory: 0, which proves nothing and is true */
}
