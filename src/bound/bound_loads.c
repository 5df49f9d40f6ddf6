/* The relaxation of loads, ports and bytes (relax/cases.c), and the same with loads within shifts (relax/shifts.c), as bounds. */
#include "bound/bound_tuning.h"
#include "bound/bounds.h"
#include "relax/relax.h"
#include "util/util.h"

typedef int (*solver)(relax_answer *out, const moirai_problem *p, const relax_task *job);

static int find(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget, solver solve)
{
    double effort = UTIL_MIN(budget->effort, 100);
    relax_task job = {.goal_ns = INT64_MAX / 4,
                      .cases = 1 + (int32_t)(BOUND_LOADS_CASES * effort),
                      .rounds = 2 + (int32_t)(BOUND_LOADS_ROUNDS * effort),
                      .threads = budget->threads,
                      .stop = util_stop_of(budget)};
    relax_answer answer;
    int rc = solve(&answer, p, &job);
    *lower_ns = rc ? MOIRAI_UNKNOWN : answer.lower_ns;
    relax_answer_clear(&answer);
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* too many resources for its master */
}

static int find_loads(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    return find(lower_ns, p, budget, relax_solve);
}

static int find_shifts(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    return find(lower_ns, p, budget, relax_solve_shifts);
}

const moirai_bound bound_loads = {
    .name = "loads", .summary = "prices on loads and ports, messages on tensors, hubs as cases", .find = find_loads};

const moirai_bound bound_shifts = {.name = "shifts",
                                   .summary =
                                       "the same with loads within stretches of time, by heads and tails, and on paths",
                                   .find = find_shifts};
