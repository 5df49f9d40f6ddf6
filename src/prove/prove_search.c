/* The proof of a pair by a search tree, walked again.
 *
 * Suppose a plan takes at most T between the cuts, on devices a and z. A node of the tree knows, of every such plan that
 * it speaks of: the devices left to each operator (`may`); head(i, k) and tail(i, k), at most the start of i on k and what
 * follows its finish there; the same of each transfer, should it take place; and orders of tasks (arcs). Rules add to
 * that until nothing changes:
 *
 *   (edge)    An input comes from some device left to its producer: the head of i on l is at least the least over these of
 *             finish and transfer. Tails likewise, over the devices left to a reader.
 *   (late)    A device with head + time + tail > T is left no longer. An operator without devices closes the node.
 *   (sent)    Where producer and reader share no device a transfer takes place. It starts after its producer's least
 *             finish, takes at least its least time, and its readers follow it.
 *   (arc)     Of two tasks in order the later one starts after the other has finished, and is part of what follows it.
 *   (pair)    Two tasks on one machine (device, port, channel) are served one after the other. If one cannot be first
 *             within T, the other is; if neither can, the node is closed.
 *   (machine) The tasks of one machine with heads >= h and tails >= q need h + their times + q together, at most T.
 *   (trial)   If an operator, put on k beside what is there for certain, breaks (machine), it is not on k.
 *
 * Each rule states what follows for every plan of at most T that the node speaks of, so their order does not matter. The
 * tree says how nodes are divided: by the device of an operator, over all devices that the problem allows it, or by which
 * of two tasks goes first, where both certainly take place and hold one machine. That leaves no plan out. If every
 * node that is not divided is closed by the rules, there is no plan of at most T, and T + 1 is proven. Groups and memory
 * are left out, which only admits more plans. O(nodes * rounds * (E K^2 + V K m^2)), m tasks on a machine. */
#include "prove/prove_search.h"

#include <string.h>

#include "util/util.h"

#define NEVER INT64_MAX
#define MAX_ROUNDS 1000 /* of the rules in one node; what is not closed by then is open */

