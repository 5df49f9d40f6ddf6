/* Block plans on which much hangs, annealed for longer.
 *
 * A network of equal layers has a few pairs that its plan takes again and again: what a percent of one of their plans is
 * worth is counted by the layers. Searches that begin anew (block_plans.c) find other valleys, but in a layer of hundreds
 * of operators they end long before they are at the bottom of one. So the pairs of the LP solution over paths get runs by
 * what is open at them, (cost of the cheapest plan - what is proven of it) times how often the LP solution takes them, by
 * highest averages; each run goes on from the cheapest plan at the present prices, with more evaluations than a search
 * and a temperature of its own. (Layers of swin-13B on inter-server, fitted costs: 23.7 ms with the price of bytes by
 * searches of 4,000 evaluations, 23.25 by 16,000 more from the cheapest plan, 22.7 by 256,000.) Pairs of equal shape
 * count for the one that leads them, and take what it has found.
 *
 * How much there is to gain differs: where a deepening has made the paths hardly shorter, the next one gets a fourth of the
 * evaluations, twice as many where it has.
 *
 * Runs are chosen before they start and kept in their order after all have ended: the result does not depend on the
 * threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_state.h"
#include "bytes/bytes_tuning.h"
#include "pair/anneal.h"
#include "util/pool.h"
#include "util/util.h"

typedef struct run {
    int32_t pair;
    int32_t number; /* of the pair's runs */
    int64_t before; /* cost of the plan that it goes on from */
    pair_plan plan;
} run;

typedef struct deepening {
    bytes_prices *m;
    const bytes_plan_task *job;
    run run[BYTES_DEEPEN_RUNS];
    int32_t n;
    double *times; /* per pair: how often the LP solution takes it */
} deepening;

/* The pair that leads this one, or itself. */
static int64_t leader_of(const bytes_prices *m, int64_t pair)
{
    int64_t alike = bytes_alike(m, pair);
    return alike >= 0 && m->pair[alike].n_plans ? alike : pair;
}

/* How often the LP solution takes each pair, counted at the one that leads it. */
static void count_parts(const bytes_prices *m, double *times)
{
    const bytes_master *x = &m->plans;
    for (size_t j = 0; j < x->n; j++)
        for (int32_t i = 0; i < m->c->s->n_blocks && x->part[j] > 1e-9; i++)
            times[leader_of(m, bytes_pair_on_path(m, &x->path[j], i))] += x->part[j];
}

/* What is open at the pair, in units. */
static double open_at(const bytes_prices *m, int64_t pair)
{
    int8_t pick;
    int64_t cost = bytes_block_plan_cost(m, pair, m->now.price, &pick);
    if (cost == INT64_MAX || pair_chain_get(m->c, pair)->block.n_interior < 2)
        return 0;
    double open = (double)(cost - m->pair[pair].priced.value), most = BYTES_DEEPEN_MOST_OPEN * (double)cost;
    return UTIL_MAX(UTIL_MIN(open, most), BYTES_DEEPEN_LEAST_OPEN * (double)cost);
}

/* Runs by highest averages. */
static int choose_runs(deepening *x)
{
    const bytes_prices *m = x->m;
    int64_t pairs = pair_chain_count(m->c);
    double *weight = util_alloc((size_t)pairs, sizeof *weight);
    int32_t *given = util_alloc((size_t)pairs, sizeof *given);
    if (weight && given) {
        count_parts(m, x->times);
        for (int64_t i = 0; i < pairs; i++)
            weight[i] = x->times[i] > 0 ? x->times[i] * open_at(m, i) : 0;
        for (; x->n < BYTES_DEEPEN_RUNS; x->n++) {
            int64_t best = 0;
            for (int64_t i = 1; i < pairs; i++)
                if (weight[i] / (given[i] + 1) > weight[best] / (given[best] + 1))
                    best = i;
            if (weight[best] <= 0)
                break;
            x->run[x->n] = (run){.pair = (int32_t)best, .number = given[best]++};
        }
    }
    int rc = weight && given ? 0 : MOIRAI_EFAIL;
    free(weight);
    free(given);
    return rc;
}

