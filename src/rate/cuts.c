/* Contiguous stages by what every interval costs.
 *
 * The farthest prefix (stages.c) is the best there is where transfers cost little. Where they cost much it ends on a dear tensor, and the next stage pays for it: better stages end
 * earlier. So all intervals between two places of the order are costed, with what they receive and send, and the least largest cost over all rows of them is found by dynamic
 * programming over places and multisets of devices: devices of a kind are one. What a tensor takes is a mean over pairs of devices, and a sender pays once,
 * whoever reads: exact where all pairs are alike and each tensor leaves for one stage.
 * An order of more than MOST_PLACES units is cut only where least crosses, one place in each of so many stretches. */
#include "rate/cuts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem/equal_devices.h"
#include "util/util.h"

#define MOST_PLACES 400
#define MOST_SETS 512

typedef struct packet_at {
    int32_t from, first, last; /* places of its producer and of its readers */
    double ns;
} packet_at;

typedef struct cuts {
    const rate_cuts_task *task;
    int32_t n, *unit, *place; /* units in their order, and each one's place */
    packet_at *packet;
    int32_t n_kinds, kind[MOIRAI_MASK_DEVICES],
        count[MOIRAI_MASK_DEVICES];            /* a device of each, and how many there are */
    int32_t least[MOIRAI_MASK_DEVICES];        /* device -> the one that stands for its kind */
    int32_t step[MOIRAI_MASK_DEVICES], n_sets; /* a set has step[q] for each of kind q */
    int32_t n_cuts, *cut;                      /* 0 .. n */
    double *cost;                              /* [(kind * n_cuts + begin) * n_cuts + end]; HUGE_VAL: impossible */
    double *best;                              /* [set * n_cuts + end] */
    int32_t *from, *by;                        /* the cut and the kind of its last stage */
    int32_t *got, *out;                        /* per packet: counted as received, as sent, with begin + 1 */
} cuts;

/* ---- what is where ---- */

static double mean_ns(const relax_view *v, int32_t packet)
{
    double ns = 0;
    for (int32_t k = 0; k < v->K; k++)
        ns += (double)relax_transfers(v, packet)[k * v->K + (k + 1) % v->K] / v->K;
    return ns;
}

typedef struct guest {
    int32_t place, unit; /* its own place or its host's; itself */
    bool late;           /* behind its host */
} guest;

static int by_place(const void *a, const void *b)
{
    const guest *x = a, *y = b;
    return x->place != y->place ? x->place - y->place : x->late != y->late ? x->late - y->late : x->unit - y->unit;
}

/* The group that shares the dearest tensor with each unit of one operator. */
static void find_hosts(int32_t *host, double *dearest, const cuts *x)
{
    const place_units *u = x->task->units;
    const relax_view *v = x->task->v;
    for (int32_t i = 0; i < u->n; i++)
        host[i] = MOIRAI_NONE;
    for (int32_t j = 0; j < v->n_packets; j++)
        for (int32_t e = v->packet_off[j]; e < v->packet_off[j + 1]; e++) {
            int32_t end[] = {u->of_op[relax_producer(v, j)], u->of_op[v->p->edge_reader[e]]};
            for (int side = 0; side < 2; side++) {
                int32_t one = end[side], group = end[1 - side];
                bool lonely = u->off[one + 1] - u->off[one] == 1 && u->off[group + 1] - u->off[group] > 1;
                if (lonely && (host[one] == MOIRAI_NONE || mean_ns(v, j) > dearest[one])) {
                    host[one] = group;
                    dearest[one] = mean_ns(v, j);
                }
            }
        }
}

/* Where groups are the rule, as in training, where an operator stays with its backward half, an operator alone may come late in the order although all that it is next to came early: it has its
 * place behind the group with which it shares the dearest tensor. */
