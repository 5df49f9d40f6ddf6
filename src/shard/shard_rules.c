/* What a cut of one tensor means for the operator that reads or writes it.
 *
 * A rule is asked: this input or output is cut so. It answers what all other tensors of the operator must be: whole, cut,
 * or (an output) a sum of partial results. Growth (shard_grow.c) asks in both directions: forward from a tensor that is
 * cut to its readers, back from a tensor that must be cut to its maker. An operator without a rule ends a strip. */
#include "shard/shard.h"

#include <stdlib.h>
#include <string.h>

shard_answer shard_no(shard_ask *a, const char *why)
{
    a->why = why;
    return SHARD_NO;
}

void shard_set(shard_ask *a, int32_t port, int32_t axis, int64_t outer, int64_t inner)
{
    a->port[port] = (shard_port){.state = SHARD_CUT, .at = {axis, outer, inner}};
}

static bool is_there(const shard_ask *a, int32_t port)
{
    const onnx_node *n = a->n;
    return port < n->n_in ? n->in[port] != NULL : port - n->n_in < n->n_out && n->out[port - n->n_in];
}

/* Element by element, with broadcasting. */
static shard_answer elementwise(shard_ask *a)
{
    const onnx_node *n = a->n;
    const onnx_value *out = n->out[0], *from = shard_value(n, a->from);
    int32_t axis = a->at.axis + out->rank - from->rank;
    if (axis < 0 || from->dim[a->at.axis] != out->dim[axis])
        return shard_no(a, "its input is repeated along the cut");
    for (int32_t i = 0; i < n->n_in; i++) {
        int32_t own = n->in[i] ? axis - (out->rank - n->in[i]->rank) : -1;
        if (own >= 0 && n->in[i]->dim[own] == out->dim[axis])
            shard_set(a, i, own, a->at.outer, a->at.inner);
        else if (own >= 0 && n->in[i]->dim[own] != 1)
            return shard_no(a, "its inputs do not go together");
    }
    for (int32_t i = 0; i < n->n_out; i++)
        if (is_there(a, n->n_in + i))
            shard_set(a, n->n_in + i, axis, a->at.outer, a->at.inner);
    return SHARD_YES;
}

/* The first input becomes the first output, axis by axis; what else it reads is whole. */
static shard_answer first_to_first(shard_ask *a)
{
    const onnx_node *n = a->n;
    if (a->from != 0 && a->from != n->n_in)
        return shard_no(a, "a parameter would be cut");
    for (int32_t i = 1; i < n->n_out; i++)
        if (is_there(a, n->n_in + i))
            return shard_no(a, "it has a second output");
    if (n->in[0]->rank != n->out[0]->rank || n->in[0]->dim[a->at.axis] != n->out[0]->dim[a->at.axis])
        return shard_no(a, "its output has another shape along the cut");
    shard_set(a, 0, a->at.axis, a->at.outer, a->at.inner);
    shard_set(a, n->n_in, a->at.axis, a->at.outer, a->at.inner);
    return SHARD_YES;
}

/* Parameters per channel, from input `first` on. */
static void set_channels(shard_ask *a, int32_t first)
{
    for (int32_t i = first; i < a->n->n_in && a->at.axis == 1; i++)
        if (a->n->in[i] && a->n->in[i]->rank == 1)
            shard_set(a, i, 0, a->at.outer, a->at.inner);
}

static shard_answer batch_norm(shard_ask *a)
{
    if (onnx_attr_int(a->n->proto, "training_mode", 0))
        return shard_no(a, "it is in training mode");
    shard_answer answer = first_to_first(a);
    if (answer == SHARD_YES)
        set_channels(a, 1);
    return answer;
}

static shard_answer instance_norm(shard_ask *a)
{
    shard_answer answer = a->at.axis > 1 ? shard_no(a, "it is a norm over this axis") : first_to_first(a);
    if (answer == SHARD_YES)
        set_channels(a, 1);
    return answer;
}

