/* Plans for a pair: annealing from plans and from the LP solutions of its cases. */
#ifndef MOIRAI_PAIR_IMPROVE_H
#define MOIRAI_PAIR_IMPROVE_H

#include "pair/cases.h"

typedef struct pair_improve_task {
    pair_state *pair;
    int32_t level;
    uint64_t seed;
    util_stop stop;
} pair_improve_task;

/* From the pair's plan, or from nothing. */
int pair_improve_plan(const pair_improve_task *job, int64_t evaluations);
/* From the LP solutions of the cases' masters. */
int pair_improve_from_cases(const pair_improve_task *job, pair_bound_task *r, int64_t evaluations);

#endif
