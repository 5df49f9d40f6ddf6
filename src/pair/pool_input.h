/* What the pool of all devices begins with. */
#ifndef MOIRAI_PAIR_POOL_INPUT_H
#define MOIRAI_PAIR_POOL_INPUT_H

#include "pair/pool.h"

/* Who waits for whom, and how long at least: from start to start. */
typedef struct pair_pool_arcs {
    int32_t n;
    pair_pool_arc *arc;
    int32_t *in_off, *in, *out_off, *out; /* arcs of each operator */
} pair_pool_arcs;

/* The problem's edges, then the task's arcs; O(E K^2). To be cleared also after a failure. */
int pair_pool_find_arcs(pair_pool_arcs *x, const moirai_problem *q, const pair_pool_task *job);
void pair_pool_clear_arcs(pair_pool_arcs *x);

/* Weights of the devices that make the load's bound, sum over i of the least c(k) t(i, k), large. Any weights are
 * valid. */
int pair_pool_find_weights(int64_t *weight, const moirai_problem *q, const util_stop *stop);

#endif
