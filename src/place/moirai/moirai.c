/* The placer `moirai`: near-optimal plans with a proven gap, at any size.
 *
 * Networks are deep and repeat themselves: most operators lie on or between cuts (cuts.c), and the blocks between
 * cuts are copies of a few. So each *distinct* block is studied once per pair of devices at its ends (chain.h):
 * annealing gives plans (anneal.c), prices in time give proven bounds (cheapest.c, master.c), and dynamic programming over
 * the cuts (chain.c) composes either into a statement about the whole problem. Work goes where the answer is still
 * open: only pairs on the path that the bound or the plan takes are refined, the widest first; tightening one moves the
 * path to others. A network without cuts is searched by its spine (spine.c), by an engine within the engine; what
 * floats beside the spine is then put into gaps (floats.c).
 *
 * Starts are all the other heuristics of the registry, so that the plan is never worse than theirs. Refinements run in
 * batches of fixed size on as many threads as there are; a batch is chosen before it starts and read after it ends, so
 * that the result depends on seed and effort, not on the number of threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bound/certificate.h"
#include "exact/exact.h"
#include "place/moirai/engine.h"
#include "place/moirai/floats.h"
#include "place/placers.h"
#include "place/starts.h"
#include "util/util.h"

#define FLOAT_EVALUATIONS 3000.0
#define FLOAT_SHARE 0.15      /* of the time that is left when the spine's search begins */
#define CERTIFY_SHARE 0.3     /* of the time, where the proof is wanted as well */
#define RESERVE 1.2           /* a check may take so much longer than the last one */
#define WHOLE_OPS 48          /* problems up to this size go to the exhaustive search as a whole */
#define WHOLE_NODES 2000000.0 /* of it, at effort 1 */

static int offer_start(void *data, moirai_plan *plan, char letter)
{
    return engine_offer(data, plan, letter);
}

static int try_starts(engine *x)
{
    place_starts_task task = {.p = x->p, .o = x->o, .stop = x->stop, .offer = offer_start, .data = x};
    moirai_place_options without_start = *x->o;
    if (x->outer) { /* the user's start is one of the whole problem */
        without_start.start = NULL;
        task.o = &without_start;
    }
    int result = place_starts(&task);
    snprintf(x->why, sizeof x->why, "%s", task.why);
    return result;
}

/* Nothing fits: what came nearest, in whole bytes. */
static int explain(const engine *x, const char *how)
{
    return moirai_error(MOIRAI_EINFEASIBLE, "'%s' %s%s%s", x->p->name, how, *x->why ? "; the nearest try: " : "", x->why);
}

/* Small problems: the exhaustive search on the whole, in all modes. */
static int try_exact(engine *x, double nodes)
{
    if (x->p->n_ops > WHOLE_OPS || !exact_fits(x->p, NULL))
        return MOIRAI_OK;
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    o.node_limit = (int64_t)fmin(nodes, 1e15) + 1;
    o.stop = x->stop;
    o.start = x->best;
    int result = exact_solve(x->p, &o, &found);
    if (result)
        return result == MOIRAI_ELIMIT ? MOIRAI_OK : result;
    moirai_plan *plan;
    if (found.complete && !found.found)
        result = explain(x, "has no plan that fits the memory: every placement was tried");
    else if (found.found && !(result = exact_plan(&plan, x->p, &found)))
        result = engine_offer(x, plan, 'X');
    if (!result)
        engine_take_bound(x, found.lower_bound_ns);
    exact_result_clear(&found);
    return result;
}

/* A network without cuts: the search goes on with its spine; what it finds comes back through offer and take_bound. */
static int improve_spine(engine *x)
{
    engine *y = engine_new(x->spine->problem, x->o);
    if (!y)
        return MOIRAI_EFAIL;
    x->inner = y;
    y->outer = x;
    y->stop = x->stop;
    if (y->stop.deadline > 0) /* the last part is for the work that floats */
        y->stop.deadline -= FLOAT_SHARE * UTIL_MAX(y->stop.deadline - y->begun, 0);
    int result = try_starts(y);
    if (!result)
        result = engine_prepare(y);
    if (!result)
        result = engine_improve_blocks(y);
    moirai_plan *plan;
    if (result || !x->best || engine_gap(x) <= x->o->gap || (result = moirai_plan_copy(&plan, x->best)))
        return result;
    place_floats_task floats = {
        .evaluations = (int64_t)(FLOAT_EVALUATIONS * x->o->budget.effort), .seed = x->o->budget.seed, .stop = x->stop};
    result = place_floats_improve(&plan, x->spine, &floats);
    if (result)
        moirai_plan_free(plan);
    return result ? result : engine_offer(x, plan, 'F');
}

