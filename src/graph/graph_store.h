/* What moirai_graph.store points to: the strings and the index by name. */
#ifndef MOIRAI_GRAPH_STORE_H
#define MOIRAI_GRAPH_STORE_H

#include "util/util.h"

typedef struct moirai_graph_store {
    moirai_strings *strings;
    moirai_names *ops;
} moirai_graph_store;

/* Longest list of device names or types in time_ns: the table is operators x names. */
#define MOIRAI_GRAPH_MAX_TIME_KEYS 256

#endif
