/* A minimum cut: Dinic's algorithm in whole numbers, on a network that is made once and gets new capacities. */
#ifndef MOIRAI_PAIR_POOL_CUT_H
#define MOIRAI_PAIR_POOL_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/stop.h"

#define PAIR_CUT_SOURCE 0
#define PAIR_CUT_SINK 1
#define PAIR_CUT_ALWAYS (INT64_C(1) << 61) /* a capacity that is never used up */

/* Arcs come in two directions: arc 2i leads from from[i] to to[i], arc 2i + 1 back. */
typedef struct pair_cut {
    int32_t n_nodes, n_arcs; /* arcs there and back count once */
    int32_t *from, *to;
    int64_t *left; /* [2 * n_arcs] capacity that is not used yet */
    /* working memory */
    int32_t *arc_off, *arc; /* per node: arcs that leave it */
    int32_t *level, *next, *queue, *path;
} pair_cut;

/* from and to are copied; all capacities are 0. */
int pair_cut_new(pair_cut *x, int32_t n_nodes, int32_t n_arcs, const int32_t *from, const int32_t *to);
void pair_cut_free(pair_cut *x);
/* Adds flow from source to sink until there is no more, it exceeds `enough`, or `stop`. *flow is raised by it. At the
 * end level[v] >= 0 for the nodes that can reach the sink. */
void pair_cut_fill(int64_t *flow, pair_cut *x, int64_t enough, const util_stop *stop);

#endif
