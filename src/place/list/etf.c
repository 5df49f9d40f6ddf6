/* Earliest time first: the engine of m-ETF, m-SCT and GETF.
 *
 * Again and again: among all ready operators (all producers placed) and devices with room take the pair of least start,
 * ties by topological order, then (devices are unequal) by earliest finish. start = max(arrival of the inputs with
 * their transfers queued on the ports, end of the device's last operator). No gaps are filled: that is HEFT's strength,
 * not ETF's.
 *
 * Starts only grow while operators are placed, so each device keeps two heaps with keys that may be too low, never too
 * high: `waiting` by arrival of the inputs, `arrived` (inputs there when the device falls free, so all start together)
 * by topological order. Only tops are recomputed; a top whose key was too low goes back. That replaces the scan of all
 * pairs.
 *
 * Two rules can be added (etf.h). Devices in stages: an operator tries those of the next stage only when none of the
 * one before has room (GETF's groups). Favourite children (m-SCT): a device whose last operator has a ready, unplaced
 * favourite child that starts nowhere earlier than there is "awake". It takes an urgent operator, one whose inputs are
 * by then on every device that can run it, if that starts no later than the favourite, else the favourite; nothing
 * else. A third heap per device holds the ready operators by the moment at which they become urgent, that with the
 * inputs there longest first.
 *
 * Common to all, to fit model.md: groups follow their first member; room is counted in the operators' own bytes, whole
 * groups at once; with peak memory the tensors (whose release the original counts as it goes) are seen to at the end,
 * by fit_plan.c, as is a dead end where nobody has room. O(E K log V) plus the keys that were too low; with favourites
 * also K arrivals per step for each awake device. */
#include "place/list/etf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/list/etf_queue.h"
#include "place/list/list.h"
#include "util/util.h"

#define STOP_EVERY 256

typedef struct etf {
    const moirai_problem *p;
    place_list *list;
    int32_t *missing; /* producers not yet placed */
    int32_t *open;    /* devices on which a ready operator still has a chance */
    int32_t *stuck;   /* ready operators without any */
    int32_t n_stuck, n_left;
    bool moved_on; /* an operator went on to its next stage: devices looked at before may have it now */
    const place_etf_rules *rules;
    int32_t *stage;                   /* of a ready operator: which devices it tries */
    uint64_t *tried;                  /* devices of this stage and those before, where there are stages */
    int32_t words;                    /* of a set of devices */
    int32_t last[MOIRAI_MAX_DEVICES]; /* the operator placed last, or MOIRAI_NONE */
    place_queue *waiting, *arrived, *urgent;
    int64_t free_ns[MOIRAI_MAX_DEVICES], send_ns[MOIRAI_MAX_DEVICES], receive_ns[MOIRAI_MAX_DEVICES];
    int64_t *channel_ns;
} etf;

typedef struct choice {
    int64_t start_ns, finish_ns;
    int32_t rank, device;
    bool is_favourite; /* of the operator that this device, awake, ran last */
} choice;

/* ---- arrivals ---- */

/* Latest arrival of the inputs of `op` on k, transfers queued behind what the ports have; `commit` sends them. */
static int64_t arrival(etf *x, int32_t op, int32_t k, bool commit)
{
    const moirai_problem *p = x->p;
    place_list *l = x->list;
    int32_t K = p->n_devices, n = p->op_in_off[op + 1] - p->op_in_off[op];
    const int32_t *input = l->input + p->op_in_off[op];
    int64_t receive = x->receive_ns[k], ready = 0, until[MOIRAI_MAX_DEVICES]; /* of senders already used here */
    device_set used;
    for (int32_t w = 0; w < x->words; w++)
        used.word[w] = 0;
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
                int64_t line = device_set_has(&used, from) ? until[from]
                               : port                      ? x->send_ns[from]
                                                           : x->channel_ns[from * K + k];
                at = UTIL_MAX(at, UTIL_MAX(line, port ? receive : 0));
                until[from] = receive = at + ns;
                device_set_add(&used, from);
            }
            if (commit)
                place_list_place_transfer(l, slot, at, ns);
            at += ns;
        }
        ready = UTIL_MAX(ready, at);
    }
    for (int32_t from = 0; commit && from < K; from++)
        if (device_set_has(&used, from)) {
            x->send_ns[from] = x->channel_ns[from * K + k] = until[from];
            x->receive_ns[k] = receive;
        }
    return ready;
}

