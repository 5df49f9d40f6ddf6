#include "support/onnx_networks.h"

#include <stdarg.h>
#include <stdio.h>

/* The present value's name, and a counter that makes names unique. */
typedef struct net {
    wire graph;
    int n;
    char at[32];
} net;

static const char *text(char buffer[64], const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *text(char buffer[64], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(buffer, 64, format, list);
    va_end(list);
    return buffer;
}

/* A node that reads `inputs` and whose output is the present value. */
static void node(net *x, const char *type, const char *inputs, wire *attrs)
{
    char copy[128];
    snprintf(copy, sizeof copy, "%s", inputs);
    snprintf(x->at, sizeof x->at, "v%d", x->n++);
    make_node(&x->graph, type, copy, x->at, attrs);
}

static void weights(net *x, char name[32], const char *shape)
{
    snprintf(name, 32, "w%d", x->n++);
    make_external(&x->graph, name, MAKE_FLOAT, shape, NULL, NULL);
}

/* A node with one weight besides the present value. */
static void node_with(net *x, const char *type, const char *shape)
{
    char w[32], inputs[80];
    weights(x, w, shape);
    snprintf(inputs, sizeof inputs, "%s,%s", x->at, w);
    node(x, type, inputs, NULL);
}

static void conv(net *x, int in, int out, int kernel, int stride)
{
    char shape[64], w[32], b[32], inputs[128];
    wire attrs = {0};
    int64_t pad = kernel / 2;
    weights(x, w, text(shape, "%dx%dx%dx%d", out, in, kernel, kernel));
    weights(x, b, text(shape, "%d", out));
    make_attr_ints(&attrs, "kernel_shape", 2, (int64_t[]){kernel, kernel});
    make_attr_ints(&attrs, "strides", 2, (int64_t[]){stride, stride});
    make_attr_ints(&attrs, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    snprintf(inputs, sizeof inputs, "%s,%s,%s", x->at, w, b);
    node(x, "Conv", inputs, &attrs);
}

static void max_pool(net *x, int kernel, int stride, int64_t pad)
{
    wire attrs = {0};
    make_attr_ints(&attrs, "kernel_shape", 2, (int64_t[]){kernel, kernel});
    make_attr_ints(&attrs, "strides", 2, (int64_t[]){stride, stride});
    make_attr_ints(&attrs, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    node(x, "MaxPool", x->at, &attrs);
}

static void gemm(net *x, int in, int out)
{
    char shape[64], w[32], b[32], inputs[128];
    wire attrs = {0};
    weights(x, w, text(shape, "%dx%d", out, in));
    weights(x, b, text(shape, "%d", out));
    make_attr_int(&attrs, "transB", 1);
    snprintf(inputs, sizeof inputs, "%s,%s,%s", x->at, w, b);
    node(x, "Gemm", inputs, &attrs);
}

static void begin_image(net *x)
{
    *x = (net){.at = "image"};
    make_input(&x->graph, "image", MAKE_FLOAT, "1x3x224x224");
}

static void end(net *x, wire *model)
{
    make_output(&x->graph, x->at, MAKE_FLOAT, NULL);
    make_model(model, &x->graph);
}

/* 1x1, 3x3, 1x1 and what goes around them. */
static void bottleneck(net *x, int in, int width, int stride)
{
    char before[32], inputs[80], around[32];
    snprintf(before, sizeof before, "%s", x->at);
    conv(x, in, width, 1, 1);
    node(x, "Relu", x->at, NULL);
    conv(x, width, width, 3, stride);
    node(x, "Relu", x->at, NULL);
    conv(x, width, 4 * width, 1, 1);
    snprintf(around, sizeof around, "%s", x->at);
    snprintf(x->at, sizeof x->at, "%s", before);
    if (in != 4 * width)
        conv(x, in, 4 * width, 1, stride);
    snprintf(inputs, sizeof inputs, "%s,%s", around, x->at);
    node(x, "Add", inputs, NULL);
    node(x, "Relu", x->at, NULL);
}

void make_resnet50(wire *model)
{
    static const int blocks[] = {3, 4, 6, 3};
    net x;
    begin_image(&x);
    conv(&x, 3, 64, 7, 2);
    node(&x, "Relu", x.at, NULL);
    max_pool(&x, 3, 2, 1);
    for (int stage = 0, in = 64, width = 64; stage < 4; stage++, width *= 2)
        for (int i = 0; i < blocks[stage]; i++, in = 4 * width)
            bottleneck(&x, in, width, stage > 0 && i == 0 ? 2 : 1);
    node(&x, "GlobalAveragePool", x.at, NULL);
    node(&x, "Flatten", x.at, NULL);
    gemm(&x, 2048, 1000);
    end(&x, model);
}

void make_vgg16(wire *model)
{
    static const int width[] = {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
    net x;
    begin_image(&x);
    for (size_t i = 0, in = 3; i < sizeof width / sizeof *width; i++) {
        if (width[i] == 0) {
            max_pool(&x, 2, 2, 0);
            continue;
        }
        conv(&x, (int)in, width[i], 3, 1);
        node(&x, "Relu", x.at, NULL);
        in = (size_t)width[i];
    }
    node(&x, "Flatten", x.at, NULL);
    for (int i = 0; i < 3; i++) {
        gemm(&x, i == 0 ? 512 * 7 * 7 : 4096, i == 2 ? 1000 : 4096);
        if (i < 2)
            node(&x, "Relu", x.at, NULL);
    }
    end(&x, model);
}

/* ---- BERT ---- */

enum { TOKENS = 128, HIDDEN = 768, HEADS = 12, INNER = 3072 };

static void norm(net *x)
{
    char scale[32], bias[32], inputs[128];
    weights(x, scale, "768");
    weights(x, bias, "768");
    snprintf(inputs, sizeof inputs, "%s,%s,%s", x->at, scale, bias);
    node(x, "LayerNormalization", inputs, NULL);
}

static void dense(net *x, int in, int out)
{
    char shape[64];
    node_with(x, "MatMul", text(shape, "%dx%d", in, out));
    node_with(x, "Add", text(shape, "%d", out));
}

static void reshape(net *x, int n, const int64_t *to)
{
    char name[32], inputs[80];
    snprintf(name, sizeof name, "s%d", x->n++);
    make_ints(&x->graph, name, n, to, 0);
    snprintf(inputs, sizeof inputs, "%s,%s", x->at, name);
    node(x, "Reshape", inputs, NULL);
}

static void transpose(net *x, const int64_t *perm)
{
    wire attrs = {0};
    make_attr_ints(&attrs, "perm", 4, perm);
    node(x, "Transpose", x->at, &attrs);
}

/* Query, key or value of all heads; leaves its name in `out`. */
static void project(net *x, const char *from, const int64_t *perm, char out[32])
{
    snprintf(x->at, sizeof x->at, "%s", from);
    dense(x, HIDDEN, HIDDEN);
    reshape(x, 4, (int64_t[]){1, TOKENS, HEADS, HIDDEN / HEADS});
    transpose(x, perm);
    snprintf(out, 32, "%s", x->at);
}

static void add_to(net *x, const char *other)
{
    char inputs[80];
    snprintf(inputs, sizeof inputs, "%s,%s", x->at, other);
    node(x, "Add", inputs, NULL);
}

static void attention(net *x)
{
    char from[32], q[32], k[32], v[32], inputs[80];
    snprintf(from, sizeof from, "%s", x->at);
    project(x, from, (int64_t[]){0, 2, 1, 3}, q);
    project(x, from, (int64_t[]){0, 2, 3, 1}, k);
    project(x, from, (int64_t[]){0, 2, 1, 3}, v);
    snprintf(inputs, sizeof inputs, "%s,%s", q, k);
    node(x, "MatMul", inputs, NULL);
    node_with(x, "Div", ""); /* by a scalar */
    add_to(x, "mask");
    node(x, "Softmax", x->at, NULL);
    snprintf(inputs, sizeof inputs, "%s,%s", x->at, v);
    node(x, "MatMul", inputs, NULL);
    transpose(x, (int64_t[]){0, 2, 1, 3});
    reshape(x, 3, (int64_t[]){1, TOKENS, HIDDEN});
    dense(x, HIDDEN, HIDDEN);
    add_to(x, from);
    norm(x);
}

/* x / sqrt 2, erf, + 1, * x, * 1/2: how exporters spell GELU. */
static void gelu(net *x)
{
    char from[32], inputs[80];
    snprintf(from, sizeof from, "%s", x->at);
    node_with(x, "Div", "");
    node(x, "Erf", x->at, NULL);
    node_with(x, "Add", "");
    snprintf(inputs, sizeof inputs, "%s,%s", from, x->at);
    node(x, "Mul", inputs, NULL);
    node_with(x, "Mul", "");
}

static void feed_forward(net *x)
{
    char from[32];
    snprintf(from, sizeof from, "%s", x->at);
    dense(x, HIDDEN, INNER);
    gelu(x);
    dense(x, INNER, HIDDEN);
    add_to(x, from);
    norm(x);
}

static void embed(net *x, const char *table_shape, const char *ids)
{
    char table[32], inputs[80];
    weights(x, table, table_shape);
    snprintf(inputs, sizeof inputs, "%s,%s", table, ids);
    node(x, "Gather", inputs, NULL);
}

void make_bert_base(wire *model)
{
    net x = {0};
    char words[32], places[32];
    make_input(&x.graph, "ids", MAKE_INT64, "1x128");
    make_input(&x.graph, "positions", MAKE_INT64, "1x128");
    make_input(&x.graph, "types", MAKE_INT64, "1x128");
    make_input(&x.graph, "mask", MAKE_FLOAT, "1x1x1x128");
    embed(&x, "30522x768", "ids");
    snprintf(words, sizeof words, "%s", x.at);
    embed(&x, "512x768", "positions");
    snprintf(places, sizeof places, "%s", x.at);
    embed(&x, "2x768", "types");
    add_to(&x, words);
    add_to(&x, places);
    norm(&x);
    for (int layer = 0; layer < 12; layer++) {
        attention(&x);
        feed_forward(&x);
    }
    end(&x, model);
}
