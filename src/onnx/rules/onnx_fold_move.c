/* Folding of operators that move numbers: copy, gather, join, cut, repeat; see onnx_fold.c. */
#include "onnx/rules/onnx_fold.h"

#include <math.h>

FOLD(copy)
{
    if (!onnx_fold_ready(n, 1) || n->in[0]->elements != n->out[0]->elements || !onnx_fold_room(n, n->out[0]))
        return;
    for (int64_t i = 0; i < n->out[0]->elements; i++)
        onnx_fold_put(n->out[0], i, n->in[0], i);
}

FOLD(cast)
{
    onnx_fold_copy(n);
    onnx_value *out = onnx_out(n, 0);
    for (int64_t i = 0; out && out->ints && out->type == ONNX_BOOL && i < out->elements; i++)
        out->ints[i] = onnx_real(n->in[0], i) != 0;
}

FOLD(shape)
{
    if (!onnx_in(n, 0) || !onnx_out(n, 0) || !onnx_value_ints(n->import, n->out[0]))
        return;
    int64_t rank = n->in[0]->rank, begin = onnx_attr_int(n->proto, "start", 0);
    begin = begin < 0 ? begin + rank : begin;
    begin = begin < 0 ? 0 : begin;
    for (int64_t i = 0; i < n->out[0]->elements; i++)
        n->out[0]->ints[i] = begin + i < rank ? n->in[0]->dim[begin + i] : 1;
}

FOLD(size)
{
    if (onnx_in(n, 0) && onnx_out(n, 0) && n->out[0]->elements == 1 && onnx_value_ints(n->import, n->out[0]))
        n->out[0]->ints[0] = n->in[0]->elements;
}

FOLD(gather)
{
    if (!onnx_fold_ready(n, 2) || n->out[0]->guessed || !onnx_fold_room(n, n->out[0]))
        return;
    const onnx_value *x = n->in[0], *index = n->in[1];
    onnx_value *out = n->out[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", 0);
    if (!onnx_axis(&axis, x->rank)) {
        onnx_fold_drop(out);
        return;
    }
    int64_t inner = onnx_product(x->dim, (int32_t)axis + 1, x->rank), length = x->dim[axis];
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t low = i % inner, mid = i / inner % index->elements, high = i / inner / index->elements;
        int64_t k = onnx_value_int(index, mid);
        if (!(k >= -length && k < length)) {
            onnx_fold_drop(out);
            return;
        }
        onnx_fold_put(out, i, x, (high * length + (k < 0 ? k + length : k)) * inner + low);
    }
}

FOLD(concat)
{
    if (!onnx_fold_ready(n, n->n_in) || n->out[0]->guessed || !onnx_fold_room(n, n->out[0]))
        return;
    onnx_value *out = n->out[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", 1), begin = 0;
    if (!onnx_axis(&axis, out->rank)) {
        onnx_fold_drop(out);
        return;
    }
    int64_t row = onnx_product(out->dim, (int32_t)axis, out->rank);
    int64_t inner = onnx_product(out->dim, (int32_t)axis + 1, out->rank);
    for (int32_t k = 0; k < n->n_in; k++) {
        const onnx_value *x = n->in[k];
        int64_t own = x->dim[axis] * inner;
        for (int64_t i = 0; i < x->elements; i++) {
            int64_t at = i / own * row + begin + i % own;
            if (at < out->elements) /* inputs that disagree in other dims */
                onnx_fold_put(out, at, x, i);
        }
        begin += own;
    }
}

/* Start and step of a slice along `axis`; the length is the output's. */
static void slice_at(onnx_node *n, int32_t axis, int64_t length, int64_t *start, int64_t *step)
{
    onnx_list starts, axes, steps;
    *start = 0;
    *step = 1;
    if (!onnx_list_of(n, "starts", 1, &starts))
        return;
    for (int64_t i = 0; i < starts.n; i++) {
        bool has_axes = onnx_given(n, "axes", 3);
        int64_t a = has_axes && onnx_list_of(n, "axes", 3, &axes) && i < axes.n ? axes.item[i] : i;
        if (!onnx_axis(&a, n->in[0]->rank) || a != axis)
            continue;
        if (onnx_given(n, NULL, 4) && onnx_list_of(n, NULL, 4, &steps) && i < steps.n)
            *step = steps.item[i];
        int64_t s = starts.item[i];
        s = s < 0 ? (s < -length ? 0 : s + length) : s;
        *start = UTIL_MIN(s, length - 1);
    }
}

FOLD(slice)
{
    if (!onnx_fold_ready(n, 1) || n->out[0]->guessed || n->out[0]->rank != n->in[0]->rank ||
        !onnx_fold_room(n, n->out[0]))
        return;
    const onnx_value *x = n->in[0];
    onnx_value *out = n->out[0];
    int64_t start[ONNX_MAX_RANK], step[ONNX_MAX_RANK];
    for (int32_t a = 0; a < x->rank; a++)
        slice_at(n, a, x->dim[a], &start[a], &step[a]);
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t at = 0, stride = 1, rest = i;
        for (int32_t a = x->rank - 1; a >= 0; a--) {
            int64_t k = rest % out->dim[a];
            rest /= out->dim[a];
            /* A single element may come with a step of any size. */
            int64_t position = start[a] + (k ? k * step[a] : 0);
            if (position < 0 || position >= x->dim[a]) {
                onnx_fold_drop(out);
                return;
            }
            at += position * stride;
            stride *= x->dim[a];
        }
        onnx_fold_put(out, i, x, at);
    }
}

