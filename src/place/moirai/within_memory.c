/* Where memory binds: plans and bounds at prices on bytes. */
#include <math.h>

#include "bytes/bytes.h"
#include "place/moirai/compose.h"
#include "place/moirai/engine.h"
#include "util/util.h"

#define MEMORY_ROUNDS 12

/* Bytes have a price on each device, so that equal devices differ. */
static int begin(engine *x)
{
    pair_chain_tell_apart(x->c);
    int rc = engine_open_pairs(x);
    return rc ? rc : bytes_prices_new(&x->memory, x->c);
}

/* Prices on bytes: a composition that keeps to the memory, then a bound at its prices. */
static int price_memory(engine *x, int32_t rounds, int32_t solves, int64_t evaluations)
{
    int32_t searches = x->memory ? 3 : 6; /* at first there is nothing to begin with */
    bytes_plan_task search = {.evaluations = (int64_t)((double)evaluations * x->effort),
                              .rounds = 18,
                              .searches = searches,
                              .seed = x->o->budget.seed,
                              .upper_ns = x->best ? x->best->makespan_ns : x->lower_ns,
                              .threads = x->o->budget.threads,
                              .stop = x->stop};
    int64_t lower = 0, length = INT64_MAX;
    const int32_t *cut_device;
    const pair_plan *const *block_plan;
    int rc = x->memory ? 0 : begin(x);
    if (rc == MOIRAI_ELIMIT)
        return 0; /* the heuristics' plans stand */
    rc = rc ? rc : bytes_plan_find(&length, &cut_device, &block_plan, x->memory, &search);
    if (!rc && length != INT64_MAX) {
        int64_t n = place_compose(x->c, cut_device, block_plan, x->op_device, x->order);
        rc = engine_take_simulated(x, moirai_sim_replay(x->sim, x->op_device, x->order, n), 'M');
    }
    bytes_bound_task bound = {.upper_ns = x->best ? x->best->makespan_ns : 2 * x->lower_ns,
                              .rounds = rounds,
                              .buckets = ENGINE_MEMORY_BUCKETS,
                              .solves = (int32_t)(solves * fmin(x->effort, 100)) + 4,
                              .threads = x->o->budget.threads,
                              .stop = x->stop};
    rc = rc ? rc : bytes_bound(&lower, x->memory, &bound);
    if (!rc)
        engine_take_bound(x, lower);
    return rc;
}

int engine_improve_within_memory(engine *x)
{
    int rc = price_memory(x, 1, 20, 1000);
    if (!x->memory)
        return rc;
    double before = 2;
    int64_t evaluations = 4000;
    int32_t most = 1 + (int32_t)((MEMORY_ROUNDS - 1) * fmin(x->effort, 1));
    for (int32_t round = 0; !rc && engine_gap(x) > x->o->gap && !engine_stopped(x); round++) {
        bool stays = round >= 3 && engine_gap(x) > 0.95 * before;
        if ((stays || round >= most) && !engine_grow(x))
            break;
        before = engine_gap(x);
        int64_t known = x->best ? x->best->makespan_ns : INT64_MAX;
        rc = price_memory(x, 3, 30, evaluations);
        /* Where more annealing has found nothing, a little will do until the prices have moved on. */
        evaluations = x->best && x->best->makespan_ns < known ? 4000 : 1000;
    }
    return rc;
}
