/* The plain annealer: a judge of plans that shares nothing with the placer it judges.
 *
 * State: an order of all operators that respects precedence, and a device for each. Value: the makespan of an append-only
 * simulation. Operators are taken in order; what an operator reads and has not yet arrived on its device is sent just
 * before it, each transfer behind all that were put on its ports before; the operator starts behind all that were put on
 * its device before. Nothing is ever inserted. O(V + E) per evaluation, whatever the move.
 *
 * Moves: an operator to another device; an operator and its neighbours on its device, as a lump; an operator to another
 * place of the order between its inputs and its readers. Metropolis' rule, cooling by the share of the time that is
 * gone, from 2 % of the makespan to 0.002 %. It begins with every operator, by longest remaining path, where it ends
 * first. The result is replayed by the simulator and goes through the checker like any other plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/util.h"
#include "wide/wide.h"

enum { MOST_LUMP = 32 };

typedef struct annealer {
    const moirai_problem *p;
    util_rng rng;
    int32_t *order, *at, *device; /* order[at[i]] == i */
    int64_t *block;               /* holds all of these: */
    int64_t *finish, *device_free, *send_free, *receive_free, *memory_left;
    int64_t *arrival, *stamp; /* of a tensor on a device, or of an edge; valid where the stamp is this evaluation's */
    int64_t evaluation;
    moirai_task *task; /* the order with its transfers, where asked for */
    int64_t n_tasks;
    int32_t lump[MOST_LUMP], old_device[MOST_LUMP], n_lump;
} annealer;

/* The next n numbers of a block. */
static int64_t *carve(int64_t **block, size_t n)
{
    int64_t *own = *block;
    *block += n;
    return own;
}

static bool reserve(annealer *a)
{
    const moirai_problem *p = a->p;
    size_t n = (size_t)p->n_ops, K = (size_t)p->n_devices, e = (size_t)p->n_edges;
    size_t arrivals = p->flow == MOIRAI_FLOW_TENSOR ? (size_t)p->n_tensors * K : e;
    int64_t *block = a->block = util_alloc(2 * n + e + 3 * K + K * K + 2 * arrivals, sizeof *block);
    a->order = util_alloc(3 * n, sizeof *a->order);
    if (!block || !a->order)
        return false;
    a->at = a->order + n;
    a->device = a->at + n;
    a->finish = carve(&block, n);
    a->task = carve(&block, n + e);
    a->device_free = carve(&block, K);
    a->receive_free = carve(&block, K);
    a->memory_left = carve(&block, K);
    a->send_free = carve(&block, K * K);
    a->arrival = carve(&block, arrivals);
    a->stamp = carve(&block, arrivals);
    return true;
}

static void begin(annealer *a)
{
    size_t K = (size_t)a->p->n_devices;
    a->evaluation++;
    a->n_tasks = 0;
    memset(a->device_free, 0, K * sizeof *a->device_free);
    memset(a->send_free, 0, K * (a->p->congestion == MOIRAI_CONGESTION_CHANNEL ? K : 1) * sizeof *a->send_free);
    memset(a->receive_free, 0, K * sizeof *a->receive_free);
}

/* When input j of an operator is on device `to`; sends it there if nobody has. */
static int64_t arrives(annealer *a, int32_t j, int32_t to, bool keep)
{
    const moirai_problem *p = a->p;
    int32_t t = p->op_in[j], edge = p->op_in_edge[j], producer = p->tensor_producer[t], from = a->device[producer];
    if (from == to)
        return a->finish[producer];
    int64_t x = p->flow == MOIRAI_FLOW_TENSOR ? (int64_t)t * p->n_devices + to : edge;
    if (a->stamp[x] == a->evaluation)
        return a->arrival[x];
    bool channel = p->congestion == MOIRAI_CONGESTION_CHANNEL;
    int64_t start = a->finish[producer], *send = &a->send_free[channel ? from * p->n_devices + to : from];
    if (p->congestion != MOIRAI_CONGESTION_NONE)
        start = UTIL_MAX(start, *send);
    if (p->congestion == MOIRAI_CONGESTION_PORT)
        start = UTIL_MAX(start, a->receive_free[to]);
    int64_t end = start + moirai_transfer_ns(p, t, from, to);
    *send = a->receive_free[to] = end;
    a->stamp[x] = a->evaluation;
    a->arrival[x] = end;
    if (keep)
        a->task[a->n_tasks++] = p->n_ops + x;
    return end;
}

