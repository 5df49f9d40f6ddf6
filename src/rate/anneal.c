/* Annealing on a high norm of all loads.
 *
 * The largest load alone tells a search nothing as long as another device is the largest: the 32-norm is within a few per cent of it, and falls with every load
 * that falls (a maximum over R resources lies between norm / R^(1/32) and the norm).
 *
 * At that power a move that another one must make good is all but forbidden: it raises the largest load. With weights from the bound's prices the norm of any power is least where
 * loads are equal, so that a run can begin with the squares, at which work goes where it is cheapest and balance costs little, and the power doubles until the loads are balanced.
 * Ports have the high power from the start: they have next to no price, but they are full at some point.
 *
 * A plan that only balances sends everything
 * everywhere, and then needs many requests in flight until all resources are busy. So a price on sending can be added: several prices give plans that are
 * good for few and for many requests, and the simulator of the stream decides.
 *
 * With prices on resources (mix.c) the sum of priced loads is made small instead.
 *
 * Moves: a unit (an operator, or a group that stays together) to the device of a neighbour, or to any; a connected region of up to MOST_REGION units of one
 * device; two units of different devices exchanged. Each is made, judged, and undone where it is not taken. */
#include "rate/anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rate/loads.h"
#include "util/util.h"

#define FIRST_HEAT 0.02 /* of the value */
#define LAST_HEAT 1e-5
#define NEAR_BEST 1.005 /* of the best value */
#define MOST_REGION 128
#define DOUBLINGS 5 /* of the power: 32 */
#define STOP_EVERY 256
#define TRIES 8 /* to find something to move */

typedef struct anneal {
    const rate_anneal_task *task;
    rate_balance b;
    util_rng rng;
    double unit_ns;    /* loads are counted in it */
    int32_t doublings; /* of the power of devices' loads, now */
    double weights;    /* of the devices, together */
    double *term;      /* per resource */
    int64_t *known;    /* the load that it was made of */
    double value;
    uint8_t *best;
    double best_value;
    int64_t best_ns;                                        /* its largest load */
    int32_t region[2 * MOST_REGION], from[2 * MOST_REGION]; /* units of the move, and where they were */
    int32_t n_region;
    int32_t *mark, stamp; /* units in the region */
} anneal;

/* ---- the value ---- */

static double power(double a, int32_t doublings)
{
    for (; doublings > 0; doublings--)
        a *= a;
    return a;
}

static double root(double a, int32_t doublings)
{
    for (; doublings > 0; doublings--)
        a = sqrt(a);
    return a;
}

static double term_of(const anneal *x, int32_t r)
{
    const rate_anneal_task *task = x->task;
    double load = (double)x->known[r] / x->unit_ns;
    if (task->price)
        return task->price[r] * load;
    if (!task->weight)
        return power(load, DOUBLINGS);
    return r < task->v->K ? power(load, x->doublings) * task->weight[r] / x->weights
                          : power(load, DOUBLINGS) * task->weight[r];
}

static double value_of(anneal *x)
{
    const rate_anneal_task *task = x->task;
    double devices = 0, others = 0;
    for (int32_t r = 0; r < task->v->n_resources; r++) {
        if (x->b.load_ns[r] != x->known[r]) {
            x->known[r] = x->b.load_ns[r];
            x->term[r] = term_of(x, r);
        }
        *(r < task->v->K ? &devices : &others) += x->term[r];
    }
    double value = task->price ? devices + others : root(power(devices, DOUBLINGS - x->doublings) + others, DOUBLINGS);
    return value + task->send_price * (double)x->b.sent_ns / x->unit_ns;
}

/* ---- moves ---- */

static int32_t device_of(const anneal *x, int32_t unit)
{
    return x->b.device[x->task->units->op[x->task->units->off[unit]]];
}

static void put(anneal *x, int32_t unit, int32_t k)
{
    const place_units *u = x->task->units;
    for (int32_t i = u->off[unit]; i < u->off[unit + 1]; i++)
        rate_balance_move(&x->b, u->op[i], k);
}