FOLD(expand)
{
    if (!onnx_fold_ready(n, 1) || n->out[0]->guessed || !onnx_fold_room(n, n->out[0]))
        return;
    for (int64_t i = 0; i < n->out[0]->elements; i++)
        onnx_fold_put(n->out[0], i, n->in[0], onnx_fold_source_of(n->in[0], n->out[0], i));
}

FOLD(range)
{
    if (!onnx_fold_ready(n, 3) || n->out[0]->guessed || !onnx_fold_room(n, n->out[0]))
        return;
    onnx_value *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        double r = onnx_real(n->in[0], 0) + (double)i * onnx_real(n->in[2], 0);
        if (out->reals)
            out->reals[i] = r;
        else if (fabs(r) < 9e15)
            out->ints[i] = (int64_t)r;
        else {
            onnx_fold_drop(out);
            return;
        }
    }
}

FOLD(fill)
{
    if (!onnx_out(n, 0) || n->out[0]->guessed || !onnx_fold_room(n, n->out[0]))
        return;
    onnx_value *out = n->out[0], filler = {0};
    const Onnx__AttributeProto *a = onnx_attr(n->proto, "value");
    if (!a || !a->t)
        return; /* zeros */
    if (onnx_value_from_tensor(n->import, &filler, a->t) || filler.elements != 1 || !onnx_has_numbers(&filler)) {
        onnx_fold_drop(out);
        return;
    }
    for (int64_t i = 0; i < out->elements; i++)
        onnx_fold_put(out, i, &filler, 0);
}

FOLD(transpose)
{
    if (!onnx_fold_ready(n, 1) || n->out[0]->guessed || !onnx_fold_room(n, n->out[0]))
        return;
    const onnx_value *x = n->in[0];
    onnx_value *out = n->out[0];
    onnx_list perm = {0};
    bool given = onnx_list_of(n, "perm", -1, &perm);
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t coordinate[ONNX_MAX_RANK] = {0}, rest = i, at = 0;
        for (int32_t a = out->rank - 1; a >= 0; a--) {
            coordinate[given ? perm.item[a] : x->rank - 1 - a] = rest % out->dim[a];
            rest /= out->dim[a];
        }
        for (int32_t a = 0; a < x->rank; a++)
            at = at * x->dim[a] + coordinate[a];
        if (at < x->elements) /* a repeated axis in perm */
            onnx_fold_put(out, i, x, at);
    }
}

/* Of vectors only: shapes that exporters take apart. */
FOLD(split)
{
    if (!onnx_has_numbers(onnx_in(n, 0)) || n->in[0]->rank != 1)
        return;
    int64_t begin = 0;
    for (int32_t k = 0; k < n->n_out; k++) {
        onnx_value *out = n->out[k];
        if (!out || out->guessed || begin + out->elements > n->in[0]->elements || !onnx_fold_room(n, out))
            return;
        for (int64_t i = 0; i < out->elements; i++)
            onnx_fold_put(out, i, n->in[0], begin + i);
        begin += out->elements;
    }
}

FOLD(tile)
{
    if (!onnx_fold_ready(n, 1) || n->out[0]->guessed || n->in[0]->rank != n->out[0]->rank || !n->in[0]->elements ||
        !onnx_fold_room(n, n->out[0]))
        return;
    const onnx_value *x = n->in[0];
    onnx_value *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t at = 0, stride = 1, rest = i;
        for (int32_t a = x->rank - 1; a >= 0; a--) {
            at += rest % out->dim[a] % x->dim[a] * stride;
            rest /= out->dim[a];
            stride *= x->dim[a];
        }
        onnx_fold_put(out, i, x, at);
    }
}

/* Of vectors with a constant, as exporters fill up lists of paddings; cropped where a number is negative. */
FOLD(pad)
{
    onnx_list pads;
    if (!onnx_fold_ready(n, 1) || n->out[0]->guessed || n->in[0]->rank != 1 || onnx_in(n, 3) ||
        !onnx_attr_is(n->proto, "mode", "constant", true) || !onnx_list_of(n, "pads", 1, &pads) || pads.n != 2 ||
        (onnx_in(n, 2) && (!onnx_has_numbers(n->in[2]) || n->in[2]->elements != 1)) || onnx_attr(n->proto, "value") ||
        !onnx_fold_room(n, n->out[0]))
        return;
    onnx_value *out = n->out[0];
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t from = i - pads.item[0];
        if (from >= 0 && from < n->in[0]->elements)
            onnx_fold_put(out, i, n->in[0], from);
        else if (onnx_in(n, 2))
            onnx_fold_put(out, i, n->in[2], 0);
    }
}