/* The operator behind all that was put on its device so far. */
static int64_t append(annealer *a, int32_t op, bool keep)
{
    const moirai_problem *p = a->p;
    int32_t k = a->device[op];
    int64_t start = a->device_free[k];
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++) {
        int64_t there = arrives(a, j, k, keep);
        start = UTIL_MAX(start, there);
    }
    if (keep)
        a->task[a->n_tasks++] = op;
    return a->device_free[k] = a->finish[op] = start + moirai_op_ns(p, op, k);
}

/* The makespan, or `enough` as soon as it is sure to be passed. */
static int64_t evaluate(annealer *a, int64_t enough, bool keep)
{
    int64_t last = 0;
    begin(a);
    for (int32_t i = 0; i < a->p->n_ops && last < enough; i++) {
        int64_t end = append(a, a->order[i], keep);
        last = UTIL_MAX(last, end);
    }
    return last;
}

/* ---- the beginning ---- */

typedef struct ranked {
    int64_t rank;
    int32_t op;
} ranked;

static int longer_first(const void *x, const void *y)
{
    const ranked *a = x, *b = y;
    return a->rank != b->rank ? (a->rank < b->rank) - (a->rank > b->rank) : (a->op > b->op) - (a->op < b->op);
}

/* By longest remaining paths of mean times. */
static int first_order(annealer *a)
{
    const moirai_problem *p = a->p;
    ranked *list = util_alloc((size_t)p->n_ops, sizeof *list);
    if (!list)
        return MOIRAI_EFAIL;
    for (int32_t r = p->n_ops - 1; r >= 0; r--) {
        int32_t op = p->topo[r];
        int64_t sum = 0, longest = 0;
        for (int32_t k = 0; k < p->n_devices; k++)
            sum += UTIL_MAX(0, moirai_op_ns(p, op, k));
        for (int32_t o = p->op_out_off[op]; o < p->op_out_off[op + 1]; o++)
            for (int32_t e = p->tensor_edge_off[p->op_out[o]]; e < p->tensor_edge_off[p->op_out[o] + 1]; e++)
                longest = UTIL_MAX(longest, list[p->edge_reader[e]].rank);
        list[op] = (ranked){longest + sum / p->n_devices + 1, op}; /* 1: readers always come later */
    }
    qsort(list, (size_t)p->n_ops, sizeof *list, longer_first);
    for (int32_t i = 0; i < p->n_ops; i++) {
        a->order[i] = list[i].op;
        a->at[list[i].op] = i;
    }
    free(list);
    return 0;
}

static bool may_hold(const annealer *a, int32_t op, int32_t k)
{
    return (a->p->op_devices[op] >> k & 1) && a->memory_left[k] >= a->p->op_memory_bytes[op];
}

/* When the operator would end there, if its transfers had the ports for themselves. */
static int64_t guess(const annealer *a, int32_t op, int32_t k)
{
    const moirai_problem *p = a->p;
    int64_t start = a->device_free[k];
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++) {
        int32_t t = p->op_in[j], producer = p->tensor_producer[t];
        int64_t there = a->finish[producer] + moirai_transfer_ns(p, t, a->device[producer], k);
        start = UTIL_MAX(start, there);
    }
    return start + moirai_op_ns(p, op, k);
}

static int first_devices(annealer *a)
{
    const moirai_problem *p = a->p;
    memcpy(a->memory_left, p->device_memory_bytes, (size_t)p->n_devices * sizeof *a->memory_left);
    begin(a);
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t op = a->order[i], best = MOIRAI_NONE;
        int64_t least = INT64_MAX;
        for (int32_t k = 0; k < p->n_devices; k++)
            if (may_hold(a, op, k) && guess(a, op, k) < least) {
                least = guess(a, op, k);
                best = k;
            }
        if (best == MOIRAI_NONE)
            return moirai_error(MOIRAI_EINFEASIBLE, "annealer: no device has room for operator '%.100s'",
                                p->op_name[op]);
        a->device[op] = best;
        a->memory_left[best] -= p->op_memory_bytes[op];
        append(a, op, false);
    }
    return 0;
}

