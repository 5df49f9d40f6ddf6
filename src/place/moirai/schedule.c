/* The schedule: which step comes when, on what condition, and for which share of the time that is left.
 *
 * Two kinds of problems. Where most operators lie in small components between cuts, blocks do most. Where components are
 * too large for prices and for exhaustive search (wide networks, cells), bounds of the whole come first, with annealing
 * before and after them: what these have raised, blocks would not raise further. Time that is left when all has been
 * tried goes to the list `again`, until it is over. Problems too large for intervals have a list of their own. */
#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"

#include <math.h>

#include "place/fit.h"
#include "place/moirai/whole/whole_sim.h"
#include "util/util.h"

/* ---- conditions ---- */

static bool gap_is_near(const engine *x)
{
    return incumbent_gap(&x->in) <= ENGINE_NEAR;
}

static bool layers_have_gained(const engine *x)
{
    return x->in.stat[UTIL_METHOD_LAYERS].plan_gain_ns > 0;
}

static bool layers_repeat_and_rise(const engine *x)
{
    return x->copies && x->intervals;
}

static bool none_repeats_small_gap(const engine *x)
{
    return !x->copies && incumbent_gap(&x->in) <= SCHEDULE_SMALL_GAP;
}

static bool none_repeats_wide_gap(const engine *x)
{
    return !x->copies && incumbent_gap(&x->in) > SCHEDULE_SMALL_GAP;
}

static bool none_repeats_far(const engine *x)
{
    return !x->copies && !gap_is_near(x);
}

static bool has_intervals(const engine *x)
{
    return x->in.p->n_ops <= DECOMPOSE_INTERVALS_OPS;
}

/* What has had a turn and gained nothing is not worth a longer one. */
static bool blocks_may_gain(const engine *x)
{
    const incumbent_stat *stat = &x->in.stat[UTIL_METHOD_BLOCKS];
    return stat->calls == 0 || stat->plan_gain_ns > 0 || stat->bound_gain_ns > 0;
}

static bool blocks_gain_nothing(const engine *x)
{
    return !blocks_may_gain(x);
}

static bool nothing_raised(const engine *x)
{
    return !x->intervals && blocks_may_gain(x);
}

static bool intervals_have_raised(const engine *x)
{
    return x->intervals != NULL;
}

/* A simulation takes long then: who interrupts is to be answered by a plan that is there. */
static bool is_large(const engine *x)
{
    return x->in.p->n_ops >= PLACE_FIT_LARGE && !x->in.best;
}

static bool is_open(const engine *x)
{
    return !incumbent_stopped(&x->in);
}

static bool needs_starts(const engine *x)
{
    return !x->in.best || is_open(x);
}

static bool few_matter(const engine *x)
{
    return x->part.n > 0;
}

static bool state_fits(const engine *x)
{
    return place_whole_fits(x->in.p);
}

/* ---- lists ---- */

static const engine_turn first[] = {
    {.step = &step_starts, .size = 1, .when = is_large},
    {.step = &step_loads_first, .share = 0.05},
    {.step = &step_starts},
    {.step = &step_exact},
    {.step = &step_loads, .share = 0.15},
};
static const engine_turn exact_again = {.step = &step_exact};

static const engine_turn wide[] = {
    {.step = &step_whole_anneal, .share = 0.15, .rounds = 2},
    {.step = &step_layers, .share = 0.22},
    {.step = &step_blocks, .share = 0.12, .size = 1, .when = none_repeats_far},
    {.step = &step_intervals, .share = 0.25, .rounds = 2},
    /* Layers that are copies get the best by cases of their few pairs, one round long. */
    {.step = &step_intervals, .share = 0.8, .rounds = 4, .when = layers_repeat_and_rise},
    {.step = &step_intervals, .share = 0.1, .rounds = 4, .when = none_repeats_small_gap},
    {.step = &step_intervals, .share = 0.3, .rounds = 4, .when = none_repeats_wide_gap},
    {.step = &step_interval_plans, .share = 0.2},
    {.step = &step_blocks, .share = 0.35, .size = 1, .when = nothing_raised}, /* finer prices would take for ever */
    {.step = &step_layers, .share = 0.3, .when = layers_have_gained},
    {.step = &step_whole_anneal, .share = 1, .rounds = 9},
};

static const engine_turn deep[] = {
    {.step = &step_whole_anneal, .share = 0.05, .rounds = 1},
    {.step = &step_intervals, .share = 0.1, .rounds = 2, .size = 2},
    {.step = &step_blocks, .share = 0.35}, /* more where that gains */
    {.step = &step_layers, .share = 0.22, .when = blocks_gain_nothing},
    {.step = &step_blocks, .share = 0.8, .when = blocks_may_gain},
    {.step = &step_intervals, .share = 0.5, .rounds = 4},
    {.step = &step_interval_plans, .share = 0.2},
    {.step = &step_whole_anneal, .share = 1, .rounds = 5},
};

/* Operators are too many for intervals. */
static const engine_turn huge[] = {
    {.step = &step_blocks, .share = 1},
    {.step = &step_whole_anneal, .share = 1, .rounds = 5},
};

