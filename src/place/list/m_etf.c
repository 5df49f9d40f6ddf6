/* m-etf: Baechi's m-ETF (Jeon et al. 2020), earliest task first under memory limits.
 *
 * Again and again: among all ready operators (all producers placed) and devices with room take the pair of least start, ties
 * by topological order, then (devices are unequal) by earliest finish. start = max(arrival of the inputs with their transfers
 * queued on the ports, end of the device's last operator). No gaps are filled: that is HEFT's strength, not ETF's.
 *
 * Starts only grow while operators are placed, so each device keeps two heaps with keys that may be too low, never too high:
 * `waiting` by arrival of the inputs, `arrived` (inputs there when the device falls free, so all start together)
 * by topological order. Only tops are recomputed; a top whose key was too low goes back. That replaces the scan of all pairs.
 *
 * Changed to fit model.md: groups follow their first member; room is counted in the operators' own bytes, whole groups at
 * once; with peak memory the tensors (whose release the original counts as it goes) are seen to at the end, by fit_plan.c, as is
 * a dead end where nobody has room. O(E K log V) plus the keys that were too low. */
#include "place/list/list.h"
#include "place/placers.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    int64_t key;
    int32_t rank;
} entry;

typedef struct queue {
    entry *heap;
    size_t n, capacity;
} queue;

typedef struct etf {
    const moirai_problem *p;
    util_stop stop;
    place_list *list;
    int32_t *missing; /* producers not yet placed */
    int32_t *open;    /* devices on which a ready operator still has a chance */
    int32_t *stuck;   /* ready operators without any */
    int32_t n_stuck, n_left;
    queue *waiting, *arrived;
    int64_t free_ns[MOIRAI_MAX_DEVICES], send_ns[MOIRAI_MAX_DEVICES], receive_ns[MOIRAI_MAX_DEVICES];
    int64_t *channel_ns;
} etf;

typedef struct choice {
    int64_t start_ns, finish_ns;
    int32_t rank, device;
} choice;

/* ---- heaps ---- */

static bool before(entry a, entry b)
{
    return a.key != b.key ? a.key < b.key : a.rank < b.rank;
}

static int push(queue *q, entry x)
{
    if (util_grow(&q->heap, &q->capacity, q->n + 1, sizeof *q->heap) != 0)
        return MOIRAI_EFAIL;
    size_t at = q->n++;
    for (; at > 0 && before(x, q->heap[(at - 1) / 2]); at = (at - 1) / 2)
        q->heap[at] = q->heap[(at - 1) / 2];
    q->heap[at] = x;
    return 0;
}

/* Put x where the top was, and let it sink. */
static void replace_top(queue *q, entry x)
{
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < q->n; at = child) {
        if (child + 1 < q->n && before(q->heap[child + 1], q->heap[child]))
            child++;
        if (!before(q->heap[child], x))
            break;
        q->heap[at] = q->heap[child];
    }
    q->heap[at] = x;
}

static void pop(queue *q)
{
    q->n--;
    if (q->n > 0)
        replace_top(q, q->heap[q->n]);
}

/* ---- arrivals ---- */

