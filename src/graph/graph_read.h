/* What files of graphs and of problems have in common. Private to the library. */
#ifndef MOIRAI_GRAPH_GRAPH_READ_H
#define MOIRAI_GRAPH_GRAPH_READ_H

#include <moirai/graph.h>

#include "util/json.h"

/* Name, type, inputs, outputs and shared weights of an operator's object into the builder. Returns the operator's
 * number, or an error; `at` gets its name, which lives as long as the document. */
int32_t graph_read_op(moirai_graph_builder *b, util_json_at *at, yyjson_val *object);
/* "onnx": {"dims": [...], "shapes": [...], "assumed": [...]} of a file's root, if it is there. */
int graph_read_settings(moirai_graph_builder *b, const util_json_at *at, yyjson_val *root);
/* The same into a file; nothing where nothing was set. */
typedef struct graph_settings {
    int32_t n_dims, n_shapes, n_assumed;
    const char *const *dim, *const *shape, *const *assumed;
} graph_settings;
void graph_write_settings(util_writer *w, const graph_settings *s);
/* `key`: [texts] */
void graph_write_texts(util_writer *w, const char *key, int32_t n, const char *const *text);
/* "shared_weights" of an operator, from parallel lists of names and bytes that `weight` numbers. */
void graph_write_weights(util_writer *w, const char *const *name, const int64_t *bytes, const int32_t *weight,
                         int32_t n);

#endif