static const engine_turn again[] = {
    {.step = &step_intervals, .share = 0.4, .rounds = 4, .when = intervals_have_raised},
    {.step = &step_interval_plans, .share = 0.1},
    {.step = &step_whole_anneal, .share = 0.6, .rounds = 2},
};

/* On more devices than a mask has. */
static const engine_turn many[] = {
    {.step = &step_part, .share = 1, .when = few_matter}, /* nothing else matters */
    {.step = &step_starts, .share = 0.3, .when = needs_starts},
    {.step = &step_paths, .share = 0.2, .when = is_open},
    {.step = &step_whole_anneal, .share = 1, .rounds = 4, .when = state_fits},
};

/* ---- turns ---- */

static bool is_due(const engine *x, const engine_turn *turn)
{
    const incumbent *in = &x->in;
    /* Without any plan even a search that leaves the starts out has to begin with something. */
    if (util_off(&in->stop, turn->step->method) && (in->best || turn->step != &step_starts))
        return false;
    if (in->best ? incumbent_gap(in) <= in->o->gap && !turn->step->to_the_end : !turn->step->without_plan)
        return false;
    return !turn->when || turn->when(x);
}

int engine_take_turn(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    if (!is_due(x, turn))
        return 0;
    in->at_work = util_method_name(turn->step->method);
    incumbent_stat *stat = &in->stat[turn->step->method];
    double begun = util_cpu_seconds();
    int64_t plan = in->best ? in->best->makespan_ns : 0, bound = in->lower_ns;
    int rc = turn->step->run(x, turn);
    stat->calls++;
    stat->cpu_s += util_cpu_seconds() - begun;
    stat->plan_gain_ns += plan && in->best ? plan - in->best->makespan_ns : 0;
    stat->bound_gain_ns += in->lower_ns - bound;
    return rc;
}

static int take_turns(engine *x, const engine_turn *turn, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++)
        rc = engine_take_turn(x, &turn[i]);
    return rc;
}

#define TAKE_TURNS(x, list) take_turns(x, list, sizeof(list) / sizeof *(list))

/* The part of the operators in components of blocks that are too large for prices and for the search; O(V + E). */
static int find_width(double *part, const moirai_problem *p)
{
    pair_chain *c;
    int rc = pair_chain_new(&c, p);
    double large = 0;
    *part = 0;
    if (rc)
        return rc == MOIRAI_ELIMIT ? 0 : rc;
    for (int32_t i = 0; i < c->s->n_classes && !rc; i++) {
        const decompose_block *b = pair_chain_block(c, i);
        rc = b ? 0 : MOIRAI_EFAIL;
        for (int32_t j = 0; b && j < b->n_components; j++) {
            int32_t n = b->component_off[j + 1] - b->component_off[j];
            large += n > SCHEDULE_LARGE_COMPONENT ? (double)n * c->s->class_count[i] : 0;
        }
    }
    *part = large / fmax(p->n_ops, 1);
    pair_chain_free(c);
    return rc;
}

/* What floats, of all work at its least times. */
static double part_that_floats(const decompose_spine *spine)
{
    const moirai_problem *p = spine->whole;
    double all = 0, floats = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        double least = (double)moirai_op_least_ns(p, i);
        all += least;
        floats += spine->floating[i] ? least : 0;
    }
    return floats / fmax(all, 1);
}

/* A network whose spine leaves little out (decompose/spine.h) is as wide as its spine: blocks of that see nearly all of it. */
static int find_spine_width(double *part, engine *x)
{
    decompose_spine *spine = NULL;
    int rc = decompose_spine_new(&spine, x->in.p, &x->in.stop);
    if (!rc && spine && part_that_floats(spine) <= SCHEDULE_LITTLE_FLOATS)
        rc = find_width(part, spine->problem);
    decompose_spine_free(spine);
    return rc;
}

/* Time that is left when all has been tried. */
static int search_on(engine *x)
{
    int rc = 0;
    while (!rc && !incumbent_off(&x->in, AGAIN) && x->in.stop.deadline > 0 && !incumbent_done(&x->in) && x->in.best &&
           x->again < SCHEDULE_MOST_AGAIN) {
        x->again++;
        rc = TAKE_TURNS(x, again);
    }
    return rc;
}

static int search_many(engine *x)
{
    int rc = engine_choose_part(&x->part, x->in.p);
    return rc ? rc : TAKE_TURNS(x, many);
}

int engine_search(engine *x)
{
    double width;
    if (x->in.p->n_devices > MOIRAI_MASK_DEVICES)
        return search_many(x);
    int rc = TAKE_TURNS(x, first);
    if (rc || incumbent_done(&x->in))
        return rc;
    if (!has_intervals(x))
        return TAKE_TURNS(x, huge);
    rc = find_width(&width, x->in.p);
    if (!rc && width > SCHEDULE_WIDE && !incumbent_off(&x->in, SPINE))
        rc = find_spine_width(&width, x);
    rc = rc ? rc : width > SCHEDULE_WIDE ? TAKE_TURNS(x, wide) : TAKE_TURNS(x, deep);
    rc = rc ? rc : search_on(x);
    while (!rc && x->in.p->n_ops <= ENGINE_EXACT_OPS && incumbent_grow(&x->in))
        rc = engine_take_turn(x, &exact_again);
    return rc;
}
