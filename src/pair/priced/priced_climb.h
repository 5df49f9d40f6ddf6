/* Cases of a pair at prices on bytes, target by target. */
#ifndef MOIRAI_PAIR_PRICED_CLIMB_H
#define MOIRAI_PAIR_PRICED_CLIMB_H

#include "pair/priced/priced.h"

/* Raise the least value of the cases towards the ceiling of the task, by at most two questions for each of its solves.
 * *stuck: a case is left that can be neither raised nor divided. */
int pair_priced_climb(pair_priced *v, const pair_priced_task *job, bool *stuck);

/* The case of least value (priced.c). */
int32_t pair_priced_weakest(const pair_priced *v);

#endif
