/* What the engine knows: the best plan, the best bound, and how both are told and kept. */
#include "place/moirai/engine.h"

#include <math.h>
#include <stdlib.h>

#include "place/moirai/compose.h"
#include "place/moirai/floats.h"
#include "util/util.h"

#define MOST_PASSES 40
#define NEAR_BEST 0.1 /* plans of a spine that are so near to its best are of use */

bool engine_stopped(const engine *x)
{
    return util_stopped(&x->stop);
}

util_stop engine_part(const engine *x, double part)
{
    double left = util_stop_left_s(&x->stop);
    return left < HUGE_VAL ? util_stop_within(&x->stop, part * left) : x->stop;
}

void engine_tell(engine *x, char letter, const char *note)
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

void engine_take_bound(engine *x, int64_t lower_ns)
{
    if (lower_ns == INT64_MAX || lower_ns <= x->lower_ns)
        return;
    x->lower_ns = lower_ns;
    engine_tell(x, ' ', NULL);
    if (x->outer)
        engine_take_bound(x->outer, lower_ns);
}

/* Takes ownership of plan. */
static void keep(engine *x, moirai_plan *plan, char letter)
{
    if (x->best && plan->makespan_ns >= x->best->makespan_ns) {
        moirai_plan_free(plan);
        return;
    }
    moirai_plan_free(x->best);
    x->best = plan;
    engine_tell(x, letter, NULL);
}

/* Whether a plan of this length is of use: better than the best, or, of a spine, near to it, since it may leave better
 * gaps. */
static bool wanted(const engine *x, int64_t makespan_ns)
{
    double most = x->outer ? 1 + NEAR_BEST : 1;
    return !x->best || (double)makespan_ns < most * (double)x->best->makespan_ns;
}

int engine_offer(engine *x, moirai_plan *plan, char letter)
{
    engine *y = x->outer;
    moirai_plan *whole = NULL;
    int rc = 0;
    if (y && wanted(x, plan->makespan_ns) && !engine_stopped(y) &&
        (!y->best || plan->makespan_ns < y->best->makespan_ns))
        rc = place_floats_insert(&whole, y->spine, plan, &y->stop);
    if (whole)
        keep(y, whole, 'F');
    keep(x, plan, letter);
    return rc;
}

double engine_gap(const engine *x)
{
    if (!x->best)
        return 1;
    return x->best->makespan_ns ? (double)(x->best->makespan_ns - x->lower_ns) / (double)x->best->makespan_ns : 0;
}

int engine_take_simulated(engine *x, int64_t makespan_ns, char letter)
{
    if (makespan_ns < 0 || !wanted(x, makespan_ns))
        return 0;
    if (moirai_sim_memory_excess(x->sim, NULL) > 0) {
        x->memory_binds = true;
        return 0;
    }
    moirai_plan *plan;
    int rc = moirai_sim_plan(&plan, x->sim);
    return rc ? rc : engine_offer(x, plan, letter);
}

int engine_prepare(engine *x)
{
    int rc = pair_chain_new(&x->c, x->p);
    if (rc)
        return rc;
    pair_chain_join_equals(x->c);
    size_t cuts = (size_t)x->c->s->n_cuts, pairs = (size_t)pair_chain_count(x->c);
    x->cut_device = util_alloc(cuts, sizeof(int32_t));
    x->plan_device = util_alloc(cuts, sizeof(int32_t));
    x->op_device = util_alloc((size_t)x->p->n_ops, sizeof(int32_t));
    x->order = util_alloc((size_t)place_compose_capacity(x->p), sizeof(moirai_task));
    x->weight = util_alloc(pairs, sizeof(int64_t));
    x->times = util_alloc(pairs, sizeof(int64_t));
    x->plan_times = util_alloc(pairs, sizeof(int64_t));
    x->share = util_alloc((size_t)x->c->s->n_classes, sizeof(double));
    x->index = util_alloc((size_t)x->c->s->n_blocks, sizeof(int64_t));
    if (!x->cut_device || !x->plan_device || !x->op_device || !x->order || !x->weight || !x->times || !x->plan_times ||
        !x->share || !x->index)
        return MOIRAI_EFAIL;
    return moirai_sim_new(&x->sim, x->p);
}

engine *engine_new(const moirai_problem *p, const moirai_place_options *o)
{
    engine *x = util_alloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->p = p;
    x->o = o;
    x->begun = util_seconds();
    x->stop = util_stop_of(&o->budget);
    x->effort = o->budget.effort;
    x->top_level = x->effort < 0.5 ? 2 : x->effort < 2 ? 3 : PAIR_LEVELS;
    x->batches_left = 2 + (int32_t)(16 * fmin(x->effort, 1000));
    return x;
}

/* Levels above the last one repeat it with more effort. */
bool engine_grow(engine *x)
{
    if (x->stop.deadline <= 0 || engine_stopped(x) || engine_gap(x) <= x->o->gap || x->passes >= MOST_PASSES)
        return false;
    x->effort *= 2;
    x->passes++;
    x->top_level = PAIR_LEVELS + x->passes;
    x->batches_left = 16 << UTIL_MIN(x->passes, 16);
    return true;
}

void engine_free(engine *x)
{
    if (!x)
        return;
    engine_free(x->inner);
    decompose_spine_free(x->spine);
    bytes_prices_free(x->memory);
    bound_contest_free(x->contest);
    place_states_clear(&x->states);
    bound_windows_clear(&x->windows);
    pair_chain_free(x->pool);
    pair_chain_free(x->c);
    moirai_sim_free(x->sim);
    moirai_plan_free(x->best);
    free(x->cut_device);
    free(x->plan_device);
    free(x->op_device);
    free(x->order);
    free(x->weight);
    free(x->times);
    free(x->plan_times);
    free(x->share);
    free(x->index);
    free(x);
}