/* A random operator next to a unit, or MOIRAI_NONE. */
static int32_t neighbour(anneal *x, int32_t unit)
{
    const moirai_problem *p = x->task->v->p;
    const place_units *u = x->task->units;
    int32_t op = u->op[u->off[unit] + (int32_t)util_rng_below(&x->rng, (uint32_t)(u->off[unit + 1] - u->off[unit]))];
    int32_t n_in = p->op_in_off[op + 1] - p->op_in_off[op], n_out = p->op_out_off[op + 1] - p->op_out_off[op];
    if (n_in + n_out == 0)
        return MOIRAI_NONE;
    int32_t which = (int32_t)util_rng_below(&x->rng, (uint32_t)(n_in + n_out));
    if (which < n_in)
        return p->tensor_producer[p->op_in[p->op_in_off[op] + which]];
    int32_t t = p->op_out[p->op_out_off[op] + which - n_in], n = p->tensor_edge_off[t + 1] - p->tensor_edge_off[t];
    return n == 0 ? MOIRAI_NONE : p->edge_reader[p->tensor_edge_off[t] + (int32_t)util_rng_below(&x->rng, (uint32_t)n)];
}

static bool may(const anneal *x, int32_t unit, int32_t k)
{
    return x->task->units->devices[unit] & x->task->devices & UINT64_C(1) << k;
}

static void add(anneal *x, int32_t unit)
{
    x->mark[unit] = x->stamp;
    x->from[x->n_region] = device_of(x, unit);
    x->region[x->n_region++] = unit;
}

/* A device for the unit that is not its own: a neighbour's, or any. */
static int32_t other_device(anneal *x, int32_t unit)
{
    int32_t own = device_of(x, unit);
    for (int32_t i = 0; i < TRIES; i++) {
        int32_t next = util_rng_below(&x->rng, 4) ? neighbour(x, unit) : MOIRAI_NONE;
        int32_t k = next == MOIRAI_NONE ? (int32_t)util_rng_below(&x->rng, (uint32_t)x->task->v->K) : x->b.device[next];
        if (k != own && may(x, unit, k))
            return k;
    }
    return MOIRAI_NONE;
}

/* Grows a region around its first unit, within that unit's device, of units that may be on k. */
static void grow(anneal *x, int32_t most, int32_t k)
{
    int32_t own = device_of(x, x->region[0]);
    for (int32_t tries = 0; x->n_region < most && tries < TRIES; tries++) {
        int32_t from = x->region[util_rng_below(&x->rng, (uint32_t)x->n_region)], op = neighbour(x, from);
        if (op == MOIRAI_NONE || x->b.device[op] != own)
            continue;
        int32_t unit = x->task->units->of_op[op];
        if (x->mark[unit] == x->stamp || !may(x, unit, k))
            continue;
        add(x, unit);
        tries = 0;
    }
}

static bool move_region(anneal *x, int32_t most)
{
    int32_t unit = (int32_t)util_rng_below(&x->rng, (uint32_t)x->task->units->n), k = other_device(x, unit);
    if (k == MOIRAI_NONE)
        return false;
    add(x, unit);
    grow(x, most, k);
    for (int32_t i = 0; i < x->n_region; i++)
        put(x, x->region[i], k);
    return true;
}

static bool exchange(anneal *x)
{
    uint32_t n = (uint32_t)x->task->units->n;
    int32_t a = (int32_t)util_rng_below(&x->rng, n);
    for (int32_t i = 0; i < TRIES; i++) {
        int32_t c = (int32_t)util_rng_below(&x->rng, n), ka = device_of(x, a), kc = device_of(x, c);
        if (ka == kc || !may(x, a, kc) || !may(x, c, ka))
            continue;
        add(x, a);
        add(x, c);
        put(x, a, kc);
        put(x, c, ka);
        return true;
    }
    return false;
}

static bool change(anneal *x)
{
    uint32_t kind = util_rng_below(&x->rng, 8);
    x->n_region = 0;
    x->stamp++;
    if (kind < 4)
        return move_region(x, 1);
    if (kind < 6)
        return exchange(x);
    uint32_t most = UINT32_C(2) << util_rng_below(&x->rng, 7); /* 2 .. 128 */
    return move_region(x, (int32_t)UTIL_MIN(most, MOST_REGION));
}

static void undo(anneal *x)
{
    for (int32_t i = 0; i < x->n_region; i++)
        put(x, x->region[i], x->from[i]);
}

/* ---- the run ---- */

static int64_t largest_now(const anneal *x)
{
    int64_t most = 0;
    for (int32_t r = 0; r < x->task->v->n_resources; r++)
        most = UTIL_MAX(most, x->b.load_ns[r]);
    return most;
}

