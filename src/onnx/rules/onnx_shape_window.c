/* Shapes of operators that slide a window over space: convolutions, pools, resizing. */
#include "onnx/rules/onnx_shape.h"

#include <math.h>
#include <string.h>

#define LIMIT (1ll << 40) /* on anything that enters window arithmetic: no sum of products of two overflows */

typedef struct window {
    int32_t spatial;
    int64_t kernel[ONNX_MAX_RANK], stride[ONNX_MAX_RANK], dilation[ONNX_MAX_RANK];
    int64_t pad_begin[ONNX_MAX_RANK], pad_end[ONNX_MAX_RANK];
    bool same, ceil;
} window;

static bool ints(onnx_node *n, const char *name, int64_t *out, int32_t count, int64_t missing, int64_t least)
{
    onnx_list l;
    bool given = onnx_list_of(n, name, -1, &l) && l.n;
    if (given && l.n < count)
        return false;
    for (int32_t i = 0; i < count; i++) {
        out[i] = given ? l.item[i] : missing;
        if (out[i] < least || out[i] > 1 << 20)
            return false;
    }
    return true;
}

/* `weight` (may be NULL) gives the kernel where the node does not. */
static bool read_window(onnx_node *n, window *w, const onnx_value *x, const onnx_value *weight)
{
    memset(w, 0, sizeof *w);
    w->spatial = x->rank - 2;
    if (w->spatial < 1)
        return false;
    int64_t pads[2 * ONNX_MAX_RANK];
    if (!ints(n, "strides", w->stride, w->spatial, 1, 1) || !ints(n, "dilations", w->dilation, w->spatial, 1, 1) ||
        !ints(n, "pads", pads, 2 * w->spatial, 0, -(1 << 20)))
        return false;
    if (onnx_attr(n->proto, "kernel_shape")) {
        if (!ints(n, "kernel_shape", w->kernel, w->spatial, 1, 1))
            return false;
    } else if (weight && weight->rank == x->rank) {
        memcpy(w->kernel, weight->dim + 2, (size_t)w->spatial * sizeof *w->kernel);
    } else {
        return false;
    }
    w->same = onnx_attr_is(n->proto, "auto_pad", "SAME_UPPER", false) ||
              onnx_attr_is(n->proto, "auto_pad", "SAME_LOWER", false);
    bool valid = onnx_attr_is(n->proto, "auto_pad", "VALID", false);
    for (int32_t i = 0; i < w->spatial; i++) {
        if (x->dim[i + 2] > LIMIT || w->kernel[i] > 1 << 20)
            return false;
        w->pad_begin[i] = valid ? 0 : pads[i];
        w->pad_end[i] = valid ? 0 : pads[i + w->spatial];
    }
    w->ceil = onnx_attr_int(n->proto, "ceil_mode", 0);
    return true;
}