static int seat_guests(cuts *x)
{
    size_t n = (size_t)x->n;
    if (!x->task->seats)
        return 0;
    int32_t *host = util_alloc(n, sizeof *host);
    double *dearest = util_alloc(n, sizeof *dearest);
    guest *all = util_alloc(n, sizeof *all);
    int rc = host && dearest && all ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        find_hosts(host, dearest, x);
        for (int32_t i = 0; i < x->n; i++)
            all[i] = (guest){.place = host[i] == MOIRAI_NONE ? x->place[i] : x->place[host[i]],
                             .unit = i,
                             .late = host[i] != MOIRAI_NONE};
        qsort(all, n, sizeof *all, by_place);
        for (int32_t i = 0; i < x->n; i++) {
            x->unit[i] = all[i].unit;
            x->place[all[i].unit] = i;
        }
    }
    free(host);
    free(dearest);
    free(all);
    return rc;
}

static int find_places(cuts *x)
{
    const rate_cuts_task *t = x->task;
    const relax_view *v = t->v;
    for (int32_t u = 0; u < t->units->n; u++)
        x->place[u] = MOIRAI_NONE;
    for (int32_t i = 0; i < v->n; i++) {
        int32_t u = t->units->of_op[t->order[i]];
        if (x->place[u] != MOIRAI_NONE)
            continue;
        x->unit[x->n] = u;
        x->place[u] = x->n++;
    }
    if (seat_guests(x))
        return MOIRAI_EFAIL;
    for (int32_t j = 0; j < v->n_packets; j++) {
        packet_at *q = &x->packet[j];
        *q = (packet_at){.first = INT32_MAX, .last = -1};
        if (v->packet_off[j] == v->packet_off[j + 1]) /* nobody reads it */
            continue;
        q->from = x->place[t->units->of_op[relax_producer(v, j)]];
        for (int32_t e = v->packet_off[j]; e < v->packet_off[j + 1]; e++) {
            int32_t at = x->place[t->units->of_op[v->p->edge_reader[e]]];
            q->first = UTIL_MIN(q->first, at);
            q->last = UTIL_MAX(q->last, at);
        }
        q->ns = mean_ns(v, j);
    }
    return 0;
}

/* All places, or of each stretch the one that least crosses. */
static int choose_cuts(cuts *x)
{
    double *crosses = util_alloc((size_t)x->n + 2, sizeof *crosses), sum = 0;
    int32_t stretches = UTIL_MIN(x->n, MOST_PLACES);
    if (!crosses)
        return MOIRAI_EFAIL;
    for (int32_t j = 0; j < x->task->v->n_packets; j++) {
        const packet_at *q = &x->packet[j];
        crosses[UTIL_MIN(q->from, q->first) + 1] += q->ns;
        crosses[UTIL_MAX(q->from, q->last) + 1] -= q->ns;
    }
    for (int32_t i = 1; i <= x->n; i++)
        crosses[i] = sum += crosses[i];
    x->cut[x->n_cuts++] = 0;
    for (int32_t s = 1; s < stretches; s++) {
        int32_t at = (int32_t)((int64_t)x->n * s / stretches), end = (int32_t)((int64_t)x->n * (s + 1) / stretches);
        for (int32_t i = at + 1; i < end; i++)
            at = crosses[i] < crosses[at] ? i : at;
        x->cut[x->n_cuts++] = at;
    }
    x->cut[x->n_cuts++] = x->n;
    free(crosses);
    return 0;
}

static bool find_kinds(cuts *x)
{
    int32_t K = x->task->v->K;
    problem_equal_devices(x->task->v->p, x->least);
    x->n_sets = 1;
    for (int32_t k = 0; k < K; k++) {
        int32_t q = 0;
        while (q < x->n_kinds && x->kind[q] != x->least[k])
            q++;
        x->kind[q] = x->least[k];
        x->count[q]++;
        x->n_kinds += q == x->n_kinds;
    }
    for (int32_t q = 0; q < x->n_kinds && x->n_sets <= MOST_SETS; q++) {
        x->step[q] = x->n_sets;
        x->n_sets *= x->count[q] + 1;
    }
    return x->n_sets <= MOST_SETS;
}

