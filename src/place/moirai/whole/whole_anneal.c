/* Simulated annealing over devices and one order of the whole problem.
 *
 * A chain begins with the plan at hand: its devices, its operators by their starts. Moves are those of whole_moves.c.
 * The evaluation (whole_sim.c) stops where the threshold of the trial (anneal/anneal.c) is passed.
 *
 * Several chains with different seeds and temperatures make a round. The best states of all chains are replayed by
 * the simulator, once as they were put down and once sorted by start, which closes gaps that the append-only order has
 * left; the best plan that fits the memory is the round's. */
#include "place/moirai/whole/whole_anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_moves.h"
#include "schedule/load.h"
#include "schedule/sim.h"
#include "util/pool.h"

typedef struct chain {
    place_mover m;
    int64_t best_ns, end_ns;
    int32_t *best_device, *best_order;
    util_memory memory; /* of these */
} chain;

typedef struct round_ {
    const moirai_problem *p;
    const place_whole_task *job;
    const moirai_plan *plan;
    const int32_t *start_order;
    double worth[MOIRAI_MAX_DEVICES]; /* of a nanosecond of each device */
    chain chain[PLACE_WHOLE_CHAINS];
} round_;

/* ---- cooling ---- */

static void keep_best(chain *c)
{
    const place_whole *w = c->m.w;
    c->best_ns = w->makespan_ns;
    memcpy(c->best_device, w->device, sizeof *w->device * (size_t)w->n);
    memcpy(c->best_order, w->order, sizeof *w->order * (size_t)w->n);
}

static void keep_better(void *data)
{
    chain *c = data;
    if (c->m.w->makespan_ns < c->best_ns)
        keep_best(c);
}

static void cool(chain *c, const round_ *r, double heat)
{
    const place_whole_task *job = r->job;
    double cold = job->cold > 0 ? job->cold : 1;
    place_mover_cool(&c->m, &(place_cooling){.hot_ns = WHOLE_ANNEAL_HOT * heat * (double)c->best_ns,
                                             .cold_ns = WHOLE_ANNEAL_COLD * cold * (double)c->best_ns,
                                             .evaluations = job->evaluations,
                                             .lean = job->lean,
                                             .worth = job->lean > 0 ? r->worth : NULL,
                                             .stop = &job->stop,
                                             .accepted = keep_better,
                                             .data = c});
}

/* ---- rounds ---- */

static int run_chain(void *data, int32_t i)
{
    static const double heat[PLACE_WHOLE_CHAINS] = {1, 0.5, 2, 0.25};
    round_ *r = data;
    chain *c = &r->chain[i];
    UTIL_TAKE(&c->memory, c->best_device, (size_t)r->p->n_ops);
    UTIL_TAKE(&c->memory, c->best_order, (size_t)r->p->n_ops);
    int rc = c->memory.failed ? MOIRAI_EFAIL : place_mover_open(&c->m, r->p, &r->job->stop);
    if (rc)
        return rc;
    c->m.exchanges = r->job->exchanges;
    util_rng_seed(&c->m.rng, r->job->seed * PLACE_WHOLE_CHAINS + (uint64_t)i);
    place_whole_set(c->m.w, r->plan->op_device, r->start_order);
    keep_best(c);
    cool(c, r, heat[i] * (r->job->heat > 0 ? r->job->heat : 1));
    c->end_ns = c->m.w->makespan_ns;
    place_whole_set(c->m.w, c->best_device, c->best_order);
    return 0;
}

static int64_t second_end(const round_ *r)
{
    int64_t least = INT64_MAX, second = INT64_MAX;
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++) {
        int64_t end = r->chain[i].end_ns;
        second = UTIL_MIN(second, UTIL_MAX(end, least));
        least = UTIL_MIN(least, end);
    }
    return second;
}

/* ---- states and plans ---- */

/* The state as a plan in place of *plan, where it is shorter and fits the memory: the tasks in the order they were put down, then
 * twice sorted by start, which closes gaps. */
static int take(moirai_plan **plan, moirai_sim *sim, const place_whole *w)
{
    const moirai_task *order;
    moirai_task *task = util_alloc((size_t)w->n + (size_t)w->p->n_edges, sizeof *task);
    if (!task)
        return MOIRAI_EFAIL;
    int64_t length = moirai_sim_replay(sim, w->device, task, place_whole_tasks(w, task));
    free(task);
    for (int32_t i = 0; i < 2 && length >= 0; i++) {
        int64_t n = moirai_sim_order(sim, &order);
        length = moirai_sim_replay(sim, w->device, order, n);
    }
    return schedule_sim_take_better(plan, sim, length);
}

typedef struct started {
    int64_t start_ns;
    int32_t rank, op;
} started;

static int earlier(const void *a, const void *b)
{
    const started *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

/* The plan's operators by their starts; what starts together is ordered by topological rank, so that the order is one of precedence. The
 * caller frees *out, also on failure. */
static int order_of(int32_t **out, const moirai_problem *p, const moirai_plan *plan)
{
    size_t n = (size_t)p->n_ops;
    started *s = util_alloc(n, sizeof *s);
    int32_t *order = util_alloc(n, sizeof *order);
    if (s && order) {
        for (int32_t i = 0; i < p->n_ops; i++)
            s[i] = (started){plan->op_start_ns[i], p->topo_rank[i], i};
        qsort(s, n, sizeof *s, earlier);
        for (size_t i = 0; i < n; i++)
            order[i] = s[i].op;
    }
    int rc = s && order ? 0 : MOIRAI_EFAIL;
    free(s);
    *out = order;
    return rc;
}

static void find_worth(round_ *r)
{
    int64_t weight[MOIRAI_MAX_DEVICES];
    double sum = 0;
    schedule_bound_load(weight, r->p);
    for (int32_t k = 0; k < r->p->n_devices; k++)
        sum += (double)weight[k];
    for (int32_t k = 0; k < r->p->n_devices; k++)
        r->worth[k] = (double)weight[k] / fmax(sum, 1);
}

int place_whole_anneal(moirai_plan **plan, const moirai_problem *p, const place_whole_task *job)
{
    if (p->n_ops == 0 || (*plan)->makespan_ns == 0 || job->evaluations <= 0)
        return 0;
    round_ r = {.p = p, .job = job, .plan = *plan};
    moirai_sim *sim = NULL;
    int32_t *order = NULL;
    int rc = order_of(&order, p, *plan);
    r.start_order = order;
    rc = rc ? rc : moirai_sim_new(&sim, p);
    if (!rc && job->lean > 0)
        find_worth(&r);
    rc = rc ? rc : util_pool_run(run_chain, &r, PLACE_WHOLE_CHAINS, job->threads);
    if (!rc && job->second_ns)
        *job->second_ns = second_end(&r);
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++) {
        rc = rc ? rc : take(plan, sim, r.chain[i].m.w);
        place_mover_clear(&r.chain[i].m);
        util_release(&r.chain[i].memory);
    }
    moirai_sim_free(sim);
    free(order);
    return rc;
}