static int64_t window_out(const window *w, int32_t i, int64_t in)
{
    if (w->same)
        return (in + w->stride[i] - 1) / w->stride[i];
    int64_t room = in + w->pad_begin[i] + w->pad_end[i] - (w->dilation[i] * (w->kernel[i] - 1) + 1);
    if (room < 0)
        return -1;
    int64_t out = (room + (w->ceil ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
    /* A window that starts in the padding at the end sees nothing: it is not made. */
    if (w->ceil && (out - 1) * w->stride[i] >= in + w->pad_begin[i])
        out--;
    return out;
}

static bool windowed(onnx_node *n, const onnx_value *x, const onnx_value *weight, int64_t channels, int32_t type)
{
    window w;
    int64_t dim[ONNX_MAX_RANK];
    if (!read_window(n, &w, x, weight))
        return false;
    dim[0] = x->dim[0];
    dim[1] = channels;
    for (int32_t i = 0; i < w.spatial; i++) {
        dim[i + 2] = window_out(&w, i, x->dim[i + 2]);
        n->misfits |= dim[i + 2] < 1; /* the window is larger than the image */
    }
    return !(n->misfits && n->import->strict) && onnx_value_shape(onnx_out(n, 0), type, x->rank, dim);
}

SHAPE(conv)
{
    NEED(0);
    NEED(1);
    return n->in[1]->rank == n->in[0]->rank && n->in[1]->rank > 2 &&
           windowed(n, n->in[0], n->in[1], n->in[1]->dim[0], n->in[0]->type);
}

SHAPE(conv_integer)
{
    NEED(0);
    NEED(1);
    return n->in[1]->rank > 2 && windowed(n, n->in[0], n->in[1], n->in[1]->dim[0], ONNX_INT32);
}

SHAPE(qlinear_conv)
{
    NEED(0);
    NEED(3);
    int32_t type = onnx_in(n, 7) ? n->in[7]->type : n->in[0]->type;
    return n->in[3]->rank > 2 && windowed(n, n->in[0], n->in[3], n->in[3]->dim[0], type);
}

SHAPE(pool)
{
    NEED(0);
    if (n->in[0]->rank < 3 || !windowed(n, n->in[0], NULL, n->in[0]->dim[1], n->in[0]->type))
        return false;
    return !onnx_out(n, 0) || onnx_value_like(onnx_out(n, 1), ONNX_INT64, onnx_out(n, 0));
}

SHAPE(conv_transpose)
{
    NEED(0);
    NEED(1);
    const onnx_value *x = n->in[0], *k = n->in[1];
    window w;
    int64_t dim[ONNX_MAX_RANK], extra[ONNX_MAX_RANK], group = onnx_attr_int(n->proto, "group", 1);
    if (k->rank != x->rank || !read_window(n, &w, x, k) || group < 1 || group > LIMIT ||
        !ints(n, "output_padding", extra, w.spatial, 0, 0))
        return false;
    onnx_list given;
    bool shaped = onnx_list_of(n, "output_shape", -1, &given) && given.n == w.spatial;
    dim[0] = x->dim[0];
    dim[1] = onnx_mul(k->dim[1], group);
    for (int32_t i = 0; i < w.spatial; i++) {
        int64_t in = x->dim[i + 2], reach = w.dilation[i] * (w.kernel[i] - 1) + 1;
        int64_t full = onnx_mul(w.stride[i], in - 1) + extra[i] + reach;
        dim[i + 2] = shaped ? given.item[i] : w.same ? onnx_mul(in, w.stride[i]) : full - w.pad_begin[i] - w.pad_end[i];
    }
    return onnx_value_shape(onnx_out(n, 0), x->type, x->rank, dim);
}

SHAPE(unpool)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    window w;
    int64_t dim[ONNX_MAX_RANK];
    onnx_list given = {0};
    if (onnx_given(n, NULL, 2))
        return onnx_list_of(n, NULL, 2, &given) && given.n <= ONNX_MAX_RANK &&
               onnx_value_shape(onnx_out(n, 0), x->type, (int32_t)given.n, given.item);
    if (!read_window(n, &w, x, NULL))
        return false;
    dim[0] = x->dim[0];
    dim[1] = x->dim[1];
    for (int32_t i = 0; i < w.spatial; i++)
        dim[i + 2] = onnx_mul(x->dim[i + 2] - 1, w.stride[i]) + w.kernel[i] - w.pad_begin[i] - w.pad_end[i];
    return onnx_value_shape(onnx_out(n, 0), x->type, x->rank, dim);
}

SHAPE(global_pool)
{
    NEED(0);
    int64_t dim[ONNX_MAX_RANK];
    for (int32_t i = 0; i < n->in[0]->rank; i++)
        dim[i] = i < 2 ? n->in[0]->dim[i] : 1;
    return onnx_value_shape(onnx_out(n, 0), n->in[0]->type, n->in[0]->rank, dim);
}

/* ---- resizing ---- */

/* Numbers of the attribute or the input that hold factors or sizes; NULL if there are none. */
static const onnx_value *filled(const onnx_node *n, int32_t input)
{
    const onnx_value *v = onnx_in(n, input);
    return v && v->elements ? v : NULL;
}

/* Sizes that keep the image's proportions: one factor for all axes, by which none is larger (or smaller) than asked. */
static bool proportional(onnx_node *n, const onnx_value *sizes, const onnx_list *axes, int64_t *dim)
{
    bool larger = onnx_attr_is(n->proto, "keep_aspect_ratio_policy", "not_smaller", false);
    if (!larger && !onnx_attr_is(n->proto, "keep_aspect_ratio_policy", "not_larger", false))
        return false;
    const onnx_value *x = n->in[0];
    double factor = larger ? 0 : HUGE_VAL;
    int64_t at[ONNX_MAX_RANK];
    int32_t count = (int32_t)UTIL_MIN(axes->n ? axes->n : (int64_t)x->rank, (int64_t)x->rank);
    for (int32_t i = 0; i < count; i++) {
        at[i] = axes->n ? axes->item[i] : i;
        if (i >= sizes->n_numbers || !onnx_axis(&at[i], x->rank) || !x->dim[at[i]])
            return false;
        double own = onnx_real(sizes, i) / (double)x->dim[at[i]];
        factor = larger ? fmax(factor, own) : fmin(factor, own);
    }
    for (int32_t i = 0; i < count; i++)
        dim[at[i]] = (int64_t)fmin(floor(factor * (double)x->dim[at[i]] + 0.5), 1e15);
    return true;
}

SHAPE(resize)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    bool old = n->n_in == 2; /* Upsample, and Resize of opset 10: (x, scales) */
    const onnx_value *scales = filled(n, old ? 1 : 2), *sizes = filled(n, 3);
    const Onnx__AttributeProto *attr = onnx_attr(n->proto, "scales");
    onnx_list axes = {0};
    onnx_list_of(n, "axes", -1, &axes);
    int64_t dim[ONNX_MAX_RANK], count = axes.n ? axes.n : x->rank;
    memcpy(dim, x->dim, sizeof dim);
    if (onnx_has_numbers(sizes) && proportional(n, sizes, &axes, dim))
        return onnx_value_shape(onnx_out(n, 0), x->type, x->rank, dim);
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes.n ? axes.item[i] : i;
        if (!onnx_axis(&axis, x->rank))
            return false;
        double factor;
        if (onnx_has_numbers(sizes) && i < sizes->n_numbers) {
            dim[axis] = onnx_value_int(sizes, i);
            continue;
        } else if (onnx_has_numbers(scales) && i < scales->n_numbers) {
            factor = onnx_real(scales, i);
        } else if (attr && (size_t)i < attr->n_floats) {
            factor = attr->floats[i];
        } else {
            return false;
        }
        double size = floor((double)x->dim[axis] * factor);
        if (!(size >= 0 && size < 1e15))
            return false;
        dim[axis] = (int64_t)size;
    }
    return onnx_value_shape(onnx_out(n, 0), x->type, x->rank, dim);
}

