/* Why each task starts when it does.
 *
 * A task is ready when the last thing that it reads is there: the finish of its producer on the same device, or of
 * the transfer that brings it. Between that and its start it waits. How much of the wait is somebody else's fault is
 * the time that its resource was taken meanwhile: the device of an operator; the sender's or the receiver's port of a
 * transfer (congestion port), or its channel (congestion channel). What remains was the plan's choice, for example to
 * save memory.
 *
 * The time that a resource is taken within an interval comes from prefix sums over its busy intervals, found by
 * bisection. A transfer waits while either port is taken, so each ordered pair of devices that anything is sent over
 * gets the union of both ports' intervals, merged from two sorted lists.
 * O(V log V + E + T * pairs) for T transfers over that many pairs of devices. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

/* Disjoint busy intervals in order, with the sum of all before each. */
typedef struct busy {
    int32_t n;
    int64_t *start_ns, *finish_ns, *before_ns;
} busy;

static void busy_free(busy *b)
{
    free(b->start_ns);
    free(b->finish_ns);
    free(b->before_ns);
    *b = (busy){0};
}

static int busy_reserve(busy *b, size_t n)
{
    b->n = 0;
    b->start_ns = util_alloc(n, sizeof *b->start_ns);
    b->finish_ns = util_alloc(n, sizeof *b->finish_ns);
    b->before_ns = util_alloc(n, sizeof *b->before_ns);
    return b->start_ns && b->finish_ns && b->before_ns ? 0 : MOIRAI_EFAIL;
}

/* Starts must not decrease. */
static void busy_add(busy *b, int64_t start_ns, int64_t finish_ns)
{
    if (finish_ns <= start_ns)
        return;
    if (b->n && start_ns <= b->finish_ns[b->n - 1]) {
        b->finish_ns[b->n - 1] = UTIL_MAX(b->finish_ns[b->n - 1], finish_ns);
        return;
    }
    b->before_ns[b->n] = b->n ? b->before_ns[b->n - 1] + b->finish_ns[b->n - 1] - b->start_ns[b->n - 1] : 0;
    b->start_ns[b->n] = start_ns;
    b->finish_ns[b->n++] = finish_ns;
}

/* Busy time before `ns`. */
static int64_t busy_until(const busy *b, int64_t ns)
{
    int32_t low = 0, high = b->n; /* the first interval that starts at or after ns */
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (b->start_ns[middle] < ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    return b->before_ns[low - 1] + UTIL_MIN(ns, b->finish_ns[low - 1]) - b->start_ns[low - 1];
}

static void set_waits(moirai_delay *d, const busy *b, int64_t start_ns)
{
    int64_t wait = start_ns - d->ready_ns;
    d->busy_ns = b && wait > 0 ? busy_until(b, start_ns) - busy_until(b, d->ready_ns) : 0;
    d->held_ns = wait - d->busy_ns;
}

/* ---- what comes last ---- */

/* Number of the transfer in each slot (edge e, or tensor * K + device). */
static int32_t *number_transfers(const moirai_analysis *a)
{
    const moirai_problem *p = a->problem;
    bool per_edge = p->flow == MOIRAI_FLOW_EDGE;
    size_t n = per_edge ? (size_t)p->n_edges : (size_t)p->n_tensors * (size_t)p->n_devices;
    int32_t *slot = util_alloc(n, sizeof *slot);
    for (size_t i = 0; slot && i < n; i++)
        slot[i] = MOIRAI_NONE;
    for (int32_t x = 0; slot && x < a->n_transfers; x++) {
        const moirai_transfer *t = &a->plan->transfer[x];
        if (!per_edge) {
            slot[(size_t)t->tensor * (size_t)p->n_devices + (size_t)t->to] = x;
            continue;
        }
        for (int32_t e = p->tensor_edge_off[t->tensor]; e < p->tensor_edge_off[t->tensor + 1]; e++)
            if (p->edge_reader[e] == t->reader)
                slot[e] = x;
    }
    return slot;
}

static void find_cause(moirai_analysis *a, const int32_t *slot, int32_t op)
{
    const moirai_problem *p = a->problem;
    const moirai_plan *plan = a->plan;
    moirai_delay *d = &a->delay[op];
    int32_t here = plan->op_device[op];
    *d = (moirai_delay){.cause = MOIRAI_NONE, .behind = MOIRAI_NONE};
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++) {
        int32_t t = p->op_in[j], cause = p->tensor_producer[t];
        if (plan->op_device[cause] != here) {
            int32_t x =
                slot[p->flow == MOIRAI_FLOW_EDGE ? (int64_t)p->op_in_edge[j] : (int64_t)t * p->n_devices + here];
            if (x == MOIRAI_NONE)
                continue; /* only in a plan that breaks the rules */
            cause = a->n_ops + x;
        }
        int64_t there = moirai_task_finish(a, cause);
        if (d->cause == MOIRAI_NONE || there > d->ready_ns) {
            d->ready_ns = there;
            d->cause = cause;
        }
    }
}

