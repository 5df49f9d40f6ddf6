/* Rows of an image: which of its input an operator needs for some of its output.
 *
 * Operators that work point by point, whatever their type, are known to the rules of shard_rules.c: rows stay rows. What
 * is here looks beyond a row. A convolution or a pool needs the rows under its windows, padding only where the image ends;
 * padding itself is a window of one row. A transposed convolution is a window the other way round. A Resize by a whole
 * number, and DepthToSpace, make `scale` rows of one; between rows it needs a neighbour or two, and makes more than was
 * asked for, so that its result is cropped. Whatever is not the same in a part of the image as in all of it (corners that
 * are aligned, sizes that are no multiple, a mirrored border) is refused. */
#include "shard/shard.h"

#include <math.h>
#include <string.h>

#include "onnx/rules/onnx_rules.h"

#define MOST 1048576 /* of any number of a window: no product of two overflows */

bool shard_is_window(const onnx_node *n)
{
    static const char *const type[] = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"};
    for (size_t i = 0; i < sizeof type / sizeof *type; i++)
        if (shard_is(n, type[i]))
            return true;
    return false;
}

static bool numbers(onnx_node *n, const char *name, int64_t *out, int32_t count, int64_t missing)
{
    onnx_list l = {0};
    bool given = onnx_list_of(n, name, -1, &l) && l.n;
    if (given && l.n != count)
        return false;
    for (int32_t i = 0; i < count; i++) {
        out[i] = given ? l.item[i] : missing;
        if (out[i] < 0 || out[i] > MOST)
            return false;
    }
    return true;
}

/* Padding that the runtime finds out, or that windows beyond the border ask for; `kernel`: of a pool. */
static const char *settle_pads(onnx_node *n, shard_window *w, const int64_t *given, const int64_t *kernel)
{
    bool upper = onnx_attr_is(n->proto, "auto_pad", "SAME_UPPER", false);
    bool lower = onnx_attr_is(n->proto, "auto_pad", "SAME_LOWER", false);
    bool valid = onnx_attr_is(n->proto, "auto_pad", "VALID", false);
    bool counted = shard_is(n, "AveragePool") && onnx_attr_int(n->proto, "count_include_pad", 0);
    for (int32_t i = 0; i < w->spatial; i++) {
        int64_t in = n->in[0]->dim[i + 2], out = n->out[0]->dim[i + 2];
        int64_t all = (out - 1) * w->stride[i] + w->extent[i] - in;
        int64_t total = UTIL_MAX(all, 0);
        w->begin[i] = upper ? total / 2 : lower ? total - total / 2 : valid ? 0 : given[i];
        w->end[i] = UTIL_MAX(all - w->begin[i], 0);
        /* Runtimes refuse pools whose padding is wider than their kernel; ceil_mode gets there without saying so. */
        if (kernel && (w->begin[i] >= kernel[i] || w->end[i] >= kernel[i]))
            return "its last window hardly touches the image";
        if (onnx_attr_int(n->proto, "ceil_mode", 0) && all < w->begin[i])
            return "it leaves a window out that begins beyond the image";
        if (counted && !upper && !lower && w->end[i] > (valid ? 0 : given[i + w->spatial]))
            return "its last window counts less than it covers";
    }
    return NULL;
}

const char *shard_window_read(onnx_node *n, shard_window *w)
{
    int32_t spatial = n->in[0]->rank - 2;
    bool weighted = shard_is(n, "Conv") || shard_is(n, "ConvTranspose");
    int64_t kernel[ONNX_MAX_RANK], dilation[ONNX_MAX_RANK], pads[2 * ONNX_MAX_RANK];
    *w = (shard_window){.spatial = spatial};
    if (spatial < 1 || n->out[0]->rank != n->in[0]->rank ||
        (weighted && (!onnx_in(n, 1) || n->in[1]->rank != spatial + 2)))
        return "its input is no image";
    if (!numbers(n, "strides", w->stride, spatial, 1) || !numbers(n, "dilations", dilation, spatial, 1) ||
        !numbers(n, "pads", pads, 2 * spatial, 0) || !numbers(n, "kernel_shape", kernel, spatial, 0))
        return "its windows make no sense";
    for (int32_t i = 0; i < spatial; i++) {
        kernel[i] = weighted ? n->in[1]->dim[i + 2] : kernel[i];
        w->extent[i] = dilation[i] * (kernel[i] - 1) + 1;
        if (w->stride[i] < 1 || dilation[i] < 1 || kernel[i] < 1 || kernel[i] > MOST ||
            n->in[0]->dim[i + 2] > 1ll << 40)
            return "its windows make no sense";
    }
    if (!shard_is(n, "ConvTranspose"))
        return settle_pads(n, w, pads, weighted ? NULL : kernel);
    if (onnx_attr(n->proto, "output_shape") || !onnx_attr_is(n->proto, "auto_pad", "NOTSET", true))
        return "its padding is found out when it runs";
    memcpy(w->begin, pads, (size_t)spatial * sizeof *pads);
    memcpy(w->end, pads + spatial, (size_t)spatial * sizeof *pads);
    return NULL;
}

