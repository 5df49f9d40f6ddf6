#include "pair/pair_plan.h"

#include <stdlib.h>
#include <string.h>

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
