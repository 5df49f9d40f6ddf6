/* Operators that move numbers without changing them: where the cut axis goes.
 *
 * A reshape keeps the order of elements, so that of a cut only three numbers matter: how many elements a unit has in
 * the flat tensor, how many units there are, how often they repeat. If they fall on one axis of the new shape, that is
 * the cut axis. If they span several (columns that become heads x features), the cut goes on with fewer units: one axis
 * of those spanned; the rule offers all of them, and growth takes the one that leads furthest. */
#include "shard/shard.h"

#include <string.h>

#include "onnx/rules/onnx_rules.h"

static bool numbers_of(onnx_node *n, const char *name, int32_t input, onnx_list *out)
{
    *out = (onnx_list){0};
    return onnx_list_of(n, name, input, out);
}

shard_answer shard_rule_transpose(shard_ask *a)
{
    onnx_node *n = a->n;
    onnx_list perm;
    int32_t rank = n->in[0]->rank, axis = -1;
    bool given = numbers_of(n, "perm", -1, &perm) && perm.n > 0;
    if (given && perm.n != rank)
        return shard_no(a, "its order of axes makes no sense");
    for (int32_t i = 0; i < rank; i++) {
        int64_t from = given ? perm.item[i] : rank - 1 - i;
        if (from < 0 || from >= rank)
            return shard_no(a, "its order of axes makes no sense");
        if (a->from == n->n_in ? i == a->at.axis : from == a->at.axis)
            axis = a->from == n->n_in ? (int32_t)from : i;
    }
    if (axis < 0)
        return shard_no(a, "its order of axes makes no sense");
    bool back = a->from == n->n_in;
    shard_set(a, 0, back ? axis : a->at.axis, a->at.outer, a->at.inner);
    shard_set(a, n->n_in, back ? a->at.axis : axis, a->at.outer, a->at.inner);
    return SHARD_YES;
}

/* One more choice: the axis [inner, inner x length) of a unit's elements in the flat tensor. */
static void offer(shard_ask *a, int64_t flat_inner, int64_t below, int64_t length)
{
    int64_t span = flat_inner * a->units, low = UTIL_MAX(below, flat_inner), high = UTIL_MIN(below * length, span);
    if (high <= low || low % flat_inner || high % low || span % high || high / low < 2 || a->n_choices == SHARD_CHOICES)
        return;
    a->choice[a->n_choices++] = (shard_choice){span / high, low / flat_inner};
}

shard_answer shard_rule_reshape(shard_ask *a)
{
    const onnx_node *n = a->n;
    if (a->from != 0 && a->from != n->n_in)
        return shard_no(a, "its shape would be cut");
    const onnx_value *from = shard_value(n, a->from), *to = a->from ? n->in[0] : n->out[0];
    if (shard_is(n, "Reshape") && onnx_attr_int(n->proto, "allowzero", 0))
        return shard_no(a, "its shape has dimensions of zero");
    int64_t inner = onnx_product(from->dim, a->at.axis + 1, from->rank) * a->at.inner, span = inner * a->units;
    for (int32_t k = to->rank - 1, done = 0; k >= 0 && !done; k--) {
        int64_t below = onnx_product(to->dim, k + 1, to->rank), above = below * to->dim[k];
        done = above >= span;
        if (above % span == 0 && inner % below == 0) {
            shard_set(a, a->from ? n->n_in : 0, a->at.axis, a->at.outer, a->at.inner);
            shard_set(a, a->from ? 0 : n->n_in, k, above / span, inner / below);
            return SHARD_YES;
        }
        offer(a, inner, below, to->dim[k]);
    }
    return a->n_choices ? SHARD_OTHER : shard_no(a, "its new shape divides the units");
}

shard_answer shard_rule_concat(shard_ask *a)
{
    const onnx_node *n = a->n;
    int64_t axis = onnx_attr_int(n->proto, "axis", 0);
    if (!onnx_axis(&axis, n->out[0]->rank) || axis == a->at.axis)
        return shard_no(a, "it joins tensors along the cut");
    for (int32_t i = 0; i < n->n_in; i++)
        if (!n->in[i] || n->in[i]->rank != n->out[0]->rank)
            return shard_no(a, "its inputs do not go together");
    for (int32_t i = 0; i <= n->n_in; i++)
        shard_set(a, i, a->at.axis, a->at.outer, a->at.inner);
    return SHARD_YES;
}

