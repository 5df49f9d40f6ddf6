/* Plans for a pair: annealing from plans and from the LP solutions of its cases. */
#ifndef MOIRAI_PAIR_IMPROVE_H
#define MOIRAI_PAIR_IMPROVE_H

#include "pair/cases.h"

/* From the pair's plan, or from nothing. */
int pair_improve_plan(pair_state *x, int64_t evaluations, uint64_t seed, util_stop stop);
/* From the LP solutions of the cases' masters. */
int pair_improve_from_cases(pair_bound_task *r, int64_t evaluations, uint64_t seed);

#endif
