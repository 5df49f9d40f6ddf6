/* The proof of a pair by a search tree, walked again: what a node knows of every plan of at most T that it speaks of, and the rules that
 * add to it until nothing changes (docs/certificate.md, "Searches", says why they hold):
 *
 *   (edge)    An input comes from some device left to its producer: heads, and tails likewise.
 *   (late)    A device with head + time + tail > T is left no longer. An operator without devices closes the node.
 *   (sent)    Where producer and reader share no device a transfer takes place.
 *   (arc)     Of two tasks in order the later one starts after the other has finished, and is part of what follows it.
 *   (pair)    Of two tasks on one machine (device, port, channel) that cannot be first within T, the other is.
 *   (machine) The tasks of one machine with heads >= h and tails >= q need h + their times + q together, at most T.
 *   (trial)   If an operator, put on k beside what is there for certain, breaks (machine), it is not on k.
 *
 * O(nodes * rounds * (E K^2 + V K m^2)), m tasks on a machine. */
#include "prove/prove_search.h"

#include <string.h>

#include "util/util.h"

#define NEVER INT64_MAX
#define MAX_ROUNDS 1000 /* of the rules in one node; what is not closed by then is open */

int32_t prove_search_transfer(const prove_search *x, int32_t e, int32_t to)
{
    return x->n + (x->b->p->by_edge ? e : x->b->edge[e].packet * x->K + to);
}

/* Where the head and the tail of a transfer are: behind those of the operators on each device. */
static int64_t cell_of(const prove_search *x, int32_t transfer)
{
    return (int64_t)x->n * x->K + transfer - x->n;
}

/* The only device, or -1. */
static int32_t only(uint64_t may)
{
    return may & (may - 1) ? -1 : (int32_t)__builtin_ctzll(may);
}

static bool raise(int64_t *value, int64_t to)
{
    if (to <= *value)
        return false;
    *value = to;
    return true;
}

/* ---- (edge), (late) ---- */

/* The least over the devices left to operator i of its head, or tail, and its time. */
static int64_t least_of(const prove_search *x, const prove_known *s, const int64_t *path, int32_t i)
{
    int64_t least = NEVER;
    for (int32_t k = 0; k < x->K; k++)
        if (s->may[i] >> k & 1)
            least = UTIL_MIN(least, path[i * x->K + k] + prove_op_ns(x->b, i, k));
    return least;
}

/* What edge e makes of the head of its reader on device `at`, or of the tail of its producer there. */
static int64_t across(const prove_search *x, const prove_known *s, int32_t e, int32_t at, bool forwards)
{
    const int64_t *path = forwards ? s->head : s->tail;
    int32_t other = forwards ? x->b->edge[e].from : x->b->edge[e].to;
    int64_t least = NEVER;
    for (int32_t m = 0; m < x->K; m++) {
        if (!(s->may[other] >> m & 1))
            continue;
        int32_t from = forwards ? m : at, to = forwards ? at : m;
        int64_t ns = path[other * x->K + m] + prove_op_ns(x->b, other, m);
        if (m != at)
            ns = UTIL_MAX(ns, path[cell_of(x, prove_search_transfer(x, e, to))]) + prove_edge_ns(x->b, e, from, to);
        least = UTIL_MIN(least, ns);
    }
    return least;
}

/* Edges come by producer, and producers before their readers: a head is final before it is passed on. */
static bool follow_edges(const prove_search *x, prove_known *s, bool forwards)
{
    int64_t *path = forwards ? s->head : s->tail;
    bool moved = false;
    for (int32_t y = 0; y < x->b->n_edges; y++) {
        int32_t e = forwards ? y : x->b->n_edges - 1 - y, i = forwards ? x->b->edge[e].to : x->b->edge[e].from;
        for (int32_t k = 0; k < x->K; k++)
            if (s->may[i] >> k & 1)
                moved |= raise(&path[i * x->K + k], across(x, s, e, k, forwards));
    }
    return moved;
}