/* Over all axes from `axis` on. */
static shard_answer over_last(shard_ask *a, int64_t missing)
{
    int64_t axis = onnx_attr_int(a->n->proto, "axis", missing);
    axis += axis < 0 ? a->n->in[0]->rank : 0;
    return a->at.axis >= axis ? shard_no(a, "it is a norm over this axis") : first_to_first(a);
}

static shard_answer layer_norm(shard_ask *a)
{
    return over_last(a, -1);
}

static shard_answer softmax(shard_ask *a)
{
    if (a->n->import->opset < 13)
        return over_last(a, 1);
    int64_t axis = onnx_attr_int(a->n->proto, "axis", -1);
    axis += axis < 0 ? a->n->in[0]->rank : 0;
    return a->at.axis == axis ? shard_no(a, "it is a norm over this axis") : first_to_first(a);
}

/* Samples and channels are on their own. */
static shard_answer pool(shard_ask *a)
{
    return a->at.axis > 1 ? shard_no(a, "windows cross the cut") : first_to_first(a);
}

/* Scale and zero point: one of each, or one per slice of an axis. */
static shard_answer quantize(shard_ask *a)
{
    const onnx_node *n = a->n;
    shard_answer answer = first_to_first(a);
    int64_t axis = onnx_attr_int(n->proto, "axis", 1);
    axis += axis < 0 ? n->in[0]->rank : 0;
    for (int32_t i = 1; i < n->n_in && answer == SHARD_YES; i++) {
        if (!n->in[i] || n->in[i]->elements == 1)
            continue;
        if (n->in[i]->rank != 1)
            return shard_no(a, "it is quantised in blocks");
        if (a->at.axis == axis)
            shard_set(a, i, 0, a->at.outer, a->at.inner);
    }
    return answer;
}

static shard_answer expand(shard_ask *a)
{
    const onnx_node *n = a->n;
    const onnx_value *in = n->in[0], *out = n->out[0];
    if (a->from != 0 && a->from != n->n_in)
        return shard_no(a, "its shape would be cut");
    int32_t axis = a->from ? a->at.axis : a->at.axis + out->rank - in->rank, own = axis - (out->rank - in->rank);
    if (axis < 0 || (own >= 0 && in->dim[own] != 1 && in->dim[own] != out->dim[axis]))
        return shard_no(a, "it repeats along the cut");
    if (own >= 0 && in->dim[own] == out->dim[axis])
        shard_set(a, 0, own, a->at.outer, a->at.inner);
    else if (!a->from)
        return shard_no(a, "it repeats along the cut");
    shard_set(a, n->n_in, axis, a->at.outer, a->at.inner);
    return SHARD_YES;
}

typedef struct row {
    const char *type;
    shard_rule rule;
} row;

