/* Plans from LP solutions.
 *
 * Where the shared tensor goes decides what good plans look like, and no small move leads from one way of sending it to
 * another. So the weakest case of each sending, which is where its bound thinks that good plans are, gives its LP
 * solution over component schedules to a short annealing, and the two where that went best a longer one, if the second is
 * near the first. Then the pair's plan itself is annealed, with and without parts of the best LP solution among the moves,
 * by three runs; three more begin with that LP solution and know nothing of the plan: a plan that is 2 % longer may lie in
 * a valley that goes deeper, and what a drawn solution has become after half a run is rarely as short as a plan that
 * others have annealed. Every other run is guided by the prices. (A layer of gpt3-330M on inter-server, fitted costs, both
 * ends on D, mean of eight seeds after levels 1 to 3: 5.513 ms where all six runs went on from the plan, 5.490 so.) */
#include "pair/anneal.h"
#include "pair/improve.h"

#include <stdlib.h>
#include <string.h>

#include "pair/pair_tuning.h"
#include "util/pool.h"
#include "util/util.h"

int pair_improve_plan(pair_state *x, int64_t evaluations, uint64_t seed, util_stop stop)
{
    pair_anneal_task task = {.evaluations = evaluations, .seed = seed, .stop = stop, .start_device = x->plan.device};
    return pair_anneal(&x->plan, &x->block, &task);
}

/* Runs of annealing from the same hints and the same plan, side by side. */
typedef struct restarting {
    const decompose_block *b;
    const pair_anneal_task *task;
    pair_plan plan[PAIR_IMPROVE_RESTARTS];
    int32_t n;
} restarting;

static int anneal_once(void *data, int32_t i)
{
    static const double heat[PAIR_IMPROVE_RESTARTS] = {1, 0.3, 0.3, 1, 2, 0.1};
    restarting *k = data;
    pair_anneal_task task = *k->task;
    task.evaluations /= k->n;
    task.plan_only = k->n == PAIR_IMPROVE_RESTARTS && i < PAIR_IMPROVE_AFRESH;
    task.n_columns = task.plan_only && i < PAIR_IMPROVE_PLAIN ? 0 : task.n_columns;
    task.seed += (uint64_t)(100 * i);
    task.heat = heat[i];
    if (i % 2)
        task.weight = NULL;
    return pair_anneal(&k->plan[i], k->b, &task);
}

static void take_shorter(pair_plan *plan, pair_plan *other)
{
    if (other->device && (!plan->device || other->cost < plan->cost)) {
        pair_plan old = *plan;
        *plan = *other;
        *other = old;
    }
}

/* Into `plan`, the one of a trial or of the pair. */
static int anneal_side_by_side(const decompose_block *b, const pair_anneal_task *task, pair_plan *plan,
                               int32_t restarts, int threads)
{
    restarting k = {.b = b, .task = task, .n = restarts};
    int rc = 0;
    for (int32_t i = 0; i < UTIL_MIN(restarts, PAIR_IMPROVE_AFRESH) && !rc; i++)
        rc = pair_plan_copy(&k.plan[i], plan, b->problem.n_ops);
    rc = rc ? rc : util_pool_run(anneal_once, &k, restarts, threads);
    for (int32_t i = 0; i < restarts; i++) {
        if (!rc)
            take_shorter(plan, &k.plan[i]);
        pair_plan_free(&k.plan[i]);
    }
    return rc;
}

typedef struct trying {
    pair_bound_task *r;
    pair_trial *trial;
    int32_t n;
    uint64_t seed;
    int64_t evaluations; /* of each */
    int32_t restarts;
} trying;

