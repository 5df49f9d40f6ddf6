/* Transfers of a plan, checked: every needed one once, for its time, in order (4a, 4f). With them come the lives of tensors, which hang on
 * the same readers. */
#include "schedule/plan_check.h"
#include "util/util.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FEW 16         /* transfers of one tensor that are sorted by insertion */
#define MANY (1 << 16) /* transfers that do not stay in a cache */
#define ROUGH_BITS 9   /* so many places are written to at once without a miss of the cache at each */

/* What tells transfers of one tensor apart: with flow tensor the destination, with flow edge the reader. */
static int32_t key_of(const moirai_transfer *x)
{
    return x->reader == MOIRAI_NONE ? x->to : x->reader;
}

static int by_key(const void *left, const void *right)
{
    const moirai_transfer *a = left, *b = right;
    if (key_of(a) != key_of(b))
        return key_of(a) < key_of(b) ? -1 : 1;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Those of one tensor by key; equal ones in order of their starts, as they come. */
static void sort_by_key(moirai_transfer *sent, int32_t n)
{
    if (n > FEW) {
        qsort(sent, (size_t)n, sizeof *sent, by_key);
        return;
    }
    for (int32_t s = 1; s < n; s++) {
        moirai_transfer item = sent[s];
        int32_t at = s;
        for (; at > 0 && key_of(&sent[at - 1]) > key_of(&item); at--)
            sent[at] = sent[at - 1];
        sent[at] = item;
    }
}

/* How many there are of each tensor, into sorted_off[tensor + 1]; false where one makes no sense. */
static bool count_transfers(schedule_check *c)
{
    const moirai_problem *p = c->p;
    bool edge = p->flow == MOIRAI_FLOW_EDGE;
    memset(c->sent_off, 0, ((size_t)p->n_tensors + 1) * sizeof *c->sent_off);
    for (int32_t j = 0; j < c->plan->n_transfers; j++) {
        const moirai_transfer *x = &c->plan->transfer[j];
        if (x->tensor < 0 || x->tensor >= p->n_tensors || x->from < 0 || x->from >= p->n_devices || x->to < 0 ||
            x->to >= p->n_devices || (edge && (x->reader < 0 || x->reader >= p->n_ops)))
            schedule_check_bad(c, "transfer %d: names no tensor, consumer or device of the problem", j);
        else
            c->sent_off[x->tensor + 1]++;
    }
    return c->n_bad == 0;
}

/* Of many transfers, by the high digits of their tensors first: then the places of one after the other are near. */
static const moirai_transfer *sort_roughly(schedule_check *c)
{
    moirai_transfer *rough = (moirai_transfer *)c->key; /* where keys are later */
    int32_t n = c->plan->n_transfers, end[(1 << ROUGH_BITS) + 1] = {0}, shift = 0;
    while ((c->p->n_tensors - 1) >> shift >= 1 << ROUGH_BITS)
        shift++;
    for (int32_t j = 0; j < n; j++)
        end[(c->plan->transfer[j].tensor >> shift) + 1]++;
    for (int32_t b = 0; b < 1 << ROUGH_BITS; b++)
        end[b + 1] += end[b];
    for (int32_t j = 0; j < n; j++)
        rough[end[c->plan->transfer[j].tensor >> shift]++] = c->plan->transfer[j];
    return rough;
}

/* Transfers by tensor, and those of one tensor by key. */
static void sort_transfers(schedule_check *c)
{
    int32_t n = c->plan->n_transfers, n_tensors = c->p->n_tensors, *off = c->sent_off;
    const moirai_transfer *from = n < MANY ? c->plan->transfer : sort_roughly(c);
    for (int32_t t = 0; t < n_tensors; t++)
        off[t + 1] += off[t];
    for (int32_t j = n - 1; j >= 0; j--) { /* leaves every offset at the end of the tensor before */
        moirai_transfer *to = &c->sent[--off[from[j].tensor + 1]];
        *to = from[j];
        to->reader = c->p->flow == MOIRAI_FLOW_TENSOR ? MOIRAI_NONE : to->reader;
    }
    memmove(off, off + 1, (size_t)n_tensors * sizeof *off);
    off[n_tensors] = n;
    for (int32_t t = 0; t < n_tensors; t++)
        sort_by_key(c->sent + off[t], off[t + 1] - off[t]);
}

/* The transfer of a tensor to a device (flow tensor) or reader (flow edge), or NULL. */
static const moirai_transfer *find(const schedule_check *c, int32_t tensor, int32_t key)
{
    int32_t low = c->sent_off[tensor], end = c->sent_off[tensor + 1], high = end;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (key_of(&c->sent[middle]) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && key_of(&c->sent[low]) == key ? &c->sent[low] : NULL;
}

/* latency + ceil(bytes * 10^9 / bytes per second), or what the file gives; -1: no channel, or beyond int64. */
static int64_t moving_ns(const moirai_problem *p, int32_t tensor, int32_t from, int32_t to)
{
    if (p->tensor_has_table[tensor])
        return moirai_transfer_ns(p, tensor, from, to);
    int64_t rate = p->bytes_per_second[from * p->n_devices + to];
    if (rate <= 0)
        return -1;
    __int128 ns = ((__int128)p->tensor_bytes[tensor] * 1000000000 + rate - 1) / rate;
    ns += p->latency_ns[from * p->n_devices + to];
    return ns > INT64_MAX ? -1 : (int64_t)ns;
}

/* By the operator's inputs or by the tensor's readers, whichever are fewer: a join of a million tensors is not gone through for each of them. */
static bool reads(const moirai_problem *p, int32_t op, int32_t tensor)
{
    int32_t in = p->op_in_off[op], in_end = p->op_in_off[op + 1];
    int32_t e = p->tensor_edge_off[tensor], e_end = p->tensor_edge_off[tensor + 1];
    if (in_end - in < e_end - e) {
        while (in < in_end && p->op_in[in] != tensor)
            in++;
        return in < in_end;
    }
    while (e < e_end && p->edge_reader[e] != op)
        e++;
    return e < e_end;
}

/* `key`: the reader or the destination. */
static bool is_needed(const schedule_check *c, int32_t t, int32_t key, int32_t home)
{
    const moirai_problem *p = c->p;
    if (p->flow == MOIRAI_FLOW_EDGE)
        return reads(p, key, t) && c->spans[key].where != home;
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1] && key != home; e++)
        if (c->spans[p->edge_reader[e]].where == key)
            return true;
    return false;
}