/* ---- candidates ---- */

static bool has_room(const etf *x, int32_t op, int32_t k)
{
    const place_list *l = x->list;
    int32_t unit = l->u->of_op[op], at = l->unit_device[unit];
    return at != MOIRAI_NONE ? at == k : l->room_bytes[k] >= l->u->bytes[unit];
}

/* When the inputs of `op` are on every device that can run it. */
static int64_t urgent_from(etf *x, int32_t op)
{
    int64_t all = 0;
    for (int32_t k = 0; k < x->p->n_devices; k++)
        if (moirai_op_may(x->p, op, k))
            all = UTIL_MAX(all, arrival(x, op, k, false));
    return all;
}

static int offer(etf *x, int32_t op, const device_set *devices)
{
    int64_t all = 0;
    int32_t rank = x->p->topo_rank[op];
    DEVICE_SET_EACH(k, devices) {
        int64_t at = arrival(x, op, k, false);
        all = UTIL_MAX(all, at);
        bool here =
            at <=
            x->free_ns[k]; /* where it would move next: a fork into 200,000 has its turns on each of the devices */
        if (place_queue_push(here ? &x->arrived[k] : &x->waiting[k], (place_entry){here ? 0 : at, rank}))
            return MOIRAI_EFAIL;
    }
    if (!x->rules->favourite)
        return 0;
    DEVICE_SET_EACH(k, devices)
        if (place_queue_push(&x->urgent[k], (place_entry){all, rank}))
            return MOIRAI_EFAIL;
    return 0;
}

/* Offer `op` to the devices of its next stage that have not seen it yet; without any it is stuck. */
static int next_stage(etf *x, int32_t op)
{
    device_set devices = {{0}};
    bool stages = x->rules->devices != NULL, more;
    if (!stages && x->stage[op] == 0)
        devices = device_set_of(x->p, op);
    do {
        if (stages)
            devices.word[0] = x->rules->devices(x->rules->data, op, x->stage[op]);
        more = stages ? devices.word[0] != 0 : x->stage[op] == 0;
        x->stage[op]++;
        if (!more) {
            x->stuck[x->n_stuck++] = op;
            return 0;
        }
        devices.word[0] &= ~(stages ? x->tried[op] : 0);
    } while (stages && devices.word[0] == 0);
    x->tried[op] |= stages ? devices.word[0] : 0;
    x->open[op] = device_set_count(&devices);
    return offer(x, op, &devices);
}

/* May `op` still go to k? If not it leaves k's heaps for good: room only shrinks. */
static int has_chance(bool *out, etf *x, int32_t op, int32_t k)
{
    *out = has_room(x, op, k);
    if (*out || --x->open[op] > 0)
        return 0;
    x->moved_on = true;
    return next_stage(x, op);
}