/* Sorted by type. */
static const row rules[] = {
    {"Abs", elementwise},
    {"Add", elementwise},
    {"And", elementwise},
    {"AveragePool", pool},
    {"BatchNormalization", batch_norm},
    {"BiasGelu", elementwise},
    {"Cast", first_to_first},
    {"Ceil", elementwise},
    {"Celu", elementwise},
    {"Clip", first_to_first},
    {"Concat", shard_rule_concat},
    {"Conv", shard_rule_conv},
    {"ConvTranspose", shard_rule_conv_transpose},
    {"Cos", elementwise},
    {"DequantizeLinear", quantize},
    {"Div", elementwise},
    {"Dropout", first_to_first},
    {"Elu", elementwise},
    {"Equal", elementwise},
    {"Erf", elementwise},
    {"Exp", elementwise},
    {"Expand", expand},
    {"FastGelu", elementwise},
    {"Flatten", shard_rule_reshape},
    {"Floor", elementwise},
    {"Gather", shard_rule_gather},
    {"Gelu", elementwise},
    {"Gemm", shard_rule_gemm},
    {"GlobalAveragePool", pool},
    {"GlobalMaxPool", pool},
    {"Greater", elementwise},
    {"GreaterOrEqual", elementwise},
    {"HardSigmoid", elementwise},
    {"HardSwish", elementwise},
    {"Identity", elementwise},
    {"InstanceNormalization", instance_norm},
    {"LayerNormalization", layer_norm},
    {"LeakyRelu", elementwise},
    {"Less", elementwise},
    {"LessOrEqual", elementwise},
    {"Log", elementwise},
    {"LogSoftmax", softmax},
    {"LpPool", pool},
    {"MatMul", shard_rule_matmul},
    {"MatMulInteger", shard_rule_matmul},
    {"Max", elementwise},
    {"MaxPool", pool},
    {"Min", elementwise},
    {"Mish", elementwise},
    {"Mul", elementwise},
    {"Neg", elementwise},
    {"Not", elementwise},
    {"Or", elementwise},
    {"PRelu", elementwise},
    {"Pad", shard_rule_pad},
    {"Pow", elementwise},
    {"QuantizeLinear", quantize},
    {"QuickGelu", elementwise},
    {"RMSNormalization", layer_norm},
    {"Reciprocal", elementwise},
    {"ReduceL1", shard_rule_reduce},
    {"ReduceL2", shard_rule_reduce},
    {"ReduceMax", shard_rule_reduce},
    {"ReduceMean", shard_rule_reduce},
    {"ReduceMin", shard_rule_reduce},
    {"ReduceProd", shard_rule_reduce},
    {"ReduceSum", shard_rule_reduce},
    {"ReduceSumSquare", shard_rule_reduce},
    {"Relu", elementwise},
    {"Reshape", shard_rule_reshape},
    {"Resize", shard_rule_resize},
    {"Round", elementwise},
    {"Selu", elementwise},
    {"Sigmoid", elementwise},
    {"Sign", elementwise},
    {"SimplifiedLayerNormalization", layer_norm},
    {"Sin", elementwise},
    {"Slice", shard_rule_slice},
    {"Softmax", softmax},
    {"Softplus", elementwise},
    {"Softsign", elementwise},
    {"Split", shard_rule_split},
    {"Sqrt", elementwise},
    {"Squeeze", shard_rule_reshape},
    {"Sub", elementwise},
    {"Sum", elementwise},
    {"Swish", elementwise},
    {"Tanh", elementwise},
    {"ThresholdedRelu", elementwise},
    {"Transpose", shard_rule_transpose},
    {"Unsqueeze", shard_rule_reshape},
    {"Where", elementwise},
    {"Xor", elementwise},
};

static int by_type(const void *key, const void *r)
{
    return strcmp(key, ((const row *)r)->type);
}

bool shard_is(const onnx_node *n, const char *type)
{
    return n->rule && !strcmp(n->rule->type, type);
}

/* Shapes that are not sure are not cut: a piece of a guess is no piece of the tensor. */
static bool is_sure(const onnx_value *v)
{
    return !v || (v->shaped && v->known == MOIRAI_ONNX_SURE && v->elements > 0);
}

shard_answer shard_relate(shard_ask *a)
{
    const onnx_node *n = a->n;
    const row *r = n->rule && !n->n_children && !n->n_captured
                       ? bsearch(n->rule->type, rules, sizeof rules / sizeof *rules, sizeof *rules, by_type)
                       : NULL;
    a->n_choices = 0;
    a->why = NULL;
    if (!r)
        return shard_no(a, "no rule says how this operator is cut");
    memset(a->port, 0, (size_t)(n->n_in + n->n_out) * sizeof *a->port);
    if (n->n_in < 1 || !n->in[0] || n->n_out < 1 || !n->out[0])
        return shard_no(a, "it has no first input or output");
    for (int32_t i = 0; i < n->n_in + n->n_out; i++)
        if (is_there(a, i) && !is_sure(shard_value(n, i)))
            return shard_no(a, "the shape of its tensors is known at run time only");
    return r->rule(a);
}
