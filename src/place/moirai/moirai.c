/* The placer `moirai`: near-optimal plans with a proven gap, at any size.
 *
 * Networks are deep and repeat themselves: most operators lie on or between cuts (cuts.c), and the blocks between
 * cuts are copies of a few. So each *distinct* block is studied once per pair of devices at its ends (chain.h):
 * annealing gives plans (anneal.c), prices in time give proven bounds (cheapest.c, master.c), and dynamic programming
 * over the cuts (chain.c) composes either into a statement about the whole problem. Work goes where the answer is still
 * open: only pairs on the path that the bound or the plan takes are refined, the widest first; tightening one moves the
 * path to others. A network without cuts is searched by its spine (spine.c), by an engine within the engine; what
 * floats beside the spine is then put into gaps (floats.c).
 *
 * Starts are the other heuristics of the registry (starts.c; those by linear programmes up to some size), so that the
 * plan is never worse than theirs. Refinements run in
 * batches of fixed size on as many threads as there are; a batch is chosen before it starts and read after it ends, so
 * that the result depends on seed and effort, not on the number of threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bound/certificate.h"
#include "bound/intervals/window_proof.h"
#include "exact/exact.h"
#include "place/moirai/engine.h"
#include "place/moirai/floats.h"
#include "place/placers.h"
#include "place/starts.h"
#include "util/util.h"

#define FLOAT_EVALUATIONS 3000.0
#define FLOAT_SHARE 0.15            /* of the time that is left when the spine's search begins */
#define CERTIFY_SHARE 0.15          /* of the time, where the proof is wanted as well */
#define RESERVE 8                   /* composing the last plan and its check, in times of the first check */
#define WHOLE_OPS 48                /* problems up to this size go to the exhaustive search as a whole */
#define MOST_TREE ((size_t)2000000) /* numbers of search trees in a certificate: some 8 MB */
#define INTERVAL_NODES 3000.0       /* of the tree of an interval, at effort 1 */
#define CHAIN_SHARE 0.4             /* of the time, for the chain, where windows have proven more */
#define TREE_NODES 200000.0         /* of the tree of a whole problem, at effort 1 */
#define INTERVAL_LEVELS 2           /* of prices for a certificate: intervals are many */
#define INTERVAL_EFFORT 0.3
#define POOL_SHARE 0.2        /* of the time that is left, for the pool of all devices */
#define FIRST_POOL_SHARE 0.12 /* where it comes again within windows */
#define POOL_GAP 0.15         /* between paths or load and the plan: where links decide, the pool says little */
#define SMALL_GAP 0.025       /* what is left is more likely the plan's */
#define WEAK 0.3              /* of the operators in large components: blocks are weak */
#define MOST_AGAIN 12
#define WHOLE_NODES 2000000.0 /* of it, at effort 1 */

/* What comes after the search is the check of the plan. It is measured once, with the first plan; the last one may send
 * every tensor. */
static void reserve_time(engine *x)
{
    double begun = util_seconds();
    moirai_plan_check(x->p, x->best, NULL, NULL);
    double tasks = (double)x->p->n_ops + x->best->n_transfers, most = (double)x->p->n_ops + x->p->n_edges;
    x->stop.deadline -= RESERVE * (util_seconds() - begun) * most / fmax(tasks, 1);
}

static int offer_start(void *data, moirai_plan *plan, char letter)
{
    engine *x = data;
    bool first = !x->best;
    int rc = engine_offer(x, plan, letter);
    if (!rc && first && x->best && !x->outer && x->stop.deadline > 0)
        reserve_time(x);
    return rc;
}

static int try_starts(engine *x)
{
    place_starts_task task = {.p = x->p, .o = x->o, .stop = &x->stop, .offer = offer_start, .data = x};
    moirai_place_options without_start = *x->o;
    if (x->outer) { /* the user's start is one of the whole problem */
        without_start.start = NULL;
        task.o = &without_start;
    }
    int rc = place_starts(&task);
    snprintf(x->why, sizeof x->why, "%s", task.why);
    return rc;
}

/* Nothing fits: what came nearest, in whole bytes. */
static int explain(const engine *x, const char *how)
{
    return moirai_error(MOIRAI_EINFEASIBLE, "'%s' %s%s%s", x->p->name, how, *x->why ? "; the nearest try: " : "",
                        x->why);
}

