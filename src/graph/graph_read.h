/* What files of graphs and of problems have in common. Private to the library. */
#ifndef MOIRAI_GRAPH_GRAPH_READ_H
#define MOIRAI_GRAPH_GRAPH_READ_H

#include <moirai/graph.h>

#include "util/json.h"

/* Name, type, inputs and outputs of an operator's object into the builder. Returns the operator's number, or an error;
 * `at` gets its name, which lives as long as the document. */
int32_t graph_read_op(moirai_graph_builder *b, util_json_at *at, yyjson_val *object);

#endif
