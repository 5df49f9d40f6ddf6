/* Sides of images, found by the network around them.
 *
 * Kernels work on tiles of an image, and one of 21 x 21 pixels takes as long as one of 24 x 24. A graph has sizes but no
 * sides: the pixels of all images of a batch together. How many images there are is told by the product behind a global
 * pool (a classifier, the squeeze of a block): it has a row for each; else by the batch that an ONNX model was read with.
 * Where nothing tells, four are taken, the middle of 1 to 16 in which most batches are. Images that are then no squares are as good as squares of as many pixels.
 *
 * O(operators). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cost/cost.h"

#define STEPS 4 /* from the pool to the product: a norm, a view, an activation */
#define USUAL_IMAGES 4
#define NEARLY 0.02 /* sizes of a fused operator come from flops that its elementwise members are part of */
#define POOLED 9    /* pixels at least that a global pool takes for one */

static bool has_pixels(const cost_shape *s)
{
    return s->k >= COST_CLASS_CONV && s->k <= COST_CLASS_DEPTHWISE;
}

static bool follows_pool(const moirai_cost_context *x, int32_t op)
{
    double elements = x->shape[op].m * x->shape[op].depth;
    for (int step = 0; step < STEPS; step++) {
        op = cost_first_producer(x->g, op);
        if (op == MOIRAI_NONE)
            return false;
        const cost_shape *s = &x->shape[op];
        if (s->k == COST_CLASS_REDUCE)
            return s->row >= POOLED && fabs(s->rows - elements) < 0.5;
    }
    return false;
}

/* The rows of products behind global pools; 0 where there are none, or not all alike. */
static double count_images(const moirai_cost_context *x)
{
    double images = 0;
    for (int32_t i = 0; i < x->g->n_ops; i++) {
        const cost_shape *s = &x->shape[i];
        if ((s->k != COST_CLASS_LINEAR && s->k != COST_CLASS_DIRECT) || !follows_pool(x, i))
            continue;
        if (images > 0 && fabs(images - s->m) > 0.01)
            return 0;
        images = s->m;
    }
    return images;
}

/* The batch that an ONNX model was read with; 0 where its file has it, or nobody said. */
static double stated_batch(const char *const *dim, int32_t n)
{
    static const char batch[] = "batch=";
    for (int32_t i = 0; i < n; i++)
        if (!strncmp(dim[i], batch, sizeof batch - 1))
            return UTIL_MAX(atof(dim[i] + sizeof batch - 1), 0);
    return 0;
}

void cost_find_sides(moirai_cost_context *x)
{
    double images = count_images(x);
    if (!(images > 0))
        images = stated_batch(x->g->dim, x->g->n_dims);
    if (!(images > 0))
        images = stated_batch(x->g->assumed, x->g->n_assumed);
    if (!(images > 0))
        images = USUAL_IMAGES;
    for (int32_t i = 0; i < x->g->n_ops; i++) {
        double side = sqrt(x->shape[i].m / images), whole = floor(side + 0.5);
        if (has_pixels(&x->shape[i]))
            x->shape[i].side = fabs(side - whole) < NEARLY * side ? whole : side;
    }
}
