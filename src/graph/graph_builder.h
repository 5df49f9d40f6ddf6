/* The inside of a builder, shared by the calls that fill it and the one that finishes it. */
#ifndef MOIRAI_GRAPH_GRAPH_BUILDER_H
#define MOIRAI_GRAPH_GRAPH_BUILDER_H

#include <moirai/graph.h>

#include "graph/graph_store.h"
#include "util/util.h"

/* One operator, tensor or (operator, item) as the calls came. */
typedef struct op_row {
    const char *name, *type;
    int64_t weight_bytes, workspace_bytes, flops, traffic_bytes;
} op_row;

typedef struct tensor_row {
    const char *name;
    int64_t bytes;
    int32_t producer;
    int32_t number; /* in the finished graph */
} tensor_row;

typedef struct pair {
    int32_t op, item;
} pair;

typedef struct pairs {
    pair *row;
    size_t n, capacity;
} pairs;

struct moirai_graph_builder {
    char *name;
    int32_t element_bytes;
    bool from_onnx;
    util_strings *strings;
    util_names *op_names, *tensor_names, *key_names;
    op_row *op;
    size_t n_ops, ops_capacity;
    tensor_row *tensor;
    size_t n_tensors, tensors_capacity;
    const char **member; /* parallel to members.row */
    size_t member_capacity;
    const char **key;
    size_t n_keys, keys_capacity;
    int64_t *time; /* parallel to times.row */
    size_t time_capacity;
    util_names *weight_names;
    const char **weight;
    size_t n_weights, weights_capacity;
    int64_t *weight_bytes;
    size_t weight_bytes_capacity;
    const char **setting[3]; /* of dimensions, of shapes, of what was assumed */
    size_t n_settings[3], settings_capacity[3];
    pairs inputs, outputs, members, times, weights;
    int failed; /* the first error: every later call repeats it */
    char *message;
};

#endif
