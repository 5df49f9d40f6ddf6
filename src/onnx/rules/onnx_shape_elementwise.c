/* Shapes of operators that work element by element, or normalise, or reduce. */
#include "onnx/rules/onnx_shape.h"

#include <string.h>

static bool like(onnx_node *n, int32_t out, int32_t type, const onnx_value *v)
{
    return onnx_value_like(onnx_out(n, out), type, v);
}

SHAPE(same)
{
    NEED(0);
    return like(n, 0, n->in[0]->type, n->in[0]);
}

static bool broadcast_as(onnx_node *n, int32_t type)
{
    int32_t rank = 0;
    int64_t dim[ONNX_MAX_RANK];
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !onnx_broadcast(&rank, dim, n->in[i])) {
            n->clashes = true;
            return false;
        }
    return onnx_value_shape(onnx_out(n, 0), type, rank, dim);
}

SHAPE(broadcast)
{
    NEED(0);
    return broadcast_as(n, n->in[0]->type);
}

/* (a, scale, zero, b, scale, zero, scale, zero) */
SHAPE(qlinear_binary)
{
    NEED(0);
    NEED(3);
    int32_t rank = n->in[0]->rank;
    int64_t dim[ONNX_MAX_RANK];
    memcpy(dim, n->in[0]->dim, sizeof dim);
    return onnx_broadcast(&rank, dim, n->in[3]) && onnx_value_shape(onnx_out(n, 0), n->in[0]->type, rank, dim);
}

SHAPE(compare)
{
    NEED(0);
    return broadcast_as(n, ONNX_BOOL);
}

SHAPE(where)
{
    NEED(1);
    return broadcast_as(n, n->in[1]->type);
}

SHAPE(cast)
{
    NEED(0);
    int64_t to = onnx_attr_int(n->proto, "to", n->in[0]->type);
    return like(n, 0, to > 0 && to < 64 ? (int32_t)to : ONNX_FLOAT, n->in[0]);
}

SHAPE(cast_like)
{
    NEED(0);
    NEED(1);
    return like(n, 0, n->in[1]->type, n->in[0]);
}

SHAPE(bool_same)
{
    NEED(0);
    return like(n, 0, ONNX_BOOL, n->in[0]);
}

SHAPE(dropout)
{
    NEED(0);
    return like(n, 1, ONNX_BOOL, n->in[0]) && like(n, 0, n->in[0]->type, n->in[0]);
}

SHAPE(quantize)
{
    NEED(0);
    int64_t type = onnx_attr_int(n->proto, "output_dtype", 0);
    if (type <= 0 || type > 32)
        type = onnx_in(n, 2) ? n->in[2]->type : ONNX_UINT8;
    return like(n, 0, (int32_t)type, n->in[0]);
}

SHAPE(dequantize)
{
    NEED(0);
    NEED(1);
    return like(n, 0, n->in[1]->type, n->in[0]);
}

SHAPE(dynamic_quantize)
{
    NEED(0);
    return like(n, 0, ONNX_UINT8, n->in[0]) && onnx_value_shape(onnx_out(n, 1), ONNX_FLOAT, 0, NULL) &&
           onnx_value_shape(onnx_out(n, 2), ONNX_UINT8, 0, NULL);
}

SHAPE(batch_norm)
{
    NEED(0);
    for (int32_t i = 1; i < n->n_out; i++)
        if (onnx_in(n, 3) && !like(n, i, n->in[3]->type, n->in[3]))
            return false;
    return like(n, 0, n->in[0]->type, n->in[0]);
}

/* Mean and inverse deviation, where somebody wants them: the normalised dimensions are 1. */
static bool norm_statistics(onnx_node *n)
{
    int64_t dim[ONNX_MAX_RANK], axis = onnx_attr_int(n->proto, "axis", -1);
    const onnx_value *x = n->in[0];
    if (!onnx_axis(&axis, x->rank))
        return false;
    for (int32_t i = 0; i < x->rank; i++)
        dim[i] = i < axis ? x->dim[i] : 1;
    return onnx_value_shape(onnx_out(n, 1), ONNX_FLOAT, x->rank, dim) &&
           onnx_value_shape(onnx_out(n, 2), ONNX_FLOAT, x->rank, dim);
}

SHAPE(layer_norm)
{
    NEED(0);
    return like(n, 0, n->in[0]->type, n->in[0]) && norm_statistics(n);
}

SHAPE(skip_norm)
{
    NEED(0);
    return like(n, 0, n->in[0]->type, n->in[0]) && like(n, 3, n->in[0]->type, n->in[0]) && norm_statistics(n);
}

/* ---- reductions ---- */

