/* What the engine does about the whole problem at once: annealing for the plan, chains of intervals for the bound.
 *
 * Both serve where blocks are large or missing, and polish elsewhere. Annealing goes in rounds (whole_anneal.c), each
 * from the best plan at hand. Two short ones show bounds what there is to prove. The third is long and begins hot: slow
 * cooling finds what many quick rounds do not (pnasnet5large on inter-server, 4.4 million states: 18.30 ms in five rounds
 * that double, 18.08 in one), and the states that its chains have ended with are crossed (whole_cross.c). Rounds by windows
 * follow (whole_windows.c) as long as they gain something, then a hot one again, and so on. A hot round that is cut off
 * while it is hot is lost, so that where time is limited it is made to fit, by the pace of the rounds before. Three
 * rounds in a row that gain nothing end it. Chains of intervals (bound/intervals/interval_chain.c) are tried from the
 * likeliest on, with the best plan as the goal; a small problem's static programme (pair/static_lp.c) as a whole comes
 * last. */
#include <math.h>

#include "place/moirai/engine.h"
#include "place/moirai/whole_cross.h"
#include "util/util.h"

#define MOST_OPS 100000     /* beyond, setting up a state takes longer than there is time to change it */
#define EVALUATIONS 30000.0 /* of the first round, per chain, */
#define EVALUATIONS_OP 60.0 /* or so many per operator if that is more */
#define LONG_OP 1700.0      /* of a long round, per operator */
#define STEPS 8e8           /* a round puts down at most about so many operators */
#define SHORT_ROUNDS 2
#define WINDOWS_GAIN 0.0005 /* rounds by windows go on as long as they gain as much */
#define LEAST_HOT 0.7       /* of a long round's evaluations: where there is time for less, none is hot */
#define IN_TIME 0.6         /* of the time that is left is planned for a hot round */
#define CROSS_OPS 4000      /* beyond, crossing takes longer than annealing */
#define WORTH_A_ROUND 0.0002
#define MOST_IDLE 3        /* rounds in a row that gain nothing */
#define MOST_PATIENCE 16   /* with windows */
#define LARGE_COMPONENT 36 /* operators */
#define CHAINS 14          /* of intervals, at effort 1 */
#define LITTLE_EFFORT 0.2
#define POOL_ROUNDS 3
#define POOL_CUTS 120.0 /* at each length, at effort 1 */
#define POOL_NODES 4000
#define POOL_NODES_OP 5
#define MOST_CELLS 16000 /* of a programme for the whole: a few seconds */

/* Evaluations of each chain in the next round, were there time for all. */
static double full_round(const engine *x)
{
    double n = x->p->n_ops, quick = fmax(EVALUATIONS, EVALUATIONS_OP * n),
           most = x->whole_rounds < SHORT_ROUNDS ? quick * (1 + x->whole_rounds) : fmax(LONG_OP * n, 4 * quick);
    return fmin(most, STEPS / fmax(n, 1)) * fmin(x->o->budget.effort, 1e6);
}

/* As many as there is time for. */
static double timely_round(const engine *x, const util_stop *stop)
{
    double left = util_stop_left_s(stop);
    return left < HUGE_VAL && x->whole_pace > 0 ? fmin(full_round(x), IN_TIME * left * x->whole_pace) : full_round(x);
}

static double gain(const moirai_plan *after, const moirai_plan *before)
{
    return 1 - (double)after->makespan_ns / fmax((double)before->makespan_ns, 1);
}

static int anneal_round(engine *x, bool hot, util_stop stop)
{
    moirai_plan *plan;
    int rc = moirai_plan_copy(&plan, x->best);
    if (rc)
        return rc;
    const moirai_budget *b = &x->o->budget;
    double begun = util_seconds();
    bool first = x->whole_rounds <= SHORT_ROUNDS;
    hot = x->whole_rounds == SHORT_ROUNDS ||
          ((hot || x->hot_due) && !first && timely_round(x, &stop) >= LEAST_HOT * full_round(x));
    bool windows = !hot && !first;
    place_whole_task job = {.evaluations = (int64_t)(windows ? full_round(x) : timely_round(x, &stop)) + 1,
                            .heat = hot || x->whole_rounds == 0 ? 1 : 0.4,
                            .patience = x->patience,
                            .states = x->p->n_ops <= CROSS_OPS ? &x->states : NULL,
                            .seed = b->seed * 1000 + (uint64_t)x->whole_rounds,
                            .threads = b->threads,
                            .stop = stop};
    x->whole_rounds++;
    rc = windows ? place_whole_windows(&plan, x->p, &job) : place_whole_anneal(&plan, x->p, &job);
    x->work += job.evaluations;
    if (windows && !rc && gain(plan, x->best) < WORTH_A_ROUND)
        x->patience = UTIL_MIN(2 * UTIL_MAX(x->patience, 1), MOST_PATIENCE);
    if (!util_stopped(&stop) && !windows)
        x->whole_pace = (double)job.evaluations / fmax(util_seconds() - begun, 1e-6);
    if (!rc && hot && job.states) /* windows leave one state, and short rounds none that is near to the best */
        rc = place_states_cross(&plan, &x->states, x->p, &job);
    if (rc) {
        moirai_plan_free(plan);
        return rc;
    }
    x->hot_due = windows && gain(plan, x->best) < WINDOWS_GAIN;
    return engine_offer(x, plan, 'W');
}