/* False: an operator has no device left. */
static bool drop_late(const prove_search *x, prove_known *s, bool *moved)
{
    for (int32_t i = 0; i < x->n; i++) {
        for (int32_t k = 0; k < x->K; k++) {
            int64_t at = (int64_t)i * x->K + k;
            if (s->may[i] >> k & 1 && s->head[at] + prove_op_ns(x->b, i, k) + s->tail[at] > x->length) {
                s->may[i] &= ~(UINT64_C(1) << k);
                *moved = true;
            }
        }
        if (!s->may[i])
            return false;
    }
    return true;
}

/* ---- (sent), (arc) ---- */

/* The least time of the edge's transfer from and to the devices that are left. */
static int64_t least_transfer(const prove_search *x, int32_t e, uint64_t from, uint64_t to)
{
    int64_t least = NEVER;
    for (int32_t k = 0; k < x->K; k++)
        for (int32_t l = 0; l < x->K; l++)
            if (from >> k & 1 && to >> l & 1)
                least = UTIL_MIN(least, prove_edge_ns(x->b, e, k, l));
    return least;
}

/* With flow `tensor` one transfer serves all readers on a device; it is certain where one of them has no other device.
 * False: one ends too late. */
static bool find_transfers(prove_search *x, prove_known *s)
{
    memset(x->least, 0xff, (size_t)x->n_transfers * sizeof *x->least);
    for (int32_t e = 0; e < x->b->n_edges; e++) {
        int32_t i = x->b->edge[e].from, j = x->b->edge[e].to, to = only(s->may[j]);
        if (s->may[i] & s->may[j] || (!x->b->p->by_edge && to < 0))
            continue;
        int32_t u = prove_search_transfer(x, e, to) - x->n;
        int64_t at = cell_of(x, u + x->n);
        x->least[u] = least_transfer(x, e, s->may[i], s->may[j]);
        x->from[u] = only(s->may[i]);
        x->to[u] = to;
        raise(&s->head[at], least_of(x, s, s->head, i));
        raise(&s->tail[at], least_of(x, s, s->tail, j));
        if (s->head[at] + x->least[u] + s->tail[at] > x->length)
            return false;
    }
    return true;
}

/* An operator with one device, or a transfer that takes place. */
static prove_task task_of(const prove_search *x, const prove_known *s, int32_t number)
{
    if (number >= x->n)
        return (prove_task){cell_of(x, number), x->least[number - x->n]};
    int32_t k = only(s->may[number]);
    return (prove_task){(int64_t)number * x->K + k, prove_op_ns(x->b, number, k)};
}

static bool in_order(prove_known *s, prove_task first, prove_task second)
{
    bool moved = raise(&s->head[second.at], s->head[first.at] + first.time);
    return raise(&s->tail[first.at], second.time + s->tail[second.at]) || moved;
}

static bool follow_arcs(const prove_search *x, prove_known *s)
{
    bool moved = false;
    for (int32_t i = 0; i < s->n_arcs; i++)
        moved |= in_order(s, task_of(x, s, x->arc[i][0]), task_of(x, s, x->arc[i][1]));
    return moved;
}

/* ---- (pair), (machine), (trial) ---- */

/* Whether the task certainly takes place, and holds the machine. */
static bool holds(const prove_search *x, const prove_known *s, int32_t number, int32_t machine)
{
    int32_t u = number - x->n;
    if (u < 0)
        return only(s->may[number]) == machine && prove_op_ns(x->b, number, machine) > 0;
    prove_held h = prove_held_by(x->b->p, x->from[u], x->to[u]);
    return x->least[u] > 0 && (h.r[0] == machine || h.r[1] == machine);
}