/* Latest arrival of the inputs of `op` on k, transfers queued behind what the ports have; `commit` sends them. */
static int64_t arrival(etf *x, int32_t op, int32_t k, bool commit)
{
    const moirai_problem *p = x->p;
    place_list *l = x->list;
    int32_t K = p->n_devices, n = p->op_in_off[op + 1] - p->op_in_off[op];
    const int32_t *input = l->input + p->op_in_off[op];
    int64_t receive = x->receive_ns[k], ready = 0, until[MOIRAI_MAX_DEVICES]; /* of senders already used here */
    uint64_t used = 0;
    for (int32_t j = 0; j < n; j++) {
        int32_t t = p->op_in[input[j]], producer = p->tensor_producer[t], from = l->device[producer];
        int64_t at = l->finish_ns[producer];
        int32_t slot = place_list_slot(l, input[j], k);
        if (from != k && l->arrival_ns[slot] != MOIRAI_UNKNOWN) {
            at = l->arrival_ns[slot];
        } else if (from != k) {
            int64_t ns = moirai_transfer_ns(p, t, from, k);
            bool port = p->congestion == MOIRAI_CONGESTION_PORT;
            if (ns > 0 && p->congestion != MOIRAI_CONGESTION_NONE) {
                int64_t line = used >> from & 1 ? until[from] : port ? x->send_ns[from] : x->channel_ns[from * K + k];
                at = UTIL_MAX(at, UTIL_MAX(line, port ? receive : 0));
                until[from] = receive = at + ns;
                used |= (uint64_t)1 << from;
            }
            if (commit)
                place_list_place_transfer(l, slot, at, ns);
            at += ns;
        }
        ready = UTIL_MAX(ready, at);
    }
    for (; commit && used != 0; used &= used - 1) {
        int32_t from = __builtin_ctzll(used);
        x->send_ns[from] = x->channel_ns[from * K + k] = until[from];
        x->receive_ns[k] = receive;
    }
    return ready;
}

/* ---- candidates ---- */

/* May `op` still go to k? If not it leaves k's heaps for good: room only shrinks. */
static bool has_chance(etf *x, int32_t op, int32_t k)
{
    const place_list *l = x->list;
    int32_t unit = l->u->of_op[op], at = l->unit_device[unit];
    if (at != MOIRAI_NONE ? at == k : l->room_bytes[k] >= l->u->bytes[unit])
        return true;
    if (--x->open[op] == 0)
        x->stuck[x->n_stuck++] = op;
    return false;
}

/* Top of k's heaps with a true key, and whether it starts when k falls free. False: none is left. */
static int candidate(etf *x, int32_t k, choice *out, bool *found)
{
    queue *waiting = &x->waiting[k], *arrived = &x->arrived[k];
    *found = false;
    for (;;) {
        while (waiting->n > 0 && waiting->heap[0].key <= x->free_ns[k]) {
            entry top = {0, waiting->heap[0].rank};
            pop(waiting);
            if (push(arrived, top) != 0)
                return MOIRAI_EFAIL;
        }
        queue *q = arrived->n > 0 ? arrived : waiting;
        if (q->n == 0)
            return 0;
        entry top = q->heap[0];
        int32_t op = x->p->topo[top.rank];
        if (x->list->device[op] != MOIRAI_NONE || !has_chance(x, op, k)) {
            pop(q);
            continue;
        }
        int64_t ready = arrival(x, op, k, false), start = UTIL_MAX(ready, x->free_ns[k]);
        if (q == arrived && ready > x->free_ns[k]) {
            pop(q);
            if (push(waiting, (entry){ready, top.rank}) != 0)
                return MOIRAI_EFAIL;
            continue;
        }
        if (q == waiting && ready > top.key) {
            replace_top(q, (entry){ready, top.rank});
            continue;
        }
        *out = (choice){start, start + moirai_op_ns(x->p, op, k), top.rank, k};
        *found = true;
        return 0;
    }
}

static bool better(const choice *a, const choice *b)
{
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns;
    if (a->rank != b->rank)
        return a->rank < b->rank;
    return a->finish_ns < b->finish_ns;
}

/* ---- placing ---- */

static int become_ready(etf *x, int32_t op)
{
    place_list_inputs(x->list, op);
    x->open[op] = __builtin_popcountll(x->p->op_devices[op]);
    for (uint64_t open = x->p->op_devices[op]; open != 0; open &= open - 1) {
        int32_t k = __builtin_ctzll(open);
        if (push(&x->waiting[k], (entry){arrival(x, op, k, false), x->p->topo_rank[op]}) != 0)
            return MOIRAI_EFAIL;
    }
    return 0;
}