static shard_answer first_to_first(shard_ask *a)
{
    for (int32_t i = 1; i < a->n->n_out; i++)
        if (a->n->out[i])
            return shard_no(a, "it has a second output");
    shard_set(a, 0, a->at.axis, 1, 1);
    shard_set(a, a->n->n_in, a->at.axis, 1, 1);
    return SHARD_YES;
}

static shard_answer windowed(shard_ask *a, shard_map *map)
{
    shard_window w;
    const char *why = shard_window_read(a->n, &w);
    int32_t i = a->at.axis - 2;
    if (why)
        return shard_no(a, why);
    *map = (shard_map){w.stride[i], w.extent[i], w.begin[i], 0, 0, shard_is(a->n, "ConvTranspose")};
    return first_to_first(a);
}

static shard_answer padded(shard_ask *a, shard_map *map)
{
    onnx_list pads;
    int32_t rank = a->n->in[0]->rank;
    if (!onnx_list_of(a->n, "pads", 1, &pads) || pads.n != 2 * rank || onnx_in(a->n, 3))
        return shard_no(a, "its widths are known at run time only");
    int64_t begin = pads.item[a->at.axis], end = pads.item[a->at.axis + rank];
    if (begin < 0 || end < 0 || begin > MOST || end > MOST)
        return shard_no(a, "it takes rows away");
    if ((begin || end) && !onnx_attr_is(a->n->proto, "mode", "constant", true))
        return shard_no(a, "it mirrors or repeats rows at the border");
    *map = (shard_map){1, 1, begin, 0, 0, false};
    return first_to_first(a);
}

/* Is a result's row the same wherever in the image it is? `reach`: rows beyond its own that it is made of. */
static const char *resize_reach(onnx_node *n, int64_t *reach)
{
    const Onnx__NodeProto *p = n->proto;
    bool modern = n->import->opset >= 11;
    bool corner = onnx_attr_is(p, "coordinate_transformation_mode", "asymmetric", !modern);
    bool nearest = onnx_attr_is(p, "mode", "nearest", true);
    bool own = corner ? onnx_attr_is(p, "nearest_mode", "floor", !modern)
                      : onnx_attr_is(p, "nearest_mode", "round_prefer_floor", true); /* no other row is nearer */
    *reach = nearest ? !own : onnx_attr_is(p, "mode", "cubic", false) ? 2 : 1;
    if (onnx_given(n, "axes", -1) || onnx_attr_int(p, "antialias", 0) || onnx_attr_int(p, "exclude_outside", 0) ||
        !onnx_attr_is(p, "keep_aspect_ratio_policy", "stretch", true))
        return "it is resized in a way that depends on the whole image";
    if (modern && !onnx_attr_is(p, "coordinate_transformation_mode", "half_pixel", true) &&
        !onnx_attr_is(p, "coordinate_transformation_mode", "pytorch_half_pixel", false) &&
        !onnx_attr_is(p, "coordinate_transformation_mode", "asymmetric", false))
        return "it is resized in a way that depends on the whole image (aligned corners, a crop)";
    return NULL;
}