/* Top of k's heaps with a true key, and whether it starts when k falls free. False: none is left. */
static int candidate(etf *x, int32_t k, choice *out, bool *found)
{
    place_queue *waiting = &x->waiting[k], *arrived = &x->arrived[k];
    *found = false;
    for (;;) {
        while (waiting->n > 0 && waiting->heap[0].key <= x->free_ns[k]) {
            place_entry top = {0, waiting->heap[0].rank};
            place_queue_pop(waiting);
            if (place_queue_push(arrived, top))
                return MOIRAI_EFAIL;
        }
        place_queue *q = arrived->n > 0 ? arrived : waiting;
        if (q->n == 0)
            return 0;
        place_entry top = q->heap[0];
        int32_t op = x->p->topo[top.rank];
        bool stays = x->list->device[op] == MOIRAI_NONE;
        if (stays && has_chance(&stays, x, op, k))
            return MOIRAI_EFAIL;
        if (!stays) {
            place_queue_pop(q);
            continue;
        }
        int64_t ready = arrival(x, op, k, false), start = UTIL_MAX(ready, x->free_ns[k]);
        if (q == arrived && ready > x->free_ns[k]) {
            place_queue_pop(q);
            if (place_queue_push(waiting, (place_entry){ready, top.rank}))
                return MOIRAI_EFAIL;
            continue;
        }
        if (q == waiting && ready > top.key) {
            place_queue_replace(q, (place_entry){ready, top.rank});
            continue;
        }
        *out = (choice){start, start + moirai_op_ns(x->p, op, k), top.rank, k, false};
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
    if (a->is_favourite != b->is_favourite)
        return a->is_favourite;
    return a->finish_ns < b->finish_ns;
}

/* ---- favourite children ---- */

/* Is k awake, and when would the favourite start there? */
static bool is_awake(etf *x, int32_t k, choice *favourite)
{
    const moirai_problem *p = x->p;
    int32_t f = x->rules->favourite && x->last[k] != MOIRAI_NONE ? x->rules->favourite[x->last[k]] : MOIRAI_NONE;
    if (f == MOIRAI_NONE || x->list->device[f] != MOIRAI_NONE || x->missing[f] > 0 || !moirai_op_may(p, f, k) ||
        !has_room(x, f, k))
        return false;
    int64_t here = UTIL_MAX(arrival(x, f, k, false), x->free_ns[k]);
    for (int32_t l = 0; l < p->n_devices; l++) {
        if (l != k && moirai_op_may(p, f, l) && x->free_ns[l] < here && has_room(x, f, l) &&
            arrival(x, f, l, false) < here)
            return false;
    }
    *favourite = (choice){here, here + moirai_op_ns(p, f, k), p->topo_rank[f], k, true};
    return true;
}

/* The operator that is urgent first and may go to k; *found false where there is none that starts by `limit_ns`. Tops
 * that are placed or have no room leave; the other heaps count that, so nothing is stuck by it. */
static void urgent_candidate(etf *x, int32_t k, int64_t limit_ns, choice *out, bool *found)
{
    place_queue *q = &x->urgent[k];
    *found = false;
    while (q->n > 0 && UTIL_MAX(q->heap[0].key, x->free_ns[k]) <= limit_ns) {
        place_entry top = q->heap[0];
        int32_t op = x->p->topo[top.rank];
        int64_t from = 0;
        if (x->list->device[op] != MOIRAI_NONE || !has_room(x, op, k)) {
            place_queue_pop(q);
        } else if ((from = urgent_from(x, op)) > top.key) {
            place_queue_replace(q, (place_entry){from, top.rank});
        } else {
            int64_t start = UTIL_MAX(from, x->free_ns[k]);
            *out = (choice){start, start + moirai_op_ns(x->p, op, k), top.rank, k, false};
            *found = true;
            return;
        }
    }
}

/* What device k would do next. */
static int device_candidate(etf *x, int32_t k, choice *out, bool *found)
{
    choice favourite;
    if (!is_awake(x, k, &favourite))
        return candidate(x, k, out, found);
    urgent_candidate(x, k, favourite.start_ns, out, found);
    if (!*found)
        *out = favourite;
    *found = true;
    return 0;
}

/* ---- placing ---- */

static int become_ready(etf *x, int32_t op)
{
    place_list_inputs(x->list, op);
    return next_stage(x, op);
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
    x->last[k] = op;
    x->n_left--;
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++)
        for (int32_t e = p->tensor_edge_off[p->op_out[j]]; e < p->tensor_edge_off[p->op_out[j] + 1]; e++) {
            bool late = e % STOP_EVERY == 0 && util_stopped(&x->rules->stop); /* all others may wait for this one */
            int rc = late                                   ? place_list_late(p, p->n_ops - x->n_left)
                     : --x->missing[p->edge_reader[e]] == 0 ? become_ready(x, p->edge_reader[e])
                                                            : 0;
            if (rc)
                return rc;
        }
    return 0;
}

/* Nobody has room: where it would finish first. */
static int place_stuck(etf *x, int32_t op)
{
    int32_t best = MOIRAI_NONE;
    int64_t best_finish = INT64_MAX;
    device_set open = place_list_devices(x->list, op);
    DEVICE_SET_EACH(k, &open) {
        int64_t finish = UTIL_MAX(arrival(x, op, k, false), x->free_ns[k]) + moirai_op_ns(x->p, op, k);
        if (best == MOIRAI_NONE || finish < best_finish) {
            best = k;
            best_finish = finish;
        }
    }
    return place_at(x, op, best);
}

