/* The graph that Placeto's policy looks at: groups of operators, their neighbours, who comes before whom. Private. */
#ifndef MOIRAI_PLACE_LEARN_PLACETO_GRAPH_H
#define MOIRAI_PLACE_LEARN_PLACETO_GRAPH_H

#include "place/fit.h"

typedef enum placeto_relation { PLACETO_SELF, PLACETO_ANCESTOR, PLACETO_DESCENDANT, PLACETO_PARALLEL } placeto_relation;

typedef struct placeto_graph {
    int32_t n, n_devices;
    int32_t *off, *op;     /* node -> operators, in topological order */
    uint64_t *devices;     /* that can run all of them */
    int64_t *memory_bytes; /* the operators' own */
    int64_t *out_bytes;    /* tensors that leave the node */
    int64_t *time_ns;      /* [node * n_devices + device], sum over the operators; 0 where it can't run */
    int32_t *parent_off, *parent, *child_off, *child;
    uint8_t *relation; /* [v * n + u]: what u is to v */
} placeto_graph;

/* At most `limit` nodes where masks allow it; they are numbered by their first operator's topological rank.
 * MOIRAI_ELIMIT where masks leave more than 4096. O((V + E) log V + n (n + edges)). */
int placeto_graph_new(placeto_graph **out, const moirai_problem *p, const place_units *u, int32_t limit);
void placeto_graph_free(placeto_graph *g);

#endif