/* ---- what intervals cost ---- */

/* What is sent and received by an interval that grows by one unit at a time. */
typedef struct interval {
    int32_t begin;
    double sent, received, ns[MOIRAI_MASK_DEVICES]; /* ns: per kind */
    int64_t bytes;
    uint64_t devices;
} interval;

static void grow_outputs(cuts *x, interval *w, int32_t op, int32_t at)
{
    const relax_view *v = x->task->v;
    for (int32_t o = v->out_off[op]; o < v->out_off[op + 1]; o++) {
        int32_t j = v->out[o];
        const packet_at *q = &x->packet[j];
        if (x->got[j] == w->begin + 1) { /* read from elsewhere until now */
            w->received -= q->ns;
            x->got[j] = 0;
        }
        if (q->first < w->begin || q->last > at) {
            w->sent += q->ns;
            x->out[j] = w->begin + 1;
        }
    }
}

static void grow_inputs(cuts *x, interval *w, int32_t op, int32_t at)
{
    const relax_view *v = x->task->v;
    const moirai_problem *p = v->p;
    for (int32_t i = p->op_in_off[op]; i < p->op_in_off[op + 1]; i++) {
        int32_t j = relax_packet_of(v, p->op_in_edge[i]);
        const packet_at *q = &x->packet[j];
        if (q->from < w->begin || q->from > at) {
            w->received += x->got[j] == w->begin + 1 ? 0 : q->ns;
            x->got[j] = w->begin + 1;
        } else if (q->first >= w->begin && q->last == at && x->out[j] == w->begin + 1) { /* the last reader is here */
            w->sent -= q->ns;
            x->out[j] = 0;
        }
    }
}

static void grow(cuts *x, interval *w, int32_t at)
{
    const moirai_problem *p = x->task->v->p;
    const place_units *u = x->task->units;
    int32_t unit = x->unit[at];
    w->devices &= u->devices[unit];
    w->bytes += u->bytes[unit];
    for (int32_t i = u->off[unit]; i < u->off[unit + 1]; i++) {
        int32_t op = u->op[i];
        for (int32_t q = 0; q < x->n_kinds; q++)
            w->ns[q] += p->op_devices[op] >> x->kind[q] & 1 ? (double)moirai_op_ns(p, op, x->kind[q]) : 0;
        if (x->task->v->n_packets > 0)
            grow_outputs(x, w, op, at);
    }
    for (int32_t i = u->off[unit]; i < u->off[unit + 1] && x->task->v->n_packets > 0; i++)
        grow_inputs(x, w, u->op[i], at);
}

static double cost_of(const cuts *x, const interval *w, int32_t q)
{
    const moirai_problem *p = x->task->v->p;
    int32_t k = x->kind[q];
    if (!(w->devices >> k & 1) || w->bytes > p->device_memory_bytes[k])
        return HUGE_VAL;
    if (p->congestion == MOIRAI_CONGESTION_DEVICE)
        return w->ns[q] + w->sent + w->received;
    return fmax(w->ns[q], fmax(w->sent, w->received));
}

static void cost_from(cuts *x, int32_t begin)
{
    interval w = {.begin = x->cut[begin], .devices = UINT64_MAX};
    for (int32_t end = begin + 1, at = w.begin; end < x->n_cuts; end++) {
        for (; at < x->cut[end]; at++)
            grow(x, &w, at);
        for (int32_t q = 0; q < x->n_kinds; q++)
            x->cost[((int64_t)q * x->n_cuts + begin) * x->n_cuts + end] = cost_of(x, &w, q);
    }
}

/* ---- rows of stages ---- */

/* The set with one device of kind q less, or MOIRAI_NONE. */
static int32_t without(const cuts *x, int32_t set, int32_t q)
{
    return set / x->step[q] % (x->count[q] + 1) > 0 ? set - x->step[q] : MOIRAI_NONE;
}