/* Every third run is hot and sees the length alone; loads, weighted by what devices are worth, guide the others. */
static int run_one(void *data, int32_t i)
{
    static const double heat[] = {0.3, 2, 1};
    deepening *x = data;
    run *r = &x->run[i];
    const bytes_prices *m = x->m;
    const pair_state *y = pair_chain_get(m->c, r->pair);
    int8_t pick = -1;
    int64_t cost = bytes_block_plan_cost(m, r->pair, m->now.price, &pick);
    const pair_plan *from = pick < 0 ? &y->plan : &m->pair[r->pair].plans[pick].plan;
    pair_anneal_task task = {.entry_device = r->pair / m->K % m->K,
                             .exit_device = r->pair % m->K,
                             .memory_price = m->now.price,
                             .evaluations = (int64_t)(BYTES_DEEPEN_DEPTH * m->depth * (double)x->job->evaluations) + 1,
                             .heat = heat[r->number % 3],
                             .solution_only = true,
                             .seed = x->job->seed + (uint64_t)(BYTES_DEEPEN_RUNS * m->now.stamp + r->number),
                             .stop = x->job->stop};
    moirai_sim *sim = NULL;
    double *weight = util_alloc((size_t)pricing_resource_count(&y->block.problem), sizeof *weight);
    int rc = weight ? moirai_sim_new(&sim, &y->block.problem) : MOIRAI_EFAIL;
    rc = rc ? rc : pair_anneal_worth(weight, &y->block, &x->job->stop);
    rc = rc ? rc : pair_plan_copy(&r->plan, from, y->block.problem.n_ops);
    r->plan.cost = r->before = cost;
    task.weight = r->number % 3 < 2 ? weight : NULL;
    rc = rc ? rc : pair_anneal(&r->plan, &y->block, sim, &task);
    moirai_sim_free(sim);
    free(weight);
    return rc;
}

/* Whether less than BYTES_DEEPEN_KEPT runs of the pair have found a cheaper plan. */
static bool among_best(const deepening *x, int32_t at)
{
    int32_t better = 0;
    for (int32_t i = 0; i < x->n; i++)
        better += x->run[i].pair == x->run[at].pair && (x->run[i].plan.cost < x->run[at].plan.cost ||
                                                        (x->run[i].plan.cost == x->run[at].plan.cost && i < at));
    return better < BYTES_DEEPEN_KEPT;
}

/* Pairs that are led by this one look at its new plans. */
static int tell_followers(deepening *x, int32_t pair)
{
    bytes_prices *m = x->m;
    int32_t cells = m->K * m->K;
    int rc = 0;
    for (int32_t i = 0; i < m->c->s->n_classes && !rc; i++) {
        int32_t follower = i * cells + pair % cells;
        if (pair_chain_get(m->c, follower)->open && bytes_alike(m, follower) == pair)
            rc = bytes_block_plan_add(m, follower, x->job);
    }
    return rc;
}

/* Where the paths have hardly become shorter, later runs are: the bound has more use for the time. */
static void set_depth(deepening *x)
{
    double gain = 0;
    for (int32_t i = 0; i < x->n; i++) {
        int64_t best = INT64_MAX;
        for (int32_t j = 0; j < x->n; j++)
            if (x->run[j].pair == x->run[i].pair)
                best = UTIL_MIN(best, x->run[j].plan.cost);
        if (x->run[i].number == 0)
            gain += x->times[x->run[i].pair] * (double)(x->run[i].before - best);
    }
    double worth = gain / (double)x->m->c->s->unit / (double)UTIL_MAX(x->job->upper_ns, 1);
    x->m->depth =
        worth > BYTES_DEEPEN_WORTH ? fmin(2 * x->m->depth, 1) : fmax(x->m->depth / 4, BYTES_DEEPEN_LEAST_DEPTH);
}

int bytes_deepen(bytes_prices *m, const bytes_plan_task *job)
{
    deepening x = {.m = m, .job = job, .times = util_alloc((size_t)pair_chain_count(m->c), sizeof *x.times)};
    int rc = x.times ? choose_runs(&x) : MOIRAI_EFAIL;
    rc = rc ? rc : util_pool_run(run_one, &x, x.n, job->threads);
    if (!rc)
        set_depth(&x);
    bool keep[BYTES_DEEPEN_RUNS];
    for (int32_t i = 0; i < x.n; i++)
        keep[i] = !rc && among_best(&x, i);
    for (int32_t i = 0; i < x.n; i++)
        if (keep[i])
            bytes_block_plan_keep(m, x.run[i].pair, &x.run[i].plan);
        else
            pair_plan_free(&x.run[i].plan);
    for (int32_t i = 0; i < x.n && !rc; i++)
        if (x.run[i].number == 0)
            rc = tell_followers(&x, x.run[i].pair);
    free(x.times);
    return rc;
}