/* Runs that are to be told apart by outputs: each must hold whole ones. */
static shard_answer divide_runs(shard_ask *a, int64_t runs)
{
    if (a->units % runs || a->units == runs)
        return shard_no(a, "it divides the units");
    a->choice[a->n_choices++] = (shard_choice){runs, 1};
    return SHARD_OTHER;
}

shard_answer shard_rule_split(shard_ask *a)
{
    const onnx_node *n = a->n;
    int64_t axis = onnx_attr_int(n->proto, "axis", 0), parts = n->n_out, outer = a->at.outer;
    bool forward = a->from == 0;
    if (!onnx_axis(&axis, n->in[0]->rank) || (!forward && a->from < n->n_in))
        return shard_no(a, "its sizes would be cut");
    for (int32_t i = 0; i < n->n_out; i++)
        if (!n->out[i] || (axis == a->at.axis && n->out[i]->dim[axis] * parts != n->in[0]->dim[axis]))
            return shard_no(a, "it divides the cut axis unequally");
    if (axis != a->at.axis)
        parts = 1;
    if (forward && outer % parts)
        return divide_runs(a, parts);
    shard_set(a, 0, a->at.axis, forward ? outer : outer * parts, a->at.inner);
    for (int32_t i = 0; i < n->n_out; i++)
        shard_set(a, n->n_in + i, a->at.axis, forward ? outer / parts : outer, a->at.inner);
    return SHARD_YES;
}

bool shard_slice_range(onnx_node *n, int32_t axis, int64_t *start, int64_t *end, bool *touches)
{
    onnx_list starts, ends, axes, steps;
    int64_t length = n->in[0]->dim[axis];
    *touches = false;
    if (!numbers_of(n, "starts", 1, &starts) || !numbers_of(n, "ends", 2, &ends) || starts.n != ends.n)
        return false;
    bool some = numbers_of(n, "axes", 3, &axes);
    if ((onnx_given(n, "axes", 3) && !some) || (some && axes.n != starts.n))
        return false;
    for (int64_t i = 0; i < starts.n; i++) {
        int64_t on = some ? axes.item[i] : i;
        if (!onnx_axis(&on, n->in[0]->rank))
            return false;
        if (on != axis)
            continue;
        if (onnx_given(n, "steps", 4) && (!numbers_of(n, "steps", 4, &steps) || i >= steps.n || steps.item[i] != 1))
            return false;
        *touches = true;
        *start = onnx_clamp(starts.item[i] + (starts.item[i] < 0 ? length : 0), 0, length);
        *end = onnx_clamp(ends.item[i] < 0 ? ends.item[i] + length : ends.item[i], 0, length);
    }
    return true;
}

static int64_t common(int64_t x, int64_t y)
{
    return y ? common(y, x % y) : x;
}

shard_answer shard_rule_slice(shard_ask *a)
{
    onnx_node *n = a->n;
    int64_t start = 0, end = 0, length = n->in[0]->dim[a->at.axis];
    bool touches;
    if ((a->from != 0 && a->from != n->n_in) || !shard_slice_range(n, a->at.axis, &start, &end, &touches))
        return shard_no(a, "what it takes is known at run time only");
    shard_set(a, 0, a->at.axis, a->at.outer, a->at.inner);
    shard_set(a, n->n_in, a->at.axis, a->at.outer, a->at.inner);
    if (!touches || (start == 0 && end == length))
        return SHARD_YES;
    if (a->from || end <= start)
        return shard_no(a, "it takes a part of the cut axis");
    int64_t run = length / a->at.outer, step = common(common(start, end), length);
    if (step % run)
        return length % step || run % step ? shard_no(a, "it takes a part of the cut axis")
                                           : divide_runs(a, run / step);
    a->port[n->n_in].at.outer = (end - start) / run;
    return SHARD_YES;
}