static void solve_set(cuts *x, int32_t set)
{
    for (int32_t end = 0; end < x->n_cuts; end++) {
        int64_t here = (int64_t)set * x->n_cuts + end;
        x->best[here] = end == 0 ? 0 : HUGE_VAL;
        x->by[here] = MOIRAI_NONE;
        for (int32_t q = 0; q < x->n_kinds && end > 0; q++) {
            int32_t less = without(x, set, q);
            if (less == MOIRAI_NONE)
                continue;
            const double *before = x->best + (int64_t)less * x->n_cuts;
            const double *cost = x->cost + (int64_t)q * x->n_cuts * x->n_cuts + end;
            for (int32_t b = 0; b < end; b++) {
                double value = fmax(before[b], cost[(int64_t)b * x->n_cuts]);
                if (value < x->best[here]) {
                    x->best[here] = value;
                    x->from[here] = b;
                    x->by[here] = q;
                }
            }
        }
    }
}

/* The stages of all devices, from the last one; which device of a kind is the next that is free. */
static void write_devices(cuts *x, int32_t *device)
{
    const place_units *u = x->task->units;
    int32_t used[MOIRAI_MASK_DEVICES] = {0}, set = x->n_sets - 1, end = x->n_cuts - 1;
    while (end > 0) {
        int64_t here = (int64_t)set * x->n_cuts + end;
        int32_t q = x->by[here], begin = x->from[here], k = 0, skip = used[q]++;
        while (x->least[k] != x->kind[q] || skip-- > 0)
            k++;
        for (int32_t at = x->cut[begin]; at < x->cut[end]; at++)
            for (int32_t i = u->off[x->unit[at]]; i < u->off[x->unit[at] + 1]; i++)
                device[u->op[i]] = k;
        set = without(x, set, q);
        end = begin;
    }
}

static bool solve(cuts *x)
{
    const util_stop *stop = &x->task->stop;
    for (int32_t b = 0; b < x->n_cuts - 1; b++) {
        if (util_stopped(stop))
            return false;
        cost_from(x, b);
    }
    for (int32_t set = 0; set < x->n_sets; set++) {
        if (util_stopped(stop))
            return false;
        solve_set(x, set);
    }
    return x->best[(int64_t)x->n_sets * x->n_cuts - 1] < HUGE_VAL;
}

static int open_cuts(cuts *x)
{
    size_t U = (size_t)x->task->units->n, P = (size_t)x->task->v->n_packets;
    x->unit = util_alloc(U, sizeof *x->unit);
    x->place = util_alloc(U, sizeof *x->place);
    x->cut = util_alloc(U + 2, sizeof *x->cut);
    x->packet = util_alloc(P, sizeof *x->packet);
    x->got = util_alloc(P, sizeof *x->got);
    x->out = util_alloc(P, sizeof *x->out);
    if (!x->unit || !x->place || !x->cut || !x->packet || !x->got || !x->out)
        return MOIRAI_EFAIL;
    if (find_places(x) || choose_cuts(x))
        return MOIRAI_EFAIL;
    size_t cells = (size_t)x->n_sets * (size_t)x->n_cuts;
    x->cost = util_alloc((size_t)x->n_kinds * (size_t)x->n_cuts * (size_t)x->n_cuts, sizeof *x->cost);
    x->best = util_alloc(cells, sizeof *x->best);
    x->from = util_alloc(cells, sizeof *x->from);
    x->by = util_alloc(cells, sizeof *x->by);
    return x->cost && x->best && x->from && x->by ? 0 : MOIRAI_EFAIL;
}

int rate_cuts(int32_t *device, bool *found, const rate_cuts_task *task)
{
    cuts x = {.task = task};
    *found = false;
    if (task->v->n == 0 || !find_kinds(&x))
        return 0;
    int rc = open_cuts(&x);
    if (!rc && solve(&x)) {
        write_devices(&x, device);
        *found = true;
    }
    void *all[] = {x.unit, x.place, x.cut, x.packet, x.got, x.out, x.cost, x.best, x.from, x.by};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return rc;
}
