/* Pieces of networks: what each operator writes, reads and computes. Batch norms and activations are operators of their
 * own, as in exported models; fusion is the coarsening's business. */
#include "generate/network.h"

#include <stdio.h>

int32_t generate_net_draw(generate_net *n, int32_t from, int32_t to)
{
    return from + (int32_t)util_rng_below(&n->rng, (uint32_t)(to - from + 1));
}

static int64_t elements(const generate_value *x)
{
    return x->channels * x->points;
}

/* The value that the next operator writes. */
static generate_value fresh(generate_net *n, int64_t channels, int64_t points)
{
    generate_value x = {.channels = channels, .points = points};
    snprintf(x.name, sizeof x.name, "n%d", n->n_ops++);
    return x;
}

/* An operator that reads x and maybe y and writes `out`; weights and arithmetic in elements. */
static generate_value add(generate_net *n, const char *type, generate_value out, const generate_value *x,
                          const generate_value *y, int64_t weight, int64_t flops)
{
    zoo_op_add(
        &n->z, type, out.name, x->name, y ? y->name : NULL,
        (zoo_cost){.out = elements(&out), .in = elements(x) + (y ? elements(y) : 0), .weight = weight, .flops = flops});
    return out;
}

generate_value generate_input(generate_net *n, const char *name, int64_t channels, int64_t points)
{
    (void)n;
    generate_value x = {.channels = channels, .points = points};
    snprintf(x.name, sizeof x.name, "%s", name);
    return x;
}

static int64_t strided(int64_t points, int stride)
{
    return UTIL_MAX(1, points / (stride * stride));
}

static generate_value norm_and_act(generate_net *n, generate_value x, bool act)
{
    x = add(n, "BatchNormalization", fresh(n, x.channels, x.points), &x, NULL, 4 * x.channels, 2 * elements(&x));
    return act ? generate_each(n, "Relu", x, NULL) : x;
}

generate_value generate_conv(generate_net *n, generate_value x, int64_t channels, int kernel, int stride, bool act)
{
    int64_t weight = channels * x.channels * kernel * kernel;
    generate_value out = fresh(n, channels, strided(x.points, stride));
    out = add(n, "Conv", out, &x, NULL, weight, 2 * weight * out.points);
    return norm_and_act(n, out, act);
}

generate_value generate_separable(generate_net *n, generate_value x, int64_t channels, int kernel, int stride)
{
    x = generate_each(n, "Relu", x, NULL);
    int64_t weight = x.channels * kernel * kernel;
    generate_value deep = fresh(n, x.channels, strided(x.points, stride));
    deep = add(n, "Conv", deep, &x, NULL, weight, 2 * weight * deep.points);
    return generate_conv(n, deep, channels, 1, 1, false);
}

generate_value generate_pool(generate_net *n, generate_value x, int kernel, int stride)
{
    generate_value out = fresh(n, x.channels, strided(x.points, stride));
    return add(n, "MaxPool", out, &x, NULL, 0, elements(&out) * kernel * kernel);
}

generate_value generate_global_pool(generate_net *n, generate_value x)
{
    return add(n, "GlobalAveragePool", fresh(n, x.channels, 1), &x, NULL, 0, elements(&x));
}

generate_value generate_resize(generate_net *n, generate_value x, int64_t points)
{
    return add(n, "Resize", fresh(n, x.channels, points), &x, NULL, 0, x.channels * points);
}

generate_value generate_each(generate_net *n, const char *type, generate_value x, const generate_value *y)
{
    return add(n, type, fresh(n, x.channels, x.points), &x, y, 0, elements(&x));
}

generate_value generate_rows(generate_net *n, const char *type, generate_value x, const generate_value *y,
                             int64_t points)
{
    return add(n, type, fresh(n, x.channels, points), &x, y, 0, elements(&x));
}