/* Small problems: the exhaustive search on the whole, in all modes. */
static int try_exact(engine *x, double nodes)
{
    if (x->p->n_ops > WHOLE_OPS || !exact_fits(x->p, NULL))
        return 0;
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    o.node_limit = (int64_t)fmin(nodes, 1e15) + 1;
    o.stop = x->stop;
    o.start = x->best;
    int rc = exact_solve(x->p, &o, &found);
    if (rc)
        return rc == MOIRAI_ELIMIT ? 0 : rc;
    moirai_plan *plan;
    if (found.complete && !found.found)
        rc = explain(x, "has no plan that fits the memory: every placement was tried");
    else if (found.found && !(rc = exact_plan(&plan, x->p, &found)))
        rc = engine_offer(x, plan, 'X');
    if (!rc)
        engine_take_bound(x, found.lower_bound_ns);
    exact_result_clear(&found);
    return rc;
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
    y->top_level = x->top_level;
    y->layers_differ = x->layers_differ;
    y->batches_left = x->batches_left;
    if (y->stop.deadline > 0) /* the last part is for the work that floats */
        y->stop.deadline -= FLOAT_SHARE * UTIL_MAX(y->stop.deadline - y->begun, 0);
    int rc = try_starts(y);
    rc = rc ? rc : engine_prepare(y);
    rc = rc ? rc : engine_improve_blocks(y);
    moirai_plan *plan;
    if (rc || !x->best || engine_gap(x) <= x->o->gap || (rc = moirai_plan_copy(&plan, x->best)))
        return rc;
    place_floats_task floats = {
        .evaluations = (int64_t)(FLOAT_EVALUATIONS * x->o->budget.effort), .seed = x->o->budget.seed, .stop = x->stop};
    rc = place_floats_improve(&plan, x->spine, &floats);
    if (rc)
        moirai_plan_free(plan);
    return rc ? rc : engine_offer(x, plan, 'F');
}

static int64_t certified(const pair_chain *c)
{
    return pair_chain_path(c, PAIR_CHAIN_CERTIFIED, NULL);
}

/* The pool's proof is complete as it is. */
static int certify_by_pool(engine *x)
{
    bound_certificate from = {.c = x->pool, .lower_bound_ns = x->lower_ns};
    int rc = bound_certificate_write(&from, x->o->certificate_path);
    x->certified_ns = from.certified_ns;
    return rc;
}

/* The whole as one block, if it is not there yet. */
static int prepare_whole(engine *x)
{
    bool *none = util_alloc((size_t)x->p->n_ops, sizeof *none);
    int rc = !none ? MOIRAI_EFAIL : x->pool ? 0 : pair_chain_over(&x->pool, x->p, none);
    free(none);
    return rc ? rc : pair_open(x->pool, 0, 0, 0);
}

/* A small problem that was searched as a whole is searched once more as one block. */
static int certify_by_search(engine *x, const util_stop *stop)
{
    size_t left = MOST_TREE;
    int rc = prepare_whole(x);
    if (rc)
        return rc;
    x->pool->pair[0]->lower_ns = x->lower_ns;
    return pair_prove_by_search(x->pool->pair[0], (int64_t)(TREE_NODES * x->o->budget.effort) + 1, &left, *stop);
}

static util_stop part_of(const util_stop *stop, double part)
{
    util_stop result = *stop;
    double left = util_stop_left_s(stop);
    if (left < HUGE_VAL)
        result.deadline = util_seconds() + part * left;
    return result;
}

/* Windows from intervals and the pool within them; *done: they prove more than the rest, and are written. */
static int certify_by_windows(engine *x, int64_t else_ns, const util_stop *stop, bool *done)
{
    pair_pool_task pool = engine_pool_task(x, 1);
    bound_window_task job = {.nodes = (int64_t)(INTERVAL_NODES * x->o->budget.effort) + 1,
                             .most_tree = MOST_TREE,
                             .pool = engine_gap(x) <= POOL_GAP ? &pool : NULL,
                             .threads = x->o->budget.threads,
                             .stop = part_of(stop, 0.5)}; /* the pool has the other half */
    bound_window_proof windows;
    pool.stop = *stop;
    *done = false;
    int rc = bound_window_prove(&windows, x->p, bound_contest_known(x->contest), &job);
    if (rc)
        return rc;
    engine_take_bound(x, windows.lower_ns);
    if (windows.lower_ns > else_ns && !(rc = prepare_whole(x))) {
        bound_certificate from = {.c = x->pool, .windows = &windows, .lower_bound_ns = x->lower_ns};
        rc = bound_certificate_write(&from, x->o->certificate_path);
        x->certified_ns = from.certified_ns;
        *done = true;
    }
    bound_window_proof_clear(&windows);
    return rc;
}

/* The proof behind the bound, as far as prices carry it by then; of the spine where there is one. Without blocks there
 * is nothing to write down but the longest paths. */
