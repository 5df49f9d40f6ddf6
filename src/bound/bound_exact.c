/* The exhaustive search as a bound, for small problems. */
#include "bound/bound_tuning.h"
#include "bound/bounds.h"
#include "exact/exact.h"

static int find_search(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    exact_options exact;
    exact_result found;
    *lower_ns = MOIRAI_UNKNOWN;
    if (p->n_ops > BOUND_EXACT_MOST_OPS || p->n_devices > MOIRAI_MASK_DEVICES || !exact_fits(p, NULL))
        return 0;
    exact_options_init(&exact);
    exact.node_limit = (int64_t)(BOUND_EXACT_NODES * budget->effort) + 1;
    exact.stop = util_stop_of(budget);
    int rc = exact_solve(p, &exact, &found);
    if (rc)
        return rc == MOIRAI_ELIMIT ? 0 : rc;
    if (found.complete && !found.found)
        rc = moirai_error(MOIRAI_EINFEASIBLE, "'%s' has no plan: every placement was tried", p->name);
    *lower_ns = found.lower_bound_ns;
    exact_result_clear(&found);
    return rc;
}

const moirai_bound bound_search = {
    .name = "search", .summary = "exhaustive search over devices and orders (up to 48 operators)", .find = find_search};
