/* Refinement of one pair: better plans (improve.c), a better bound (cases.c).
 *
 * A level is a number of buckets for the prices, of solves at cases, and of evaluations. */
#include "pair/pair_refine.h"

#include <math.h>

#include "pair/improve.h"
#include "util/util.h"

/* Where a tensor is sent to some devices in some order, what prices leave open is when it arrives: a question for
 * branches, many of them, which finer buckets do not answer. */
typedef struct level_plan {
    int32_t buckets, solves;
    int32_t sent_solves; /* where components share a tensor */
    int64_t evaluations;
} level_plan;

static const level_plan levels[PAIR_LEVELS + 1] = {
    {0, 0, 0, 0}, {4, 40, 40, 3000}, {12, 60, 60, 40000}, {16, 120, 240, 100000}, {24, 240, 480, 300000},
};

/* The least length over the cases. */
static int raise_by_prices(pair_state *x, const pair_refine_task *job, const level_plan *level)
{
    static const int64_t free_bytes[MOIRAI_MASK_DEVICES];
    int64_t unit = x->block.unit;
    bool sent = x->sending.n > 0 && x->sending.how[0].fixed;
    pair_cases_task task = {.byte_price = free_bytes,
                            .stamp = x->cases.stamp + 1,
                            .buckets = level->buckets,
                            .solves = (int32_t)((sent ? level->sent_solves : level->solves) * fmin(job->effort, 1000)),
                            .ceiling = pricing_units(unit, UTIL_MIN(job->need_ns, x->plan.length_ns)),
                            .threads = job->threads,
                            .stop = job->stop};
    int rc = pair_cases_refine(&x->cases, &task);
    if (rc)
        return rc;
    int64_t proven = (x->cases.value + unit - 1) / unit;
    x->leaves_ns = proven > pair_certified_otherwise_ns(x) ? proven : 0;
    x->lower_ns = UTIL_MAX(x->lower_ns, x->leaves_ns);
    return 0;
}

static int bound_and_improve(pair_state *x, const pair_refine_task *job, const level_plan *level, int64_t evaluations,
                             uint64_t seed)
{
    if (util_off(&job->stop, UTIL_METHOD_PAIR_PRICES))
        return 0;
    int rc = pair_cases_begin(&x->cases);
    if (rc == MOIRAI_ELIMIT)
        return 0; /* too large for prices: the longest path stands */
    rc = rc ? rc : raise_by_prices(x, job, level);
    pair_improve_task improve = {.evaluations = evaluations,
                                 .seed = seed,
                                 .buckets = level->buckets,
                                 .threads = job->threads,
                                 .stop = job->stop};
    if (!rc && x->lower_ns < x->plan.length_ns && job->improve && !util_off(&job->stop, UTIL_METHOD_LP_PLANS))
        rc = pair_improve_from_cases(&x->plan, &x->cases, &improve);
    pair_cases_rest(&x->cases);
    return rc;
}

int pair_refine(pair_state *x, const pair_refine_task *job)
{
    int32_t number = UTIL_MIN(job->level, PAIR_LEVELS);
    const level_plan *level = &levels[number];
    uint64_t seed = job->seed + (uint64_t)number;
    int64_t most = job->few_trials ? level->evaluations / 2 : level->evaluations;
    int64_t evaluations = (int64_t)((double)(job->improve ? most : 200) * job->effort);
    int rc = pair_improve_plan(x, evaluations / 4, seed, job->stop);
    /* Prices alone may still have something to prove where the exhaustive search has left nothing. */
    bool open = x->lower_ns < x->plan.length_ns;
    if (!rc && (open || (job->prices_only && x->leaves_ns < x->plan.length_ns)))
        rc = bound_and_improve(x, job, level, evaluations, seed);
    x->level = job->level;
    return rc;
}
