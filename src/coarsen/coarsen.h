/* What the two halves of coarsening hand over: which operators are fused. Private to the coarsening room. */
#ifndef MOIRAI_COARSEN_COARSEN_H
#define MOIRAI_COARSEN_COARSEN_H

#include "coarsen/rules.h"

typedef struct coarsen_fusion {
    int32_t first, length, rule; /* members: first, next[first], ... */
} coarsen_fusion;

typedef struct coarsen_fusions {
    int32_t n;
    size_t capacity;
    coarsen_fusion *fusion;
    int32_t *next;  /* [op] its only consumer, MOIRAI_NONE */
    int32_t *group; /* [op] number of its fusion, MOIRAI_NONE */
} coarsen_fusions;

/* GCOF. O(V+E). */
int coarsen_fusions_find(coarsen_fusions *f, const moirai_graph *g, const moirai_rules *rules);
void coarsen_fusions_free(coarsen_fusions *f);

#endif