static int certify(engine *x, const util_stop *stop)
{
    if (x->pool && certified(x->pool) >= x->lower_ns)
        return certify_by_pool(x);
    engine *y = x->inner ? x->inner : x;
    int rc = y->c ? 0 : engine_prepare(y);
    if (rc)
        return rc;
    /* Prices on bytes have a part of their own in the certificate. */
    int64_t goal = y->memory ? UTIL_MIN(pair_chain_path(y->c, PAIR_CHAIN_LOWER, NULL), x->lower_ns) : x->lower_ns;
    bound_certify_task job = {.goal_ns = goal,
                              .most_tree = MOST_TREE,
                              .programmes = y->programmes,
                              .effort = x->o->budget.effort,
                              .threads = x->o->budget.threads,
                              .seed = x->o->budget.seed,
                              .stop = *stop};
    engine_tell(x, ' ', "proving the bound again for the certificate");
    /* Where intervals have proven most, they are what is certified; blocks keep what the search has left. */
    bool by_intervals = x->intervals && !y->memory && pair_chain_path(y->c, PAIR_CHAIN_LOWER, NULL) < x->lower_ns;
    if (by_intervals) {
        job.levels = INTERVAL_LEVELS;
        job.statics = true;
        job.effort *= INTERVAL_EFFORT;
    }
    if (by_intervals && x->contest && bound_contest_known(x->contest)->n > 0 &&
        x->lower_ns > pair_chain_path(x->intervals->c, PAIR_CHAIN_LOWER, NULL))
        job.stop = part_of(stop, CHAIN_SHARE);
    rc = bound_certify(by_intervals ? x->intervals->c : y->c, &job);
    bytes_bound_task settle = {.upper_ns = x->best->makespan_ns,
                               .buckets = ENGINE_MEMORY_BUCKETS,
                               .solves = 30,
                               .threads = x->o->budget.threads,
                               .stop = *stop};
    if (!rc && y->memory)
        rc = bytes_settle(y->memory, &settle);
    bound_certificate from = {.c = y->c, .memory = y->memory, .spine = x->spine, .lower_bound_ns = x->lower_ns};
    if (!rc && by_intervals && certified(x->intervals->c) > certified(y->c))
        from = (bound_certificate){.c = x->intervals->c, .spine = x->intervals->spine, .lower_bound_ns = x->lower_ns};
    if (!rc && x->p->n_ops <= WHOLE_OPS && !y->memory && certified(from.c) < x->lower_ns)
        rc = certify_by_search(x, stop);
    int64_t best = rc || y->memory ? INT64_MAX : UTIL_MAX(certified(from.c), x->pool ? certified(x->pool) : 0);
    bool done = false;
    if (best < x->lower_ns && x->contest && bound_contest_known(x->contest)->n > 0 && !util_stopped(stop))
        rc = certify_by_windows(x, best, stop, &done);
    if (rc || done)
        return rc;
    if (x->pool && !y->memory && certified(x->pool) > certified(from.c))
        return certify_by_pool(x);
    rc = rc ? rc : bound_certificate_write(&from, x->o->certificate_path);
    x->certified_ns = from.certified_ns;
    return rc;
}

/* Blocks, or the blocks of the spine, in this part of the time that is left; a problem with too many pairs is left to
 * the other steps. */
