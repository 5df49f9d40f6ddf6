/* Products and convolutions: what is cut by columns has its part of the output, what is cut by rows a partial sum. */
#include "shard/shard.h"

#include <string.h>

typedef enum role {
    ROLE_NONE,
    ROLE_ROWS,    /* of the first factor and of the product */
    ROLE_COLUMNS, /* of the second factor and of the product */
    ROLE_SUMMED,  /* columns of the first, rows of the second */
    ROLE_BATCH
} role;

static void set_partial(shard_ask *a, int32_t bias)
{
    a->port[a->n->n_in].state = SHARD_PARTIAL;
    if (bias < a->n->n_in && a->n->in[bias])
        a->port[bias].once = true;
}

/* Axis of the product that counts from the end: 1 is the last. */
static void set_batch(shard_ask *a, int32_t from_end)
{
    const onnx_node *n = a->n;
    for (int32_t i = 0; i < 2; i++)
        if (n->in[i]->rank >= from_end && n->in[i]->dim[n->in[i]->rank - from_end] > 1)
            shard_set(a, i, n->in[i]->rank - from_end, a->at.outer, a->at.inner);
    shard_set(a, n->n_in, n->out[0]->rank - from_end, a->at.outer, a->at.inner);
}

static role role_in_product(const shard_ask *a, int32_t from_end)
{
    if (from_end > 2)
        return ROLE_BATCH;
    if (a->from == a->n->n_in)
        return from_end == 1 ? ROLE_COLUMNS : ROLE_ROWS;
    if (a->from == 0)
        return from_end == 1 ? ROLE_SUMMED : ROLE_ROWS;
    return a->from == 1 ? (from_end == 1 ? ROLE_COLUMNS : ROLE_SUMMED) : ROLE_NONE;
}

shard_answer shard_rule_matmul(shard_ask *a)
{
    const onnx_node *n = a->n;
    if (n->n_in < 2 || !n->in[1] || n->in[0]->rank < 2 || n->in[1]->rank < 2)
        return shard_no(a, "it is a product with a vector");
    const onnx_value *from = shard_value(n, a->from);
    int32_t from_end = from->rank - a->at.axis, left = n->in[0]->rank, right = n->in[1]->rank, out = n->out[0]->rank;
    role r = role_in_product(a, from_end);
    const onnx_value *zero = r == ROLE_COLUMNS ? onnx_in(n, 3) : onnx_in(n, 2); /* of MatMulInteger */
    if (zero && zero->elements > 1 && (r != ROLE_COLUMNS || zero->rank != 1))
        return shard_no(a, "its zero points are of the other factor's rows");
    switch (r) {
    case ROLE_BATCH: set_batch(a, from_end); break;
    case ROLE_ROWS:
        shard_set(a, 0, left - 2, a->at.outer, a->at.inner);
        shard_set(a, n->n_in, out - 2, a->at.outer, a->at.inner);
        break;
    case ROLE_COLUMNS:
        shard_set(a, 1, right - 1, a->at.outer, a->at.inner);
        shard_set(a, n->n_in, out - 1, a->at.outer, a->at.inner);
        if (zero && zero->elements > 1)
            shard_set(a, 3, 0, a->at.outer, a->at.inner);
        break;
    case ROLE_SUMMED:
        shard_set(a, 0, left - 1, a->at.outer, a->at.inner);
        shard_set(a, 1, right - 2, a->at.outer, a->at.inner);
        set_partial(a, n->n_in);
        break;
    case ROLE_NONE: return shard_no(a, "a parameter would be cut");
    }
    return SHARD_YES;
}

