/* What a network looks like: sums, types, width, depth, cut points. */
#ifndef MOIRAI_STATS_H
#define MOIRAI_STATS_H

#include <moirai/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_graph_stats {
    int32_t n_edges;   /* distinct (operator, operator) pairs */
    int32_t n_sources; /* operators that wait for no other */
    int32_t n_sinks;   /* operators that no other waits for */
    int32_t depth;     /* operators on the longest path */
    int32_t width;     /* the most operators of one level (level: the longest path that leads there) */
    int32_t n_cut_points;
    int32_t n_types;
    int32_t n_unknown_flops; /* operators whose arithmetic is not known; the sums leave them out */
    int64_t flops, traffic_bytes, weight_bytes;
    int64_t activation_bytes;      /* of all tensors that operators make */
    int64_t peak_activation_bytes; /* the most alive at once when the operators run one by one in g->topo: a tensor
                                      lives from its producer to its last reader, one without readers to the end */
} moirai_graph_stats;

/* Sums saturate at INT64_MAX. O(V + E log E). */
MOIRAI_API int moirai_graph_stats_get(moirai_graph_stats *out, const moirai_graph *g);

/* Operators comparable with every other: each is an ancestor or a descendant, so that nothing runs beside them. In
 * topological order into `ops` (room for g->n_ops); returns how many, or a negative result. O(V+E). */
MOIRAI_API int32_t moirai_graph_cut_points(const moirai_graph *g, int32_t *ops);

typedef struct moirai_type_stats {
    const char *type; /* the graph's */
    int32_t n_ops, n_unknown_flops;
    int64_t flops, traffic_bytes, weight_bytes, activation_bytes;
} moirai_type_stats;

/* By flops, then count, then name; the caller frees *out. O(V log V). */
MOIRAI_API int moirai_graph_types(moirai_type_stats **out, int32_t *n, const moirai_graph *g);

#ifdef __cplusplus
}
#endif
#endif
