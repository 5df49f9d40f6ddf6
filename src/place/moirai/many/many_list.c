/* A list scheduler for many devices.
 *
 * Operators by upward rank, each to the device on which it finishes first, as HEFT has it, but without looking at all
 * devices: those on which every operator takes the same are one column, and of a column only the device that is free first is
 * looked at; then the devices that run the producers of its inputs, where nothing has to be sent. Of many columns
 * those count that would finish first if all inputs were there. Transfers queue behind what the ports have; no gaps are
 * filled. The devices then are simulated in the order of the ranks, and mended where the memory is short. */
#include <stdlib.h>
#include <string.h>

#include "place/fit.h"
#include "place/list/list.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/many/many.h"
#include "schedule/sim.h"
#include "util/util.h"

#define STOP_EVERY 64

typedef struct listing {
    const moirai_problem *p;
    place_units *u;
    int32_t n_columns, column[MOIRAI_MAX_DEVICES]; /* device -> its column */
    int32_t off[MOIRAI_MAX_DEVICES + 1];           /* column -> its heap */
    int32_t heap[MOIRAI_MAX_DEVICES],
        at[MOIRAI_MAX_DEVICES]; /* devices by the time at which they fall free; where each is */
    int64_t free_ns[MOIRAI_MAX_DEVICES], send_ns[MOIRAI_MAX_DEVICES], receive_ns[MOIRAI_MAX_DEVICES];
    int64_t room_bytes[MOIRAI_MAX_DEVICES];
    int32_t *device, *order;
    int64_t *rank, *finish_ns;
    util_memory memory; /* of these */
} listing;

typedef struct found {
    int32_t device;
    int64_t finish_ns;
} found;

/* ---- columns ---- */

static bool equal_times(const moirai_problem *p, int32_t a, int32_t b)
{
    for (int32_t i = 0; i < p->n_ops; i++)
        if (moirai_op_ns(p, i, a) != moirai_op_ns(p, i, b) || moirai_op_may(p, i, a) != moirai_op_may(p, i, b))
            return false;
    return true;
}

static void find_columns(listing *x)
{
    int32_t first[MOIRAI_MAX_DEVICES] = {0}, K = x->p->n_devices;
    for (int32_t k = 0; k < K; k++) {
        int32_t c = 0;
        while (c < x->n_columns && !equal_times(x->p, first[c], k))
            c++;
        if (c == x->n_columns)
            first[x->n_columns++] = k;
        x->column[k] = c;
    }
    for (int32_t c = 0, n = 0; c < x->n_columns; c++) {
        x->off[c] = n;
        for (int32_t k = 0; k < K; k++)
            if (x->column[k] == c) {
                x->at[k] = n;
                x->heap[n++] = k;
            }
        x->off[c + 1] = n;
    }
}

static bool sooner(const listing *x, int32_t a, int32_t b)
{
    return x->free_ns[a] != x->free_ns[b] ? x->free_ns[a] < x->free_ns[b] : a < b;
}

/* A device that falls free later than before sinks. */
static void sink(listing *x, int32_t k)
{
    int32_t begin = x->off[x->column[k]], n = x->off[x->column[k] + 1] - begin, at = x->at[k] - begin;
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && sooner(x, x->heap[begin + child + 1], x->heap[begin + child]))
            child++;
        if (!sooner(x, x->heap[begin + child], k))
            break;
        x->heap[begin + at] = x->heap[begin + child];
        x->at[x->heap[begin + at]] = begin + at;
    }
    x->heap[begin + at] = k;
    x->at[k] = begin + at;
}

/* ---- ranks ---- */

static void rank_ops(listing *x)
{
    const moirai_problem *p = x->p;
    for (int32_t r = p->n_ops - 1; r >= 0; r--) {
        int32_t op = p->topo[r];
        int64_t rest = 0;
        for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++)
            for (int32_t t = p->op_out[j], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
                rest = UTIL_MAX(rest, x->rank[p->edge_reader[e]]);
        x->rank[op] = rest + moirai_op_least_ns(p, op);
        x->order[r] = op;
    }
    place_list_by_rank(x->order, x->rank, p);
}

/* ---- placing ---- */

/* When the inputs are on k; `commit` sends them. */
static int64_t arrival(listing *x, int32_t op, int32_t k, bool commit)
{
    const moirai_problem *p = x->p;
    int64_t ready = 0, receive = x->receive_ns[k];
    bool ports = p->congestion != MOIRAI_CONGESTION_NONE;
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++) {
        int32_t t = p->op_in[j], producer = p->tensor_producer[t], from = x->device[producer];
        int64_t at = x->finish_ns[producer], ns = moirai_transfer_ns(p, t, from, k);
        if (ns > 0 && ports)
            at = UTIL_MAX(at, UTIL_MAX(receive, x->send_ns[from]));
        at += ns;
        if (ns > 0 && ports) {
            receive = at;
            x->send_ns[from] = commit ? at : x->send_ns[from];
        }
        ready = UTIL_MAX(ready, at);
    }
    x->receive_ns[k] = commit ? receive : x->receive_ns[k];
    return ready;
}