static shard_answer resized(shard_ask *a, shard_map *map)
{
    onnx_node *n = a->n;
    int64_t in = n->in[0]->dim[a->at.axis], out = n->out[0]->dim[a->at.axis], reach;
    const char *why = resize_reach(n, &reach);
    const onnx_value *sizes = onnx_in(n, 3);
    const onnx_value *scales = onnx_in(n, n->n_in == 2 ? 1 : 2);
    if (why)
        return shard_no(a, why);
    if (out % in || out / in > MOST)
        return shard_no(a, "its result has no whole multiple of the rows");
    if (sizes && sizes->elements ? sizes->elements != n->in[0]->rank
                                 : !onnx_has_numbers(scales) || scales->n_numbers != n->in[0]->rank ||
                                       fabs(onnx_real(scales, a->at.axis) - (double)(out / in)) > 1e-9)
        return shard_no(a, "its result has no whole multiple of the rows");
    *map = (shard_map){.scale = out / in, .reach = reach};
    return first_to_first(a);
}

static shard_answer blocked(shard_ask *a, shard_map *map)
{
    int64_t block = onnx_attr_int(a->n->proto, "blocksize", 0);
    if (a->n->in[0]->rank != 4 || block < 1 || block > MOST)
        return shard_no(a, "its blocks make no sense");
    if (shard_is(a->n, "DepthToSpace"))
        *map = (shard_map){.scale = block};
    else if (a->n->in[0]->dim[a->at.axis] % block)
        return shard_no(a, "its blocks make no sense");
    else
        *map = (shard_map){block, block, 0, 0, 0, false};
    return first_to_first(a);
}

/* Rows stay rows. */
static shard_answer by_points(shard_ask *a, shard_map *map)
{
    *map = (shard_map){1, 1, 0, 0, 0, false};
    shard_answer answer = shard_relate(a);
    if (answer == SHARD_OTHER)
        return shard_no(a, "its new shape divides the rows");
    for (int32_t i = 0; i < a->n->n_in + a->n->n_out && answer == SHARD_YES; i++) {
        const shard_port *p = &a->port[i];
        if (p->state == SHARD_PARTIAL)
            return shard_no(a, "it sums up the rows");
        if (p->state == SHARD_CUT && (p->at.outer != 1 || p->at.inner != 1))
            return shard_no(a, "its new shape divides the rows");
        if (i >= a->n->n_in && p->state != SHARD_CUT && a->n->out[i - a->n->n_in])
            return shard_no(a, "its result has no rows");
    }
    return answer;
}

static bool is_sure(const onnx_value *v)
{
    return !v || (v->shaped && v->known == MOIRAI_ONNX_SURE && v->elements > 0);
}

shard_answer shard_rows_relate(shard_ask *a, shard_map *map)
{
    onnx_node *n = a->n;
    bool image = a->from == 0 && n->n_out > 0 && n->out[0] && a->at.axis >= 2 && n->rule && !n->n_children;
    shard_answer (*rule)(shard_ask *, shard_map *) = NULL;
    if (image && shard_is_window(n))
        rule = windowed;
    else if (image && shard_is(n, "Pad"))
        rule = padded;
    else if (image && shard_is(n, "Resize"))
        rule = resized;
    else if (image && (shard_is(n, "DepthToSpace") || shard_is(n, "SpaceToDepth")))
        rule = blocked;
    if (!rule)
        return by_points(a, map);
    memset(a->port, 0, (size_t)(n->n_in + n->n_out) * sizeof *a->port);
    a->why = NULL;
    for (int32_t i = 0; i < n->n_in + n->n_out; i++)
        if (!is_sure(shard_value(n, i)))
            return shard_no(a, "the shape of its tensors is known at run time only");
    return rule(a, map);
}

/* ---- spans ---- */

static int64_t floor_div(int64_t x, int64_t y)
{
    return x / y - (x % y < 0);
}

shard_span shard_map_needs(const shard_map *map, shard_span out, int64_t rows)
{
    shard_span in = {out.begin * map->stride - map->pad, (out.end - 1) * map->stride - map->pad + map->extent};
    if (out.begin >= out.end)
        return (shard_span){0, 0};
    if (map->scale)
        in = (shard_span){out.begin / map->scale - map->reach, (out.end - 1) / map->scale + 1 + map->reach};
    if (map->spread) { /* row i makes [i stride - pad, i stride - pad + extent); where windows leave gaps, also the row before */
        int64_t first = floor_div(out.begin + map->pad - map->extent, map->stride) + 1;
        in.begin = UTIL_MIN(first, floor_div(out.begin + map->pad, map->stride));
        in.end = floor_div(out.end - 1 + map->pad, map->stride) + 1;
    }
    return (shard_span){UTIL_MAX(in.begin, 0), UTIL_MIN(in.end, rows)};
}
