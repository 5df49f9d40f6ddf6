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
#include "pair/improve.h"

#include <stdlib.h>
#include <string.h>

#include "pair/anneal.h"
#include "pair/case.h"
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

/* The weakest case of a sending, and what a search from its LP solution has found. */
typedef struct trial {
    int32_t index; /* of the case */
    int64_t value; /* of it */
    pair_plan plan;
    pricing_chosen_column *column;
    int32_t n_columns;
    double *weight;
} trial;

typedef struct trying {
    pair_cases *v;
    const pair_improve_task *job;
    trial *t;
    int32_t first;       /* of those that are being solved */
    int64_t evaluations; /* of each */
    int32_t restarts;
} trying;

/* ---- trials ---- */

static int by_value(const void *a, const void *b)
{
    const trial *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value) - (x->value < y->value) : x->index - y->index;
}

/* The cheapest plan first, trials without a plan last. */
static int by_cost(const void *a, const void *b)
{
    const trial *x = a, *y = b;
    int64_t left = x->plan.device ? x->plan.cost : INT64_MAX, right = y->plan.device ? y->plan.cost : INT64_MAX;
    return left != right ? (left > right) - (left < right) : by_value(a, b);
}

/* The weakest case of a sending that has an end, -1: none. */
static int32_t weakest_of(const pair_cases *v, int32_t sending)
{
    int32_t least = -1;
    for (int32_t i = 0; i < v->n; i++)
        if (v->list[i].sending == sending && v->list[i].most_ns != INT64_MAX &&
            (least < 0 || v->list[i].value < v->list[least].value))
            least = i;
    return least;
}

/* The weakest cases of the sendings that promise most; and, last, that of sending nothing (the first of all sendings), whose plans keep
 * the bytes on one device: bounds promise too much of the others. */
static int32_t list_trials(trial *t, const pair_cases *v, int64_t ceiling)
{
    int32_t n = 0, nothing = 0;
    for (int32_t s = 0; s < v->pair->sending.n; s++) {
        int32_t least = weakest_of(v, s);
        if (least >= 0 && v->list[least].value < ceiling)
            t[n++] = (trial){.index = least, .value = v->list[least].value};
    }
    if (n)
        qsort(t, (size_t)n, sizeof *t, by_value);
    while (nothing < n && v->list[t[nothing].index].sending != 0)
        nothing++;
    if (nothing < n && nothing >= PAIR_IMPROVE_MOST_TRIALS)
        t[PAIR_IMPROVE_MOST_TRIALS - 1] = t[nothing];
    return UTIL_MIN(n, PAIR_IMPROVE_MOST_TRIALS);
}

static int solve_trial(void *data, int32_t solver)
{
    const trying *k = data;
    trial *t = &k->t[k->first + solver];
    pair_cases_task task = {.byte_price = k->v->byte_price, .buckets = k->job->buckets, .stop = k->job->stop};
    t->weight = util_alloc((size_t)schedule_resources(&k->v->pair->block.problem), sizeof *t->weight);
    if (!t->weight)
        return MOIRAI_EFAIL;
    return pair_case_solution(&t->column, &t->n_columns, t->weight, k->v, solver, &k->v->list[t->index], &task);
}

static int anneal_from(const trying *k, const trial *t, pair_plan *plan)
{
    pair_anneal_task task = {.memory_price = pair_paid_bytes(&k->v->pair->block, k->v->byte_price),
                             .evaluations = k->evaluations,
                             .seed = k->job->seed,
                             .stop = k->job->stop,
                             .column = t->column,
                             .n_columns = t->n_columns,
                             .solution_only = true,
                             .weight = t->weight};
    return t->n_columns ? anneal_side_by_side(&k->v->pair->block, &task, plan, k->restarts, k->job->threads) : 0;
}

static int anneal_trial(void *data, int32_t i)
{
    const trying *k = data;
    return util_stopped(&k->job->stop) ? 0 : anneal_from(k, &k->t[i], &k->t[i].plan);
}

/* A short run for each trial, a longer one for the two that went best. */
static int run_trials(trying *k, int32_t n)
{
    k->evaluations = k->job->evaluations / 8 / n;
    k->restarts = 1;
    int rc = util_pool_run(anneal_trial, k, n, k->job->threads);
    qsort(k->t, (size_t)n, sizeof *k->t, by_cost);
    double most = PAIR_IMPROVE_NEAR * (double)k->t[0].plan.cost;
    int32_t finalists = 0;
    while (finalists < UTIL_MIN(n, PAIR_IMPROVE_FINALISTS) && k->t[finalists].plan.device &&
           (double)k->t[finalists].plan.cost <= most)
        finalists++;
    k->evaluations = k->job->evaluations / 4;
    k->restarts = PAIR_IMPROVE_RESTARTS / 2;
    return rc ? rc : util_pool_run(anneal_trial, k, finalists, k->job->threads);
}

int pair_improve_from_cases(pair_plan *plan, pair_cases *v, const pair_improve_task *job)
{
    trying k = {.v = v, .job = job, .t = util_alloc((size_t)v->pair->sending.n, sizeof *k.t)};
    int32_t n = k.t ? list_trials(k.t, v, plan->cost) : 0;
    int rc = k.t ? 0 : MOIRAI_EFAIL;
    for (k.first = 0; k.first < n && !rc; k.first += PAIR_SOLVERS)
        rc = util_pool_run(solve_trial, &k, UTIL_MIN(n - k.first, PAIR_SOLVERS), job->threads);
    if (!rc && n > 1)
        rc = run_trials(&k, n);
    for (int32_t i = 0; i < n && !rc; i++)
        take_shorter(plan, &k.t[i].plan);
    /* The pair's plan, whoever found it, with the LP solution at hand. */
    k.evaluations = job->evaluations;
    k.restarts = PAIR_IMPROVE_RESTARTS;
    if (!rc && n && !util_stopped(&job->stop))
        rc = anneal_from(&k, &k.t[0], plan);
    for (int32_t i = 0; i < n; i++) {
        pair_plan_free(&k.t[i].plan);
        free(k.t[i].column);
        free(k.t[i].weight);
    }
    free(k.t);
    return rc;
}