static void try_device(listing *x, int32_t op, int32_t k, found *best)
{
    int32_t unit = x->u->of_op[op];
    if (!place_unit_may(x->u, unit, k) || x->room_bytes[k] < x->u->bytes[unit])
        return;
    int64_t finish = UTIL_MAX(arrival(x, op, k, false), x->free_ns[k]) + moirai_op_ns(x->p, op, k);
    if (best->device == MOIRAI_NONE || finish < best->finish_ns)
        *best = (found){k, finish};
}

static void try_producers(listing *x, int32_t op, found *best)
{
    const moirai_problem *p = x->p;
    int32_t n = UTIL_MIN(p->op_in_off[op + 1] - p->op_in_off[op], MANY_LIST_MOST_PRODUCERS);
    for (int32_t j = 0; j < n; j++)
        try_device(x, op, x->device[p->tensor_producer[p->op_in[p->op_in_off[op] + j]]], best);
}

/* The columns that would finish first with all inputs there, at most MANY_LIST_MOST_COLUMNS, in order of that. */
static int32_t likely_columns(const listing *x, int32_t op, int32_t *column)
{
    int64_t end_ns[MANY_LIST_MOST_COLUMNS];
    int32_t n = 0;
    for (int32_t c = 0; c < x->n_columns; c++) {
        int32_t k = x->heap[x->off[c]], at = n;
        if (!moirai_op_may(x->p, op, k))
            continue;
        int64_t end = x->free_ns[k] + moirai_op_ns(x->p, op, k);
        while (at > 0 && end_ns[at - 1] > end)
            at--;
        if (at == MANY_LIST_MOST_COLUMNS)
            continue;
        for (int32_t i = UTIL_MIN(n, MANY_LIST_MOST_COLUMNS - 1); i > at; i--) {
            end_ns[i] = end_ns[i - 1];
            column[i] = column[i - 1];
        }
        end_ns[at] = end;
        column[at] = c;
        n = UTIL_MIN(n + 1, MANY_LIST_MOST_COLUMNS);
    }
    return n;
}

static int32_t choose(listing *x, int32_t op)
{
    int32_t unit = x->u->of_op[op], first = x->u->op[x->u->off[unit]], column[MANY_LIST_MOST_COLUMNS];
    if (x->device[first] != MOIRAI_NONE)
        return x->device[first];
    found best = {MOIRAI_NONE, 0};
    try_producers(x, op, &best);
    int32_t n = likely_columns(x, op, column);
    for (int32_t i = 0; i < n; i++) {
        int32_t begin = x->off[column[i]], end = UTIL_MIN(x->off[column[i] + 1], begin + MANY_LIST_MOST_SEEN),
                k = begin;
        while (k < end && x->room_bytes[x->heap[k]] < x->u->bytes[unit])
            k++;
        if (k < end)
            try_device(x, op, x->heap[k], &best);
    }
    for (int32_t k = 0; k < x->p->n_devices && best.device == MOIRAI_NONE; k++)
        try_device(x, op, k, &best);
    return best.device != MOIRAI_NONE ? best.device : place_unit_device(x->u, unit, 0); /* full: it will be mended */
}

static void place_op(listing *x, int32_t op)
{
    int32_t k = choose(x, op), unit = x->u->of_op[op];
    if (x->device[x->u->op[x->u->off[unit]]] == MOIRAI_NONE) {
        x->room_bytes[k] -= x->u->bytes[unit];
        for (int32_t j = x->u->off[unit]; j < x->u->off[unit + 1]; j++)
            x->device[x->u->op[j]] = k;
    }
    x->finish_ns[op] = UTIL_MAX(arrival(x, op, k, true), x->free_ns[k]) + moirai_op_ns(x->p, op, k);
    x->free_ns[k] = x->finish_ns[op];
    sink(x, k);
}

/* ---- the whole ---- */

static int open_list(listing *x)
{
    const moirai_problem *p = x->p;
    size_t V = (size_t)p->n_ops;
    UTIL_TAKE(&x->memory, x->device, V);
    UTIL_TAKE(&x->memory, x->order, V);
    UTIL_TAKE(&x->memory, x->rank, V);
    UTIL_TAKE(&x->memory, x->finish_ns, V);
    if (x->memory.failed)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops; i++)
        x->device[i] = MOIRAI_NONE;
    memcpy(x->room_bytes, p->device_memory_bytes, (size_t)p->n_devices * sizeof *x->room_bytes);
    return place_units_new(&x->u, p);
}

int many_list(moirai_plan **out, const moirai_problem *p, const util_stop *stop)
{
    listing *x = util_alloc(1, sizeof *x);
    moirai_sim *sim = NULL;
    bool late = false;
    *out = NULL;
    if (!x)
        return MOIRAI_EFAIL;
    x->p = p;
    int rc = open_list(x);
    rc = rc ? rc : moirai_sim_new(&sim, p);
    if (!rc) {
        find_columns(x);
        rank_ops(x);
    }
    for (int32_t j = 0; j < p->n_ops && !rc && !late; j++) {
        place_op(x, x->order[j]);
        late = j % STOP_EVERY == 0 && util_stopped(stop);
    }
    if (!rc && !late) {
        schedule_sim_obey(sim, stop);
        rc = place_fit_plan(out, sim, p, x->u, x->device, x->rank, NULL, 0, stop);
    }
    moirai_sim_free(sim);
    place_units_free(x->u);
    util_release(&x->memory);
    free(x);
    return rc == MOIRAI_ELIMIT || rc == MOIRAI_EINFEASIBLE ? 0 : rc;
}
