/* One scale per plan.
 *
 * A plan compares an operator's times on several devices, so that these must come from one source: formulas that differ
 * by a launch of 5 and of 60 us make a small card with few known figures "faster" than a large one with all. Two rules:
 *
 * 1. One model. Measured times are taken as they are. All devices without one get the operator's time from one and the
 *    same model, the best that knows every one of them. Where no model does (a device with a bandwidth and no rate,
 * say), each gets the best that there is, and the report counts it.
 * 2. Better is never slower. A device that is at least as good as another in every figure that says how fast it is
 * (fp32 rate, rate of products, bandwidth, launch) takes at most as long as that one. Formulas do not promise that by
 * themselves: few tiles on many slow multiprocessors take longer than on few fast ones. What is true of a kernel is not
 * always true of a library, which knows its device; and a plan must not hang on it. Since "at least as good" is
 * transitive, one sweep of minima does it, in any order. Measured times are never changed.
 *
 * O(devices^2) once, then O(devices x models + pairs with an order) per operator. */
#include <stdlib.h>
#include "cost/cost.h"

struct cost_scale {
    const moirai_cost_context *x;
    int32_t *worse_off, *worse; /* device -> devices that it must not be slower than */
};

/* Devices whose figures say nothing are not compared. */
static bool known(const moirai_device_type *f)
{
    return f->bandwidth_gb_s > 0 && f->gflops_fp32 > 0;
}

/* A launch that is the model's own can't be compared with one that was given. */
static bool launches_as_fast(double a, double b)
{
    return (a > 0) == (b > 0) && a <= b;
}

static bool at_least_as_good(const moirai_cost_context *x, int32_t a, int32_t b)
{
    const moirai_device_type *f = &x->c->device[a].figures, *g = &x->c->device[b].figures;
    return known(f) && known(g) && f->gflops_fp32 >= g->gflops_fp32 && f->bandwidth_gb_s >= g->bandwidth_gb_s &&
           cost_rate(x, COST_CLASS_LINEAR, f) >= cost_rate(x, COST_CLASS_LINEAR, g) &&
           launches_as_fast(x->launch_ns[a], x->launch_ns[b]);
}

int cost_scale_new(cost_scale **out, const moirai_cost_context *x)
{
    int32_t K = x->c->n_devices, n = 0;
    cost_scale *s = *out = util_alloc(1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    s->x = x;
    s->worse_off = util_alloc((size_t)K + 1, sizeof *s->worse_off);
    s->worse = util_alloc((size_t)K * (size_t)K, sizeof *s->worse);
    if (!s->worse_off || !s->worse)
        return MOIRAI_EFAIL;
    for (int32_t a = 0; a < K; a++) {
        for (int32_t b = 0; b < K; b++)
            if (a != b && at_least_as_good(x, a, b))
                s->worse[n++] = b;
        s->worse_off[a + 1] = n;
    }
    return 0;
}

void cost_scale_free(cost_scale *s)
{
    if (!s)
        return;
    free(s->worse_off);
    free(s->worse);
    free(s);
}

int32_t cost_scale_unfitted(const moirai_cost_context *x)
{
    int32_t first = MOIRAI_NONE, known_ones = 0;
    for (int32_t d = x->c->n_devices - 1; d >= 0; d--) {
        bool applies = cost_fitted_applies(&x->c->device[d].figures);
        known_ones += applies;
        first = applies ? first : d;
    }
    return known_ones ? first : MOIRAI_NONE;
}

static bool from_one(int64_t *row, const moirai_cost_model **used, const cost_scale *s, int32_t op,
                     const moirai_cost_model *model)
{
    for (int32_t d = 0; d < s->x->c->n_devices; d++) {
        if (used[d] == &cost_table)
            continue;
        used[d] = model;
        if ((row[d] = model->op_ns(s->x, op, d)) == MOIRAI_UNKNOWN)
            return false;
    }
    return true;
}

static int32_t from_several(int64_t *row, const moirai_cost_model **used, const cost_scale *s, int32_t op, bool beside)
{
    for (int32_t d = 0; d < s->x->c->n_devices; d++) {
        for (int i = 0; i < COST_BEST_FIRST && (i == 0 || row[d] == MOIRAI_UNKNOWN); i++) {
            used[d] = cost_best_first[beside][i];
            row[d] = used[d]->op_ns(s->x, op, d);
        }
        if (row[d] == MOIRAI_UNKNOWN)
            return d;
    }
    return MOIRAI_NONE;
}

/* Was it measured on some device? */
static bool take_measured(int64_t *row, const moirai_cost_model **used, const cost_scale *s, int32_t op)
{
    bool some = false;
    for (int32_t d = 0; d < s->x->c->n_devices; d++) {
        row[d] = cost_table.op_ns(s->x, op, d);
        used[d] = row[d] == MOIRAI_UNKNOWN ? NULL : &cost_table;
        some |= used[d] != NULL;
    }
    return some;
}

static void never_slower(int64_t *row, const moirai_cost_model *const *used, const cost_scale *s)
{
    for (int32_t d = 0; d < s->x->c->n_devices; d++)
        for (int32_t e = s->worse_off[d]; used[d] != &cost_table && e < s->worse_off[d + 1]; e++)
            row[d] = UTIL_MIN(row[d], row[s->worse[e]]);
}

int32_t cost_scale_op(int64_t *row, const moirai_cost_model **used, bool *mixed, const cost_scale *s, int32_t op,
                      const moirai_cost_model *model)
{
    int32_t unknown = MOIRAI_NONE;
    bool all = false, beside = false;
    *mixed = false;
    if (model == &cost_auto)
        beside = take_measured(row, used, s, op);
    else
        for (int32_t d = 0; d < s->x->c->n_devices; d++)
            used[d] = model == &cost_table ? NULL : model;
    for (int i = 1; model == &cost_auto && i < COST_BEST_FIRST && !all; i++)
        all = from_one(row, used, s, op, cost_best_first[beside][i]);
    if (model == &cost_auto && !all) {
        *mixed = true;
        unknown = from_several(row, used, s, op, beside);
    } else if (model != &cost_auto && !from_one(row, used, s, op, model)) {
        for (unknown = 0; row[unknown] != MOIRAI_UNKNOWN; unknown++)
            ;
    }
    if (unknown == MOIRAI_NONE)
        never_slower(row, used, s);
    return unknown;
}
