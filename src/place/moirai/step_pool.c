/* Bounds by the pool of all devices (pair/pool.c): over the whole, and within the windows that intervals leave. */
#include <math.h>

#include "place/moirai/engine.h"
#include "util/util.h"

#define ROUNDS 3
#define CUTS 120.0 /* at each length, at effort 1 */
#define NODES 4000
#define NODES_OP 5

pair_pool_task step_pool_task(const incumbent *in, double part)
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
    incumbent *in = &x->in;
    pair_chain *whole = NULL;
    if (in->p->n_ops > DECOMPOSE_INTERVALS_OPS || incumbent_stopped(in))
        return 0;
    pair_pool_task job = step_pool_task(in, turn->share);
    int rc = engine_whole_block(&whole, in->p);
    rc = rc ? rc : pair_raise_pool(whole->pair[0], &job);
    int64_t lower = rc ? 0 : whole->pair[0]->lower_ns;
    if (lower > in->lower_ns) { /* kept for the certificate */
        incumbent_take_bound(in, lower);
        pair_chain_free(x->pool);
        x->pool = whole;
    } else {
        pair_chain_free(whole);
    }
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

static int run_within_windows(engine *x, const engine_turn *turn)
{
    int64_t lower = 0;
    if (!x->windows.head || incumbent_stopped(&x->in))
        return 0;
    pair_pool_task job = step_pool_task(&x->in, turn->share);
    int rc = bound_windows_pool(&lower, &x->windows, x->in.p, &job, NULL);
    if (!rc)
        incumbent_take_bound(&x->in, lower);
    return rc;
}

const engine_step step_pool = {.method = UTIL_METHOD_POOL, .run = run},
                  step_windows = {.method = UTIL_METHOD_WINDOWS, .run = run_within_windows};
