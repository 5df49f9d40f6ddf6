/* Shapes of operators that move, cut and join data. */
#include "onnx/rules/onnx_shape.h"

#include <math.h>
#include <string.h>

SHAPE(reshape)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    onnx_list shape;
    int64_t dim[ONNX_MAX_RANK], known = 1, open = -1;
    bool allow_zero = onnx_attr_int(n->proto, "allowzero", 0);
    if (!onnx_list_of(n, "shape", 1, &shape) || shape.n > ONNX_MAX_RANK)
        return false;
    for (int64_t i = 0; i < shape.n; i++) {
        dim[i] = shape.item[i];
        if (dim[i] == 0 && !allow_zero && i < x->rank)
            dim[i] = x->dim[i];
        if (dim[i] == -1 && open < 0)
            open = i;
        else
            known = onnx_mul(known, dim[i]);
    }
    if (open >= 0)
        dim[open] = known > 0 ? x->elements / known : 0;
    n->misfits = open >= 0 ? known > 0 && x->elements % known : known != x->elements;
    if (n->misfits && n->import->strict)
        return false;
    return onnx_set_out(n, x->type, (int32_t)shape.n, dim);
}

SHAPE(flatten)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", 1);
    if (axis != x->rank && !onnx_axis(&axis, x->rank))
        return false;
    int64_t dim[2] = {onnx_product(x->dim, 0, (int32_t)axis), onnx_product(x->dim, (int32_t)axis, x->rank)};
    return onnx_set_out(n, x->type, 2, dim);
}

static bool mark_axes(onnx_node *n, int32_t rank, bool *mark, int64_t *count)
{
    onnx_list axes;
    *count = 0;
    if (!onnx_list_of(n, "axes", 1, &axes) || axes.n > ONNX_MAX_RANK)
        return false;
    rank += !strcmp(n->rule->type, "Unsqueeze") ? (int32_t)axes.n : 0;
    if (rank > ONNX_MAX_RANK)
        return false;
    for (int64_t i = 0; i < axes.n; i++) {
        int64_t axis = axes.item[i];
        if (!onnx_axis(&axis, rank) || mark[axis])
            return false;
        mark[axis] = true;
        (*count)++;
    }
    return true;
}

SHAPE(squeeze)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    bool mark[ONNX_MAX_RANK] = {false};
    int64_t dim[ONNX_MAX_RANK], count;
    int32_t rank = 0;
    bool given = onnx_given(n, "axes", 1);
    if (given && !mark_axes(n, x->rank, mark, &count))
        return false;
    for (int32_t i = 0; i < x->rank; i++)
        if (given ? !mark[i] : x->dim[i] != 1)
            dim[rank++] = x->dim[i];
    return onnx_set_out(n, x->type, rank, dim);
}

SHAPE(unsqueeze)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    bool mark[ONNX_MAX_RANK] = {false};
    int64_t dim[ONNX_MAX_RANK], count;
    int32_t taken = 0;
    if (!mark_axes(n, x->rank, mark, &count))
        return false;
    int32_t rank = x->rank + (int32_t)count;
    for (int32_t i = 0; i < rank; i++)
        dim[i] = mark[i] ? 1 : x->dim[taken++];
    return onnx_set_out(n, x->type, rank, dim);
}

SHAPE(transpose)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    onnx_list perm = {0};
    bool given = onnx_list_of(n, "perm", -1, &perm);
    int64_t dim[ONNX_MAX_RANK];
    if (given && perm.n != x->rank)
        return false;
    for (int32_t i = 0; i < x->rank; i++) {
        int64_t from = given ? perm.item[i] : x->rank - 1 - i;
        if (from < 0 || from >= x->rank)
            return false;
        dim[i] = x->dim[from];
    }
    return onnx_set_out(n, x->type, x->rank, dim);
}

SHAPE(concat)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", 1), dim[ONNX_MAX_RANK];
    if (!onnx_axis(&axis, x->rank))
        return false;
    memcpy(dim, x->dim, sizeof dim);
    for (int32_t i = 1; i < n->n_in; i++) {
        if (!n->in[i] || n->in[i]->rank != x->rank)
            return false;
        for (int32_t k = 0; k < x->rank; k++)
            n->misfits |= k != axis && n->in[i]->dim[k] != x->dim[k] && n->in[i]->elements && x->elements;
        dim[axis] = onnx_add(dim[axis], n->in[i]->dim[axis]);
    }
    return !(n->misfits && n->import->strict) && onnx_set_out(n, x->type, x->rank, dim);
}

SHAPE(split)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", 0), dim[ONNX_MAX_RANK];
    onnx_list parts = {0};
    bool given = onnx_given(n, "split", 1);
    if (!onnx_axis(&axis, x->rank) || (given && !onnx_list_of(n, "split", 1, &parts)))
        return false;
    memcpy(dim, x->dim, sizeof dim);
    int64_t count = UTIL_MAX(n->n_out, 1), part = (x->dim[axis] + count - 1) / count, left = x->dim[axis];
    for (int32_t i = 0; i < n->n_out; i++) {
        if (given && i >= parts.n)
            return false;
        dim[axis] = given ? parts.item[i] : UTIL_MIN(part, left);
        left -= given ? 0 : dim[axis];
        if (!onnx_value_shape(n->out[i], x->type, x->rank, dim))
            return false;
    }
    return true;
}

