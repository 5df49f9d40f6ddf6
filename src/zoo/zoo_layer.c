/* The transformer layer that all of the paper's networks are made of.
 *
 * Per head: the q, k, v projections and their biases, the transpose of k, q*k, scale, mask, softmax,
 * times v (12 operators); per layer: norm, concat of the heads, output projection, its bias, residual add,
 * norm, fc1, its bias, activation, fc2, residual add (11). That is the one reading of the paper's Table III
 * under which all eleven operator counts are layers * (11 + 12 * heads).
 *
 * Windowed attention (swin) cuts the tokens into windows and pads the last ones: the norm writes padded
 * rows, the residual add reads the rows that are real. Where 2x2 patches are merged between two
 * stages, the reduction (4c -> 2c) is part of the next layer's first operator, which then writes two
 * tensors, the merged rows for the residual and their norm: no operator of its own, so the counts stay.
 *
 * Flops: 2mnk for a product, 1 per element for add and scale, 5 for softmax, 8 for norm and gelu. */
#include <math.h>
#include <string.h>

#include "util/util.h"
#include "zoo/zoo_net.h"

enum { SOFTMAX_FLOPS = 5, NORM_FLOPS = 8, GELU_FLOPS = 8 };

typedef char zoo_path[ZOO_NAME];

static void join(zoo_path out, const char *a, const char *b)
{
    zoo_name_format(out, ZOO_NAME, "%s%s", a, b);
}

/* [rows x k] * [k x n] with its weight; the result goes to `name`. */
static void project(zoo_net *z, const char *name, const char *input, int64_t rows, int64_t k, int64_t n)
{
    zoo_op_add(z, "MatMul", name, input, NULL,
               (zoo_cost){.out = rows * n, .in = rows * k, .weight = k * n, .flops = 2 * rows * k * n});
    zoo_op_weight(z, zoo_weight_product(2, (const int64_t[2]){k, n}, k));
}

/* A projection and, where the layer has biases, the operator that adds its bias. `out`: what to read. */
static void project_bias(zoo_net *z, const zoo_layer *l, const char *name, const char *input, const int64_t size[3],
                         zoo_path out)
{
    int64_t elements = size[0] * size[2];

    project(z, name, input, size[0], size[1], size[2]);
    join(out, name, l->bias ? "_bias" : "");
    if (!l->bias)
        return;
    zoo_op_add(z, "Add", out, name, NULL,
               (zoo_cost){.out = elements, .in = elements, .weight = size[2], .flops = elements});
    zoo_op_weight(z, (zoo_weight){1, {size[2]}, 0, 0.1});
}

/* A pointwise operator over `elements`, which reads `extra` more. `weight` belongs to it. */
static void pointwise(zoo_net *z, const char *type, const char *name, const char *inputs[2], int64_t elements,
                      int64_t extra, int64_t weight, int64_t flops_per_element)
{
    zoo_op_add(
        z, type, name, inputs[0], inputs[1],
        (zoo_cost){.out = elements, .in = elements + extra, .weight = weight, .flops = elements * flops_per_element});
}

/* softmax(scale * q k^T + mask) of one head, from the projected q and k. */
static void head_scores(zoo_net *z, const zoo_layer *l, const char *base, const char *q, const char *k, zoo_path out)
{
    zoo_path name, previous;
    int64_t queries = l->windows * l->window, keys = l->windows * l->key_window;
    int64_t scores = queries * l->key_window;

    join(name, base, "k_t");
    pointwise(z, "Transpose", name, (const char *[2]){k, NULL}, keys * l->head_width, 0, 0, 0);
    zoo_op_attribute(z, "perm", 3, (const int64_t[3]){0, 2, 1});
    join(out, base, "qk");
    zoo_op_add(z, "MatMul", out, q, name,
               (zoo_cost){.out = scores, .in = (queries + keys) * l->head_width, .flops = 2 * scores * l->head_width});
    if (l->scale) {
        memcpy(previous, out, sizeof previous);
        join(out, base, "scale");
        pointwise(z, "Mul", out, (const char *[2]){previous, NULL}, scores, 0, 0, 1);
        zoo_op_weight(z, (zoo_weight){.rank = 0, .middle = 1 / sqrt((double)l->head_width)});
    }
    if (l->mask || l->mask_weight) {
        memcpy(previous, out, sizeof previous);
        join(out, base, "mask");
        pointwise(z, "Add", out, (const char *[2]){previous, l->mask}, scores, l->mask_elements, l->mask_weight, 1);
    }
    memcpy(previous, out, sizeof previous);
    join(out, base, "softmax");
    pointwise(z, "Softmax", out, (const char *[2]){previous, NULL}, scores, 0, 0, SOFTMAX_FLOPS);
}