/* The best of what the devices would do next. */
static int choose(etf *x, choice *best, bool *any)
{
    choice now;
    bool found;
    do {
        x->moved_on = *any = false;
        for (int32_t k = 0; k < x->p->n_devices; k++) {
            int rc = device_candidate(x, k, &now, &found);
            if (rc)
                return rc;
            if (found && (!*any || better(&now, best))) {
                *best = now;
                *any = true;
            }
        }
    } while (x->moved_on);
    return 0;
}

static int place_next(etf *x)
{
    choice best = {0};
    bool any;
    int rc = choose(x, &best, &any);
    if (rc)
        return rc;
    if (x->n_stuck > 0)
        return place_stuck(x, x->stuck[--x->n_stuck]);
    if (!any)
        return moirai_error(MOIRAI_EFAIL, "%d operators never became ready", x->n_left);
    return place_at(x, x->p->topo[best.rank], best.device);
}

/* ---- set-up ---- */

static int prepare(etf *x)
{
    size_t V = (size_t)x->p->n_ops, K = (size_t)x->p->n_devices;
    x->missing = util_alloc(V, sizeof *x->missing);
    x->open = util_alloc(V, sizeof *x->open);
    x->stuck = util_alloc(V, sizeof *x->stuck);
    x->stage = util_alloc(V, sizeof *x->stage);
    x->tried = util_alloc(V, sizeof *x->tried);
    x->waiting = util_alloc(K, sizeof *x->waiting);
    x->arrived = util_alloc(K, sizeof *x->arrived);
    x->urgent = util_alloc(K, sizeof *x->urgent);
    x->channel_ns = util_alloc(K * K, sizeof *x->channel_ns);
    if (!x->missing || !x->open || !x->stuck || !x->stage || !x->tried || !x->waiting || !x->arrived || !x->urgent ||
        !x->channel_ns)
        return MOIRAI_EFAIL;
    for (size_t k = 0; k < K; k++)
        x->last[k] = MOIRAI_NONE;
    x->n_left = x->p->n_ops;
    x->words = moirai_device_words(x->p);
    return 0;
}

static int run(moirai_plan **out, etf *x)
{
    const moirai_problem *p = x->p;
    int rc = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        x->missing[i] = p->op_in_off[i + 1] - p->op_in_off[i];
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        if (p->op_in_off[i + 1] == p->op_in_off[i])
            rc = i % STOP_EVERY == 0 && util_stopped(&x->rules->stop) ? place_list_late(p, 0) : become_ready(x, i);
    while (!rc && x->n_left > 0)
        rc = util_stopped(&x->rules->stop) ? place_list_late(p, p->n_ops - x->n_left) : place_next(x);
    return !rc ? place_list_plan(out, x->list, &x->rules->stop) : rc;
}

static void free_queues(place_queue *q, int32_t n)
{
    for (int32_t k = 0; q && k < n; k++)
        free(q[k].heap);
    free(q);
}

util_stop place_etf_rest(util_stop stop)
{
    if (moirai_interrupt_raised(stop.interrupt))
        stop.interrupt = NULL;
    return stop;
}

util_stop place_etf_first(const util_stop *stop)
{
    double left = util_stop_left_s(stop);
    return isinf(left) ? *stop : util_stop_within(stop, 0.75 * left);
}

int place_etf(moirai_plan **out, const moirai_problem *p, const place_etf_rules *rules)
{
    etf x = {.p = p, .rules = rules};
    int rc = place_list_new(&x.list, p);
    rc = rc ? rc : prepare(&x);
    rc = rc ? rc : run(out, &x);
    free_queues(x.waiting, p->n_devices);
    free_queues(x.arrived, p->n_devices);
    free_queues(x.urgent, p->n_devices);
    free(x.missing);
    free(x.open);
    free(x.stuck);
    free(x.stage);
    free(x.tried);
    free(x.channel_ns);
    place_list_free(x.list);
    return rc;
}
