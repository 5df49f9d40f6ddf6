/* What the pool of all devices begins with. */
#ifndef MOIRAI_PAIR_POOL_INPUT_H
#define MOIRAI_PAIR_POOL_INPUT_H

#include "pair/pool.h"
#include "util/util.h"

/* Who waits for whom, and how long at least: from start to start. */
typedef struct pair_pool_arcs {
    int32_t n;
    pair_pool_arc *arc;
    int32_t *in_off, *in, *out_off, *out; /* arcs of each operator */
    util_memory memory;
} pair_pool_arcs;

/* The problem's edges, then the task's arcs; O(E K^2). x->memory is to be released also after a failure. */
int pair_pool_find_arcs(pair_pool_arcs *x, const moirai_problem *q, const pair_pool_task *job);

#endif
