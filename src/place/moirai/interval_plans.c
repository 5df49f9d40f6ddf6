/* Plans from chains of intervals.
 *
 * A chain is raised by searching its intervals between two devices (bound/intervals/interval_chain.c), and a search that
 * closes an interval leaves its best plan behind. The best path of these plans is a plan of the chain's spine, often an
 * optimal one; what floats beside the chain is put into its gaps (floats.c). Where a network is two towers, or a trunk
 * with branches, annealing of the whole hardly finds such plans: the tower that decides changes its device twice a layer,
 * and each change alone costs a transfer. Plans that come near to the best one are annealed, without much heat. */
#include <stdlib.h>

#include "place/moirai/compose.h"
#include "place/moirai/engine.h"
#include "place/moirai/floats.h"
#include "place/moirai/whole_anneal.h"
#include "util/util.h"

#define NEAR 0.06 /* longer plans than the best by more are left alone */
#define HEAT 0.3  /* of a long round's */
#define EVALUATIONS 30000.0
#define EVALUATIONS_OP 150.0

/* The best path of a chain's interval plans as a plan of its spine; *out is NULL where some interval has none. */
static int compose_spine(moirai_plan **out, const bound_interval_chain *x)
{
    const moirai_problem *p = x->spine->problem;
    moirai_sim *sim = NULL;
    int32_t *cut_device = util_alloc((size_t)x->c->s->n_cuts, sizeof *cut_device),
            *op_device = util_alloc((size_t)p->n_ops, sizeof *op_device);
    moirai_task *order = util_alloc((size_t)place_compose_capacity(p), sizeof *order);
    int rc = cut_device && op_device && order ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    *out = NULL;
    if (!rc && pair_chain_path(x->c, PAIR_CHAIN_UPPER, cut_device) < INT64_MAX) {
        int64_t n = place_compose(x->c, cut_device, NULL, op_device, order);
        if (moirai_sim_replay(sim, op_device, order, n) >= 0)
            rc = moirai_sim_plan(out, sim);
    }
    moirai_sim_free(sim);
    free(cut_device);
    free(op_device);
    free(order);
    return rc;
}

/* A plan of the whole from a chain; *out is NULL where there is none that is near enough to the best. */
static int plan_of_chain(moirai_plan **out, const engine *x, const bound_interval_chain *chain, const util_stop *stop)
{
    double most = (1 + NEAR) * (double)x->best->makespan_ns;
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

static int polish(engine *x, moirai_plan **plan, int32_t number, const util_stop *stop)
{
    const moirai_budget *b = &x->o->budget;
    double n = UTIL_MAX(EVALUATIONS, EVALUATIONS_OP * x->p->n_ops) * UTIL_MIN(b->effort, 1e6);
    place_whole_task job = {.evaluations = (int64_t)n + 1,
                            .heat = HEAT,
                            .states = &x->states,
                            .seed = b->seed * 1000 + 500 + (uint64_t)number,
                            .threads = b->threads,
                            .stop = *stop};
    x->work += job.evaluations;
    return place_whole_anneal(plan, x->p, &job);
}

int engine_compose_intervals(engine *x, double part)
{
    util_stop stop = engine_part(x, part);
    int rc = 0;
    for (int32_t i = 0; x->contest && i < bound_contest_count(x->contest) && !rc; i++) {
        const bound_interval_chain *chain = bound_contest_chain(x->contest, i);
        moirai_plan *plan;
        if (engine_gap(x) <= x->o->gap || util_stopped(&stop))
            break;
        rc = plan_of_chain(&plan, x, chain, &stop);
        if (rc || !plan)
            continue;
        rc = polish(x, &plan, i, &stop);
        if (rc)
            moirai_plan_free(plan);
        else
            rc = engine_offer(x, plan, 'I');
    }
    return rc;
}