/* ---- moves ---- */

static int32_t draw(annealer *a, int32_t n)
{
    return (int32_t)util_rng_below(&a->rng, (uint32_t)n);
}

static void lump_back(annealer *a)
{
    for (int32_t i = 0; i < a->n_lump; i++) {
        int32_t op = a->lump[i];
        a->memory_left[a->device[op]] += a->p->op_memory_bytes[op];
        a->memory_left[a->old_device[i]] -= a->p->op_memory_bytes[op];
        a->device[op] = a->old_device[i];
    }
}

/* The lump goes to device k; false, with nothing moved, where it may not. */
static bool lump_to(annealer *a, int32_t k)
{
    for (int32_t i = 0; i < a->n_lump; i++) {
        int32_t op = a->lump[i];
        if (!may_hold(a, op, k)) {
            a->n_lump = i;
            lump_back(a);
            return false;
        }
        a->old_device[i] = a->device[op];
        a->memory_left[a->device[op]] += a->p->op_memory_bytes[op];
        a->memory_left[k] -= a->p->op_memory_bytes[op];
        a->device[op] = k;
    }
    return true;
}

static void lump_take(annealer *a, int32_t op, int32_t k, int32_t most)
{
    for (int32_t i = 0; i < a->n_lump; i++)
        if (a->lump[i] == op)
            return;
    if (a->n_lump < most && a->device[op] == k)
        a->lump[a->n_lump++] = op;
}

/* An operator, and up to `most` - 1 that hang on it on its device, and on those. */
static void lump_grow(annealer *a, int32_t most)
{
    const moirai_problem *p = a->p;
    int32_t k = a->device[a->lump[0]];
    for (int32_t i = 0; i < a->n_lump && a->n_lump < most; i++) {
        int32_t op = a->lump[i];
        for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++)
            lump_take(a, p->tensor_producer[p->op_in[j]], k, most);
        for (int32_t o = p->op_out_off[op]; o < p->op_out_off[op + 1]; o++)
            for (int32_t e = p->tensor_edge_off[p->op_out[o]];
                 e < p->tensor_edge_off[p->op_out[o] + 1] && a->n_lump < most; e++)
                lump_take(a, p->edge_reader[e], k, most);
    }
}

static void shift(annealer *a, int32_t from, int32_t to)
{
    int32_t op = a->order[from], step = from < to ? 1 : -1;
    for (int32_t i = from; i != to; i += step) {
        a->order[i] = a->order[i + step];
        a->at[a->order[i]] = i;
    }
    a->order[to] = op;
    a->at[op] = to;
}

/* A place for the operator between the last of its inputs and the first of its readers. */
static int32_t place_between(annealer *a, int32_t op)
{
    const moirai_problem *p = a->p;
    int32_t least = 0, most = p->n_ops - 1, reach = UTIL_MAX(8, p->n_ops / 8);
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++)
        least = UTIL_MAX(least, a->at[p->tensor_producer[p->op_in[j]]] + 1);
    for (int32_t o = p->op_out_off[op]; o < p->op_out_off[op + 1]; o++)
        for (int32_t e = p->tensor_edge_off[p->op_out[o]]; e < p->tensor_edge_off[p->op_out[o] + 1]; e++)
            most = UTIL_MIN(most, a->at[p->edge_reader[e]] - 1);
    least = UTIL_MAX(least, a->at[op] - reach);
    most = UTIL_MIN(most, a->at[op] + reach);
    return least + draw(a, most - least + 1);
}

typedef struct walk {
    int64_t now, best;
    int32_t *best_order, *best_device;
} walk;

