/* The shape of an operator's work, from what a graph knows: bytes in and out, weights, flops and traffic.
 *
 * A graph has sizes but no dimensions; they are recovered from products of sizes. Elements: out O, in I (two: I1, I2),
 * weights W; F = flops / 2.
 *
 *   product with weights    depth = F / O, m = I / depth, n = O / m; where I is not known n = W / depth (or
 *                           W / (depth + 1) where only that is whole: a bias), m = O / n; without flops
 *                           m = sqrt(I O / W), solved with a bias where that gives a whole m (weights of less than half
 *                           a column are a scale or the like: a product of two tensors)
 *   product of two tensors  b = I1 I2 O / F^2, depth = F / O, m = I1 / (b depth), n = I2 / (b depth); without flops the
 *                           batch can't be known, and attention's usual inner dimension, 64, is assumed
 *   convolution             depth = F / O, n = W / depth, m = O / n; k^2 / (groups stride^2) = depth m / I tells 3 x 3
 *                           of stride 1 (9), 1 x 1 of any stride (1, 1/4, 1/9, ...), a channel each (depth is the
 *                           kernel: 9, 25, 49) and groups (less than 1 otherwise: 3 x 3 is taken); without flops a
 *                           3 x 3 kernel is assumed. Dilation does not show in sizes (cost_dilated.c)
 *   softmax, norms          row = weights / 2 for a norm with weights, else n of the product (of a softmax, convolution)
 *                           that the rows come from, found by walking back through operators that keep the size; else 512
 *
 * An input that nobody in the graph produces has no size; its bytes are what the traffic leaves. All numbers are
 * clamped to what makes sense: a graph may state anything. O(inputs) per operator. */
#include <math.h>
#include "cost/cost.h"

/* Sums stop here instead of overflowing: nothing real is larger, and four of these still fit an int64. */
#define MOST_BYTES (INT64_MAX / 4)
#define HEAD_DIMENSION 64
#define USUAL_ROW 512
#define STEPS_BACK 8
#define SECTOR_BYTES 32  /* what memory delivers at once */
#define FUSED_SHARE 0.04 /* of a convolution's flops, those of what is fused into it */
#define MOST_AWAY 256

static int64_t sum_bytes(const moirai_graph *g, const int32_t *off, const int32_t *list, int32_t op)
{
    int64_t sum = 0;
    for (int32_t e = off[op]; e < off[op + 1]; e++)
        if (g->tensor_bytes[list[e]] > 0 && (!util_add64(&sum, sum, g->tensor_bytes[list[e]]) || sum > MOST_BYTES))
            return MOST_BYTES;
    return sum;
}

static int64_t weight_bytes(const moirai_graph *g, int32_t op)
{
    return UTIL_MIN(UTIL_MAX(g->op_weight_bytes[op], 0), MOST_BYTES);
}

int64_t cost_traffic_bytes(const moirai_cost_context *x, int32_t op)
{
    const moirai_graph *g = x->g;
    if (g->op_traffic_bytes[op] >= 0)
        return UTIL_MIN(g->op_traffic_bytes[op], MOST_BYTES);
    if (x->op_class[op] == COST_CLASS_VIEW)
        return 0;
    int64_t out = sum_bytes(g, g->op_out_off, g->op_out, op), weights = weight_bytes(g, op);
    if (x->op_class[op] == COST_CLASS_MEMORY)
        weights = UTIL_MIN(weights, out); /* a lookup reads what it returns, not its whole table */
    return weights + sum_bytes(g, g->op_in_off, g->op_in, op) + out;
}

static double at_least_one(double x)
{
    return isfinite(x) && x > 1 ? x : 1;
}

static bool is_whole(double x)
{
    return isfinite(x) && x >= 1 && fabs(x - floor(x + 0.5)) < 1e-6 * x;
}

typedef struct sizes {
    double element, out, weights, in[2], flops_half; /* elements; flops_half 0: not stated */
} sizes;

