/* How sure a predicted time is.
 *
 * The judge (bench/bench_cost.c) predicts every measured time with coefficients that have not seen its GPU, and so knows
 * how far predictions are off, by class. Of that error one part is common to all operators of a class on a device (its
 * library likes that kind of kernel, or does not), and one is each operator's own. Over a network the second averages
 * out and the first does not: it is what a plan's gain hangs on. Both are kept, as standard deviations of a logarithm,
 * since errors are factors.
 *
 * Perturbed times are what the times might be: every pair times exp(bias x a + noise x b), with normal numbers a by class
 * and device type (two V100s are wrong alike) and b by operator and type, from the seed alone. Measured times stay.
 *
 * O(operators x devices). */
#include "cost/spread.h"

#include <math.h>
#include <string.h>
#include "cost/cost.h"

static const struct {
    cost_spread seen, unseen;
} FIGURES[COST_CLASS_MEASURED] = {
#include "cost/spread_figures.h"
};

/* No GPU of the measurements is a processor, and what a view or an unknown operator takes nobody judged. */
#define PROCESSOR_BIAS 0.4
#define PROCESSOR_NOISE 0.4

cost_spread cost_spread_of(cost_class k, bool seen)
{
    if (k >= COST_CLASS_MEASURED)
        return (cost_spread){PROCESSOR_BIAS, PROCESSOR_NOISE};
    return seen ? FIGURES[k].seen : FIGURES[k].unseen;
}

bool cost_spread_seen(const char *type)
{
    static const char *const types[] = {"p4", "p100", "v100", "v100-16g", "t4", "a100", "a100-80g"};
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i], type))
            return true;
    return false;
}

static cost_spread spread_on(const moirai_cost_context *x, int32_t op, int32_t d)
{
    const moirai_device *device = &x->c->device[d];
    if (cost_table.op_ns(x, op, d) != MOIRAI_UNKNOWN)
        return (cost_spread){0, 0};
    if (device->figures.processor)
        return (cost_spread){PROCESSOR_BIAS, PROCESSOR_NOISE};
    return cost_spread_of(x->shape[op].k, cost_spread_seen(device->type));
}

/* A normal number from three: Box and Muller on two hashed halves. */
static double normal(uint64_t seed, uint64_t a, uint64_t b)
{
    util_rng r;
    util_rng_seed(&r, seed * 0x9e3779b97f4a7c15u ^ (a + 1) * 0xbf58476d1ce4e5b9u ^ (b + 1) * 0x94d049bb133111ebu);
    double u = util_rng_real(&r), v = util_rng_real(&r);
    return sqrt(-2 * log(UTIL_MAX(u, 1e-300))) * cos(6.283185307179586 * v);
}

/* Devices of one type are one to it. So are processors of as many threads: how a kernel fares with more of them is no
 * less in doubt than how it fares on another type. */
static int32_t first_of_type(const moirai_cluster *c, int32_t d)
{
    for (int32_t e = 0; *c->device[d].type && e < d; e++)
        if (!strcmp(c->device[e].type, c->device[d].type) && c->device[e].threads == c->device[d].threads)
            return e;
    return d;
}

int moirai_cost_perturb(int64_t *time_ns, const moirai_graph *g, const moirai_cluster *c, uint64_t seed)
{
    moirai_cost_context *x;
    int rc = cost_context_new(&x, g, c);
    for (int64_t i = 0; !rc && i < (int64_t)g->n_ops * c->n_devices; i++) {
        int32_t op = (int32_t)(i / c->n_devices), d = (int32_t)(i % c->n_devices);
        cost_spread s = spread_on(x, op, d);
        uint64_t type = (uint64_t)first_of_type(c, d);
        if (time_ns[i] <= 0 || !(s.bias > 0 || s.noise > 0))
            continue;
        double off = s.bias * normal(seed, x->shape[op].k, type) +
                     s.noise * normal(seed, (uint64_t)COST_CLASS_COUNT + (uint64_t)op, type);
        time_ns[i] = UTIL_MAX(cost_round_ns((double)time_ns[i] * exp(off)), 1);
    }
    cost_context_free(x);
    return rc;
}

int moirai_cost_spread(double *spread, const moirai_graph *g, const moirai_cluster *c)
{
    moirai_cost_context *x;
    int rc = cost_context_new(&x, g, c);
    for (int64_t i = 0; !rc && i < (int64_t)g->n_ops * c->n_devices; i++) {
        cost_spread s = spread_on(x, (int32_t)(i / c->n_devices), (int32_t)(i % c->n_devices));
        spread[i] = exp(COST_SPREAD_80 * hypot(s.bias, s.noise));
    }
    cost_context_free(x);
    return rc;
}

int moirai_cost_classes(const char **name, const moirai_graph *g, const moirai_cluster *c)
{
    moirai_cost_context *x;
    int rc = cost_context_new(&x, g, c);
    for (int32_t i = 0; !rc && i < g->n_ops; i++)
        name[i] = cost_class_name(x->shape[i].k);
    cost_context_free(x);
    return rc;
}
