/* Arithmetic of an operator: a multiplication and an addition are two flops, as everywhere in this project; a
 * transcendental function counts as several (see the table in onnx_rules.c). Everything saturates. */
#include "onnx/rules/onnx_rules.h"

#include <string.h>

#define FLOPS(name) int64_t onnx_flops_##name(const onnx_node *n)

static int64_t elements(const onnx_value *v)
{
    return v ? v->elements : 0;
}

static int64_t convolution(const onnx_node *n, const onnx_value *weight, bool bias)
{
    int64_t out = elements(onnx_out(n, 0));
    if (!weight || weight->rank < 2)
        return out;
    int64_t per_output = onnx_product(weight->dim, 1, weight->rank);
    return onnx_add(onnx_mul(onnx_mul(2, per_output), out), bias ? out : 0);
}

FLOPS(conv)
{
    return convolution(n, onnx_in(n, 1), onnx_in(n, 2) != NULL);
}

FLOPS(qlinear_conv)
{
    return convolution(n, onnx_in(n, 3), onnx_in(n, 8) != NULL);
}

/* Every input element meets every weight of its group's outputs. */
FLOPS(conv_transpose)
{
    const onnx_value *w = onnx_in(n, 1);
    int64_t per_input = w && w->rank >= 2 ? onnx_product(w->dim, 1, w->rank) : 1;
    return onnx_add(onnx_mul(onnx_mul(2, per_input), elements(onnx_in(n, 0))),
                    onnx_in(n, 2) ? elements(onnx_out(n, 0)) : 0);
}

FLOPS(pool)
{
    const Onnx__AttributeProto *k = onnx_attr(n->proto, "kernel_shape");
    int64_t window = 1;
    for (size_t i = 0; k && i < k->n_ints; i++)
        window = onnx_mul(window, UTIL_MAX(k->ints[i], (int64_t)1));
    return onnx_mul(window, elements(onnx_out(n, 0)));
}

/* One per element read: reductions, global pools, searches. */
FLOPS(input)
{
    return elements(onnx_in(n, 0));
}

FLOPS(norm)
{
    return onnx_mul(n->rule->per_output, elements(onnx_in(n, 0)));
}

FLOPS(variadic)
{
    return onnx_mul(UTIL_MAX(n->n_in - 1, 1), elements(onnx_out(n, 0)));
}

FLOPS(lrn)
{
    int64_t size = onnx_attr_int(n->proto, "size", 1);
    return onnx_mul(elements(onnx_in(n, 0)), size < 1 || size > 1 << 20 ? 8 : 2 * size + 6);
}

FLOPS(resize)
{
    int64_t per_output = onnx_attr_is(n->proto, "mode", "linear", false)  ? 8
                         : onnx_attr_is(n->proto, "mode", "cubic", false) ? 32
                                                                          : 1;
    return onnx_mul(per_output, elements(onnx_out(n, 0)));
}

static int64_t product(const onnx_node *n, const onnx_value *a, bool trans_a)
{
    if (!a || a->rank < 1)
        return 0;
    int64_t k = a->dim[a->rank - (trans_a && a->rank > 1 ? 2 : 1)];
    return onnx_mul(onnx_mul(2, k), elements(onnx_out(n, 0)));
}

FLOPS(matmul)
{
    return product(n, onnx_in(n, 0), onnx_attr_int(n->proto, "transA", 0));
}

FLOPS(qlinear_matmul)
{
    return product(n, onnx_in(n, 0), false);
}

FLOPS(matmul_nbits)
{
    return product(n, onnx_in(n, 0), false);
}

FLOPS(gemm)
{
    return onnx_add(onnx_flops_matmul(n), onnx_in(n, 2) ? elements(onnx_out(n, 0)) : 0);
}

/* Input and recurrent products of all gates at every step; the gates' own arithmetic is left out. */
FLOPS(rnn)
{
    const onnx_value *x = onnx_in(n, 0), *w = onnx_in(n, 1), *r = onnx_in(n, 2);
    if (!x || x->rank != 3)
        return 0;
    int64_t positions = onnx_mul(x->dim[0], x->dim[1]);
    return onnx_mul(onnx_mul(2, positions), onnx_add(elements(w), elements(r)));
}

/* Scores and their use: two products of (queries x keys x width) each. */
static int64_t scores(int64_t batch, int64_t queries, int64_t keys, int64_t width)
{
    return onnx_mul(onnx_mul(onnx_mul(4, batch), onnx_mul(queries, keys)), width);
}

FLOPS(multi_head)
{
    const onnx_value *q = onnx_in(n, 0), *k = onnx_in(n, 1), *past = onnx_out(n, 1);
    if (!q || q->rank < 3)
        return 0;
    int64_t queries = q->dim[q->rank - 2];
    int64_t keys = past && past->rank == 4 ? past->dim[2] : k && k->rank == q->rank ? k->dim[k->rank - 2] : queries;
    int64_t heads = q->rank == 4 ? q->dim[1] : 1;
    return scores(onnx_mul(q->dim[0], heads), queries, keys, q->dim[q->rank - 1]);
}

FLOPS(attention)
{
    const onnx_value *x = onnx_in(n, 0), *w = onnx_in(n, 1);
    if (!n->proto->domain || strcmp(n->proto->domain, "com.microsoft"))
        return onnx_flops_multi_head(n);
    if (!x || !w || x->rank != 3 || w->rank != 2)
        return 0;
    int64_t tokens = onnx_mul(x->dim[0], x->dim[1]);
    return onnx_add(onnx_mul(onnx_mul(2, tokens), elements(w)), scores(x->dim[0], x->dim[1], x->dim[1], w->dim[1] / 3));
}

FLOPS(dft)
{
    int64_t count = elements(onnx_out(n, 0)), log2 = 1;
    for (int64_t i = count; i > 1; i /= 2)
        log2++;
    return onnx_mul(onnx_mul(5, log2), count);
}