static void sizes_of(sizes *z, const moirai_cost_context *x, int32_t op, double bytes)
{
    const moirai_graph *g = x->g;
    z->element = g->element_bytes > 0 ? g->element_bytes : 4;
    z->out = (double)sum_bytes(g, g->op_out_off, g->op_out, op) / z->element;
    z->weights = (double)weight_bytes(g, op) / z->element;
    z->flops_half = g->op_flops[op] > 0 ? (double)g->op_flops[op] / 2 : 0;
    if (z->flops_half > 2 * z->weights * z->out) /* less than half a column: a scale or the like, no matrix */
        z->weights = 0;
    z->in[0] = z->in[1] = 0;
    int n = 0;
    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1] && n < 2; e++)
        if (g->tensor_bytes[g->op_in[e]] > 0)
            z->in[n++] = (double)g->tensor_bytes[g->op_in[e]] / z->element;
    double rest = bytes / z->element - z->out - z->weights - z->in[0] - z->in[1];
    bool wants_two = !(z->weights > 0);
    if (rest > 0 && (n == 0 || (n == 1 && wants_two)))
        z->in[n] = rest;
    if (n == 0 && wants_two)
        z->in[0] = z->in[1] = UTIL_MAX(rest, 0) / 2;
}

/* n of a product with weights: with a bias where n and m both come out whole and without it they do not. 1024 x 257
 * weights are 1024 columns of 256 and a bias, though 1028 x 256 as well: but 1028 divides no output of 1024 columns. A
 * fused operator's flops are those of its elementwise members as well, by which 512 columns become 512.06: the nearest
 * whole number is meant that divides the output. */
static double columns(const sizes *z, double depth)
{
    double plain = z->weights / depth, bias = z->weights / (depth + 1), nearest = floor(plain + 0.5);
    bool without = is_whole(plain) && is_whole(z->out / plain), with = is_whole(bias) && is_whole(z->out / bias);
    if (with || without)
        return without ? plain : bias;
    for (double away = 0; away <= UTIL_MIN(FUSED_SHARE * plain, MOST_AWAY); away++) {
        if (is_whole(z->out / (nearest - away)))
            return nearest - away;
        if (is_whole(z->out / (nearest + away)))
            return nearest + away;
    }
    return plain;
}

static void product_with_weights(cost_shape *s, const sizes *z)
{
    double m;
    if (z->flops_half > 0) {
        s->depth = z->flops_half / z->out;
        m = s->k == COST_CLASS_LINEAR && z->in[0] > 0 ? z->in[0] / s->depth : z->out / columns(z, s->depth);
    } else {
        double plain = sqrt(z->in[0] * z->out / z->weights);
        double bias = (z->out + sqrt(z->out * z->out + 4 * z->weights * z->out * z->in[0])) / (2 * z->weights);
        m = !is_whole(plain) && is_whole(bias) ? bias : plain;
        s->depth = z->in[0] / m;
    }
    s->b = 1;
    s->m = m;
    s->n = z->out / m;
}

static void product_of_two(cost_shape *s, const sizes *z)
{
    double half = z->flops_half, large = UTIL_MAX(z->in[0], z->in[1]);
    if (!(half > 0)) /* scores: out larger than the inputs, inner dimension 64; else context: 64 columns */
        half = (z->out > large ? z->out : large) * HEAD_DIMENSION;
    s->b = at_least_one(z->in[0] * z->in[1] * z->out / (half * half));
    s->depth = half / z->out;
    s->m = z->in[0] / (s->b * s->depth);
    s->n = z->in[1] / (s->b * s->depth);
}

/* 1 x 1 of stride 1, 2, 3, 4. A side of 65 becomes 33, a little more than half: by as much as the depth is a whole number
 * of channels, which that of 32 groups of 3 x 3 is not. */
static bool is_pointwise(double kernel, double pixels)
{
    double above = is_whole(pixels) ? 0.1 : 0.03;
    for (int stride = 1; stride <= 4; stride++)
        if (kernel * stride * stride > 0.97 && kernel * stride * stride < 1 + above)
            return true;
    return false;
}

static bool is_one_channel(double depth)
{
    return depth == 9 || depth == 25 || depth == 49 || depth == 81 || depth == 121 || depth == 169 || depth == 961;
}

static void convolution(cost_shape *s, sizes *z)
{
    if (!(z->flops_half > 0))
        z->flops_half = 3 * sqrt(z->in[0] * z->out * z->weights);
    product_with_weights(s, z);
    double kernel = s->depth * s->m / z->in[0];
    bool pointwise = is_pointwise(kernel, z->in[0] / s->depth);
    s->k = COST_CLASS_DIRECT;
    bool keeps_size = z->in[0] == z->out && s->n != s->depth; /* 49 of 768 channels look like a stride of 4 */
    if (is_one_channel(floor(s->depth + 0.5)) && (keeps_size || !pointwise) && s->n > 1) {
        s->k = COST_CLASS_DEPTHWISE;
    } else if (kernel > 8 && kernel < 10) {
        s->k = COST_CLASS_CONV;
    } else if (kernel > 0 && kernel < 0.9 && !pointwise) {
        double groups = UTIL_MIN(UTIL_MAX(floor(9 / kernel + 0.5), 2), UTIL_MAX(s->n, 1));
        s->k = COST_CLASS_GROUPED;
        s->b = groups;
        s->n /= groups;
    }
}

