#include "pair/pair.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/plan_order.h"
#include "util/util.h"

void pair_plan_free(pair_plan *plan)
{
    free(plan->device);
    free(plan->order);
    *plan = (pair_plan){0};
}

int pair_plan_set(pair_plan *plan, int32_t n_ops, const int32_t *device, const moirai_task *order, int64_t n_order)
{
    if (!plan->device)
        plan->device = util_alloc((size_t)n_ops, sizeof *plan->device);
    moirai_task *grown = util_resize(plan->order, (size_t)n_order, sizeof *grown);
    if (!plan->device || !grown)
        return MOIRAI_EFAIL;
    plan->order = grown;
    plan->n_order = n_order;
    memcpy(plan->device, device, sizeof *device * (size_t)n_ops);
    memcpy(plan->order, order, sizeof *order * (size_t)n_order);
    return 0;
}

int pair_plan_copy(pair_plan *to, const pair_plan *from, int32_t n_ops)
{
    to->length_ns = from->length_ns;
    to->cost = from->cost;
    return from->device ? pair_plan_set(to, n_ops, from->device, from->order, from->n_order) : 0;
}

int pair_take_plan(pair_state *x, const moirai_plan *plan)
{
    moirai_task *order;
    int64_t n;
    if (plan->makespan_ns >= x->plan.length_ns)
        return 0;
    int rc = schedule_plan_order(&order, &n, &x->block.problem, plan);
    if (rc)
        return rc;
    x->plan.length_ns = plan->makespan_ns;
    x->plan.cost = pricing_units(x->block.unit, plan->makespan_ns);
    rc = pair_plan_set(&x->plan, x->block.problem.n_ops, plan->op_device, order, n);
    free(order);
    return rc;
}