SHAPE(depth_to_space)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    int64_t b = onnx_attr_int(n->proto, "blocksize", 0);
    if (x->rank != 4 || b < 1 || b > 1 << 15)
        return false;
    int64_t dim[4] = {x->dim[0], x->dim[1] / (b * b), onnx_mul(x->dim[2], b), onnx_mul(x->dim[3], b)};
    return onnx_value_shape(onnx_out(n, 0), x->type, 4, dim);
}

SHAPE(space_to_depth)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    int64_t b = onnx_attr_int(n->proto, "blocksize", 0);
    if (x->rank != 4 || b < 1 || b > 1 << 15)
        return false;
    int64_t dim[4] = {x->dim[0], onnx_mul(x->dim[1], b * b), x->dim[2] / b, x->dim[3] / b};
    return onnx_value_shape(onnx_out(n, 0), x->type, 4, dim);
}

/* RoiAlign and MaxRoiPool: one patch per region. */
SHAPE(roi)
{
    NEED(0);
    NEED(1);
    const onnx_value *x = n->in[0], *rois = n->in[1];
    onnx_list pooled = {0};
    if (x->rank != 4 || rois->rank < 1)
        return false;
    int64_t dim[4] = {rois->dim[0], x->dim[1], onnx_attr_int(n->proto, "output_height", 1),
                      onnx_attr_int(n->proto, "output_width", 1)};
    if (onnx_list_of(n, "pooled_shape", -1, &pooled) && pooled.n == 2)
        memcpy(dim + 2, pooled.item, 2 * sizeof *dim);
    return onnx_value_shape(onnx_out(n, 0), x->type, 4, dim);
}

SHAPE(grid_sample)
{
    NEED(0);
    NEED(1);
    const onnx_value *x = n->in[0], *grid = n->in[1];
    int64_t dim[ONNX_MAX_RANK];
    if (x->rank < 3 || grid->rank != x->rank)
        return false;
    dim[0] = x->dim[0];
    dim[1] = x->dim[1];
    memcpy(dim + 2, grid->dim + 1, (size_t)(x->rank - 2) * sizeof *dim);
    return onnx_value_shape(onnx_out(n, 0), x->type, x->rank, dim);
}
