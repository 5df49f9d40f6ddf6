/* Annealing of the whole problem, in rounds (whole_anneal.c), each from the best plan at hand.
 *
 * Two short rounds show bounds what there is to prove. The third is long and begins hot (docs/results.md, one long hot
 * round). Cooler ones follow. A hot round that is cut off while it is hot is lost, so that where time is limited it is
 * made to fit, by the pace of the rounds before. Three rounds in a row that gain nothing end it. */
#include <math.h>

#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_anneal.h"
#include "util/util.h"

/* Evaluations of each chain in the next round, were there time for all. Slow cooling from a hot start goes on where quick rounds end. */
static double full_round(const engine *x)
{
    double n = x->in.p->n_ops, quick = fmax(STEP_WHOLE_EVALUATIONS, STEP_WHOLE_EVALUATIONS_OP * n),
           most = x->whole_rounds < STEP_WHOLE_SHORT_ROUNDS ? quick * (1 + x->whole_rounds)
                                                            : fmax(STEP_WHOLE_LONG_OP * n, 4 * quick);
    return fmin(ldexp(most, x->again), STEP_WHOLE_STEPS / fmax(n, 1)) * fmin(x->in.o->budget.effort, 1e6);
}

/* As many as there is time for. */
static double timely_round(const engine *x, const util_stop *stop)
{
    double left = util_stop_left_s(stop);
    return left < HUGE_VAL && x->whole_pace > 0 ? fmin(full_round(x), STEP_WHOLE_IN_TIME * left * x->whole_pace)
                                                : full_round(x);
}

static int anneal_round(engine *x, bool hot, util_stop stop)
{
    incumbent *in = &x->in;
    moirai_plan *plan;
    int rc = moirai_plan_copy(&plan, in->best);
    if (rc)
        return rc;
    const moirai_budget *b = &in->o->budget;
    double begun = util_seconds(), evaluations = timely_round(x, &stop);
    hot = x->whole_rounds == STEP_WHOLE_SHORT_ROUNDS ||
          (hot && x->whole_rounds > STEP_WHOLE_SHORT_ROUNDS && evaluations >= STEP_WHOLE_LEAST_HOT * full_round(x));
    int64_t second_ns = 0;
    place_whole_task job = {.evaluations = (int64_t)evaluations + 1,
                            .heat = hot || x->whole_rounds == 0 ? 1 : 0.4,
                            .second_ns = hot ? &second_ns : NULL,
                            .seed = b->seed * 1000 + (uint64_t)x->whole_rounds,
                            .threads = b->threads,
                            .stop = stop};
    x->whole_rounds++;
    rc = place_whole_anneal(&plan, in->p, &job);
    in->work += job.evaluations;
    /* What was cut off while it was hot says nothing, and quick cooling ends near to where it began. */
    if (second_ns && !util_stopped(&stop) && (double)job.evaluations >= STEP_WHOLE_RIVAL_OP * in->p->n_ops)
        in->rival_ns = second_ns;
    if (!util_stopped(&stop))
        x->whole_pace = (double)job.evaluations / fmax(util_seconds() - begun, 1e-6);
    if (!rc)
        return incumbent_offer(in, plan, 'W');
    moirai_plan_free(plan);
    return rc;
}

static int run(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    util_stop stop = incumbent_part(in, turn->share);
    int32_t idle = 0;
    int rc = 0;
    if (in->p->n_ops > STEP_WHOLE_MOST_OPS)
        return 0;
    for (int32_t i = 0; i < turn->rounds && !rc && idle < STEP_WHOLE_MOST_IDLE; i++) {
        if (incumbent_gap(in) <= in->o->gap || util_stopped(&stop))
            break;
        double before = (double)in->best->makespan_ns;
        rc = anneal_round(x, x->again && i == 0, stop);
        idle = (double)in->best->makespan_ns > (1 - STEP_WHOLE_WORTH_A_ROUND) * before ? idle + 1 : 0;
    }
    return rc;
}

const engine_step step_whole_anneal = {.method = UTIL_METHOD_WHOLE, .run = run};