/* The proof behind the bound, as far as prices carry it by then; of the spine where there is one. Without blocks there is
 * nothing to write down but the longest paths. */
static int certify(engine *x, const util_stop *stop)
{
    engine *y = x->inner ? x->inner : x;
    int result = y->c ? MOIRAI_OK : engine_prepare(y);
    if (result)
        return result;
    /* Prices on bytes have a part of their own in the certificate. */
    int64_t goal = y->memory ? UTIL_MIN(pair_chain_path(y->c, PAIR_CHAIN_LOWER, NULL), x->lower_ns) : x->lower_ns;
    bound_certify_task job = {.goal_ns = goal,
                              .effort = x->o->budget.effort,
                              .threads = x->o->budget.threads,
                              .seed = x->o->budget.seed,
                              .stop = *stop};
    engine_tell(x, ' ', "proving the bound again for the certificate");
    result = bound_certify(y->c, &job);
    bytes_bound_task settle = {.upper_ns = x->best->makespan_ns,
                                 .buckets = ENGINE_MEMORY_BUCKETS,
                                 .solves = 30,
                                 .threads = x->o->budget.threads,
                                 .stop = *stop};
    if (!result && y->memory)
        result = bytes_settle(y->memory, &settle);
    bound_certificate from = {.c = y->c, .memory = y->memory, .spine = x->spine, .lower_bound_ns = x->lower_ns};
    return result ? result : bound_certificate_write(&from, x->o->certificate_path);
}

/* Blocks, or the blocks of the spine; a problem with too many pairs is left to the heuristics. */
static int improve(engine *x)
{
    int result = decompose_spine_new(&x->spine, x->p, &x->stop);
    if (!result && x->spine)
        result = improve_spine(x);
    else if (!result && !(result = engine_prepare(x)))
        result = engine_improve_blocks(x);
    return result == MOIRAI_ELIMIT ? MOIRAI_OK : result;
}

/* What comes after the search is the check of the plan. It is measured once; the last plan may send every tensor. */
static void reserve_time(engine *x)
{
    double begun = util_seconds();
    if (x->stop.deadline <= 0 || !x->best)
        return;
    moirai_plan_check(x->p, x->best, NULL, NULL);
    double tasks = (double)x->p->n_ops + x->best->n_transfers, most = (double)x->p->n_ops + x->p->n_edges;
    x->stop.deadline -= RESERVE * (util_seconds() - begun) * most / fmax(tasks, 1);
}

static int solve(engine *x)
{
    engine_take_bound(x, UTIL_MAX(moirai_bound_critical_path(x->p), moirai_bound_load(x->p)));
    int result = moirai_problem_check_memory(x->p); /* what no search can cure is said at once */
    if (!result)
        result = try_starts(x);
    reserve_time(x);
    double nodes = WHOLE_NODES * x->effort;
    if (!result)
        result = try_exact(x, nodes);
    if (!result && engine_gap(x) > x->o->gap && !engine_stopped(x))
        result = improve(x);
    while (!result && x->p->n_ops <= WHOLE_OPS && engine_grow(x))
        result = try_exact(x, nodes *= 8);
    if (!result && !x->best)
        result = explain(x, "has no plan that fits the memory, as far as was found");
    return result;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    engine *x = engine_new(p, o);
    util_stop stop = x ? x->stop : (util_stop){0};
    if (x && o->certificate_path && stop.deadline > 0)
        x->stop.deadline -= CERTIFY_SHARE * o->budget.time_limit_s;
    int result = x ? solve(x) : MOIRAI_EFAIL;
    if (!result && o->certificate_path)
        result = certify(x, &stop);
    if (!result) {
        *out = x->best;
        (*out)->lower_bound_ns = x->lower_ns;
        x->best = NULL;
    }
    engine_free(x);
    return result;
}

const moirai_placer place_moirai = {
    .name = "moirai",
    .summary = "blocks between cuts, annealed and bounded by prices in time; any size, proven gap",
    .letters = PLACE_STARTS_KEY ", X exhaustive, B blocks, M blocks within memory, F floating work beside the spine",
    .certifies = true,
    .bounds = true,
    .place = place,
};
