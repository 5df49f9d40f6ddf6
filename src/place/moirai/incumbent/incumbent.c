/* The best plan and the best bound: how both are told and kept. */
#include "place/moirai/incumbent/incumbent.h"

#include <math.h>

#include "place/fit.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "schedule/plan.h"
#include "util/util.h"

void incumbent_begin(incumbent *x, const moirai_problem *p, const moirai_place_options *o)
{
    *x = (incumbent){
        .p = p, .o = o, .begun = util_seconds(), .stop = util_stop_of(&o->budget), .effort = o->budget.effort};
}

void incumbent_clear(incumbent *x)
{
    moirai_plan_free(x->best);
    x->best = NULL;
}

bool incumbent_stopped(const incumbent *x)
{
    return util_stopped(&x->stop);
}

bool incumbent_done(const incumbent *x)
{
    return incumbent_gap(x) <= x->o->gap || incumbent_stopped(x);
}

util_stop incumbent_part(const incumbent *x, double part)
{
    return util_stop_part(&x->stop, part);
}

void incumbent_tell(const incumbent *x, char letter, const char *note)
{
    if (!x->o->budget.progress || x->outer)
        return;
    moirai_progress news = {.seconds = util_seconds() - x->begun,
                            .letter = letter,
                            .makespan_ns = x->best ? x->best->makespan_ns : MOIRAI_UNKNOWN,
                            .lower_bound_ns = x->lower_ns,
                            .work = x->work,
                            .note = note};
    x->o->budget.progress(x->o->budget.progress_data, &news);
}

void incumbent_take_bound(incumbent *x, int64_t lower_ns)
{
    if (lower_ns == INT64_MAX || lower_ns <= x->lower_ns)
        return;
    x->lower_ns = lower_ns;
    x->bound_by = x->at_work;
    incumbent_tell(x, ' ', NULL);
    if (x->outer)
        incumbent_take_bound(x->outer, lower_ns);
}

/* Whether steps still find shorter plans is evidence of how good the best one is. */
static void count_try(incumbent *x, int64_t makespan_ns)
{
    bool gains = !x->best || (double)makespan_ns < (1 - INCUMBENT_WORTH_A_TRY) * (double)x->best->makespan_ns;
    x->tries++;
    x->stale = gains ? 0 : x->stale + 1;
}

/* Where the first plan of a large problem took so much of the time, there is none for two checks: what is left is the last one's. */
static bool is_late(const incumbent *x)
{
    double now = util_seconds();
    return x->p->n_ops >= PLACE_FIT_LARGE && now - x->begun > INCUMBENT_LATE * (x->stop.deadline - x->begun);
}

/* What comes after the search is the check of the plan. It is measured once, with the first plan, whichever step finds it; the last one
 * may send every tensor. */
static void reserve_time(incumbent *x)
{
    double begun = util_seconds();
    if (is_late(x)) {
        x->stop.deadline = x->begun;
        return;
    }
    moirai_plan_check(x->p, x->best, NULL, NULL);
    double tasks = (double)x->p->n_ops + x->best->n_transfers, most = (double)x->p->n_ops + x->p->n_edges;
    double reserve_s = INCUMBENT_RESERVE * (util_seconds() - begun) * most / fmax(tasks, 1);
    x->stop.deadline = fmax(x->stop.deadline - reserve_s, x->begun); /* not 0, which were none */
}

/* Takes ownership of plan. */
static void keep(incumbent *x, moirai_plan *plan, char letter)
{
    count_try(x, plan->makespan_ns);
    if (x->best && plan->makespan_ns >= x->best->makespan_ns) {
        moirai_plan_free(plan);
        return;
    }
    bool first = !x->best;
    moirai_plan_free(x->best);
    x->best = plan;
    x->plan_by = x->at_work;
    incumbent_tell(x, letter, NULL);
    if (first && !x->outer && x->stop.deadline > 0 && !util_stopped(&x->stop)) /* else nothing is left to keep of it */
        reserve_time(x);
}

/* Whether a plan of this length is of use: better than the best, or, of a spine, near to it, since it may leave better
 * gaps. */
static bool wanted(const incumbent *x, int64_t makespan_ns)
{
    double most = x->outer ? 1 + INCUMBENT_NEAR_BEST : 1;
    return !x->best || (double)makespan_ns < most * (double)x->best->makespan_ns;
}

int incumbent_offer(incumbent *x, moirai_plan *plan, char letter)
{
    incumbent *y = x->outer;
    moirai_plan *whole = NULL;
    int rc = 0;
    if (y && wanted(x, plan->makespan_ns) && !incumbent_stopped(y) &&
        (!y->best || plan->makespan_ns < y->best->makespan_ns))
        rc = place_floats_insert(&whole, x->spine, plan, &y->stop);
    if (whole)
        keep(y, whole, 'F');
    keep(x, plan, letter);
    return rc;
}

int incumbent_offer_start(void *data, moirai_plan *plan, char letter)
{
    incumbent *x = data;
    if (letter != 'S') /* the user's own is no heuristic's */
        x->starts_ns = x->starts_ns ? UTIL_MIN(x->starts_ns, plan->makespan_ns) : plan->makespan_ns;
    return incumbent_offer(x, plan, letter);
}

double incumbent_gap(const incumbent *x)
{
    if (!x->best)
        return 1;
    return x->best->makespan_ns ? (double)(x->best->makespan_ns - x->lower_ns) / (double)x->best->makespan_ns : 0;
}

int incumbent_take_simulated(incumbent *x, moirai_sim *sim, int64_t makespan_ns, char letter)
{
    if (makespan_ns >= 0 && !wanted(x, makespan_ns))
        count_try(x, makespan_ns);
    if (makespan_ns < 0 || !wanted(x, makespan_ns))
        return 0;
    if (moirai_sim_memory_excess(sim, NULL) > 0) {
        x->memory_binds = true;
        return 0;
    }
    moirai_plan *plan;
    int rc = moirai_sim_plan(&plan, sim);
    return rc ? rc : incumbent_offer(x, plan, letter);
}

bool incumbent_grow(incumbent *x)
{
    if (x->stop.deadline <= 0 || incumbent_done(x) || x->passes >= INCUMBENT_MOST_PASSES)
        return false;
    x->effort *= 2;
    x->passes++;
    return true;
}

int incumbent_sign(const incumbent *x, moirai_plan *plan)
{
    schedule_origin_clear(&plan->origin); /* that of a plan to start from */
    int rc = schedule_origin_plan_by(&plan->origin, x->plan_by);
    rc = rc ? rc : schedule_origin_bound_by(&plan->origin, x->bound_by);
    plan->origin.starts_ns = x->starts_ns;
    plan->origin.rival_ns = x->rival_ns;
    plan->origin.tries = x->tries;
    plan->origin.stale = x->stale;
    for (int i = 0; i < UTIL_N_METHODS && !rc; i++) {
        const incumbent_stat *stat = &x->stat[i];
        moirai_search_step step = {.calls = stat->calls,
                                   .cpu_ns = (int64_t)(stat->cpu_s * 1e9),
                                   .plan_gain_ns = stat->plan_gain_ns,
                                   .bound_gain_ns = stat->bound_gain_ns};
        rc = stat->calls ? schedule_origin_add_step(&plan->origin, util_method_name((util_method)i), &step) : 0;
    }
    return rc;
}
