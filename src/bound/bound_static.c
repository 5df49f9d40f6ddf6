/* The static programme (pair/static/static_lp.c) of a whole problem, as a bound. */
#include <moirai/schedule.h>

#include "bound/bounds.h"
#include "pair/static/static_lp.h"
#include "util/util.h"

static int find_static(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    int64_t known = UTIL_MAX(moirai_bound_critical_path(p), moirai_bound_load(p)), all = 0;
    /* The evaluation bounds plans no longer than `upper` and never says more than that; all operators at their slowest is
     * an `upper` worth having, whatever transfers add. */
    for (int32_t i = 0; i < p->n_ops; i++) {
        int64_t most = 0;
        for (int32_t k = 0; k < p->n_devices; k++)
            most = UTIL_MAX(most, moirai_op_ns(p, i, k));
        all += most;
    }
    pair_static_task job = {.proven_ns = known, .upper_ns = UTIL_MAX(all, known), .stop = util_stop_of(budget)};
    return pair_static_lp(lower_ns, p, &job, NULL, NULL);
}

const moirai_bound bound_static = {
    .name = "static", .summary = "one linear programme over devices, transfers, paths and loads", .find = find_static};
