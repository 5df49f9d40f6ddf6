/* Plans for a pair: annealing from plans and from the LP solutions of its cases. */
#ifndef MOIRAI_PAIR_IMPROVE_H
#define MOIRAI_PAIR_IMPROVE_H

#include "pair/pair.h"

/* From the pair's plan, or from nothing. */
int pair_improve_plan(pair_state *x, int64_t evaluations, uint64_t seed, util_stop stop);

typedef struct pair_improve_task {
    int64_t evaluations;
    uint64_t seed;
    int32_t buckets; /* of the masters whose LP solutions are taken */
    int threads;     /* 0: one per core */
    util_stop stop;
} pair_improve_task;

/* From the LP solutions of the cases' masters, at the tree's prices on bytes: a plan that costs less there than *plan, which the pair has
 * already, in place of it. */
int pair_improve_from_cases(pair_plan *plan, pair_cases *v, const pair_improve_task *job);

#endif
