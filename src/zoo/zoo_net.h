/* Pieces from which the networks of the zoo are put together. Private to the zoo.
 *
 * A network under construction remembers its first failure and ignores what follows, so that the
 * builders read as lists of operators; zoo_net_finish reports it. Sizes are in elements. */
#ifndef MOIRAI_ZOO_ZOO_NET_H
#define MOIRAI_ZOO_ZOO_NET_H

#include <moirai/graph.h>

/* A weight as a model file needs it: numbers drawn from [middle - spread, middle + spread]. */
typedef struct zoo_weight {
    int rank;
    int64_t dim[4];
    double middle, spread;
} zoo_weight;

/* Someone who wants the network not as a graph but operator by operator, with what a graph leaves out: weights,
 * attributes, shapes of the inputs. Calls after `op` are about that operator; each returns 0 or a failure, which ends
 * the walk. */
typedef struct zoo_sink {
    int (*input)(struct zoo_sink *s, const char *tensor, int rank, const int64_t *dim);
    int (*op)(struct zoo_sink *s, const char *type, const char *name);
    int (*read)(struct zoo_sink *s, const char *tensor);
    int (*write)(struct zoo_sink *s, const char *tensor);
    int (*weight)(struct zoo_sink *s, const zoo_weight *w);
    /* A list of integers, or (n == 0) the single one at `value`. */
    int (*attribute)(struct zoo_sink *s, const char *name, int n, const int64_t *value);
} zoo_sink;

/* Walk a network of the zoo. MOIRAI_EUSAGE for networks that have no such form (swin). */
int zoo_walk(const char *name, zoo_sink *sink);

typedef struct zoo_net {
    moirai_graph_builder *builder; /* NULL where a sink listens instead */
    zoo_sink *sink;
    int64_t element_bytes;
    int64_t batch; /* samples at once: rows and windows of every layer are multiplied by it */
    int32_t op;    /* the operator being described */
    int result;
} zoo_net;

/* What an operator touches. Its one output has the operator's name. */
typedef struct zoo_cost {
    int64_t out, in, weight, flops;
} zoo_cost;

int zoo_net_begin(zoo_net *z, const char *name, int element_bytes);
int zoo_net_finish(moirai_graph **out, zoo_net *z);

/* Start an operator; then name what it reads; then close it with its costs. */
void zoo_op_begin(zoo_net *z, const char *type, const char *name);
void zoo_op_read(zoo_net *z, const char *tensor);
/* Another output than the one that carries the operator's name. */
void zoo_op_write(zoo_net *z, const char *tensor, int64_t elements);
void zoo_op_end(zoo_net *z, const char *name, zoo_cost cost);
/* For the sink, of the operator begun last: a weight (after the inputs), an attribute; and an input of the network. */
void zoo_op_weight(zoo_net *z, zoo_weight weight);
void zoo_op_attribute(zoo_net *z, const char *name, int n, const int64_t *value);
void zoo_net_input(zoo_net *z, const char *tensor, int rank, const int64_t *dim);
/* A product's weight, whose `fan_in` inputs keep the size of what passes through. */
zoo_weight zoo_weight_product(int rank, const int64_t *dim, int64_t fan_in);
/* All of it for an operator with one or two inputs (`b` may be NULL). */
void zoo_op_add(zoo_net *z, const char *type, const char *name, const char *a, const char *b, zoo_cost cost);

#define ZOO_NAME 64 /* bytes that hold every name of the zoo */
void zoo_name_format(char *out, size_t size, const char *format, ...) MOIRAI_PRINTF(3, 4);

/* One transformer layer; attention works on `windows` groups of `window` queries and `key_window` keys. */
typedef struct zoo_layer {
    char prefix[16]; /* "L0", "enc0" */
    int64_t rows;    /* tokens; the attention sees windows * window >= rows of them */
    int64_t windows, window, key_window;
    int64_t channels, heads, head_width, ffn;
    int64_t merge_channels, merge_rows; /* the layer before's, where 2x2 patches are merged here; else 0 */
    const char *mask;                   /* tensor added to the scores, or NULL */
    int64_t mask_elements;              /* of it that one head reads */
    int64_t mask_weight;                /* learnt position bias of one head */
    const char *activation;             /* operator type */
    bool bias, scale;                   /* of the projections and fc1; of the scores */
} zoo_layer;

/* The parts of a layer. `block` separates several attentions of one layer: names are prefix/block... */
typedef struct zoo_attention {
    char block[24];              /* name before "h0/q": "L0/" or "dec0/x_" */
    const char *input;           /* the layer's input: what the norm reads and the residual adds */
    const char *memory;          /* keys and values come from this tensor, NULL: from the normed input */
    const char *norm, *residual; /* names after the prefix: "ln1", "res1" */
} zoo_attention;

/* Both leave the name of their result in `out`, which holds ZOO_NAME bytes and may be the input. */
void zoo_attention_add(zoo_net *z, const zoo_layer *l, const zoo_attention *a, char *out);
void zoo_ffn_add(zoo_net *z, const zoo_layer *l, const char *norm, const char *residual, char *out);

/* The families; each returns 0 or the first failure. */
int zoo_gpt3(zoo_net *z, int layers, int hidden, int heads, int tokens);
int zoo_swin(zoo_net *z, const int depth[4], int hidden, int heads);
int zoo_alphafold2(zoo_net *z, int layers, int hidden, int heads, int ffn_factor);
int zoo_t5(zoo_net *z, int layers, int hidden, int heads, const int tokens[2]);
int zoo_inception(zoo_net *z, int modules, int channels);
int zoo_googlenet(zoo_net *z);
int zoo_resnet18(zoo_net *z);

#endif
