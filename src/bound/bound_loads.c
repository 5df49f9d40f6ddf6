/* The relaxation of loads, ports and bytes (relax/cases.c), as a bound. */
#include "bound/bounds.h"
#include "relax/relax.h"
#include "util/util.h"

#define CASES 200
#define ROUNDS 80.0

static int find_loads(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    double effort = UTIL_MIN(budget->effort, 100);
    relax_task job = {.goal_ns = INT64_MAX / 4,
                      .cases = 1 + (int32_t)(CASES * effort),
                      .rounds = 2 + (int32_t)(ROUNDS * effort),
                      .threads = budget->threads,
                      .stop = util_stop_of(budget)};
    relax_answer answer;
    int rc = relax_solve(&answer, p, &job);
    *lower_ns = rc ? MOIRAI_UNKNOWN : answer.lower_ns;
    relax_answer_clear(&answer);
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* too many resources for its master */
}

const moirai_bound bound_loads = {
    .name = "loads", .summary = "prices on loads and ports, messages on tensors, hubs as cases", .find = find_loads};