/* The LP solution of a case's master at a length that it can't exclude. */
static int anneal_solution(const trying *k, int32_t solver, const pair_case *c, pair_plan *plan)
{
    pair_bound_task *r = k->r;
    pair_state *x = r->pair;
    int rc = pair_bound_solver(r, solver);
    if (rc)
        return rc;
    pricing_master *m = x->master[solver];
    int64_t length = c->estimate_ns == INT64_MAX ? x->plan.length_ns : c->estimate_ns + c->estimate_ns / 200 + 1;
    pricing_master_task task = {
        .pricer = r->pricer[solver],
        .at = {.how = &x->sending.how[c->sending], .n_branches = c->n_branches, .branch = c->branch},
        .form = PRICING_LENGTH_FORM,
        .length_ns = length,
        .buckets = UTIL_MAX(c->buckets, r->sent_buckets),
        .max_rounds = r->rounds,
        .converge = r->solvers > 1, /* this master has seen a part of the cases */
        .start = &c->duals,
        .stop = r->stop};
    pricing_master_result found;
    rc = pricing_master_solve(&found, m, &task);
    int32_t n_hints;
    pricing_chosen_column *hints = pricing_master_solution(m, &n_hints);
    double *weight = util_alloc((size_t)schedule_resources(&x->block.problem), sizeof *weight);
    if (!hints || !weight)
        rc = MOIRAI_EFAIL;
    if (!rc) {
        pair_cases_weights(x, m, found.price, weight);
        pair_anneal_task search = {.evaluations = k->evaluations,
                                   .seed = k->seed,
                                   .stop = r->stop,
                                   .column = hints,
                                   .n_columns = n_hints,
                                   .solution_only = true,
                                   .weight = weight};
        rc = n_hints ? anneal_side_by_side(&x->block, &search, plan, k->restarts, r->threads) : 0;
    }
    free(weight);
    free(hints);
    return rc;
}

/* The weakest open case of each sending; of the weakest sendings, where they were found as they were needed. */
static int32_t list_trials(const pair_state *x, pair_trial *t)
{
    int32_t n = 0;
    for (int32_t s = 0; s < x->sending.n; s++) {
        int32_t weakest = -1;
        for (int32_t i = 0; i < x->n_cases; i++)
            if (x->cases[i].sending == s && (weakest < 0 || x->cases[i].estimate_ns < x->cases[weakest].estimate_ns))
                weakest = i;
        bool open = weakest >= 0 && x->cases[weakest].proven_ns < x->plan.length_ns;
        if (open && x->sending.n_first < x->sending.n)
            n = pair_trials_add(t, n, PAIR_IMPROVE_MOST_TRIALS, weakest, x->cases[weakest].estimate_ns);
        else if (open)
            t[n++].index = weakest;
    }
    return n;
}

/* Each solver has the same trials on any number of threads, and so the same columns. */
static int try_some(void *data, int32_t solver)
{
    const trying *k = data;
    int rc = 0;
    for (int32_t i = solver; i < k->n && !rc && !util_stopped(&k->r->stop); i += k->r->solvers)
        rc = anneal_solution(k, solver, &k->r->pair->cases[k->trial[i].index], &k->trial[i].plan);
    return rc;
}

/* A short run for the weakest case of each sending, a longer one for the two that went best. */
static int try_sendings(const trying *job)
{
    trying k = *job;
    pair_bound_task *r = k.r;
    pair_trial *t = k.trial;
    int32_t n = k.n;
    k.evaluations = job->evaluations / 8 / n;
    k.restarts = 1;
    int rc = util_pool_run(try_some, &k, r->solvers, r->threads);
    pair_trials_sort(t, n);
    double most = PAIR_IMPROVE_NEAR * (double)t[0].plan.length_ns;
    for (k.n = 0;
         k.n < UTIL_MIN(n, PAIR_IMPROVE_FINALISTS) && t[k.n].plan.device && (double)t[k.n].plan.length_ns <= most;)
        k.n++;
    k.evaluations = job->evaluations / 4;
    k.restarts = PAIR_IMPROVE_RESTARTS / 2;
    if (!rc && !util_stopped(&r->stop))
        rc = util_pool_run(try_some, &k, r->solvers, r->threads);
    return rc;
}

int pair_improve_from_cases(pair_bound_task *r, int64_t evaluations, uint64_t seed)
{
    pair_state *x = r->pair;
    pair_trial *t = util_alloc((size_t)x->sending.n, sizeof *t);
    if (!t)
        return MOIRAI_EFAIL;
    int32_t n = list_trials(x, t);
    trying k = {r, t, n, seed, evaluations, PAIR_IMPROVE_RESTARTS};
    int rc = n > 1 ? try_sendings(&k) : 0;
    for (int32_t i = 0; i < n; i++) {
        if (!rc && t[i].plan.device && t[i].plan.length_ns < x->plan.length_ns)
            take_shorter(&x->plan, &t[i].plan);
        pair_plan_free(&t[i].plan);
    }
    /* The pair's plan, whoever found it, with the LP solution at hand. */
    if (!rc && n && x->lower_ns < x->plan.length_ns && !util_stopped(&r->stop))
        rc = anneal_solution(&k, 0, &x->cases[t[0].index], &x->plan);
    free(t);
    return rc;
}