static int improve_blocks(engine *x, double part)
{
    util_stop all = x->stop;
    x->stop = engine_part(x, part);
    int rc = decompose_spine_new(&x->spine, x->p, &x->stop);
    if (!rc && x->spine)
        rc = improve_spine(x);
    else if (!rc && !(rc = x->c ? 0 : engine_prepare(x)))
        rc = engine_improve_blocks(x);
    x->stop = all;
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

/* Large components: bounds of the whole, and annealing before and after them. What they have raised, blocks with their
 * spanning trees would not raise further. */
static int search_whole(engine *x)
{
    bool copies = false;
    int rc = engine_anneal_copies(x, &copies, 0.22);
    rc = rc ? rc : engine_anneal_whole(x, 2, copies ? 0.1 : 0.15);
    rc = rc ? rc : engine_share_copies(x);
    if (!rc && engine_gap(x) <= POOL_GAP)
        rc = engine_raise_by_pool(x, FIRST_POOL_SHARE);
    /* Layers that are copies get the best by cases of their few pairs, one round long. */
    if (!rc && !copies)
        rc = engine_raise_by_intervals(x, 14, 2, 0.25);
    rc = rc ? rc : engine_raise_by_intervals(x, 14, 4, copies ? 0.8 : engine_gap(x) <= SMALL_GAP ? 0.1 : 0.3);
    rc = rc ? rc : engine_compose_intervals(x, 0.2);
    if (!rc && engine_gap(x) <= POOL_GAP)
        rc = engine_raise_by_windows(x, POOL_SHARE);
    rc = rc ? rc : engine_raise_by_programme(x, 0.08);
    x->top_level = 1; /* finer prices would take for ever */
    x->batches_left = 2;
    if (!rc && engine_gap(x) > x->o->gap && !x->intervals && !x->pool)
        rc = improve_blocks(x, 0.35);
    if (!rc && copies)
        rc = engine_anneal_copies(x, &copies, 0.3);
    rc = rc ? rc : engine_anneal_whole(x, 9, 1);
    return rc ? rc : engine_share_copies(x);
}

/* Small components: blocks do most, and nearly all where intervals are too many. */
static int search_blocks(engine *x)
{
    bool many = x->p->n_ops > DECOMPOSE_INTERVALS_OPS;
    int rc = many ? 0 : engine_anneal_whole(x, 1, 0.05);
    if (!rc && !many && !x->layers_differ)
        rc = engine_raise_by_intervals(x, 2, 2, 0.1);
    if (!rc && engine_gap(x) > x->o->gap)
        rc = improve_blocks(x, many ? 1 : 0.8);
    rc = rc ? rc : engine_raise_by_intervals(x, 14, 4, 0.5);
    rc = rc ? rc : engine_compose_intervals(x, 0.2);
    rc = rc ? rc : engine_raise_by_pool(x, POOL_SHARE);
    if (!rc && engine_gap(x) <= POOL_GAP)
        rc = engine_raise_by_windows(x, POOL_SHARE);
    return rc ? rc : engine_anneal_whole(x, 5, 1);
}

/* Time that is left when all has been tried: chains of intervals with twice the nodes, and annealing from other seeds, in
 * turns. */
static int search_on(engine *x)
{
    int rc = 0;
    while (!rc && x->stop.deadline > 0 && !engine_stopped(x) && x->best && engine_gap(x) > x->o->gap &&
           x->again < MOST_AGAIN) {
        x->again++;
        rc = engine_raise_by_intervals(x, 14, 4 + x->again, 0.4);
        rc = rc ? rc : engine_compose_intervals(x, 0.1);
        rc = rc ? rc : engine_anneal_whole(x, 2, 0.6);
        rc = rc ? rc : engine_share_copies(x);
    }
    return rc;
}

static int search(engine *x)
{
    double part;
    int rc = engine_weakness(&part, x);
    rc = rc ? rc : engine_layers_differ(&x->layers_differ, x);
    bool weak = part > WEAK && x->p->n_ops <= DECOMPOSE_INTERVALS_OPS && !x->layers_differ;
    if (rc)
        return rc;
    rc = weak ? search_whole(x) : search_blocks(x);
    return rc || x->p->n_ops > DECOMPOSE_INTERVALS_OPS ? rc : search_on(x);
}

static int solve(engine *x)
{
    engine_take_bound(x, UTIL_MAX(moirai_bound_critical_path(x->p), moirai_bound_load(x->p)));
    int rc = moirai_problem_check_memory(x->p); /* what no search can cure is said at once */
    rc = rc ? rc : try_starts(x);
    double nodes = WHOLE_NODES * x->effort;
    rc = rc ? rc : try_exact(x, nodes);
    if (!rc && engine_gap(x) > x->o->gap && !engine_stopped(x))
        rc = search(x);
    while (!rc && x->p->n_ops <= WHOLE_OPS && engine_grow(x))
        rc = try_exact(x, nodes *= 8);
    if (!rc && !x->best)
        rc = explain(x, "has no plan that fits the memory, as far as was found");
    return rc;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    engine *x = engine_new(p, o);
    util_stop stop = x ? x->stop : (util_stop){0};
    if (x && o->certificate_path && stop.deadline > 0)
        x->stop.deadline -= CERTIFY_SHARE * o->budget.time_limit_s;
    int rc = x ? solve(x) : MOIRAI_EFAIL;
    if (!rc && o->certificate_path)
        rc = certify(x, &stop);
    if (!rc) {
        *out = x->best;
        (*out)->lower_bound_ns = x->lower_ns;
        (*out)->certified_bound_ns = o->certificate_path ? x->certified_ns : MOIRAI_UNKNOWN;
        x->best = NULL;
    }
    engine_free(x);
    return rc;
}

const moirai_placer place_moirai = {
    .name = "moirai",
    .summary = "blocks between cuts, annealed and bounded by prices in time; any size, proven gap",
    .letters = PLACE_STARTS_KEY ", X exhaustive, B blocks, M blocks within memory, F floating work beside the spine, "
                                "I intervals, W the whole annealed",
    .certifies = true,
    .bounds = true,
    .place = place,
};