static void check_transfer(schedule_check *c, int32_t t, const moirai_transfer *x)
{
    const moirai_problem *p = c->p;
    const schedule_span *made = &c->spans[p->tensor_producer[t]];
    int32_t home = made->where;
    if (!is_needed(c, t, key_of(x), home)) {
        schedule_check_bad(c, "transfer of %s to %s: not needed", p->tensor_name[t], p->device_name[x->to]);
        return;
    }
    int32_t to = p->flow == MOIRAI_FLOW_EDGE ? c->spans[x->reader].where : x->to;
    if (x->from != home || x->to != to) {
        schedule_check_bad(c, "transfer of %s: goes %s to %s, not %s to %s", p->tensor_name[t], p->device_name[x->from],
                           p->device_name[x->to], p->device_name[home], p->device_name[to]);
        return;
    }
    int64_t want = moving_ns(p, t, home, to), takes;
    if (want < 0)
        schedule_check_bad(c, "transfer of %s: no channel %s to %s", p->tensor_name[t], p->device_name[home],
                           p->device_name[to]);
    else if (__builtin_sub_overflow(x->finish_ns, x->start_ns, &takes) || takes != want)
        schedule_check_bad(
            c, "transfer of %s to %s: runs from %" PRId64 " to %" PRId64 " ns, the problem says for %" PRId64,
            p->tensor_name[t], p->device_name[to], x->start_ns, x->finish_ns, want);
    if (x->start_ns < made->finish_ns)
        schedule_check_bad(c, "transfer of %s to %s: starts before its tensor exists", p->tensor_name[t],
                           p->device_name[to]);
}

/* Whether the one before it is the same transfer. */
static bool is_second(const schedule_check *c, int32_t t, int32_t s)
{
    return s > c->sent_off[t] && key_of(&c->sent[s - 1]) == key_of(&c->sent[s]);
}

/* Every reader of a tensor has it when it starts. */
static void check_readers(schedule_check *c, int32_t t, schedule_lifetimes *lives)
{
    const moirai_problem *p = c->p;
    const schedule_span *made = &c->spans[p->tensor_producer[t]];
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
        __builtin_prefetch(&c->spans[p->edge_reader[UTIL_MIN(e + SCHEDULE_AHEAD, p->n_edges - 1)]]);
        int32_t i = p->edge_reader[e];
        const schedule_span *reader = &c->spans[i];
        if (reader->where == made->where) {
            if (made->finish_ns > reader->start_ns)
                schedule_check_bad(c, "op %s: starts before %s finishes", p->op_name[i], p->op_name[made->what]);
            schedule_check_meet(lives, made->where, made->start_ns, reader->finish_ns);
            continue;
        }
        const moirai_transfer *x = find(c, t, p->flow == MOIRAI_FLOW_TENSOR ? reader->where : i);
        if (!x) {
            schedule_check_bad(c, "transfer of %s to %s for %s: needed and missing", p->tensor_name[t],
                               p->device_name[reader->where], p->op_name[i]);
            continue;
        }
        if (x->finish_ns > reader->start_ns)
            schedule_check_bad(c, "op %s: starts before its input %s arrives", p->op_name[i], p->tensor_name[t]);
        schedule_check_meet(lives, made->where, made->start_ns, x->finish_ns);
        schedule_check_meet(lives, reader->where, x->start_ns, reader->finish_ns);
    }
}

/* All of a tensor: what nobody reads lives to the end. */
static void check_tensor(schedule_check *c, int32_t t)
{
    const schedule_span *made = &c->spans[c->p->tensor_producer[t]];
    bool read = c->p->tensor_edge_off[t] < c->p->tensor_edge_off[t + 1];
    schedule_lifetimes lives;
    lives.there = (device_set){{0}};
    schedule_check_meet(&lives, made->where, made->start_ns, read ? made->finish_ns : c->end_ns);
    check_readers(c, t, &lives);
    for (int32_t s = c->sent_off[t]; s < c->sent_off[t + 1]; s++)
        if (!is_second(c, t, s))
            check_transfer(c, t, &c->sent[s]);
    if (c->peaks && c->n_bad == 0)
        schedule_check_add_lives(c, t, &lives);
}

void schedule_check_transfers(schedule_check *c)
{
    if (!count_transfers(c))
        return;
    sort_transfers(c);
    for (int32_t t = 0; t < c->p->n_tensors; t++)
        for (int32_t s = c->sent_off[t]; s < c->sent_off[t + 1]; s++)
            if (is_second(c, t, s))
                schedule_check_bad(c, "transfer of %s to %s: listed twice", c->p->tensor_name[t],
                                   c->p->device_name[c->sent[s - 1].to]);
    for (int32_t t = 0; t < c->p->n_tensors; t++)
        check_tensor(c, t);
}