/* Sizes that say nothing (no output, no operands) leave a stream of the operator's traffic. */
static void shape_of_product(cost_shape *s, const moirai_cost_context *x, int32_t op)
{
    sizes z;
    sizes_of(&z, x, op, s->bytes);
    s->weight_bytes = UTIL_MIN(z.weights * z.element, s->bytes);
    s->k = s->k == COST_CLASS_CONV ? COST_CLASS_CONV : z.weights > 0 ? COST_CLASS_LINEAR : COST_CLASS_BMM;
    bool one = z.in[0] > 0 || z.flops_half > 0, two = z.in[0] > 0 && z.in[1] > 0;
    if (!(z.out > 0) || (s->k == COST_CLASS_BMM ? !two : !one || !(z.weights > 0))) {
        s->k = COST_CLASS_UNKNOWN;
        return;
    }
    if (s->k == COST_CLASS_CONV)
        convolution(s, &z);
    else if (s->k == COST_CLASS_LINEAR)
        product_with_weights(s, &z);
    else
        product_of_two(s, &z);
    s->b = at_least_one(s->b);
    s->m = at_least_one(s->m);
    s->n = at_least_one(s->n);
    s->depth = at_least_one(s->depth);
    s->flops = z.flops_half > 0 ? 2 * z.flops_half : 2 * s->b * s->m * s->n * s->depth;
}

static bool is_product(int k)
{
    return k == COST_CLASS_LINEAR || k == COST_CLASS_BMM;
}

/* Who makes the largest of the operator's inputs, and how large that is. */
static int32_t largest_producer(const moirai_graph *g, int32_t op, int64_t *most)
{
    int32_t before = MOIRAI_NONE;
    *most = 0;
    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1]; e++)
        if (g->tensor_bytes[g->op_in[e]] > *most) {
            *most = g->tensor_bytes[g->op_in[e]];
            before = g->tensor_producer[g->op_in[e]];
        }
    return before;
}

/* The columns of the product or, of a softmax, of the convolution that the rows come from. Scores that were summed up
 * against so many centres: as many as what was summed is copies of one (Expand). */
static double row_from_product(const moirai_cost_context *x, int32_t op, bool softmax)
{
    const moirai_graph *g = x->g;
    bool summed = false;
    for (int step = 0; step < STEPS_BACK; step++) {
        int64_t most;
        int32_t before = largest_producer(g, op, &most);
        if (before == MOIRAI_NONE)
            return 0;
        int k = x->op_class[before];
        if (is_product(k) || (softmax && k == COST_CLASS_CONV)) {
            cost_shape s;
            cost_shape_of(&s, x, before);
            return !summed && cost_class_is_product(s.k) ? s.n : 0;
        }
        if (summed && cost_class_is_stretch(g->op_type[before]))
            return (double)most / (double)UTIL_MAX(sum_bytes(g, g->op_in_off, g->op_in, before), 1);
        summed |= softmax && k == COST_CLASS_REDUCE;
        if (sum_bytes(g, g->op_out_off, g->op_out, before) != most || k == COST_CLASS_UNKNOWN)
            return 0;
        op = before;
    }
    return 0;
}

/* The only operator that reads the first result of `op`, MOIRAI_NONE if there are several or none. */
static int32_t only_reader(const moirai_graph *g, int32_t op)
{
    int32_t t = g->op_out_off[op] < g->op_out_off[op + 1] ? g->op_out[g->op_out_off[op]] : MOIRAI_NONE;
    if (t == MOIRAI_NONE || g->tensor_reader_off[t + 1] - g->tensor_reader_off[t] != 1)
        return MOIRAI_NONE;
    return g->tensor_reader[g->tensor_reader_off[t]];
}

/* A product sums over the rows that it reads: weights by which values are averaged. */
static double row_to_product(const moirai_cost_context *x, int32_t op)
{
    int32_t reader = only_reader(x->g, op);
    if (reader == MOIRAI_NONE || !is_product(x->op_class[reader]))
        return 0;
    cost_shape s;
    cost_shape_of(&s, x, reader);
    return s.k == COST_CLASS_LINEAR ? s.depth : 0;
}