/* One move, kept or taken back. */
static void step(annealer *a, walk *w, double heat)
{
    const moirai_problem *p = a->p;
    int32_t op = draw(a, p->n_ops), what = draw(a, 10), from = a->at[op], to = from;
    /* What is worse by more than this is not taken: drawn before, so that an evaluation can end early. */
    int64_t enough = w->now + 1 + (int64_t)(-heat * log(1 - util_rng_real(&a->rng)));
    a->n_lump = 0;
    if (what < 4) {
        to = place_between(a, op);
        if (to == from)
            return;
        shift(a, from, to);
    } else {
        a->lump[a->n_lump++] = op;
        if (what >= 8)
            lump_grow(a, 2 + draw(a, MOST_LUMP - 1));
        int32_t k = draw(a, p->n_devices);
        if (k == a->device[op] || !lump_to(a, k))
            return;
    }
    int64_t ns = evaluate(a, enough, false);
    if (ns < enough) {
        w->now = ns;
        if (ns < w->best) {
            w->best = ns;
            memcpy(w->best_order, a->order, (size_t)p->n_ops * sizeof *a->order);
            memcpy(w->best_device, a->device, (size_t)p->n_ops * sizeof *a->device);
        }
    } else if (a->n_lump) {
        lump_back(a);
    } else {
        shift(a, to, from);
    }
}

static int replay(moirai_plan **out, annealer *a, const walk *w)
{
    moirai_sim *sim;
    memcpy(a->order, w->best_order, (size_t)a->p->n_ops * sizeof *a->order);
    memcpy(a->device, w->best_device, (size_t)a->p->n_ops * sizeof *a->device);
    evaluate(a, INT64_MAX, true);
    int rc = moirai_sim_new(&sim, a->p);
    if (rc)
        return rc;
    int64_t ns = moirai_sim_replay(sim, a->device, a->task, a->n_tasks);
    rc = ns > w->best || ns < 0
             ? moirai_error(MOIRAI_EFAIL, "annealer: %lld ns, replayed %lld", (long long)w->best, (long long)ns)
             : moirai_sim_plan(out, sim);
    moirai_sim_free(sim);
    return rc ? rc : moirai_plan_check(a->p, *out, NULL, NULL);
}

/* Of this thread: a busy machine makes it slower, but no worse. */
static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int anneal(moirai_plan **out, annealer *a, double seconds)
{
    size_t n = (size_t)a->p->n_ops;
    walk w = {.best_order = util_alloc(n, sizeof(int32_t)), .best_device = util_alloc(n, sizeof(int32_t))};
    int rc = w.best_order && w.best_device ? first_order(a) : MOIRAI_EFAIL;
    rc = rc ? rc : first_devices(a);
    if (!rc) {
        w.now = w.best = evaluate(a, INT64_MAX, false);
        memcpy(w.best_order, a->order, n * sizeof *a->order);
        memcpy(w.best_device, a->device, n * sizeof *a->device);
        double begun = processor_s(), gone = seconds > 0 ? 0 : 1, heat = 0;
        int64_t between = 1 + 50000 / (int64_t)(n + 1); /* looks at the clock every millisecond or so */
        for (int64_t i = 0; gone < 1 && n > 0; i++) {
            if (i % between == 0) {
                gone = (processor_s() - begun) / seconds;
                heat = 0.02 * (double)w.best * pow(0.001, gone);
            }
            step(a, &w, heat);
        }
        rc = replay(out, a, &w);
    }
    free(w.best_order);
    free(w.best_device);
    return rc;
}

int wide_anneal(moirai_plan **out, const moirai_problem *p, double seconds, uint64_t seed)
{
    annealer a = {.p = p};
    *out = NULL;
    if (p->n_groups || p->n_weights || p->memory == MOIRAI_MEMORY_PEAK)
        return moirai_error(MOIRAI_EUSAGE, "annealer: groups, shared weights and peak memory are not its business");
    util_rng_seed(&a.rng, seed);
    int rc = reserve(&a) ? anneal(out, &a, seconds) : MOIRAI_EFAIL;
    if (rc) {
        moirai_plan_free(*out);
        *out = NULL;
    }
    free(a.order);
    free(a.block);
    return rc;
}
