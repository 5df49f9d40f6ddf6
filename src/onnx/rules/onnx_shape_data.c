/* Shapes of operators that make data from nothing but shapes and attributes. */
#include "onnx/rules/onnx_shape.h"

#include <math.h>
#include <string.h>

SHAPE(shape)
{
    NEED(0);
    int64_t rank = n->in[0]->rank, begin = onnx_attr_int(n->proto, "start", 0);
    int64_t end = onnx_attr_int(n->proto, "end", rank);
    begin = onnx_clamp(begin < 0 ? begin + rank : begin, 0, rank);
    end = onnx_clamp(end < 0 ? end + rank : end, 0, rank);
    int64_t count = UTIL_MAX(end - begin, (int64_t)0);
    return onnx_set_out(n, ONNX_INT64, 1, &count);
}

SHAPE(size)
{
    NEED(0);
    return onnx_set_out(n, ONNX_INT64, 0, NULL);
}

SHAPE(constant_of_shape)
{
    onnx_list shape;
    const Onnx__AttributeProto *value = onnx_attr(n->proto, "value");
    int32_t type = value && value->t ? value->t->data_type : ONNX_FLOAT;
    return onnx_list_of(n, NULL, 0, &shape) && shape.n <= ONNX_MAX_RANK &&
           onnx_set_out(n, type, (int32_t)shape.n, shape.item);
}

SHAPE(range)
{
    for (int32_t i = 0; i < 3; i++)
        if (!onnx_has_numbers(onnx_in(n, i)) || n->in[i]->elements != 1)
            return false;
    double start = onnx_real(n->in[0], 0), limit = onnx_real(n->in[1], 0), delta = onnx_real(n->in[2], 0);
    double count = ceil((limit - start) / delta);
    if (!(fabs(count) < 1e15))
        return false;
    int64_t dim = count > 0 ? (int64_t)count : 0;
    return onnx_set_out(n, n->in[0]->type, 1, &dim);
}

SHAPE(eye)
{
    NEED(0);
    int64_t type = onnx_attr_int(n->proto, "dtype", n->in[0]->type);
    return type > 0 && type < 64 && onnx_value_like(onnx_out(n, 0), (int32_t)type, n->in[0]);
}

SHAPE(random)
{
    onnx_list shape;
    int64_t type = onnx_attr_int(n->proto, "dtype", onnx_in(n, 0) ? n->in[0]->type : ONNX_FLOAT);
    if (type < 1 || type > 63)
        return false;
    if (!onnx_list_of(n, "shape", -1, &shape))
        return onnx_value_like(onnx_out(n, 0), (int32_t)type, onnx_in(n, 0));
    return shape.n <= ONNX_MAX_RANK && onnx_set_out(n, (int32_t)type, (int32_t)shape.n, shape.item);
}

/* ---- Constant: the one rule that sets numbers itself, since they are its attributes ---- */

static bool constant_ints(onnx_node *n, int32_t rank, const int64_t *item, int64_t count)
{
    onnx_value *v = onnx_out(n, 0);
    if (!onnx_set_out(n, ONNX_INT64, rank, &count))
        return false;
    int64_t *numbers = v ? onnx_value_ints(n->import, v) : NULL;
    for (int64_t i = 0; numbers && i < count; i++)
        numbers[i] = item[i];
    return true;
}

static bool constant_reals(onnx_node *n, int32_t rank, const float *item, int64_t count)
{
    onnx_value *v = onnx_out(n, 0);
    if (!onnx_set_out(n, ONNX_FLOAT, rank, &count))
        return false;
    double *numbers = v ? onnx_value_reals(n->import, v) : NULL;
    for (int64_t i = 0; numbers && i < count; i++)
        numbers[i] = item[i];
    return true;
}

SHAPE(constant)
{
    const Onnx__AttributeProto *a;
    if ((a = onnx_attr(n->proto, "value")) && a->t)
        return !onnx_out(n, 0) || !onnx_value_from_tensor(n->import, n->out[0], a->t);
    if ((a = onnx_attr(n->proto, "value_ints")))
        return constant_ints(n, 1, a->ints, (int64_t)a->n_ints);
    if ((a = onnx_attr(n->proto, "value_int")))
        return constant_ints(n, 0, &a->i, 1);
    if ((a = onnx_attr(n->proto, "value_floats")))
        return constant_reals(n, 1, a->floats, (int64_t)a->n_floats);
    if ((a = onnx_attr(n->proto, "value_float")))
        return constant_reals(n, 0, &a->f, 1);
    if ((a = onnx_attr(n->proto, "sparse_value")) && a->sparse_tensor && a->sparse_tensor->values)
        return a->sparse_tensor->n_dims <= ONNX_MAX_RANK &&
               onnx_set_out(n, a->sparse_tensor->values->data_type, (int32_t)a->sparse_tensor->n_dims,
                            a->sparse_tensor->dims);
    if ((a = onnx_attr(n->proto, "value_strings"))) {
        int64_t count = (int64_t)a->n_strings;
        return onnx_set_out(n, 8, 1, &count);
    }
    return onnx_set_out(n, 8, 0, NULL);
}
