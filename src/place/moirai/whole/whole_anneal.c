/* Simulated annealing over devices and one order of the whole problem.
 *
 * A chain begins with the plan at hand: its devices, its operators by their starts. Moves are those of whole_moves.c.
 * The evaluation (whole_sim.c) stops where the threshold of the trial (anneal/anneal.c) is passed.
 *
 * Several chains with different seeds and temperatures make a round. The best states of all chains are replayed by
 * the simulator, once as they were put down and once sorted by start, which closes gaps that the append-only order has
 * left; the best plan that fits the memory is the round's. */
#include "place/moirai/whole/whole_anneal.h"

#include <stdlib.h>

#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_moves.h"
#include "schedule/plan_order.h"
#include "schedule/sim.h"
#include "util/pool.h"

typedef struct round_ {
    const moirai_problem *p;
    const place_whole_task *job;
    const moirai_plan *plan;
    int32_t *start_order;
    place_mover chain[PLACE_WHOLE_CHAINS];
    int64_t end_ns[PLACE_WHOLE_CHAINS]; /* where each has ended, whatever it met before */
} round_;

static int run_chain(void *data, int32_t i)
{
    static const double heat[PLACE_WHOLE_CHAINS] = {1, 0.5, 2, 0.25};
    round_ *r = data;
    const place_whole_task *job = r->job;
    place_mover *m = &r->chain[i];
    int rc = place_mover_open(m, r->p, &job->stop);
    if (rc)
        return rc;
    m->exchanges = job->exchanges;
    util_rng_seed(&m->rng, job->seed * PLACE_WHOLE_CHAINS + (uint64_t)i);
    place_mover_begin(m, r->plan->op_device, r->start_order);
    double hot = heat[i] * (job->heat > 0 ? job->heat : 1), cold = job->cold > 0 ? job->cold : 1;
    place_mover_cool(m, WHOLE_ANNEAL_HOT * hot * (double)m->best_ns, WHOLE_ANNEAL_COLD * cold * (double)m->best_ns,
                     job->evaluations, &job->stop);
    r->end_ns[i] = m->w->makespan_ns;
    place_whole_set(m->w, m->best_device, m->best_order);
    return 0;
}

static int64_t second_end(const round_ *r)
{
    int64_t least = INT64_MAX, second = INT64_MAX;
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++) {
        int64_t end = r->end_ns[i];
        second = UTIL_MIN(second, UTIL_MAX(end, least));
        least = UTIL_MIN(least, end);
    }
    return second;
}

/* ---- states and plans ---- */

/* The state as a plan in place of *plan, where it is shorter and fits the memory. */
static int take(moirai_plan **plan, moirai_sim *sim, const place_whole *w)
{
    moirai_task *task = util_alloc((size_t)w->n + (size_t)w->p->n_edges, sizeof *task);
    if (!task)
        return MOIRAI_EFAIL;
    int64_t length = schedule_sim_replay_closed(sim, w->device, task, place_whole_tasks(w, task));
    free(task);
    return schedule_sim_take_better(plan, sim, length);
}

/* The plan's operators by their starts; what starts together is ordered by topological rank, so that the order is one of precedence. The
 * caller frees *out, also on failure. */
static int order_of(int32_t **out, const moirai_problem *p, const moirai_plan *plan)
{
    size_t n = (size_t)p->n_ops;
    schedule_timed_task *sorted = util_alloc(n, sizeof *sorted);
    *out = util_alloc(n, sizeof **out);
    int rc = sorted && *out ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        sorted[i] = schedule_timed_op(p, i, plan->op_start_ns[i], plan->op_start_ns[i]);
    if (!rc)
        schedule_timed_sort(sorted, n);
    for (size_t i = 0; i < n && !rc; i++)
        (*out)[i] = (int32_t)sorted[i].task;
    free(sorted);
    return rc;
}

int place_whole_anneal(moirai_plan **plan, const moirai_problem *p, const place_whole_task *job)
{
    if (p->n_ops == 0 || (*plan)->makespan_ns == 0 || job->evaluations <= 0)
        return 0;
    round_ r = {.p = p, .job = job, .plan = *plan};
    moirai_sim *sim = NULL;
    int rc = order_of(&r.start_order, p, *plan);
    rc = rc ? rc : moirai_sim_new(&sim, p);
    rc = rc ? rc : util_pool_run(run_chain, &r, PLACE_WHOLE_CHAINS, job->threads);
    if (!rc && job->second_ns)
        *job->second_ns = second_end(&r);
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++) {
        rc = rc ? rc : take(plan, sim, r.chain[i].w);
        place_mover_clear(&r.chain[i]);
    }
    moirai_sim_free(sim);
    free(r.start_order);
    return rc;
}
