/* What a run may add to the times of its operators. Private to step_sure.c. */
#ifndef MOIRAI_CLI_STEPS_SURE_RUN_H
#define MOIRAI_CLI_STEPS_SURE_RUN_H

#include <moirai/moirai.h>

typedef struct run_doubts {
    const moirai_problem *p;
    const moirai_plan *plan;
    const moirai_cluster *c;
    const double *spread; /* of every (operator, device), as moirai_cost_spread has it: 1 where the time was measured */
} run_doubts;

/* Measured times as they might be in a network; the others stay. */
void sure_measured(int64_t *time_ns, const run_doubts *d, uint64_t seed);
/* What the best device alone may take of what its operators add up to: at most 1. */
double sure_alone(const run_doubts *d, int32_t device, uint64_t seed);
/* Times and transfers of the plan's run, by the times of its operators: `split`, a copy of the problem, gets arrays of its
 * own, which sure_split_free releases. */
int sure_split(moirai_problem *split, const run_doubts *d, const int64_t *time_ns, uint64_t seed);
void sure_split_free(moirai_problem *split, const moirai_problem *p);

#endif