int32_t prove_search_transfer(const prove_search *x, int32_t e, int32_t to)
{
    return x->b->p->by_edge ? e : x->b->edge[e].packet * x->K + to;
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

static int64_t arrival(const prove_search *x, const prove_known *s, int32_t e, int32_t l)
{
    int32_t i = x->b->edge[e].from;
    int64_t soonest = NEVER, no_sooner = s->out_head[prove_search_transfer(x, e, l)];
    for (int32_t k = 0; k < x->K; k++)
        if (s->may[i] >> k & 1) {
            int64_t done = s->head[i * x->K + k] + prove_op_ns(x->b, i, k);
            soonest = UTIL_MIN(soonest, k == l ? done : UTIL_MAX(done, no_sooner) + prove_edge_ns(x->b, e, k, l));
        }
    return soonest;
}

static int64_t rest(const prove_search *x, const prove_known *s, int32_t e, int32_t k)
{
    int32_t j = x->b->edge[e].to;
    int64_t least = NEVER;
    for (int32_t l = 0; l < x->K; l++)
        if (s->may[j] >> l & 1) {
            int64_t after = prove_op_ns(x->b, j, l) + s->tail[j * x->K + l];
            if (k != l)
                after = UTIL_MAX(after, s->out_tail[prove_search_transfer(x, e, l)]) + prove_edge_ns(x->b, e, k, l);
            least = UTIL_MIN(least, after);
        }
    return least;
}

/* Edges come by producer, and producers before their readers: a head is final before it is passed on. */
static bool follow_edges(const prove_search *x, prove_known *s)
{
    const prove_edge *edge = x->b->edge;
    bool moved = false;
    for (int32_t e = 0; e < x->b->n_edges; e++)
        for (int32_t l = 0; l < x->K; l++)
            if (s->may[edge[e].to] >> l & 1)
                moved |= raise(&s->head[edge[e].to * x->K + l], arrival(x, s, e, l));
    for (int32_t e = x->b->n_edges - 1; e >= 0; e--)
        for (int32_t k = 0; k < x->K; k++)
            if (s->may[edge[e].from] >> k & 1)
                moved |= raise(&s->tail[edge[e].from * x->K + k], rest(x, s, e, k));
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

/* The edge's transfer to the devices `to` takes place. */
static void send(prove_search *x, prove_known *s, int32_t e, int32_t u, uint64_t to)
{
    int32_t i = x->b->edge[e].from;
    int64_t done = NEVER, least = NEVER;
    for (int32_t k = 0; k < x->K; k++)
        for (int32_t l = 0; l < x->K; l++)
            if (s->may[i] >> k & 1 && to >> l & 1) {
                done = UTIL_MIN(done, s->head[i * x->K + k] + prove_op_ns(x->b, i, k));
                least = UTIL_MIN(least, prove_edge_ns(x->b, e, k, l));
            }
    x->sure[u] = true;
    x->least[u] = least;
    x->from[u] = only(s->may[i]);
    x->to[u] = only(to);
    raise(&s->out_head[u], done);
}

/* What follows a transfer: its reader, on any of its devices. */
static int64_t after_reader(const prove_search *x, const prove_known *s, int32_t j)
{
    int64_t least = NEVER;
    for (int32_t l = 0; l < x->K; l++)
        if (s->may[j] >> l & 1)
            least = UTIL_MIN(least, prove_op_ns(x->b, j, l) + s->tail[j * x->K + l]);
    return least;
}

/* With flow `tensor` one transfer serves all readers on a device; it is certain where one of them has no other device.
 * False: one ends too late. */
static bool find_transfers(prove_search *x, prove_known *s)
{
    memset(x->sure, 0, (size_t)x->n_transfers * sizeof *x->sure);
    for (int32_t e = 0; e < x->b->n_edges; e++) {
        int32_t i = x->b->edge[e].from, j = x->b->edge[e].to;
        if (s->may[i] & s->may[j] || (!x->b->p->by_edge && only(s->may[j]) < 0))
            continue;
        int32_t u = prove_search_transfer(x, e, x->b->p->by_edge ? 0 : only(s->may[j]));
        if (!x->sure[u])
            send(x, s, e, u, s->may[j]);
        raise(&s->out_tail[u], after_reader(x, s, j));
        if (s->out_head[u] + x->least[u] + s->out_tail[u] > x->length)
            return false;
    }
    return true;
}

static prove_task task_of(const prove_search *x, const prove_known *s, int32_t number)
{
    if (number >= x->n) {
        int32_t u = number - x->n;
        return (prove_task){s->out_head[u], x->least[u], s->out_tail[u], number};
    }
    int32_t k = only(s->may[number]);
    int64_t at = (int64_t)number * x->K + k;
    return (prove_task){s->head[at], prove_op_ns(x->b, number, k), s->tail[at], number};
}

static bool write_back(const prove_search *x, prove_known *s, const prove_task *t)
{
    if (t->number >= x->n) {
        bool moved = raise(&s->out_head[t->number - x->n], t->head);
        return raise(&s->out_tail[t->number - x->n], t->tail) || moved;
    }
    int64_t at = (int64_t)t->number * x->K + only(s->may[t->number]);
    bool moved = raise(&s->head[at], t->head);
    return raise(&s->tail[at], t->tail) || moved;
}

static bool in_order(prove_task *first, prove_task *second)
{
    bool moved = raise(&second->head, first->head + first->time);
    return raise(&first->tail, second->time + second->tail) || moved;
}

static bool follow_arcs(const prove_search *x, prove_known *s)
{
    bool moved = false;
    for (int32_t i = 0; i < s->n_arcs; i++) {
        prove_task first = task_of(x, s, x->arc[i][0]), second = task_of(x, s, x->arc[i][1]);
        if (!in_order(&first, &second))
            continue;
        moved |= write_back(x, s, &first);
        moved |= write_back(x, s, &second);
    }
    return moved;
}

/* ---- (pair), (machine), (trial) ---- */

/* Whether the transfer, which takes place, certainly holds the machine. */
static bool holds(const prove_search *x, int32_t u, int32_t machine)
{
    int32_t K = x->K;
    if (x->least[u] <= 0 || machine < K)
        return false;
    if (x->b->p->congestion == PROVE_CHANNEL)
        return x->from[u] >= 0 && x->to[u] >= 0 && machine == K + x->from[u] * K + x->to[u];
    return machine < 2 * K ? x->from[u] == machine - K : x->to[u] == machine - 2 * K;
}

static int32_t list_jobs(const prove_search *x, const prove_known *s, int32_t machine)
{
    int32_t m = 0;
    for (int32_t i = 0; machine < x->K && i < x->n; i++)
        if (only(s->may[i]) == machine && prove_op_ns(x->b, i, machine) > 0)
            x->job[m++] = task_of(x, s, i);
    for (int32_t u = 0; machine >= x->K && u < x->n_transfers; u++)
        if (x->sure[u] && holds(x, u, machine))
            x->job[m++] = task_of(x, s, x->n + u);
    return m;
}

/* False: neither of two can be first. */
static bool order_pairs(const prove_search *x, int32_t m, bool *moved)
{
    for (int32_t i = 0; i < m; i++)
        for (int32_t j = i + 1; j < m; j++) {
            prove_task *u = &x->job[i], *v = &x->job[j];
            bool u_first = u->head + u->time + v->time + v->tail <= x->length,
                 v_first = v->head + v->time + u->time + u->tail <= x->length;
            if (!u_first && !v_first)
                return false;
            if (!u_first)
                *moved |= in_order(v, u);
            else if (!v_first)
                *moved |= in_order(u, v);
        }
    return true;
}

/* The most that any heads >= h and tails >= q ask for. Sorts the tasks by tails, longest first. */
static int64_t asked(prove_task *job, int32_t m)
{
    int64_t most = 0;
    for (int32_t i = 1; i < m; i++) {
        prove_task one = job[i];
        int32_t j = i;
        for (; j > 0 && job[j - 1].tail < one.tail; j--)
            job[j] = job[j - 1];
        job[j] = one;
    }
    for (int32_t h = 0; h < m; h++) {
        int64_t sum = 0;
        for (int32_t i = 0; i < m; i++) {
            if (job[i].head < job[h].head)
                continue;
            sum += job[i].time;
            most = UTIL_MAX(most, job[h].head + sum + job[i].tail);
        }
    }
    return most;
}

static void try_on(const prove_search *x, prove_known *s, int32_t k, int32_t m, bool *moved)
{
    for (int32_t i = 0; i < x->n; i++) {
        int64_t at = (int64_t)i * x->K + k;
        if (!(s->may[i] >> k & 1) || only(s->may[i]) >= 0 || prove_op_ns(x->b, i, k) == 0)
            continue;
        memcpy(x->trial, x->job, (size_t)m * sizeof *x->trial);
        x->trial[m] = (prove_task){s->head[at], prove_op_ns(x->b, i, k), s->tail[at], i};
        if (asked(x->trial, m + 1) <= x->length)
            continue;
        s->may[i] &= ~(UINT64_C(1) << k);
        *moved = true;
    }
}

static bool visit_machines(const prove_search *x, prove_known *s, bool *moved)
{
    int32_t n = prove_resources(x->b->p);
    for (int32_t machine = 0; machine < n; machine++) {
        int32_t m = list_jobs(x, s, machine);
        bool turned = false;
        if (m == 0)
            continue;
        if (!order_pairs(x, m, &turned))
            return false;
        for (int32_t i = 0; i < m && turned; i++)
            *moved |= write_back(x, s, &x->job[i]);
        if (asked(x->job, m) > x->length)
            return false;
        if (machine < x->K)
            try_on(x, s, machine, m, moved);
    }
    return true;
}

/* Whether the rules leave nothing of the node. */
bool prove_search_closes(prove_search *x, prove_known *s)
{
    bool moved = true;
    for (int32_t round = 0; moved && round < MAX_ROUNDS && !prove_go_on(x->b->p); round++) {
        moved = follow_edges(x, s);
        if (!drop_late(x, s, &moved) || !find_transfers(x, s))
            return true;
        moved |= follow_arcs(x, s);
        if (!visit_machines(x, s, &moved))
            return true;
    }
    return false;
}

/* Device or transfer, for certain: the machines that it holds. */
static bool on_machine(const prove_search *x, const prove_known *s, int32_t number, int32_t machine)
{
    if (number < x->n)
        return only(s->may[number]) == machine && prove_op_ns(x->b, number, machine) > 0;
    return x->sure[number - x->n] && holds(x, number - x->n, machine);
}

bool prove_search_apart(const prove_search *x, const prove_known *s, int32_t u, int32_t v)
{
    for (int32_t machine = 0; machine < prove_resources(x->b->p) && u != v; machine++)
        if (on_machine(x, s, u, machine) && on_machine(x, s, v, machine))
            return true;
    return false;
}
