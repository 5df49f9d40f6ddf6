/* One scale per plan.
 *
 * A plan compares an operator's times on several devices, so that these must come from one source. Measured times are
 * taken as they are; every other device gets the operator's time from one and the same model, the best that knows all
 * of them. Where no model does (a device with a bandwidth and no rate, say), each gets the best that there is, and the
 * report counts it.
 *
 * A device's time does not depend on the devices beside it: the models that `auto` asks first know every device with a
 * bandwidth and a rate, and which of them it asks hangs on the graph alone. A device that is at least as good as another
 * in every figure is never slower: the formulas see to that (fitted_formula.c).
 *
 * O(devices x models) per operator. */
#include <stdlib.h>
#include "cost/cost.h"

static bool from_one(int64_t *row, const moirai_cost_model **used, const moirai_cost_context *x, int32_t op,
                     const moirai_cost_model *model)
{
    for (int32_t d = 0; d < x->c->n_devices; d++) {
        if (used[d] == &cost_table)
            continue;
        used[d] = model;
        if ((row[d] = model->op_ns(x, op, d)) == MOIRAI_UNKNOWN)
            return false;
    }
    return true;
}

static int32_t from_several(int64_t *row, const moirai_cost_model **used, const moirai_cost_context *x, int32_t op)
{
    for (int32_t d = 0; d < x->c->n_devices; d++) {
        for (int i = 0; i < COST_BEST_FIRST && (i == 0 || row[d] == MOIRAI_UNKNOWN); i++) {
            used[d] = cost_best_first[i];
            row[d] = used[d]->op_ns(x, op, d);
        }
        if (row[d] == MOIRAI_UNKNOWN)
            return d;
    }
    return MOIRAI_NONE;
}

static void take_measured(int64_t *row, const moirai_cost_model **used, const moirai_cost_context *x, int32_t op)
{
    for (int32_t d = 0; d < x->c->n_devices; d++) {
        row[d] = cost_table.op_ns(x, op, d);
        used[d] = row[d] == MOIRAI_UNKNOWN ? NULL : &cost_table;
    }
}

int32_t cost_scale_op(int64_t *row, const moirai_cost_model **used, bool *mixed, const moirai_cost_context *x,
                      int32_t op, const moirai_cost_model *model)
{
    *mixed = false;
    if (model != &cost_auto) {
        for (int32_t d = 0; d < x->c->n_devices; d++)
            used[d] = model == &cost_table ? NULL : model;
        if (from_one(row, used, x, op, model))
            return MOIRAI_NONE;
        int32_t unknown = 0;
        while (row[unknown] != MOIRAI_UNKNOWN)
            unknown++;
        return unknown;
    }
    take_measured(row, used, x, op);
    for (int i = 1; i < COST_BEST_FIRST; i++)
        if (from_one(row, used, x, op, cost_best_first[i]))
            return MOIRAI_NONE;
    *mixed = true;
    return from_several(row, used, x, op);
}