shard_answer shard_rule_gemm(shard_ask *a)
{
    const onnx_node *n = a->n;
    bool turned[2] = {onnx_attr_int(n->proto, "transA", 0) != 0, onnx_attr_int(n->proto, "transB", 0) != 0};
    const onnx_value *bias = onnx_in(n, 2);
    if (n->n_in < 2 || !n->in[1] || n->in[0]->rank != 2 || n->in[1]->rank != 2)
        return shard_no(a, "it is a product with a vector");
    if (a->from == 2 && n->n_in > 2)
        return shard_no(a, "its bias is made by the network");
    int32_t axis = a->from < 2 && turned[a->from] ? 1 - a->at.axis : a->at.axis;
    role r = role_in_product(a, 2 - axis);
    if (r == ROLE_ROWS || r == ROLE_SUMMED)
        shard_set(a, 0, (r == ROLE_SUMMED) != turned[0], a->at.outer, a->at.inner);
    if (r == ROLE_COLUMNS || r == ROLE_SUMMED)
        shard_set(a, 1, (r == ROLE_COLUMNS) != turned[1], a->at.outer, a->at.inner);
    if (r == ROLE_SUMMED) {
        set_partial(a, 2);
        return SHARD_YES;
    }
    int32_t out_axis = r == ROLE_COLUMNS, own = bias ? out_axis - (2 - bias->rank) : -1;
    shard_set(a, n->n_in, out_axis, a->at.outer, a->at.inner);
    if (own >= 0 && bias->dim[own] > 1)
        shard_set(a, 2, own, a->at.outer, a->at.inner);
    return SHARD_YES;
}

static int64_t common(int64_t x, int64_t y)
{
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

/* Whole groups go together: a unit must hold `per` channels of this side. */
static shard_answer whole_groups(shard_ask *a, int64_t per)
{
    int64_t factor = per / common(a->at.inner, per);
    if (factor == 1)
        return SHARD_YES;
    if (a->units % factor || a->units == factor)
        return shard_no(a, "its groups cross the cut");
    a->choice[a->n_choices++] = (shard_choice){1, factor};
    return SHARD_OTHER;
}

static shard_answer grouped(shard_ask *a, int64_t groups)
{
    const onnx_node *n = a->n;
    int64_t per_in = n->in[0]->dim[1] / groups, per_out = n->out[0]->dim[1] / groups;
    bool forward = a->from == 0;
    if (per_in < 1 || per_out < 1)
        return shard_no(a, "its groups make no sense");
    shard_answer answer = whole_groups(a, forward ? per_in : per_out);
    if (answer != SHARD_YES)
        return answer;
    int64_t held = a->at.inner / (forward ? per_in : per_out); /* groups in a unit */
    shard_set(a, 0, 1, a->at.outer, held * per_in);
    shard_set(a, 1, 0, a->at.outer, held * per_out);
    if (onnx_in(n, 2))
        shard_set(a, 2, 0, a->at.outer, held * per_out);
    shard_set(a, n->n_in, 1, a->at.outer, held * per_out);
    return SHARD_YES;
}

/* `by_out`, `by_in`: the weights' axes of output and input channels. */
static shard_answer convolve(shard_ask *a, int32_t by_out, int32_t by_in)
{
    const onnx_node *n = a->n;
    bool whole = a->from == 0 || a->from == n->n_in;
    if (n->n_in < 2 || !n->in[1] || n->in[0]->rank < 3 || n->in[0]->rank != n->out[0]->rank)
        return shard_no(a, "its input is no image");
    if (!whole || a->at.axis > 1)
        return shard_no(a, whole ? "windows cross the cut" : "its weights are made by the network");
    if (a->at.axis == 0) {
        shard_set(a, 0, 0, a->at.outer, a->at.inner);
        shard_set(a, n->n_in, 0, a->at.outer, a->at.inner);
        return SHARD_YES;
    }
    int64_t groups = onnx_attr_int(n->proto, "group", 1);
    if (groups != 1)
        return groups > 1 && !by_out ? grouped(a, groups) : shard_no(a, "it is a transposed convolution in groups");
    if (a->from == 0) {
        shard_set(a, 0, 1, a->at.outer, a->at.inner);
        shard_set(a, 1, by_in, a->at.outer, a->at.inner);
        set_partial(a, 2);
        return SHARD_YES;
    }
    shard_set(a, 1, by_out, a->at.outer, a->at.inner);
    if (onnx_in(n, 2))
        shard_set(a, 2, 0, a->at.outer, a->at.inner);
    shard_set(a, n->n_in, 1, a->at.outer, a->at.inner);
    return SHARD_YES;
}

shard_answer shard_rule_conv(shard_ask *a)
{
    return convolve(a, 0, 1);
}

shard_answer shard_rule_conv_transpose(shard_ask *a)
{
    return convolve(a, 1, 0);
}
