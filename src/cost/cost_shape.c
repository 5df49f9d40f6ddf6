/* Traffic and arithmetic of an operator, where the graph does not state them. */
#include "cost/cost.h"

/* Sums stop here instead of overflowing: nothing real is larger, and four of these still fit an int64. */
#define MOST_BYTES (INT64_MAX / 4)

static int64_t sum_bytes(const moirai_graph *g, const int32_t *off, const int32_t *list, int32_t op)
{
    int64_t sum = 0;
    for (int32_t e = off[op]; e < off[op + 1]; e++)
        if (g->tensor_bytes[list[e]] > 0 && (!moirai_add64(&sum, sum, g->tensor_bytes[list[e]]) || sum > MOST_BYTES))
            return MOST_BYTES;
    return sum;
}

int64_t moirai_cost_traffic_bytes(const moirai_cost_context *x, int32_t op)
{
    const moirai_graph *g = x->g;
    if (g->op_traffic_bytes[op] >= 0)
        return MOIRAI_MIN(g->op_traffic_bytes[op], MOST_BYTES);
    if (x->op_class[op] == MOIRAI_CLASS_VIEW)
        return 0;
    int64_t weights = MOIRAI_MIN(MOIRAI_MAX(g->op_weight_bytes[op], 0), MOST_BYTES);
    return weights + sum_bytes(g, g->op_in_off, g->op_in, op) + sum_bytes(g, g->op_out_off, g->op_out, op);
}

int64_t moirai_cost_flops(const moirai_cost_context *x, int32_t op)
{
    return MOIRAI_MAX(x->g->op_flops[op], 0);
}
