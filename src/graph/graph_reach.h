/* Who can reach whom in a DAG. Private to the library. */
#ifndef MOIRAI_GRAPH_GRAPH_REACH_H
#define MOIRAI_GRAPH_GRAPH_REACH_H

#include <stdbool.h>
#include "graph/dag.h"

typedef struct graph_reach {
    int32_t n;
    int32_t *rank;   /* topological rank of each node */
    size_t *row_off; /* row of rank r: words row_off[r] .. row_off[r+1]-1 */
    uint64_t *bits;  /* bit q of row r: the node of rank q is a proper ancestor of the node of rank r */
} graph_reach;

#define GRAPH_REACH_LIMIT_BYTES ((size_t)400 << 20)

/* Bytes that graph_reach_new needs for n nodes. */
size_t graph_reach_bytes(int32_t n);

/* MOIRAI_ELIMIT, with nothing allocated, where that is more than `limit_bytes` (0: GRAPH_REACH_LIMIT_BYTES).
 * `needed` (may be NULL; parallel to d->pred) gets false for edges that a longer path makes superfluous: the
 * edges left are the transitive reduction. */
int graph_reach_new(graph_reach **out, const graph_dag *d, size_t limit_bytes, bool *needed);
void graph_reach_free(graph_reach *r);

/* Is there a path of at least one edge from a to b? O(1). */
static inline bool graph_reach_query(const graph_reach *r, int32_t a, int32_t b)
{
    int32_t from = r->rank[a], to = r->rank[b];
    return from < to && (r->bits[r->row_off[to] + (size_t)(from >> 6)] >> (from & 63) & 1);
}

/* Neither reaches the other. */
static inline bool graph_reach_independent(const graph_reach *r, int32_t a, int32_t b)
{
    return a != b && !graph_reach_query(r, a, b) && !graph_reach_query(r, b, a);
}

#endif
