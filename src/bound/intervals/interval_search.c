/* Raising a bound by the exhaustive search within a number of nodes.
 *
 * The lower a target below which the search is to find anything, the sooner it is done, and one that takes too many nodes proves next to
 * nothing. So targets climb from what is proven, in steps that grow with each success and shrink with each failure, every one with a part
 * of the nodes (destructive improvement, Klein and Scholl 1999, with steps in place of a bisection, because failures cost far more than
 * successes). A plan that is found lowers the end. */
#include "bound/intervals/interval_chain.h"

#include "bound/bound_tuning.h"
#include "exact/exact.h"
#include "util/util.h"

/* One target: what it proves, and the nodes that it took. */
static int put_to_test(pair_state *y, int64_t target_ns, int64_t *nodes, bool *refuted, const util_stop *stop)
{
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    o.below_ns = target_ns;
    o.proven_ns = UTIL_MAX(y->lower_ns, 1);
    o.node_limit = *nodes;
    o.stop = *stop;
    int rc = exact_solve(&y->block.problem, &o, &found);
    *nodes = rc ? 0 : found.nodes;
    *refuted = false;
    if (rc)
        return rc == MOIRAI_ELIMIT ? 0 : rc;
    int64_t proven = UTIL_MIN(found.lower_bound_ns, target_ns);
    *refuted = proven >= target_ns || found.complete;
    if (proven > y->lower_ns) {
        y->lower_ns = proven;
        y->exhausted = true;
    }
    rc = found.found ? pair_take_plan(y, found.plan) : 0;
    exact_result_clear(&found);
    return rc;
}

static int64_t end_of(const pair_state *y, int64_t need_ns)
{
    return UTIL_MIN(need_ns, y->plan.device ? y->plan.length_ns : INT64_MAX);
}

int bound_interval_search(pair_state *y, int64_t need_ns, int64_t nodes, const util_stop *stop)
{
    int64_t step = UTIL_MAX(y->lower_ns / BOUND_SEARCH_FIRST, 1), top;
    bool refuted;
    int rc = 0;
    while (!rc && nodes > 0 && y->lower_ns < (top = end_of(y, need_ns)) && !util_stopped(stop)) {
        int64_t target = step < top - y->lower_ns ? y->lower_ns + step : top,
                used = UTIL_MAX(nodes / BOUND_SEARCH_PARTS, BOUND_SEARCH_LEAST);
        used = UTIL_MIN(used, nodes);
        rc = put_to_test(y, target, &used, &refuted, stop);
        nodes -= UTIL_MAX(used, 1);
        if (!refuted && step <= UTIL_MAX(y->lower_ns / BOUND_SEARCH_FINEST, 1))
            break;
        step = refuted ? 2 * step : UTIL_MAX(step / BOUND_SEARCH_SHRINK, 1);
    }
    return rc;
}
