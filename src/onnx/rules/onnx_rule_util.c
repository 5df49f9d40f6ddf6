/* Small things that shape rules share. */
#include "onnx/rules/onnx_rules.h"

bool onnx_list_of(onnx_node *n, const char *name, int32_t input, onnx_list *out)
{
    const Onnx__AttributeProto *a = name ? onnx_attr(n->proto, name) : NULL;
    if (a && (a->n_ints || !a->has_i)) {
        *out = (onnx_list){a->ints, (int64_t)a->n_ints};
        return true;
    }
    const onnx_value *v = input >= 0 ? onnx_in(n, input) : NULL;
    if (!v || !v->ints)
        return false;
    *out = (onnx_list){v->ints, v->n_numbers};
    return true;
}

bool onnx_number_of(const onnx_node *n, int32_t input, int64_t *out)
{
    const onnx_value *v = onnx_in(n, input);
    if (!onnx_has_numbers(v) || v->elements != 1)
        return false;
    *out = onnx_value_int(v, 0);
    return true;
}

bool onnx_given(const onnx_node *n, const char *name, int32_t input)
{
    return (name && onnx_attr(n->proto, name)) || (input >= 0 && onnx_in(n, input));
}

bool onnx_axis(int64_t *axis, int32_t rank)
{
    if (*axis < -(int64_t)rank || *axis >= rank)
        return false;
    *axis += *axis < 0 ? rank : 0;
    return true;
}

bool onnx_broadcast(int32_t *rank, int64_t *dim, const onnx_value *v)
{
    int64_t wide[ONNX_MAX_RANK];
    int32_t r = UTIL_MAX(*rank, v->rank);
    for (int32_t i = 0; i < r; i++) {
        int64_t a = i < r - *rank ? 1 : dim[i - (r - *rank)];
        int64_t b = i < r - v->rank ? 1 : v->dim[i - (r - v->rank)];
        if (a != b && a != 1 && b != 1)
            return false;
        wide[i] = a == 1 ? b : a;
    }
    *rank = r;
    for (int32_t i = 0; i < r; i++)
        dim[i] = wide[i];
    return true;
}

int64_t onnx_product(const int64_t *dim, int32_t begin, int32_t end)
{
    int64_t p = 1;
    for (int32_t i = begin; i < end; i++)
        p = onnx_mul(p, dim[i]);
    return p;
}