/* ---- operators ---- */

typedef struct by_start {
    int64_t start_ns, finish_ns;
    int32_t task;
} by_start;

static int compare(const void *a, const void *b)
{
    const by_start *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->finish_ns != y->finish_ns)
        return x->finish_ns < y->finish_ns ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static int device_waits(moirai_analysis *a, by_start *list, int32_t device)
{
    int32_t n = 0;
    busy b;
    for (int32_t i = 0; i < a->n_ops; i++)
        if (a->plan->op_device[i] == device)
            list[n++] = (by_start){a->plan->op_start_ns[i], a->plan->op_finish_ns[i], i};
    qsort(list, (size_t)n, sizeof *list, compare);
    int rc = busy_reserve(&b, (size_t)n);
    for (int32_t j = 0; !rc && j < n; j++)
        busy_add(&b, list[j].start_ns, list[j].finish_ns);
    for (int32_t j = 0; !rc && j < n; j++) {
        moirai_delay *d = &a->delay[list[j].task];
        set_waits(d, &b, list[j].start_ns);
        if (d->busy_ns > 0 && j > 0)
            d->behind = list[j - 1].task;
    }
    busy_free(&b);
    return rc;
}

/* ---- transfers ---- */

/* Does transfer y take something that a transfer from `from` to `to` needs? */
static bool shares_port(const moirai_problem *p, const moirai_transfer *y, int32_t from, int32_t to)
{
    if (p->congestion == MOIRAI_CONGESTION_DEVICE)
        return y->from == from || y->to == to || y->from == to || y->to == from;
    if (p->congestion == MOIRAI_CONGESTION_PORT)
        return y->from == from || y->to == to;
    return p->congestion == MOIRAI_CONGESTION_CHANNEL && y->from == from && y->to == to;
}

/* All transfers of the pair; the plan's transfers are sorted by start. */
static int pair_waits(moirai_analysis *a, busy *b, int32_t from, int32_t to)
{
    int32_t last = MOIRAI_NONE; /* the transfer that frees the ports last so far */
    int64_t last_ns = -1;
    b->n = 0;
    for (int32_t x = 0; x < a->n_transfers; x++) {
        const moirai_transfer *y = &a->plan->transfer[x];
        if (shares_port(a->problem, y, from, to))
            busy_add(b, y->start_ns, y->finish_ns);
    }
    for (int32_t x = 0; x < a->n_transfers; x++) {
        const moirai_transfer *y = &a->plan->transfer[x];
        moirai_delay *d = &a->delay[a->n_ops + x];
        if (y->from == from && y->to == to) {
            set_waits(d, b, y->start_ns);
            d->behind = d->busy_ns > 0 ? last : MOIRAI_NONE;
        }
        /* Ports differ in when they become free: who frees them latest is whom others are behind. */
        if (shares_port(a->problem, y, from, to) && y->finish_ns >= last_ns) {
            last = a->n_ops + x;
            last_ns = y->finish_ns;
        }
    }
    return 0;
}

static int transfer_waits(moirai_analysis *a)
{
    int32_t K = a->n_devices;
    bool *used = util_alloc((size_t)K * (size_t)K, sizeof *used);
    busy b = {0};
    int rc = used ? busy_reserve(&b, (size_t)a->n_transfers) : MOIRAI_EFAIL;
    for (int32_t x = 0; !rc && x < a->n_transfers; x++) {
        const moirai_transfer *t = &a->plan->transfer[x];
        int32_t producer = a->problem->tensor_producer[t->tensor];
        a->delay[a->n_ops + x] =
            (moirai_delay){.ready_ns = a->plan->op_finish_ns[producer], .cause = producer, .behind = MOIRAI_NONE};
        used[t->from * K + t->to] = true;
    }
    for (int32_t pair = 0; !rc && pair < K * K; pair++)
        if (used[pair])
            rc = pair_waits(a, &b, pair / K, pair % K);
    busy_free(&b);
    free(used);
    return rc;
}

int report_find_delays(moirai_analysis *a)
{
    int32_t *slot = number_transfers(a);
    by_start *list = util_alloc((size_t)a->n_ops, sizeof *list);
    int rc = slot && list ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; !rc && i < a->n_ops; i++)
        find_cause(a, slot, i);
    for (int32_t k = 0; !rc && k < a->n_devices; k++)
        rc = device_waits(a, list, k);
    rc = rc ? rc : transfer_waits(a);
    free(list);
    free(slot);
    return rc;
}