static void head(zoo_net *z, const zoo_layer *l, const char *base, const char *normed, const char *memory)
{
    zoo_path name, q, k, v, scores;
    int64_t queries = l->windows * l->window, keys = l->windows * l->key_window, c = l->channels, d = l->head_width;

    join(name, base, "q");
    project_bias(z, l, name, normed, (const int64_t[3]){queries, c, d}, q);
    join(name, base, "k");
    project_bias(z, l, name, memory, (const int64_t[3]){keys, c, d}, k);
    join(name, base, "v");
    project_bias(z, l, name, memory, (const int64_t[3]){keys, c, d}, v);
    head_scores(z, l, base, q, k, scores);
    join(name, base, "av");
    zoo_op_add(z, "MatMul", name, scores, v,
               (zoo_cost){.out = queries * d,
                          .in = queries * l->key_window + keys * d,
                          .flops = 2 * queries * l->key_window * d});
}

static void norm_weights(zoo_net *z, int64_t channels)
{
    zoo_op_weight(z, (zoo_weight){1, {channels}, 1, 0.1});
    zoo_op_weight(z, (zoo_weight){1, {channels}, 0, 0.1});
}

/* The norm before the attention; with patch merging it also makes the rows that the layer works on. */
static void attention_norm(zoo_net *z, const zoo_layer *l, const char *input, const char *name, zoo_path residual)
{
    int64_t rows = l->rows, padded = l->windows * l->window, c = l->channels, wide = 4 * l->merge_channels;

    if (!l->merge_channels) {
        zoo_name_format(residual, ZOO_NAME, "%s", input);
        zoo_op_add(z, "LayerNormalization", name, input, NULL,
                   (zoo_cost){.out = padded * c, .in = rows * c, .weight = 2 * c, .flops = NORM_FLOPS * rows * c});
        norm_weights(z, c);
        return;
    }
    zoo_name_format(residual, ZOO_NAME, "%s/merge", l->prefix);
    zoo_op_begin(z, "MatMul", name);
    zoo_op_read(z, input);
    zoo_op_write(z, residual, rows * c);
    /* The merged rows are a second output: their traffic goes in with what is read. */
    zoo_op_end(z, name,
               (zoo_cost){.out = padded * c,
                          .in = l->merge_rows * l->merge_channels + rows * c,
                          .weight = wide * c + 2 * c,
                          .flops = 2 * rows * wide * c + NORM_FLOPS * rows * c});
}

static void residual_add(zoo_net *z, const zoo_layer *l, const char *name, const char *x, const char *skip)
{
    int64_t elements = l->rows * l->channels;

    pointwise(z, "Add", name, (const char *[2]){x, skip}, elements, elements, 0, 1);
}

void zoo_attention_add(zoo_net *z, const zoo_layer *l, const zoo_attention *a, char *out)
{
    zoo_path normed, skip, name, x, heads_out;
    int64_t padded = l->windows * l->window, width = l->heads * l->head_width;

    zoo_name_format(normed, sizeof normed, "%s/%s", l->prefix, a->norm);
    attention_norm(z, l, a->input, normed, skip);
    for (int64_t h = 0; h < l->heads; h++) {
        zoo_name_format(name, sizeof name, "%sh%d/", a->block, (int)h);
        head(z, l, name, normed, a->memory ? a->memory : normed);
    }
    join(heads_out, a->block, "concat");
    zoo_op_begin(z, "Concat", heads_out);
    for (int64_t h = 0; h < l->heads; h++) {
        zoo_name_format(name, sizeof name, "%sh%d/av", a->block, (int)h);
        zoo_op_read(z, name);
    }
    zoo_op_end(z, heads_out, (zoo_cost){.out = padded * width, .in = padded * width});
    zoo_op_attribute(z, "axis", 0, (const int64_t[1]){2});
    join(name, a->block, "proj");
    project_bias(z, l, name, heads_out, (const int64_t[3]){padded, width, l->channels}, x);
    zoo_name_format(out, ZOO_NAME, "%s/%s", l->prefix, a->residual);
    residual_add(z, l, out, x, skip);
}

void zoo_ffn_add(zoo_net *z, const zoo_layer *l, const char *norm, const char *residual, char *out)
{
    zoo_path input, normed, name, x, active;
    int64_t rows = l->rows, c = l->channels;

    zoo_name_format(input, sizeof input, "%s", out);
    zoo_name_format(normed, sizeof normed, "%s/%s", l->prefix, norm);
    zoo_op_add(z, "LayerNormalization", normed, input, NULL,
               (zoo_cost){.out = rows * c, .in = rows * c, .weight = 2 * c, .flops = NORM_FLOPS * rows * c});
    norm_weights(z, c);
    join(name, l->prefix, "/fc1");
    project_bias(z, l, name, normed, (const int64_t[3]){rows, c, l->ffn}, x);
    join(active, l->prefix, "/act");
    pointwise(z, l->activation, active, (const char *[2]){x, NULL}, rows * l->ffn, 0, 0,
              strcmp(l->activation, "Relu") ? GELU_FLOPS : 1);
    join(name, l->prefix, "/fc2");
    project(z, name, active, rows, l->ffn, c);
    zoo_name_format(out, ZOO_NAME, "%s/%s", l->prefix, residual);
    residual_add(z, l, out, name, input);
}
