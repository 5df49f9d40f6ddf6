/* Dilated convolutions, found by the shape of the network around them.
 *
 * A 3 x 3 convolution with holes can't go by Winograd and takes twice as long as one without, and no size tells it. Where
 * backbones have them, they stand in for a stride: a residual network that is to keep its resolution doubles its channels
 * as it always does, but no longer halves its sides. So, of the bottlenecks of a graph (1 x 1 to c channels, 3 x 3 from c
 * to c, 1 x 1 to at least twice as many), of which the first has c0 channels on m0 pixels: one on m pixels is to have
 * c0 sqrt(m0 / m) channels. Where a bottleneck has 1.5 times as many or more, the sides were kept, and those after it are
 * dilated: the first of a stage still has the dilation of the stage before, in all the libraries that build such networks.
 *
 * O(operators + tensors). */
#include <math.h>
#include "cost/cost.h"

#define STEPS 4
#define TOO_WIDE 1.5

/* Sizes of a fused operator come from flops that its elementwise members are part of. */
static bool equal(double a, double b)
{
    return fabs(a - b) < 0.04 * b;
}

/* Elementwise, and so one with the convolution before it. */
static bool is_epilogue(const moirai_cost_context *x, int32_t op)
{
    return x->shape[op].k < COST_CLASS_SOFTMAX;
}

static bool is_convolution(const moirai_cost_context *x, int32_t op)
{
    return x->shape[op].k == COST_CLASS_CONV || x->shape[op].k == COST_CLASS_DIRECT;
}

static int32_t only_reader(const moirai_graph *g, int32_t op)
{
    int32_t tensor = g->op_out_off[op] < g->op_out_off[op + 1] ? g->op_out[g->op_out_off[op]] : MOIRAI_NONE;
    if (tensor == MOIRAI_NONE || g->tensor_reader_off[tensor + 1] - g->tensor_reader_off[tensor] != 1)
        return MOIRAI_NONE;
    return g->tensor_reader[g->tensor_reader_off[tensor]];
}

/* The convolution before or after `op`, with nothing but elementwise operators between. */
static int32_t neighbour(const moirai_cost_context *x, int32_t op, int32_t (*next)(const moirai_graph *, int32_t))
{
    for (int step = 0; step < STEPS; step++) {
        op = next(x->g, op);
        if (op == MOIRAI_NONE || is_convolution(x, op))
            return op;
        if (!is_epilogue(x, op))
            return MOIRAI_NONE;
    }
    return MOIRAI_NONE;
}

static bool is_bottleneck(const moirai_cost_context *x, int32_t op)
{
    const cost_shape *s = &x->shape[op];
    if (s->k != COST_CLASS_CONV || !equal(s->depth, 9 * s->n))
        return false;
    int32_t before = neighbour(x, op, cost_first_producer), after = neighbour(x, op, only_reader);
    if (before == MOIRAI_NONE || after == MOIRAI_NONE)
        return false;
    const cost_shape *p = &x->shape[before], *q = &x->shape[after];
    return p->k == COST_CLASS_DIRECT && equal(p->n, s->n) && q->k == COST_CLASS_DIRECT && equal(q->depth, s->n) &&
           q->n >= 2 * s->n;
}

void cost_find_dilated(moirai_cost_context *x)
{
    double first = 0; /* c0 sqrt(m0) */
    bool kept = false;
    for (int32_t i = 0; i < x->g->n_ops; i++) {
        int32_t op = x->g->topo[i];
        cost_shape *s = &x->shape[op];
        if (!is_bottleneck(x, op))
            continue;
        double size = s->n * sqrt(s->m);
        first = first > 0 ? first : size;
        if (kept)
            s->k = COST_CLASS_DIRECT;
        kept = size > TOO_WIDE * first;
    }
}