int engine_anneal_whole(engine *x, int32_t rounds, double part)
{
    util_stop stop = engine_part(x, part);
    int32_t idle = 0;
    int rc = 0;
    if (x->p->n_ops > MOST_OPS)
        return 0;
    for (int32_t i = 0; i < rounds && !rc && x->best && idle < MOST_IDLE; i++) {
        if (engine_gap(x) <= x->o->gap || util_stopped(&stop))
            break;
        double before = (double)x->best->makespan_ns;
        rc = anneal_round(x, x->again && i == 0, stop);
        idle = (double)x->best->makespan_ns > (1 - WORTH_A_ROUND) * before ? idle + 1 : 0;
    }
    return rc;
}

int engine_raise_by_intervals(engine *x, int32_t chains, int32_t tries, double part)
{
    if (engine_gap(x) <= x->o->gap || !x->best)
        return 0;
    double effort = ldexp(x->o->budget.effort, x->again);
    int32_t most = 1 + (int32_t)(CHAINS * fmin(effort, 1));
    bound_interval_task job = {.goal_ns = x->best->makespan_ns,
                               .chains = UTIL_MIN(chains, most),
                               .tries = effort < LITTLE_EFFORT ? UTIL_MIN(tries, 2) : tries,
                               .effort = effort,
                               .threads = x->o->budget.threads,
                               .seed = x->o->budget.seed + (uint64_t)x->again,
                               .stop = engine_part(x, part)};
    int64_t lower = 0;
    bound_windows_clear(&x->windows);
    int rc = x->contest ? 0 : bound_contest_new(&x->contest, x->p);
    rc = rc ? rc : bound_contest_raise(&lower, x->contest, &job);
    if (!rc && lower > x->lower_ns) /* what is certified */
        x->intervals = bound_contest_best_of_short(x->contest);
    rc = rc ? rc : bound_contest_windows(&x->windows, x->contest);
    if (!rc)
        engine_take_bound(x, UTIL_MAX(lower, x->windows.lower_ns));
    return rc;
}

/* One programme for all of a small problem. */
int engine_raise_by_programme(engine *x, double part)
{
    int64_t lower = 0;
    if (engine_gap(x) <= x->o->gap || !x->best || pair_static_cells(x->p) > MOST_CELLS ||
        x->o->budget.effort < LITTLE_EFFORT)
        return 0;
    pair_static_task job = {.proven_ns = x->lower_ns,
                            .upper_ns = x->best->makespan_ns,
                            .rounds = PAIR_STATIC_ROUNDS,
                            .entry = MOIRAI_NONE,
                            .exit = MOIRAI_NONE,
                            .stop = engine_part(x, part)};
    int rc = pair_static_lp(&lower, x->p, &job, 0);
    if (!rc)
        engine_take_bound(x, lower);
    return rc;
}

pair_pool_task engine_pool_task(const engine *x, double part)
{
    const moirai_budget *b = &x->o->budget;
    return (pair_pool_task){.proven_ns = x->lower_ns,
                            .upper_ns = x->best->makespan_ns,
                            .rounds = POOL_ROUNDS,
                            .cuts = (int32_t)(POOL_CUTS * fmin(b->effort, 100)) + 1,
                            .nodes = UTIL_MAX(POOL_NODES, POOL_NODES_OP * x->p->n_ops),
                            .threads = b->threads,
                            .stop = engine_part(x, part)};
}

int engine_raise_by_windows(engine *x, double part)
{
    int64_t lower = 0;
    if (engine_gap(x) <= x->o->gap || !x->best || !x->windows.head || util_stopped(&x->stop))
        return 0;
    pair_pool_task job = engine_pool_task(x, part);
    int rc = bound_windows_pool(&lower, &x->windows, x->p, &job, NULL);
    if (!rc)
        engine_take_bound(x, lower);
    return rc;
}

/* The whole as one block without cuts, so that what the pool proves can be certified like any other pair. */
static int raise_by_pool(pair_chain **out, const engine *x, double part)
{
    bool *none = util_alloc((size_t)x->p->n_ops, sizeof *none);
    int rc = none ? pair_chain_over(out, x->p, none) : MOIRAI_EFAIL;
    free(none);
    pair_pool_task job = engine_pool_task(x, part);
    rc = rc ? rc : pair_open(*out, 0, 0, 0);
    return rc ? rc : pair_raise_pool((*out)->pair[0], &job);
}

int engine_raise_by_pool(engine *x, double part)
{
    pair_chain *whole = NULL;
    if (engine_gap(x) <= x->o->gap || !x->best || x->p->n_ops > DECOMPOSE_INTERVALS_OPS || util_stopped(&x->stop))
        return 0;
    int rc = raise_by_pool(&whole, x, part);
    int64_t lower = rc ? 0 : whole->pair[0]->lower_ns;
    if (lower > x->lower_ns) { /* kept for the certificate */
        engine_take_bound(x, lower);
        pair_chain_free(x->pool);
        x->pool = whole;
    } else {
        pair_chain_free(whole);
    }
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

int engine_weakness(double *part, const engine *x)
{
    pair_chain *c;
    int rc = pair_chain_new(&c, x->p);
    double large = 0;
    *part = 0;
    if (rc)
        return rc == MOIRAI_ELIMIT ? 0 : rc;
    for (int32_t i = 0; i < c->s->n_classes && !rc; i++) {
        const decompose_block *b = pair_chain_block(c, i);
        rc = b ? 0 : MOIRAI_EFAIL;
        for (int32_t j = 0; b && j < b->n_components; j++) {
            int32_t n = b->component_off[j + 1] - b->component_off[j];
            large += n > LARGE_COMPONENT ? (double)n * c->s->class_count[i] : 0;
        }
    }
    *part = large / fmax(x->p->n_ops, 1);
    pair_chain_free(c);
    return rc;
}
