/* The truth about small problems: all placements, all orders. */
#ifndef MOIRAI_TEST_BRUTE_FORCE_H
#define MOIRAI_TEST_BRUTE_FORCE_H

#include <moirai/plan.h>

#define BRUTE_INFEASIBLE (-1)
#define BRUTE_GAVE_UP (-2) /* more than max_nodes nodes; nothing is known */
#define BRUTE_MAX_OPS 10

/* The least makespan over all plans of `p` (at most BRUTE_MAX_OPS operators), or one of the above.
 * *best (may be NULL) gets an optimal plan. Shares no code with the simulator. */
int64_t brute_force(const moirai_problem *p, int64_t max_nodes, moirai_plan **best);

#endif