shard_answer shard_rule_gather(shard_ask *a)
{
    const onnx_node *n = a->n;
    int64_t axis = onnx_attr_int(n->proto, "axis", 0);
    if (n->n_in < 2 || !n->in[1] || !onnx_axis(&axis, n->in[0]->rank))
        return shard_no(a, "it has no indices");
    int32_t by = n->in[1]->rank, at = a->at.axis, moved = by - 1;
    if (a->from == 0 && at == axis)
        return shard_no(a, "it picks along the cut");
    if (a->from == 1 || (a->from == n->n_in && at >= axis && at < axis + by)) {
        int32_t own = a->from == 1 ? at : at - (int32_t)axis;
        shard_set(a, 1, own, a->at.outer, a->at.inner);
        shard_set(a, n->n_in, own + (int32_t)axis, a->at.outer, a->at.inner);
        return SHARD_YES;
    }
    int32_t own = a->from == 0 ? at : at < axis ? at : at - moved;
    shard_set(a, 0, own, a->at.outer, a->at.inner);
    shard_set(a, n->n_in, own < axis ? own : own + moved, a->at.outer, a->at.inner);
    return SHARD_YES;
}

shard_answer shard_rule_reduce(shard_ask *a)
{
    onnx_node *n = a->n;
    onnx_list axes;
    bool gone[ONNX_MAX_RANK] = {false}, keep = onnx_attr_int(n->proto, "keepdims", 1) != 0;
    if ((a->from != 0 && a->from != n->n_in) || !numbers_of(n, "axes", 1, &axes) || axes.n == 0)
        return shard_no(a, "it sums up all axes");
    for (int64_t i = 0; i < axes.n; i++) {
        int64_t axis = axes.item[i];
        if (!onnx_axis(&axis, n->in[0]->rank))
            return shard_no(a, "its axes make no sense");
        gone[axis] = true;
    }
    for (int32_t in = 0, out = 0; in < n->in[0]->rank; in++) {
        if ((a->from ? out : in) == a->at.axis && !(gone[in] && !keep && a->from)) {
            if (gone[in])
                return shard_no(a, "it sums up this axis");
            shard_set(a, 0, in, a->at.outer, a->at.inner);
            shard_set(a, n->n_in, out, a->at.outer, a->at.inner);
            return SHARD_YES;
        }
        out += keep || !gone[in];
    }
    return shard_no(a, "its axes make no sense");
}

static shard_answer keeps_axis(shard_ask *a)
{
    const onnx_node *n = a->n;
    if ((a->from != 0 && a->from != n->n_in) || n->in[0]->rank != n->out[0]->rank ||
        n->in[0]->dim[a->at.axis] != n->out[0]->dim[a->at.axis])
        return shard_no(a, "it changes the length of this axis");
    shard_set(a, 0, a->at.axis, a->at.outer, a->at.inner);
    shard_set(a, n->n_in, a->at.axis, a->at.outer, a->at.inner);
    return SHARD_YES;
}

shard_answer shard_rule_pad(shard_ask *a)
{
    onnx_node *n = a->n;
    onnx_list pads;
    int32_t rank = n->in[0]->rank;
    if (!numbers_of(n, "pads", 1, &pads) || pads.n != 2 * rank || onnx_in(n, 3))
        return shard_no(a, "its widths are known at run time only");
    if (pads.item[a->at.axis] || pads.item[a->at.axis + rank])
        return shard_no(a, "it pads this axis");
    return keeps_axis(a);
}

/* Samples and channels stay what they are. */
shard_answer shard_rule_resize(shard_ask *a)
{
    onnx_node *n = a->n;
    const onnx_value *sizes = onnx_in(n, 3);
    if (a->at.axis > 1 || onnx_given(n, "axes", -1))
        return shard_no(a, "windows cross the cut");
    if (sizes && sizes->elements && sizes->elements != n->in[0]->rank)
        return shard_no(a, "its sizes make no sense");
    return keeps_axis(a);
}
