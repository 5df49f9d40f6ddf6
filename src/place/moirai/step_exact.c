/* Small problems: the exhaustive search on the whole, in all modes. */
#include <math.h>

#include "exact/exact.h"
#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "util/util.h"

/* Where there is a time limit, time left and a gap to close, it is asked again with more nodes each time. */
static int run(engine *x, const engine_turn *turn)
{
    (void)turn;
    incumbent *in = &x->in;
    if (in->p->n_ops > ENGINE_EXACT_OPS || !exact_fits(in->p, NULL))
        return 0;
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    o.node_limit =
        (int64_t)fmin(ldexp(STEP_EXACT_NODES * in->o->budget.effort, 3 * in->stat[UTIL_METHOD_EXACT].calls), 1e15) + 1;
    o.stop = in->stop;
    o.start = in->best;
    int rc = exact_solve(in->p, &o, &found);
    if (rc)
        return rc == MOIRAI_ELIMIT ? 0 : rc;
    moirai_plan *plan;
    if (found.complete && !found.found)
        rc = engine_explain(x, "has no plan that fits the memory: every placement was tried");
    else if (found.found && !(rc = exact_plan(&plan, in->p, &found)))
        rc = incumbent_offer(in, plan, 'X');
    if (!rc)
        incumbent_take_bound(in, found.lower_bound_ns);
    exact_result_clear(&found);
    return rc;
}

const engine_step step_exact = {.method = UTIL_METHOD_EXACT, .without_plan = true, .to_the_end = true, .run = run};
