/* The bound of GETF's linear programme: paths and loads weighed against each other, in whole nanoseconds
 * (getf_prove.c). It is never below the critical path and the load bound by more than what the solver leaves, and above
 * both where neither is the whole story. */
#include "bound/getf_lp.h"
#include "bound/bounds.h"
#include "pricing/lp_whole.h"
#include "util/util.h"

static int find_getf(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    const char *why;
    *lower_ns = MOIRAI_UNKNOWN;
    if (!pricing_whole_available(&why))
        return 0;
    bound_getf_result g;
    bound_getf_task task = {.devices = ~(uint64_t)0, .seed = budget->seed, .stop = util_stop_of(budget)};
    int rc = bound_getf_solve(&g, p, &task);
    *lower_ns = !rc ? g.lower_ns : MOIRAI_UNKNOWN;
    bound_getf_clear(&g);
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* numbers that the solver does not take */
}

const moirai_bound bound_getf = {
    .name = "getf", .summary = "paths and loads at once, by GETF's linear programme", .find = find_getf};