static void shape_of_rows(cost_shape *s, const moirai_cost_context *x, int32_t op)
{
    double elements = s->out_bytes / s->element_bytes, row = 0;
    if (s->k == COST_CLASS_LN)
        row = (double)weight_bytes(x->g, op) / s->element_bytes / 2;
    else
        row = row_to_product(x, op);
    if (!(row >= 1))
        row = row_from_product(x, op, s->k == COST_CLASS_SOFTMAX);
    s->row = row >= 1 ? row : USUAL_ROW;
    s->rows = at_least_one(elements / s->row);
}

/* "add" with one tensor read is "addu". */
static cost_class with_scalar(cost_class k, double bytes, double out_bytes)
{
    bool one = bytes < 2.1 * out_bytes;
    switch (k) {
    case COST_CLASS_ADD: return one ? COST_CLASS_ADDU : k;
    case COST_CLASS_MUL: return one ? COST_CLASS_MULU : k;
    case COST_CLASS_DIV: return one ? COST_CLASS_DIVU : k;
    case COST_CLASS_POW: return one ? COST_CLASS_POWU : k;
    default: return k;
    }
}

/* Whoever stretches a tensor reads no more of it than there is, a quarter of the result where images double their sides;
 * a lookup reads what it returns. Joined tensors are at least two: a graph may leave out what is constant. A stack whose
 * parts are summed up next has them side by side, element by element. */
static void shape_of_move(cost_shape *s, const moirai_cost_context *x, int32_t op)
{
    const moirai_graph *g = x->g;
    const char *type = g->op_type[op];
    int32_t reader = only_reader(g, op);
    double in = (double)sum_bytes(g, g->op_in_off, g->op_in, op), quarter = s->out_bytes / 4;
    s->stretched = cost_class_is_stretch(type) || cost_class_is_pad(type);
    if (cost_class_is_stretch(type))
        s->bytes = UTIL_MIN(s->bytes, s->out_bytes + (in > 0 ? UTIL_MIN(in, quarter) : quarter));
    if (cost_class_is_lookup(type))
        s->bytes = UTIL_MAX(s->bytes, 2 * s->out_bytes);
    if (!cost_class_is_join(type))
        return;
    s->parts = UTIL_MAX((double)(g->op_in_off[op + 1] - g->op_in_off[op]), 2);
    if (reader != MOIRAI_NONE && x->op_class[reader] == COST_CLASS_REDUCE)
        s->interleaved = (double)sum_bytes(g, g->op_out_off, g->op_out, reader) * s->parts == s->out_bytes;
}

static void shape_of_sum(cost_shape *s, const char *type)
{
    s->interleaved = cost_class_is_rank(type);
    s->rows = at_least_one(s->out_bytes / s->element_bytes);
    s->row = at_least_one((s->bytes - s->out_bytes) / UTIL_MAX(s->out_bytes, 1));
    s->strided = s->row * s->element_bytes > SECTOR_BYTES && !cost_class_is_pool(type);
}

void cost_shape_of(cost_shape *out, const moirai_cost_context *x, int32_t op)
{
    const moirai_graph *g = x->g;
    *out = (cost_shape){.k = (cost_class)x->op_class[op]};
    out->element_bytes = g->element_bytes > 0 ? g->element_bytes : 4;
    out->bytes = (double)cost_traffic_bytes(x, op);
    out->out_bytes = (double)sum_bytes(g, g->op_out_off, g->op_out, op);
    out->b = out->m = out->n = out->depth = out->rows = out->row = 1;
    if (is_product((int)out->k) || out->k == COST_CLASS_CONV)
        shape_of_product(out, x, op);
    else if (out->k == COST_CLASS_SOFTMAX || out->k == COST_CLASS_LN)
        shape_of_rows(out, x, op);
    else
        out->k = with_scalar(out->k, out->bytes, out->out_bytes);
    if (out->k == COST_CLASS_MEMORY)
        shape_of_move(out, x, op);
    else if (out->k == COST_CLASS_REDUCE)
        shape_of_sum(out, g->op_type[op]);
}

int64_t cost_flops(const moirai_cost_context *x, int32_t op)
{
    if (x->g->op_flops[op] >= 0)
        return x->g->op_flops[op];
    double flops = x->shape[op].flops;
    return flops < 9e18 ? (int64_t)flops : INT64_MAX;
}
