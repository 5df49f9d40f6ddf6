/* Bounds by chains of intervals (bound/intervals/interval_portfolio.c), with the best plan as the goal. */
#include <math.h>

#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "util/util.h"

static int run(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    double effort = ldexp(in->o->budget.effort, x->again);
    int32_t most = 1 + (int32_t)(STEP_INTERVALS_CHAINS * fmin(effort, 1)),
            chains = turn->size > 0 ? turn->size : STEP_INTERVALS_CHAINS, tries = turn->rounds + x->again;
    bound_interval_task job = {
        .goal_ns = in->best->makespan_ns,
        .known_ns = in->lower_ns,
        .chains = UTIL_MIN(chains, most),
        .tries = effort < STEP_INTERVALS_LITTLE_EFFORT ? UTIL_MIN(tries, STEP_INTERVALS_LITTLE_TRIES) : tries,
        .effort = effort,
        .threads = in->o->budget.threads,
        .seed = in->o->budget.seed + (uint64_t)x->again,
        .stop = incumbent_part(in, turn->share)};
    int64_t lower = 0;
    int rc = x->portfolio ? 0 : bound_portfolio_new(&x->portfolio, in->p);
    rc = rc ? rc : bound_portfolio_raise(&lower, x->portfolio, &job);
    if (!rc && lower > in->lower_ns) /* what is certified */
        x->intervals = bound_portfolio_best(x->portfolio);
    if (!rc)
        incumbent_take_bound(in, lower);
    return rc;
}

const engine_step step_intervals = {.method = UTIL_METHOD_INTERVALS, .run = run};