/* Operators hold devices, transfers the rest. */
static int32_t list_jobs(const prove_search *x, const prove_known *s, int32_t machine)
{
    int32_t m = 0, end = machine < x->K ? x->n : x->n + x->n_transfers;
    for (int32_t i = machine < x->K ? 0 : x->n; i < end; i++)
        if (holds(x, s, i, machine))
            x->job[m++] = task_of(x, s, i);
    return m;
}

static bool fit_in_order(const prove_search *x, const prove_known *s, prove_task first, prove_task second)
{
    return s->head[first.at] + first.time + second.time + s->tail[second.at] <= x->length;
}

/* False: neither of two can be first. */
static bool order_pairs(const prove_search *x, prove_known *s, int32_t m, bool *moved)
{
    for (int32_t i = 0; i < m; i++)
        for (int32_t j = i + 1; j < m; j++) {
            prove_task u = x->job[i], v = x->job[j];
            bool u_first = fit_in_order(x, s, u, v), v_first = fit_in_order(x, s, v, u);
            if (!u_first && !v_first)
                return false;
            if (u_first != v_first)
                *moved |= in_order(s, u_first ? u : v, u_first ? v : u);
        }
    return true;
}

/* The most that any heads >= h and tails >= q ask for. Sorts the tasks by tails, longest first. */
static int64_t asked(const prove_known *s, prove_task *job, int32_t m)
{
    int64_t most = 0;
    for (int32_t i = 1; i < m; i++) {
        prove_task one = job[i];
        int32_t j = i;
        for (; j > 0 && s->tail[job[j - 1].at] < s->tail[one.at]; j--)
            job[j] = job[j - 1];
        job[j] = one;
    }
    for (int32_t h = 0; h < m; h++) {
        int64_t sum = 0, head = s->head[job[h].at];
        for (int32_t i = 0; i < m; i++) {
            if (s->head[job[i].at] < head)
                continue;
            sum += job[i].time;
            most = UTIL_MAX(most, head + sum + s->tail[job[i].at]);
        }
    }
    return most;
}

static void try_on(const prove_search *x, prove_known *s, int32_t k, int32_t m, bool *moved)
{
    for (int32_t i = 0; i < x->n; i++) {
        if (!(s->may[i] >> k & 1) || only(s->may[i]) >= 0 || prove_op_ns(x->b, i, k) == 0)
            continue;
        memcpy(x->trial, x->job, (size_t)m * sizeof *x->trial);
        x->trial[m] = (prove_task){(int64_t)i * x->K + k, prove_op_ns(x->b, i, k)};
        if (asked(s, x->trial, m + 1) <= x->length)
            continue;
        s->may[i] &= ~(UINT64_C(1) << k);
        *moved = true;
    }
}

static bool visit_machines(const prove_search *x, prove_known *s, bool *moved)
{
    for (int32_t machine = 0; machine < prove_resources(x->b->p); machine++) {
        int32_t m = list_jobs(x, s, machine);
        if (m == 0)
            continue;
        if (!order_pairs(x, s, m, moved) || asked(s, x->job, m) > x->length)
            return false;
        if (machine < x->K)
            try_on(x, s, machine, m, moved);
    }
    return true;
}

bool prove_search_closes(prove_search *x, prove_known *s)
{
    bool moved = true;
    for (int32_t round = 0; moved && round < MAX_ROUNDS && !prove_go_on(x->b->p); round++) {
        moved = follow_edges(x, s, true);
        moved |= follow_edges(x, s, false);
        if (!drop_late(x, s, &moved) || !find_transfers(x, s))
            return true;
        moved |= follow_arcs(x, s);
        if (!visit_machines(x, s, &moved))
            return true;
    }
    return false;
}

bool prove_search_apart(const prove_search *x, const prove_known *s, int32_t u, int32_t v)
{
    for (int32_t machine = 0; machine < prove_resources(x->b->p) && u != v; machine++)
        if (holds(x, s, u, machine) && holds(x, s, v, machine))
            return true;
    return false;
}