/* How many of `length` a slice takes. */
static int64_t slice_count(int64_t start, int64_t end, int64_t step, int64_t length)
{
    start = start < 0 ? onnx_clamp(start, -length, -1) + length : start;
    end = end < -length ? -1 : end < 0 ? end + length : end;
    start = onnx_clamp(start, 0, step > 0 ? length : length - 1);
    end = onnx_clamp(end, step > 0 ? 0 : -1, length);
    if (step > 0)
        return end > start ? (end - start - 1) / step + 1 : 0;
    /* -(step + 1): the negative of the least step does not exist */
    return start > end ? (int64_t)((uint64_t)(start - end - 1) / ((uint64_t)(-(step + 1)) + 1)) + 1 : 0;
}

SHAPE(slice)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    onnx_list starts, ends, axes = {0}, steps = {0};
    int64_t dim[ONNX_MAX_RANK];
    if (!onnx_list_of(n, "starts", 1, &starts) || !onnx_list_of(n, "ends", 2, &ends) || starts.n != ends.n)
        return false;
    bool has_axes = onnx_given(n, "axes", 3), has_steps = onnx_given(n, NULL, 4);
    if ((has_axes && (!onnx_list_of(n, "axes", 3, &axes) || axes.n != starts.n)) ||
        (has_steps && (!onnx_list_of(n, NULL, 4, &steps) || steps.n != starts.n)))
        return false;
    memcpy(dim, x->dim, sizeof dim);
    for (int64_t i = 0; i < starts.n; i++) {
        int64_t axis = has_axes ? axes.item[i] : i, step = has_steps ? steps.item[i] : 1;
        if (!onnx_axis(&axis, x->rank) || !step)
            return false;
        dim[axis] = slice_count(starts.item[i], ends.item[i], step, x->dim[axis]);
    }
    return onnx_set_out(n, x->type, x->rank, dim);
}

SHAPE(gather)
{
    NEED(0);
    NEED(1);
    const onnx_value *x = n->in[0], *index = n->in[1];
    int64_t axis = onnx_attr_int(n->proto, "axis", 0), dim[2 * ONNX_MAX_RANK];
    int32_t rank = 0;
    if (!onnx_axis(&axis, x->rank))
        return false;
    for (int32_t i = 0; i < axis; i++)
        dim[rank++] = x->dim[i];
    for (int32_t i = 0; i < index->rank; i++)
        dim[rank++] = index->dim[i];
    for (int32_t i = (int32_t)axis + 1; i < x->rank; i++)
        dim[rank++] = x->dim[i];
    return onnx_set_out(n, x->type, rank, dim);
}

SHAPE(gather_nd)
{
    NEED(0);
    NEED(1);
    const onnx_value *x = n->in[0], *index = n->in[1];
    int64_t batch = onnx_attr_int(n->proto, "batch_dims", 0), dim[2 * ONNX_MAX_RANK];
    if (index->rank < 1 || batch < 0 || batch >= index->rank || index->dim[index->rank - 1] > x->rank - batch)
        return false;
    int32_t rank = 0, from = (int32_t)(batch + index->dim[index->rank - 1]);
    for (int32_t i = 0; i < index->rank - 1; i++)
        dim[rank++] = index->dim[i];
    for (int32_t i = from; i < x->rank; i++)
        dim[rank++] = x->dim[i];
    return onnx_set_out(n, x->type, rank, dim);
}

SHAPE(like_index)
{
    NEED(0);
    return onnx_value_like(onnx_out(n, 0), n->in[0]->type, onnx_in(n, 1));
}

SHAPE(expand)
{
    NEED(0);
    onnx_list shape;
    onnx_value target = {0};
    if (!onnx_list_of(n, NULL, 1, &shape) || shape.n > ONNX_MAX_RANK ||
        !onnx_value_shape(&target, n->in[0]->type, (int32_t)shape.n, shape.item))
        return false;
    int32_t rank = target.rank;
    return onnx_broadcast(&rank, target.dim, n->in[0]) && onnx_set_out(n, n->in[0]->type, rank, target.dim);
}

SHAPE(tile)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    onnx_list repeats;
    int64_t dim[ONNX_MAX_RANK];
    if (!onnx_list_of(n, NULL, 1, &repeats) || repeats.n != x->rank)
        return false;
    for (int32_t i = 0; i < x->rank; i++)
        dim[i] = repeats.item[i] < 0 ? -1 : onnx_mul(x->dim[i], repeats.item[i]);
    return onnx_set_out(n, x->type, x->rank, dim);
}

SHAPE(pad)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    onnx_list pads, axes = {0};
    int64_t dim[ONNX_MAX_RANK];
    bool has_axes = onnx_given(n, NULL, 3);
    if (!onnx_list_of(n, onnx_attr(n->proto, "paddings") ? "paddings" : "pads", 1, &pads) ||
        (has_axes && !onnx_list_of(n, NULL, 3, &axes)))
        return false;
    int64_t count = has_axes ? axes.n : x->rank;
    if (count > ONNX_MAX_RANK || pads.n != 2 * count)
        return false;
    memcpy(dim, x->dim, sizeof dim);
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = has_axes ? axes.item[i] : i;
        if (!onnx_axis(&axis, x->rank) || !util_add64(&dim[axis], dim[axis], pads.item[i]) ||
            !util_add64(&dim[axis], dim[axis], pads.item[i + count]))
            return false;
    }
    return onnx_set_out(n, x->type, x->rank, dim);
}