static int place_at(etf *x, int32_t op, int32_t k)
{
    const moirai_problem *p = x->p;
    int64_t ns = moirai_op_ns(p, op, k), start = arrival(x, op, k, true);
    if (ns > 0) {
        start = UTIL_MAX(start, x->free_ns[k]);
        x->free_ns[k] = start + ns;
    }
    place_list_place_op(x->list, op, k, start);
    x->n_left--;
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++)
        for (int32_t e = p->tensor_edge_off[p->op_out[j]]; e < p->tensor_edge_off[p->op_out[j] + 1]; e++)
            if (--x->missing[p->edge_reader[e]] == 0 && become_ready(x, p->edge_reader[e]) != 0)
                return MOIRAI_EFAIL;
    return 0;
}

/* Nobody has room: where it would finish first. */
static int place_stuck(etf *x, int32_t op)
{
    int32_t best = MOIRAI_NONE;
    int64_t best_finish = INT64_MAX;
    for (uint64_t open = place_list_devices(x->list, op); open != 0; open &= open - 1) {
        int32_t k = __builtin_ctzll(open);
        int64_t finish = UTIL_MAX(arrival(x, op, k, false), x->free_ns[k]) + moirai_op_ns(x->p, op, k);
        if (best == MOIRAI_NONE || finish < best_finish) {
            best = k;
            best_finish = finish;
        }
    }
    return place_at(x, op, best);
}

static int place_next(etf *x)
{
    choice best = {0}, now;
    bool any = false, found;
    for (int32_t k = 0; k < x->p->n_devices; k++) {
        int rc = candidate(x, k, &now, &found);
        if (rc != 0)
            return rc;
        if (found && (!any || better(&now, &best))) {
            best = now;
            any = true;
        }
    }
    if (x->n_stuck > 0)
        return place_stuck(x, x->stuck[--x->n_stuck]);
    if (!any)
        return moirai_error(MOIRAI_EFAIL, "%d operators never became ready", x->n_left);
    return place_at(x, x->p->topo[best.rank], best.device);
}

/* ---- set-up ---- */

static int run(moirai_plan **out, etf *x)
{
    const moirai_problem *p = x->p;
    size_t V = (size_t)p->n_ops, K = (size_t)p->n_devices;
    x->missing = util_alloc(V, sizeof *x->missing);
    x->open = util_alloc(V, sizeof *x->open);
    x->stuck = util_alloc(V, sizeof *x->stuck);
    x->waiting = util_alloc(K, sizeof *x->waiting);
    x->arrived = util_alloc(K, sizeof *x->arrived);
    x->channel_ns = util_alloc(K * K, sizeof *x->channel_ns);
    if (!x->missing || !x->open || !x->stuck || !x->waiting || !x->arrived || !x->channel_ns)
        return MOIRAI_EFAIL;
    x->n_left = p->n_ops;
    int rc = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        x->missing[i] = p->op_in_off[i + 1] - p->op_in_off[i];
    for (int32_t i = 0; i < p->n_ops && rc == 0; i++)
        if (p->op_in_off[i + 1] == p->op_in_off[i])
            rc = become_ready(x, i);
    while (rc == 0 && x->n_left > 0)
        rc = util_stopped(&x->stop) ? place_list_late(p, p->n_ops - x->n_left) : place_next(x);
    return rc == 0 ? place_list_plan(out, x->list) : rc;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    etf x = {.p = p, .stop = util_stop_of(&o->budget)};
    int rc = place_list_new(&x.list, p);
    if (rc == 0)
        rc = run(out, &x);
    for (int32_t k = 0; k < p->n_devices; k++) {
        if (x.waiting != NULL)
            free(x.waiting[k].heap);
        if (x.arrived != NULL)
            free(x.arrived[k].heap);
    }
    free(x.waiting);
    free(x.arrived);
    free(x.missing);
    free(x.open);
    free(x.stuck);
    free(x.channel_ns);
    place_list_free(x.list);
    return rc;
}

const moirai_placer place_m_etf = {
    .name = "m-etf",
    .summary = "Baechi's m-ETF: the ready operator and device of earliest start",
    .place = place,
};