/* The best by value; where nothing but loads counts, by the largest of them: the norm is a guide, and near its least value the largest load may still fall. */
static void keep_best(anneal *x)
{
    bool loads = !x->task->price && x->task->send_price == 0, better = x->value < x->best_value * (1 - 1e-12);
    if (!better && !(loads && x->value < x->best_value * NEAR_BEST))
        return;
    int64_t most = loads ? largest_now(x) : 0;
    x->best_value = better ? x->value : x->best_value;
    if (loads ? most >= x->best_ns : !better)
        return;
    x->best_ns = most;
    memcpy(x->best, x->b.device, sizeof *x->best * (size_t)x->task->v->n);
}

/* The value of now with another power; what was the best by value is so no more. */
static void set_power(anneal *x, int32_t doublings)
{
    bool loads = !x->task->price && x->task->send_price == 0;
    x->doublings = doublings;
    for (int32_t r = 0; r < x->task->v->n_resources; r++)
        x->known[r] = -1;
    x->value = x->best_value = value_of(x);
    if (!loads)
        memcpy(x->best, x->b.device, sizeof *x->best * (size_t)x->task->v->n);
}

static void run(anneal *x)
{
    const rate_anneal_task *task = x->task;
    double heat = task->heat > 0 ? task->heat : FIRST_HEAT, last = task->last_heat > 0 ? task->last_heat : LAST_HEAT,
           cool = pow(last / heat, 1.0 / (double)UTIL_MAX(task->steps, 1));
    bool rising = task->weight && !task->price;
    int64_t each = rising ? UTIL_MAX(task->steps / DOUBLINGS, 1) : INT64_MAX;
    memcpy(x->best, x->b.device, sizeof *x->best * (size_t)task->v->n);
    x->best_ns = largest_now(x);
    set_power(x, rising ? 1 : DOUBLINGS);
    for (int64_t i = 0; i < task->steps; i++, heat *= cool) {
        if (i % STOP_EVERY == 0 && util_stopped(&task->stop))
            break;
        if (i > 0 && i % each == 0 && x->doublings < DOUBLINGS)
            set_power(x, x->doublings + 1);
        if (!change(x))
            continue;
        double value = x->b.n_over ? HUGE_VAL : value_of(x), worse = value - x->value;
        if (x->b.n_over || (worse > 0 && util_rng_real(&x->rng) >= exp(-worse / (heat * x->best_value)))) {
            undo(x);
            continue;
        }
        x->value = value;
        keep_best(x);
    }
}

static int64_t largest(const relax_view *v, const uint8_t *device, int64_t *load_ns)
{
    int64_t most = 0;
    memset(load_ns, 0, sizeof *load_ns * (size_t)v->n_resources);
    relax_loads(load_ns, v, device);
    for (int32_t r = 0; r < v->n_resources; r++)
        most = UTIL_MAX(most, load_ns[r]);
    return most;
}

int rate_anneal(int32_t *device, int64_t *load_ns, const rate_anneal_task *task)
{
    anneal x = {.task = task};
    const relax_view *v = task->v;
    int rc = rate_balance_open(&x.b, v, device);
    x.term = util_alloc((size_t)v->n_resources, sizeof *x.term);
    x.known = util_alloc((size_t)v->n_resources, sizeof *x.known);
    x.best = util_alloc((size_t)v->n, sizeof *x.best);
    x.mark = util_alloc((size_t)task->units->n, sizeof *x.mark);
    if (!x.term || !x.known || !x.best || !x.mark)
        rc = MOIRAI_EFAIL;
    if (!rc) {
        *load_ns = largest(v, x.b.device, x.b.load_ns);
        x.unit_ns = (double)UTIL_MAX(*load_ns, 1);
        for (int32_t k = 0; k < v->K && task->weight; k++)
            x.weights += task->weight[k];
        util_rng_seed(&x.rng, task->seed);
        if (v->n > 0 && v->K > 1 && !x.b.n_over)
            run(&x);
        else if (v->n > 0)
            memcpy(x.best, x.b.device, sizeof *x.best * (size_t)v->n);
        for (int32_t i = 0; i < v->n; i++)
            device[i] = x.best[i];
        *load_ns = largest(v, x.best, x.b.load_ns);
    }
    void *all[] = {x.term, x.known, x.best, x.mark};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    rate_balance_close(&x.b);
    return rc;
}
