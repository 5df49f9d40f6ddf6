/* Bounds by the pool of all devices (pair/pool.c) within the windows that intervals leave. */
#include <math.h>

#include "place/moirai/engine.h"
#include "util/util.h"

#define ROUNDS 3
#define CUTS 120.0 /* at each length, at effort 1 */
#define NODES 4000
#define NODES_OP 5

pair_pool_task step_windows_task(const incumbent *in, double part)
{
    const moirai_budget *b = &in->o->budget;
    return (pair_pool_task){.proven_ns = in->lower_ns,
                            .upper_ns = in->best->makespan_ns,
                            .rounds = ROUNDS,
                            .cuts = (int32_t)(CUTS * fmin(b->effort, 100)) + 1,
                            .nodes = UTIL_MAX(NODES, NODES_OP * in->p->n_ops),
                            .threads = b->threads,
                            .stop = incumbent_part(in, part)};
}

static int run(engine *x, const engine_turn *turn)
{
    int64_t lower = 0;
    if (!x->windows.head || incumbent_stopped(&x->in))
        return 0;
    pair_pool_task job = step_windows_task(&x->in, turn->share);
    int rc = bound_windows_pool(&lower, &x->windows, x->in.p, &job, NULL);
    if (!rc)
        incumbent_take_bound(&x->in, lower);
    return rc;
}

const engine_step step_windows = {.method = UTIL_METHOD_WINDOWS, .run = run};
