/* What the two halves of coarsening hand over: which operators are fused. Private to the coarsening room. */
#ifndef MOIRAI_COARSEN_PRIVATE_H
#define MOIRAI_COARSEN_PRIVATE_H

#include "coarsen/rules.h"

typedef struct moirai_fusion {
    int32_t first, length, rule; /* members: first, next[first], ... */
} moirai_fusion;

typedef struct moirai_fusions {
    int32_t n;
    size_t capacity;
    moirai_fusion *fusion;
    int32_t *next;  /* [op] its only consumer, MOIRAI_NONE */
    int32_t *group; /* [op] number of its fusion, MOIRAI_NONE */
} moirai_fusions;

/* GCOF. O(V+E). */
int moirai_fusions_find(moirai_fusions *f, const moirai_graph *g, const moirai_rules *rules);
void moirai_fusions_free(moirai_fusions *f);

#endif
