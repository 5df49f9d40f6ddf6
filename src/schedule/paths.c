/* Heads and tails along the graph (see paths.h), and the plainest of all longest paths. */
#include "schedule/paths.h"

#include <moirai/schedule.h>

#include <stdlib.h>

static inline uint64_t devices_of(const schedule_paths *x, int32_t op)
{
    return x->devices ? x->devices[op] : x->p->op_devices[op];
}

/* Where `other` may be if `op` is on k. */
static inline uint64_t devices_beside(const schedule_paths *x, int32_t other, int32_t op, int32_t k)
{
    const int32_t *group = x->p->op_group;
    bool together = x->groups && group[op] != MOIRAI_NONE && group[op] == group[other];
    return devices_of(x, other) & (together ? UINT64_C(1) << k : UINT64_MAX);
}

static int64_t head_of(const int64_t *head, const schedule_paths *x, int32_t op, int32_t k)
{
    const moirai_problem *p = x->p;
    int64_t ready = 0;
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++) {
        int32_t t = p->op_in[j];
        uint64_t from = devices_beside(x, p->tensor_producer[t], op, k);
        ready = UTIL_MAX(ready, schedule_arrival_ns(p, head, from, t, k, 0));
    }
    return ready;
}

static int64_t tail_of(const int64_t *tail, const schedule_paths *x, int32_t op, int32_t k)
{
    const moirai_problem *p = x->p;
    int64_t after = 0;
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
        int32_t t = p->op_out[j];
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t reader = p->edge_reader[e];
            uint64_t to = devices_beside(x, reader, op, k);
            after = UTIL_MAX(after, schedule_departure_ns(p, tail, to, reader, t, k, NULL, 0));
        }
    }
    return after;
}

void schedule_heads_of(int64_t *head, const schedule_paths *x, int32_t op)
{
    int64_t K = x->p->n_devices;
    for (int32_t k = 0; k < K; k++)
        head[op * K + k] = devices_of(x, op) >> k & 1 ? head_of(head, x, op, k) : SCHEDULE_NEVER_NS;
}

void schedule_tails_of(int64_t *tail, const schedule_paths *x, int32_t op)
{
    int64_t K = x->p->n_devices;
    for (int32_t k = 0; k < K; k++)
        tail[op * K + k] = devices_of(x, op) >> k & 1 ? tail_of(tail, x, op, k) : SCHEDULE_NEVER_NS;
}

void schedule_heads(int64_t *head, const schedule_paths *x)
{
    for (int32_t r = 0; r < x->p->n_ops; r++)
        schedule_heads_of(head, x, x->p->topo[r]);
}

void schedule_tails(int64_t *tail, const schedule_paths *x)
{
    for (int32_t r = x->p->n_ops - 1; r >= 0; r--)
        schedule_tails_of(tail, x, x->p->topo[r]);
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
        for (uint64_t m = devices_of(x, op); m != 0; m &= m - 1) {
            int32_t k = __builtin_ctzll(m);
            least = UTIL_MIN(least, head[(int64_t)op * p->n_devices + k] + moirai_op_ns(p, op, k));
        }
        longest = UTIL_MAX(longest, least);
    }
    free(head);
    return longest;
}

/* ---- the critical path: every operator at its least time, transfers free ---- */

static int64_t least_ns(const moirai_problem *p, int32_t op)
{
    int64_t least = -1;
    for (int32_t k = 0; k < p->n_devices; k++)
        if (p->op_devices[op] >> k & 1 && (least < 0 || moirai_op_ns(p, op, k) < least))
            least = moirai_op_ns(p, op, k);
    return UTIL_MAX(least, 0);
}

int64_t moirai_bound_critical_path(const moirai_problem *p)
{
    int64_t *finish = util_alloc((size_t)p->n_ops, sizeof *finish);
    int64_t longest = 0;
    for (int32_t r = 0; finish && r < p->n_ops; r++) {
        int32_t op = p->topo[r];
        int64_t start = 0;
        for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++)
            start = UTIL_MAX(start, finish[p->tensor_producer[p->op_in[j]]]);
        if (!util_add64(&finish[op], start, least_ns(p, op)))
            finish[op] = start; /* a shorter path is still a bound */
        longest = UTIL_MAX(longest, finish[op]);
    }
    free(finish);
    return longest; /* out of memory: 0, which proves nothing and is true */
}
