/* Refinement of one pair: better plans (improve.c), a better bound (cases.c).
 *
 * A level is a number of buckets for the prices, of solves at cases, and of evaluations. */
#include "pair/pair_refine.h"

#include <math.h>
#include <string.h>

#include "pair/cases.h"
#include "pair/improve.h"
#include "pair/pair_tuning.h"
#include "util/pool.h"
#include "util/util.h"

/* Where a tensor is sent to some devices in some order, what prices leave open is when it arrives: a question for
 * branches, many of them, which finer buckets do not answer. */
typedef struct level_plan {
    int32_t buckets, rounds, solves;
    int32_t sent_buckets, sent_solves; /* where components share a tensor, and it is sent */
    int64_t evaluations;
} level_plan;

static const level_plan levels[PAIR_LEVELS + 1] = {
    {0, 0, 0, 0, 0, 0},
    {1, 40, 40, 1, 40, 3000},
    {12, 50, 60, 8, 60, 40000},
    {16, 60, 120, 8, 240, 100000},
    {24, 100, 240, 8, 480, 300000},
};

static int bound_and_improve(pair_state *x, const pair_refine_task *job, const level_plan *level, int64_t evaluations,
                             uint64_t seed)
{
    if (util_off(&job->stop, UTIL_METHOD_PAIR_PRICES))
        return 0;
    bool sent = x->sending.n > 0 && x->sending.how[0].fixed;
    int32_t solves = sent ? level->sent_solves : level->solves;
    pair_bound_task r = {.pair = x,
                         .need_ns = job->need_ns,
                         .buckets = level->buckets,
                         .sent_buckets = sent ? level->sent_buckets : level->buckets,
                         .rounds = level->rounds,
                         .open = sent && job->level > 1 ? PAIR_REFINE_OPEN : 0,
                         .solvers = job->level > 1 ? PAIR_SOLVERS : 1, /* one price per resource is soon found */
                         .solves = (int32_t)(solves * fmin(job->effort, 1000)),
                         .threads = job->threads,
                         .stop = job->stop};
    int rc = pair_bound_solver(&r, 0);
    if (rc == MOIRAI_ELIMIT)
        return 0; /* too large for prices: the longest path stands */
    rc = rc ? rc : pair_cases_solve(&r);
    if (!rc && x->lower_ns < x->plan.length_ns && job->improve && !util_off(&job->stop, UTIL_METHOD_LP_PLANS))
        rc = pair_improve_from_cases(&r, evaluations, seed);
    pair_bound_clear(&r);
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
    if (!rc && (open || (job->prices_only && x->cases[pair_cases_weakest(x)].proven_ns < x->plan.length_ns)))
        rc = bound_and_improve(x, job, level, evaluations, seed);
    x->level = job->level;
    return rc;
}
