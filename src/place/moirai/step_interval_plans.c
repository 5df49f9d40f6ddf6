/* Plans from chains of intervals.
 *
 * A chain is raised by searching its intervals between two devices (bound/intervals/interval_chain.c), and a search that
 * closes an interval leaves its best plan behind. The best path of these plans is a plan of the chain's spine, often an
 * optimal one; what floats beside the chain is put into its gaps (floats.c). Where a network is two towers, or a trunk
 * with branches, annealing of the whole hardly finds such plans: the tower that decides changes its device twice a layer,
 * and each change alone costs a transfer. Plans that come near to the best one are annealed, without much heat. */

#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_anneal.h"
#include "util/util.h"

/* The best path of a chain's interval plans as a plan of its spine; *out is NULL where some interval has none. */
static int compose_spine(moirai_plan **out, const bound_interval_chain *x)
{
    const moirai_problem *p = x->spine->problem;
    moirai_sim *sim = NULL;
    util_memory m = {0};
    int32_t *cut_device = util_take(&m, (size_t)x->c->s->n_cuts, sizeof *cut_device),
            *op_device = util_take(&m, (size_t)p->n_ops, sizeof *op_device);
    moirai_task *order = util_take(&m, (size_t)place_compose_capacity(p), sizeof *order);
    int rc = m.failed ? MOIRAI_EFAIL : moirai_sim_new(&sim, p);
    *out = NULL;
    if (!rc && pair_chain_path(x->c, PAIR_CHAIN_UPPER, cut_device) < INT64_MAX) {
        int64_t n = place_compose(x->c, cut_device, NULL, op_device, order);
        if (moirai_sim_replay(sim, op_device, order, n) >= 0)
            rc = moirai_sim_plan(out, sim);
    }
    moirai_sim_free(sim);
    util_release(&m);
    return rc;
}

/* A plan of the whole from a chain; *out is NULL where there is none that is near enough to the best. */
static int plan_of_chain(moirai_plan **out, const incumbent *x, const bound_interval_chain *chain,
                         const util_stop *stop)
{
    double most = (1 + STEP_INTERVAL_PLANS_NEAR) * (double)x->best->makespan_ns;
    moirai_plan *spine;
    *out = NULL;
    int rc = compose_spine(&spine, chain);
    if (!rc && spine && (double)spine->makespan_ns <= most)
        rc = place_floats_insert(out, chain->spine, spine, stop);
    moirai_plan_free(spine);
    if (*out && (double)(*out)->makespan_ns > most) {
        moirai_plan_free(*out);
        *out = NULL;
    }
    return rc;
}

static int polish(incumbent *in, moirai_plan **plan, int32_t number, const util_stop *stop)
{
    const moirai_budget *b = &in->o->budget;
    double n = UTIL_MAX(STEP_INTERVAL_PLANS_EVALUATIONS, STEP_INTERVAL_PLANS_EVALUATIONS_OP * in->p->n_ops) *
               UTIL_MIN(b->effort, 1e6);
    place_whole_task job = {.evaluations = (int64_t)n + 1,
                            .heat = STEP_INTERVAL_PLANS_HEAT,
                            .seed = b->seed * 1000 + 500 + (uint64_t)number,
                            .threads = b->threads,
                            .stop = *stop};
    in->work += job.evaluations;
    return place_whole_anneal(plan, in->p, &job);
}

static int run(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    util_stop stop = incumbent_part(in, turn->share);
    int rc = 0;
    for (int32_t i = 0; x->portfolio && i < x->portfolio->n && !rc; i++) {
        const bound_interval_chain *chain = x->portfolio->chain[i].x;
        moirai_plan *plan;
        if (incumbent_gap(in) <= in->o->gap || util_stopped(&stop))
            break;
        rc = plan_of_chain(&plan, in, chain, &stop);
        if (rc || !plan)
            continue;
        rc = polish(in, &plan, i, &stop);
        if (rc)
            moirai_plan_free(plan);
        else
            rc = incumbent_offer(in, plan, 'I');
    }
    return rc;
}

const engine_step step_interval_plans = {.method = UTIL_METHOD_INTERVAL_PLANS, .run = run};
