/* What moirai_graph.store points to: the strings and the index by name. */
#ifndef MOIRAI_GRAPH_GRAPH_STORE_H
#define MOIRAI_GRAPH_GRAPH_STORE_H

#include "util/util.h"

typedef struct graph_store {
    util_strings *strings;
    util_names *ops;
} graph_store;

/* Longest list of device names or types in time_ns: the table is operators x names. */
#define GRAPH_MAX_TIME_KEYS 256

#endif
