/* Where memory binds: plans and bounds at prices on bytes. */
#include <math.h>

#include "bytes/bytes.h"
#include "place/moirai/blocks/blocks.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "util/util.h"

/* Bytes have a price on each device, so that equal devices differ. */
static int begin(blocks *x)
{
    pair_chain_tell_apart(x->c);
    int rc = blocks_open_pairs(x);
    return rc ? rc : bytes_prices_new(&x->memory, x->c);
}

/* A composition that keeps to the memory, at prices on bytes. */
static int find_plan(blocks *x, int64_t evaluations)
{
    int32_t searches = x->memory ? 3 : 6; /* at first there is nothing to begin with */
    bytes_plan_task search = {.evaluations = (int64_t)((double)evaluations * x->in->effort),
                              .rounds = 18,
                              .searches = searches,
                              .seed = x->in->o->budget.seed,
                              .upper_ns = x->in->best ? x->in->best->makespan_ns : x->in->lower_ns,
                              .threads = x->in->o->budget.threads,
                              .stop = x->in->stop};
    int64_t length = INT64_MAX;
    const int32_t *cut_device;
    const pair_plan *const *block_plan;
    int rc = x->memory ? 0 : begin(x);
    if (rc == MOIRAI_ELIMIT)
        return 0; /* the heuristics' plans stand */
    rc = rc ? rc : bytes_plan_find(&length, &cut_device, &block_plan, x->memory, &search);
    if (rc || length == INT64_MAX)
        return rc;
    int64_t n = place_compose(x->c, cut_device, block_plan, x->op_device, x->order);
    return incumbent_take_simulated(x->in, x->sim, moirai_sim_replay(x->sim, x->op_device, x->order, n), 'M');
}

/* A bound at the prices of the plans. */
static int raise_bound(blocks *x, int32_t rounds, int32_t solves)
{
    int64_t lower = 0;
    bytes_bound_task bound = {.upper_ns = x->in->best ? x->in->best->makespan_ns : 2 * x->in->lower_ns,
                              .rounds = rounds,
                              .buckets = BLOCKS_MEMORY_BUCKETS,
                              .solves = (int32_t)(solves * fmin(x->in->effort, 100)) + 4,
                              .threads = x->in->o->budget.threads,
                              .stop = x->in->stop};
    int rc = bytes_bound(&lower, x->memory, &bound);
    if (!rc)
        incumbent_take_bound(x->in, lower);
    return rc;
}

/* Plans and bounds take turns; a search for plans that has found next to nothing sits out until the prices have moved on. What it would
 * find is lost if the time is up before its end. */
int blocks_improve_within_memory(blocks *x)
{
    double before = 2, plan_s = 0;
    /* Where one class is large its pairs have been annealed by now (blocks.c): less is left to be found. */
    bool planned = false, worth = true, much = x->n_large > 1;
    if (incumbent_off(x->in, MEMORY))
        return 0;
    int32_t most = 1 + (int32_t)((BLOCKS_WITHIN_MEMORY_MEMORY_ROUNDS - 1) * fmin(x->in->effort, 1));
    int rc = find_plan(x, BLOCKS_WITHIN_MEMORY_EVALUATIONS / 4);
    if (rc || !x->memory)
        return rc;
    rc = raise_bound(x, 1, 20);
    for (int32_t round = 0; !rc && incumbent_gap(x->in) > x->in->o->gap && !incumbent_stopped(x->in); round++) {
        bool stays = round >= 3 && incumbent_gap(x->in) > 0.95 * before;
        if ((stays || round >= most) && !blocks_grow(x))
            break;
        double begun = util_seconds(), plan_ns = x->in->best ? (double)x->in->best->makespan_ns : HUGE_VAL;
        before = incumbent_gap(x->in);
        planned = !x->in->best || ((worth || !planned) && util_stop_left_s(&x->in->stop) > plan_s);
        if (planned) {
            rc = find_plan(x, much ? BLOCKS_WITHIN_MEMORY_EVALUATIONS : BLOCKS_WITHIN_MEMORY_EVALUATIONS / 4);
            plan_s = util_seconds() - begun;
            worth = x->in->best && (double)x->in->best->makespan_ns < (1 - BLOCKS_WITHIN_MEMORY_WORTH_MORE) * plan_ns;
            much = worth;
        }
        rc = rc ? rc : raise_bound(x, 3, 30);
    }
    return rc;
}