generate_value generate_concat(generate_net *n, const generate_value *x, int count)
{
    int64_t channels = 0;
    for (int i = 0; i < count; i++)
        channels += x[i].channels;
    generate_value out = fresh(n, channels, x[0].points);
    zoo_op_begin(&n->z, "Concat", out.name);
    for (int i = 0; i < count; i++)
        zoo_op_read(&n->z, x[i].name);
    zoo_op_end(&n->z, out.name, (zoo_cost){.out = elements(&out), .in = elements(&out)});
    return out;
}

generate_value generate_sum(generate_net *n, const generate_value *x, int count)
{
    generate_value sum = x[0];
    for (int i = 1; i < count; i++)
        sum = generate_each(n, "Add", sum, &x[i]);
    return sum;
}

generate_value generate_linear(generate_net *n, generate_value x, int64_t width)
{
    int64_t weight = x.channels * width;
    x = add(n, "MatMul", fresh(n, width, x.points), &x, NULL, weight, 2 * weight * x.points);
    return add(n, "Add", fresh(n, width, x.points), &x, NULL, width, elements(&x));
}

generate_value generate_product(generate_net *n, generate_value x, generate_value y, int64_t channels, int64_t points,
                                int64_t flops)
{
    return add(n, "MatMul", fresh(n, channels, points), &x, &y, 0, flops);
}

/* Only the rows that are asked for are read: the table is memory, not traffic. */
generate_value generate_lookup(generate_net *n, const char *input, int64_t rows, int64_t width, int64_t indices)
{
    generate_value out = fresh(n, width, indices);
    zoo_op_begin(&n->z, "Gather", out.name);
    zoo_op_read(&n->z, input);
    zoo_op_end(&n->z, out.name, (zoo_cost){.out = elements(&out), .in = elements(&out)});
    if (!n->z.result)
        n->z.result = moirai_graph_builder_cost(n->z.builder, n->z.op, rows * width * n->z.element_bytes, 0, 0,
                                                2 * elements(&out) * n->z.element_bytes);
    return out;
}

generate_value generate_residual(generate_net *n, generate_value x, int64_t channels, int stride, bool narrow)
{
    generate_value skip = x;
    if (narrow) {
        x = generate_conv(n, x, channels / 4, 1, 1, true);
        x = generate_conv(n, x, channels / 4, 3, stride, true);
        x = generate_conv(n, x, channels, 1, 1, false);
    } else {
        x = generate_conv(n, x, channels, 3, stride, true);
        x = generate_conv(n, x, channels, 3, 1, false);
    }
    if (skip.channels != channels || stride > 1)
        skip = generate_conv(n, skip, channels, 1, stride, false);
    return generate_each(n, "Relu", generate_each(n, "Add", x, &skip), NULL);
}

generate_value generate_attention(generate_net *n, generate_value x, const generate_value *memory, int64_t heads)
{
    int64_t width = x.channels;
    generate_value normed =
        add(n, "LayerNormalization", fresh(n, width, x.points), &x, NULL, 2 * width, 8 * elements(&x));
    generate_value from = memory ? *memory : normed;
    generate_value q = generate_linear(n, normed, width), k = generate_linear(n, from, width);
    generate_value v = generate_linear(n, from, width);
    int64_t flops = 2 * x.points * from.points * width;
    generate_value scores = generate_product(n, q, k, heads * from.points, x.points, flops);
    scores = generate_each(n, "Softmax", scores, NULL);
    generate_value mixed = generate_product(n, scores, v, width, x.points, flops);
    mixed = generate_linear(n, mixed, width);
    return generate_each(n, "Add", mixed, &x);
}

generate_value generate_feed_forward(generate_net *n, generate_value x, int64_t width)
{
    generate_value y =
        add(n, "LayerNormalization", fresh(n, x.channels, x.points), &x, NULL, 2 * x.channels, 8 * elements(&x));
    y = generate_each(n, "Gelu", generate_linear(n, y, width), NULL);
    y = generate_linear(n, y, x.channels);
    return generate_each(n, "Add", y, &x);
}
