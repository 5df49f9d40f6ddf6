/* Sequences and optionals. A sequence is kept as its items stacked, number of items x the largest item's shape: what is
 * taken out again has a shape, and its bytes are those of all items. Where items differ that is the most it can be. */
#include "onnx/rules/onnx_shape.h"

#include <string.h>

static bool stacked(onnx_node *n, int32_t type, int64_t count, int32_t rank, const int64_t *item)
{
    int64_t dim[ONNX_MAX_RANK + 1] = {count};
    if (rank >= ONNX_MAX_RANK)
        return false;
    memcpy(dim + 1, item, (size_t)rank * sizeof *dim);
    return onnx_value_shape(onnx_out(n, 0), type, rank + 1, dim);
}

static void differ(onnx_node *n)
{
    if (onnx_out(n, 0))
        n->out[0]->known = UTIL_MAX(n->out[0]->known, MOIRAI_ONNX_AT_MOST);
}

SHAPE(sequence_construct)
{
    NEED(0);
    const onnx_value *largest = n->in[0];
    bool same = true;
    for (int32_t i = 1; i < n->n_in; i++) {
        if (!n->in[i])
            return false;
        same &= n->in[i]->elements == largest->elements;
        largest = n->in[i]->elements > largest->elements ? n->in[i] : largest;
    }
    if (!same)
        differ(n);
    return stacked(n, largest->type, n->n_in, largest->rank, largest->dim);
}

SHAPE(sequence_empty)
{
    int64_t none = 0, type = onnx_attr_int(n->proto, "dtype", ONNX_FLOAT);
    return type > 0 && type < 64 && onnx_value_shape(onnx_out(n, 0), (int32_t)type, 1, &none);
}

SHAPE(sequence_insert)
{
    NEED(0);
    NEED(1);
    const onnx_value *s = n->in[0], *item = n->in[1];
    if (s->rank < 1)
        return false;
    int64_t old = s->dim[0] ? s->elements / s->dim[0] : 0;
    if (s->dim[0] && old != item->elements)
        differ(n);
    return old > item->elements ? stacked(n, s->type, s->dim[0] + 1, s->rank - 1, s->dim + 1)
                                : stacked(n, s->type, s->dim[0] + 1, item->rank, item->dim);
}

SHAPE(sequence_erase)
{
    NEED(0);
    const onnx_value *s = n->in[0];
    return s->rank > 0 && s->dim[0] > 0 && stacked(n, s->type, s->dim[0] - 1, s->rank - 1, s->dim + 1);
}

SHAPE(sequence_at)
{
    NEED(0);
    const onnx_value *s = n->in[0];
    return s->rank > 0 && onnx_value_shape(onnx_out(n, 0), s->type, s->rank - 1, s->dim + 1);
}

SHAPE(split_to_sequence)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", 0), dim[ONNX_MAX_RANK], count, part = 1;
    onnx_list parts = {0};
    if (!onnx_axis(&axis, x->rank) || (onnx_given(n, NULL, 1) && !onnx_list_of(n, NULL, 1, &parts)))
        return false;
    memcpy(dim, x->dim, sizeof dim);
    count = x->dim[axis];
    if (parts.n && !n->in[1]->rank) { /* a number: parts of that length */
        part = UTIL_MAX(parts.item[0], (int64_t)1);
        count = x->dim[axis] / part + (x->dim[axis] % part != 0);
    } else if (parts.n) {
        part = 0;
        for (int64_t i = 0; i < parts.n; i++)
            part = UTIL_MAX(part, parts.item[i]);
        count = parts.n;
    }
    if (onnx_mul(count, part) != x->dim[axis])
        differ(n);
    dim[axis] = part;
    int32_t rank = x->rank;
    if (!onnx_given(n, NULL, 1) && !onnx_attr_int(n->proto, "keepdims", 1)) {
        rank--;
        memmove(dim + axis, dim + axis + 1, (size_t)(rank - axis) * sizeof *dim);
    }
    return stacked(n, x->type, count, rank, dim);
}

SHAPE(concat_from_sequence)
{
    NEED(0);
    const onnx_value *s = n->in[0];
    bool fresh = onnx_attr_int(n->proto, "new_axis", 0);
    int64_t axis = onnx_attr_int(n->proto, "axis", 0), dim[ONNX_MAX_RANK];
    int32_t rank = s->rank - 1 + fresh;
    if (s->rank < 1 || !onnx_axis(&axis, rank))
        return false;
    for (int32_t i = 0, from = 1; i < rank; i++)
        dim[i] = fresh && i == axis ? s->dim[0] : s->dim[from++];
    if (!fresh)
        dim[axis] = onnx_mul(dim[axis], s->dim[0]);
    return onnx_value_shape(onnx_out(n, 0), s->type, rank, dim);
}

/* OptionalHasElement */
SHAPE(has_element)
{
    return onnx_value_shape(onnx_out(n, 0), ONNX_BOOL, 0, NULL);
}

void onnx_fold_sequence_length(onnx_node *n)
{
    if (onnx_out(n, 0) && n->in[0]->rank && onnx_value_ints(n->import, n->out[0]))
        n->out[0]->ints[0] = n->in[0]->dim[0];
}
