/* Annealing of the whole problem, in rounds (whole_anneal.c), each from the best plan at hand.
 *
 * It serves where blocks are large or missing, and polishes elsewhere. Two short rounds show bounds what there is to
 * prove. The third is long and begins hot: slow cooling finds what many quick rounds do not (pnasnet5large on
 * inter-server, 4.4 million states: 18.30 ms in five rounds that double, 18.08 in one). Rounds by windows follow (whole_windows.c) as long as they gain something, then
 * a hot one again, and so on. A hot round that is cut off while it is hot is lost, so that where time is limited it is
 * made to fit, by the pace of the rounds before. Three rounds in a row that gain nothing end it. */
#include <math.h>
#include <stdlib.h>

#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_anneal.h"
#include "util/util.h"

typedef struct step_whole {
    int32_t rounds;   /* so far */
    int32_t again;    /* how often they have doubled: slow cooling from a hot start goes on where quick ones end */
    int32_t patience; /* of annealing by windows: doubled where it gains nothing; 0: 1 */
    bool hot_due;     /* the next of them is to be a hot one */
    double pace;      /* of the last one: evaluations of each chain in a second; 0: not known */
} step_whole;

void step_whole_free(struct step_whole *x)
{
    free(x);
}

static step_whole *data_of(engine *x)
{
    if (!x->whole)
        x->whole = util_alloc(1, sizeof *x->whole);
    return x->whole;
}

/* Evaluations of each chain in the next round, were there time for all. */
static double full_round(const incumbent *x, const step_whole *w)
{
    double n = x->p->n_ops, quick = fmax(STEP_WHOLE_EVALUATIONS, STEP_WHOLE_EVALUATIONS_OP * n),
           most =
               w->rounds < STEP_WHOLE_SHORT_ROUNDS ? quick * (1 + w->rounds) : fmax(STEP_WHOLE_LONG_OP * n, 4 * quick);
    return fmin(ldexp(most, w->again), STEP_WHOLE_STEPS / fmax(n, 1)) * fmin(x->o->budget.effort, 1e6);
}

/* As many as there is time for. */
static double timely_round(const incumbent *x, const step_whole *w, const util_stop *stop)
{
    double left = util_stop_left_s(stop);
    return left < HUGE_VAL && w->pace > 0 ? fmin(full_round(x, w), STEP_WHOLE_IN_TIME * left * w->pace)
                                          : full_round(x, w);
}

static double gain(const moirai_plan *after, const moirai_plan *before)
{
    return 1 - (double)after->makespan_ns / fmax((double)before->makespan_ns, 1);
}

static int anneal_round(incumbent *x, step_whole *w, bool hot, util_stop stop)
{
    moirai_plan *plan;
    int rc = moirai_plan_copy(&plan, x->best);
    if (rc)
        return rc;
    const moirai_budget *b = &x->o->budget;
    double begun = util_seconds();
    bool first = w->rounds <= STEP_WHOLE_SHORT_ROUNDS;
    hot = w->rounds == STEP_WHOLE_SHORT_ROUNDS ||
          ((hot || w->hot_due) && !first && timely_round(x, w, &stop) >= STEP_WHOLE_LEAST_HOT * full_round(x, w));
    int64_t second_ns = 0;
    bool windows = !hot && !first && !incumbent_off(x, NEIGHBOURHOODS);
    place_whole_task job = {.evaluations = (int64_t)(windows ? full_round(x, w) : timely_round(x, w, &stop)) + 1,
                            .heat = hot || w->rounds == 0 ? 1 : 0.4,
                            .patience = w->patience,
                            .second_ns = hot ? &second_ns : NULL,
                            .seed = b->seed * 1000 + (uint64_t)w->rounds,
                            .threads = b->threads,
                            .stop = stop};
    w->rounds++;
    rc = windows ? place_whole_windows(&plan, x->p, &job) : place_whole_anneal(&plan, x->p, &job);
    x->work += job.evaluations;
    /* What was cut off while it was hot says nothing, and quick cooling ends near to where it began. */
    if (second_ns && !util_stopped(&stop) && (double)job.evaluations >= STEP_WHOLE_RIVAL_OP * x->p->n_ops)
        x->rival_ns = second_ns;
    if (windows && !rc && gain(plan, x->best) < STEP_WHOLE_WORTH_A_ROUND)
        w->patience = UTIL_MIN(2 * UTIL_MAX(w->patience, 1), STEP_WHOLE_MOST_PATIENCE);
    if (!util_stopped(&stop) && !windows)
        w->pace = (double)job.evaluations / fmax(util_seconds() - begun, 1e-6);
    if (rc) {
        moirai_plan_free(plan);
        return rc;
    }
    w->hot_due = windows && gain(plan, x->best) < STEP_WHOLE_WINDOWS_GAIN;
    return incumbent_offer(x, plan, 'W');
}

static int run(engine *engine_, const engine_turn *turn)
{
    incumbent *x = &engine_->in;
    step_whole *w = data_of(engine_);
    util_stop stop = incumbent_part(x, turn->share);
    int32_t idle = 0;
    int rc = w ? 0 : MOIRAI_EFAIL;
    if (rc || x->p->n_ops > STEP_WHOLE_MOST_OPS)
        return rc;
    w->again = engine_->again;
    for (int32_t i = 0; i < turn->rounds && !rc && idle < STEP_WHOLE_MOST_IDLE; i++) {
        if (incumbent_gap(x) <= x->o->gap || util_stopped(&stop))
            break;
        double before = (double)x->best->makespan_ns;
        rc = anneal_round(x, w, engine_->again && i == 0, stop);
        idle = (double)x->best->makespan_ns > (1 - STEP_WHOLE_WORTH_A_ROUND) * before ? idle + 1 : 0;
    }
    return rc;
}

const engine_step step_whole_anneal = {.method = UTIL_METHOD_WHOLE, .run = run};