SHAPE(reduce)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    bool keep = onnx_attr_int(n->proto, "keepdims", 1), reduced[ONNX_MAX_RANK] = {false};
    onnx_list axes = {0};
    if (onnx_given(n, "axes", 1) && !onnx_list_of(n, "axes", 1, &axes))
        return false;
    if (!axes.n && onnx_attr_int(n->proto, "noop_with_empty_axes", 0))
        return like(n, 0, x->type, x);
    for (int64_t i = 0; i < axes.n; i++) {
        int64_t axis = axes.item[i];
        if (!onnx_axis(&axis, x->rank))
            return false;
        reduced[axis] = true;
    }
    int64_t dim[ONNX_MAX_RANK];
    int32_t rank = 0;
    for (int32_t i = 0; i < x->rank; i++) {
        if (axes.n && !reduced[i])
            dim[rank++] = x->dim[i];
        else if (keep)
            dim[rank++] = 1;
    }
    return onnx_value_shape(onnx_out(n, 0), x->type, rank, dim);
}

SHAPE(arg)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", 0), dim[ONNX_MAX_RANK];
    bool keep = onnx_attr_int(n->proto, "keepdims", 1);
    int32_t rank = 0;
    if (!onnx_axis(&axis, x->rank))
        return false;
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis)
            dim[rank++] = x->dim[i];
        else if (keep)
            dim[rank++] = 1;
    return onnx_value_shape(onnx_out(n, 0), ONNX_INT64, rank, dim);
}

SHAPE(top_k)
{
    NEED(0);
    const onnx_value *x = n->in[0], *k_in = onnx_in(n, 1);
    int64_t axis = onnx_attr_int(n->proto, "axis", -1), dim[ONNX_MAX_RANK];
    int64_t k = onnx_attr_int(n->proto, "k", -1);
    if (onnx_has_numbers(k_in) && k_in->elements == 1)
        k = onnx_value_int(k_in, 0);
    if (k < 0 || !onnx_axis(&axis, x->rank))
        return false;
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = k;
    return onnx_value_shape(onnx_out(n, 0), x->type, x->rank, dim) &&
           onnx_value_shape(onnx_out(n, 1), ONNX_INT64, x->rank, dim);
}

/* ---- sizes that depend on data: the most they can be ---- */

SHAPE(non_zero)
{
    NEED(0);
    int64_t dim[2] = {n->in[0]->rank, n->in[0]->elements};
    return onnx_value_shape(onnx_out(n, 0), ONNX_INT64, 2, dim);
}

SHAPE(unique)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    bool by_axis = onnx_attr(n->proto, "axis");
    int64_t axis = onnx_attr_int(n->proto, "axis", 0);
    if (by_axis && !onnx_axis(&axis, x->rank))
        return false;
    int64_t count = by_axis ? x->dim[axis] : x->elements;
    for (int32_t i = 1; i < n->n_out; i++)
        if (!onnx_value_shape(n->out[i], ONNX_INT64, 1, &count))
            return false;
    return by_axis ? like(n, 0, x->type, x) : onnx_value_shape(onnx_out(n, 0), x->type, 1, &count);
}

SHAPE(compress)
{
    NEED(0);
    if (onnx_attr(n->proto, "axis"))
        return like(n, 0, n->in[0]->type, n->in[0]);
    return onnx_value_shape(onnx_out(n, 0), n->in[0]->type, 1, &n->in[0]->elements);
}

SHAPE(one_hot)
{
    NEED(0);
    NEED(2);
    const onnx_value *x = n->in[0], *depth = onnx_in(n, 1);
    int64_t axis = onnx_attr_int(n->proto, "axis", -1), dim[ONNX_MAX_RANK + 1];
    if (!onnx_has_numbers(depth) || depth->elements != 1 || !onnx_axis(&axis, x->rank + 1))
        return false;
    for (int32_t i = 0; i <= x->rank; i++)
        dim[i] = i < axis ? x->dim[i] : i > axis ? x->dim[i - 1] : onnx_value_int(depth, 0);
    return onnx_value_shape(onnx_out(n, 0), n->in[2]->type, x->rank + 1, dim);
}

SHAPE(nms)
{
    NEED(0);
    NEED(1);
    const onnx_value *scores = n->in[1], *most = onnx_in(n, 2);
    if (scores->rank != 3)
        return false;
    int64_t boxes = scores->dim[2];
    if (onnx_has_numbers(most) && most->elements == 1)
        boxes = UTIL_MIN(boxes, UTIL_MAX(onnx_value_int(most, 0), (int64_t)0));
    int64_t dim[2] = {onnx_mul(onnx_mul(scores->dim[0], scores->dim[1]), boxes), 3};
    return onnx_value_shape(onnx_out(n, 0), ONNX_INT64, 2, dim);
}
