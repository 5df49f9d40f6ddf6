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
#include <stdlib.h>
#include <string.h>

#include "exact/exact.h"
#include "bound/certificate.h"
#include "place/moirai/compose.h"
#include "place/moirai/floats.h"
#include "bytes/bytes.h"
#include "util/pool.h"
#include "pair/pair_refine.h"
#include "place/placers.h"
#include "util/util.h"

#define BATCH 4
#define SMALL_SHARE 0.15 /* of the largest: classes with less of the makespan get less work at first */
#define MEMORY_ROUNDS 12
#define MEMORY_BUCKETS 14
#define NEAR_BEST 0.1 /* plans of a spine that are so near to its best are of use */
#define FLOAT_EVALUATIONS 3000.0
#define FLOAT_SHARE 0.15      /* of the time that is left when the spine's search begins */
#define WHOLE_OPS 48          /* problems up to this size go to the exhaustive search as a whole */
#define WHOLE_NODES 2000000.0 /* of it, at effort 1 */

typedef struct engine {
    const moirai_problem *p;
    const moirai_place_options *o;
    double begun;
    util_stop stop;
    pair_chain *c;
    moirai_sim *sim;
    moirai_plan *best;
    int64_t lower_ns;
    int32_t *cut_device;  /* of the bound's path */
    int32_t *plan_device; /* of the plans' path */
    int32_t *op_device;
    moirai_task *order;
    int64_t *weight;     /* per pair: how much of the gap hangs on it */
    int64_t *times;      /* per pair: how often the bound's path uses it */
    int64_t *plan_times; /* and how often the plan's does */
    int32_t n_large;     /* classes above SMALL_SHARE */
    double *share;       /* per class: of the makespan, against the largest; before the first level */
    pair_refine_task batch[BATCH];
    int32_t n_batch;
    int32_t top_level; /* of refinement, by the effort */
    int32_t batches_left;
    bool memory_binds; /* the fastest chain does not fit */
    bytes_prices *memory;
    int64_t work;
    decompose_spine *spine;  /* NULL: not needed */
    struct engine *inner; /* the search on the spine */
    struct engine *outer; /* of whose spine this is the search */
} engine;

static bool out_of_time(const engine *x)
{
    return util_stopped(&x->stop);
}

static void tell(engine *x, char letter, const char *note)
{
    if (!x->o->progress || x->outer)
        return;
    moirai_progress news = {.seconds = util_seconds() - x->begun,
                            .letter = letter,
                            .makespan_ns = x->best ? x->best->makespan_ns : MOIRAI_UNKNOWN,
                            .lower_bound_ns = x->lower_ns,
                            .work = x->work,
                            .note = note};
    x->o->progress(x->o->progress_data, &news);
}

/* A bound of the spine is one of the whole. */
static void take_bound(engine *x, int64_t lower_ns)
{
    if (lower_ns == INT64_MAX || lower_ns <= x->lower_ns)
        return;
    x->lower_ns = lower_ns;
    tell(x, ' ', NULL);
    if (x->outer)
        take_bound(x->outer, lower_ns);
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
    tell(x, letter, NULL);
}

/* Whether a plan of this length is of use: better than the best, or, of a spine, near to it, since it may leave better
 * gaps. */
static bool wanted(const engine *x, int64_t makespan_ns)
{
    double most = x->outer ? 1 + NEAR_BEST : 1;
    return !x->best || (double)makespan_ns < most * (double)x->best->makespan_ns;
}

/* Takes ownership of plan. One of a spine becomes one of the whole as well. */
static int offer(engine *x, moirai_plan *plan, char letter)
{
    engine *y = x->outer;
    moirai_plan *whole = NULL;
    int result = MOIRAI_OK;
    if (y && wanted(x, plan->makespan_ns) && !out_of_time(y) && (!y->best || plan->makespan_ns < y->best->makespan_ns))
        result = place_floats_insert(&whole, y->spine, plan);
    if (whole)
        keep(y, whole, 'F');
    keep(x, plan, letter);
    return result;
}

static double gap(const engine *x)
{
    if (!x->best)
        return 1;
    return x->best->makespan_ns ? (double)(x->best->makespan_ns - x->lower_ns) / (double)x->best->makespan_ns : 0;
}

/* ---- starts ---- */

static int try_placer(engine *x, const moirai_placer *placer, char letter)
{
    moirai_place_options o = *x->o;
    moirai_plan *plan = NULL;
    o.setting = NULL;
    o.n_settings = 0;
    o.progress = NULL;
    return placer->place(&plan, x->p, &o) ? MOIRAI_OK : offer(x, plan, letter);
}

static int try_starts(engine *x)
{
    static const struct {
        const moirai_placer *placer;
        char letter;
    } start[] = {{&place_single, '1'},
                 {&place_heft, 'H'},
                 {&place_m_etf, 'E'},
                 {&place_m_topo, 'T'},
                 {&place_random, 'R'}};
    int result = MOIRAI_OK;
    moirai_plan *plan;
    if (x->o->start && !moirai_plan_tighten(&plan, x->p, x->o->start))
        result = offer(x, plan, 'S');
    for (size_t i = 0; i < sizeof start / sizeof *start && !result; i++)
        result = try_placer(x, start[i].placer, start[i].letter);
    return result;
}

/* Small problems: the exhaustive search on the whole, in all modes. */
static int try_exact(engine *x)
{
    if (x->p->n_ops > WHOLE_OPS || !exact_fits(x->p, NULL))
        return MOIRAI_OK;
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    o.node_limit = (int64_t)(WHOLE_NODES * x->o->effort) + 1;
    o.interrupt = x->o->interrupt;
    o.time_limit_s = x->o->time_limit_s;
    o.start = x->best;
    int result = exact_solve(x->p, &o, &found);
    if (result)
        return result == MOIRAI_ELIMIT ? MOIRAI_OK : result;
    moirai_plan *plan;
    if (found.complete && !found.found)
        result = moirai_error(MOIRAI_EINFEASIBLE, "'%s' has no plan: every placement was tried", x->p->name);
    else if (found.found && !(result = exact_plan(&plan, x->p, &found)))
        result = offer(x, plan, 'X');
    if (!result)
        take_bound(x, found.lower_bound_ns);
    exact_result_clear(&found);
    return result;
}

/* ---- refinement ---- */

static int refine_one(void *data, int32_t i)
{
    engine *x = data;
    return pair_refine(x->c, &x->batch[i]);
}

/* How often the path of `device` goes through each pair. */
static void count_path(engine *x, const int32_t *device)
{
    const decompose_cuts *s = x->c->s;
    int32_t K = x->c->K;
    memset(x->times, 0, sizeof *x->times * (size_t)s->n_classes * (size_t)K * (size_t)K);
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int32_t a = i > 0 ? device[i - 1] : 0, b = i < s->n_cuts ? device[i] : 0;
        x->times[(s->block_class[i] * K + a) * K + b]++;
    }
}

/* The part of the gap that hangs on each pair of a path. */
static void weigh_path(engine *x, const int32_t *device)
{
    int32_t n = x->c->s->n_classes * x->c->K * x->c->K;
    count_path(x, device);
    for (int32_t i = 0; i < n; i++) {
        const pair_state *pair = &x->c->pair[i];
        if (x->times[i] && pair->level < x->top_level && pair->plan.device)
            x->weight[i] += x->times[i] * (pair->plan.length_ns - pair->lower_ns);
    }
}

/* What pair `i` would have to prove for the gap's goal, were the path to stay; a little more, since it will not. */
static int64_t needed(const engine *x, int32_t i)
{
    const pair_state *pair = &x->c->pair[i];
    if (!x->best)
        return INT64_MAX;
    double goal = (double)x->best->makespan_ns * (1 - 0.5 * x->o->gap), rise = goal - (double)x->lower_ns;
    int64_t times = UTIL_MAX(x->times[i], 1);
    return pair->lower_ns + (int64_t)(rise / (double)times * 1.1) + 1;
}

static void add_to_batch(engine *x, int32_t i)
{
    int32_t K = x->c->K;
    x->batch[x->n_batch++] = (pair_refine_task){.class_ = i / (K * K),
                                                  .entry_device = i / K % K,
                                                  .exit_device = i % K,
                                                  .level = x->c->pair[i].level + 1,
                                                  .need_ns = needed(x, i),
                                                  .improve = x->plan_times[i] > 0 || x->c->pair[i].level < 2,
                                                  .effort = x->o->effort,
                                                  .seed = x->o->seed,
                                                  .stop = x->stop};
}

/* The pairs on which most of the gap hangs, widest first, ties by number. */
static void choose_batch(engine *x)
{
    int32_t n = x->c->s->n_classes * x->c->K * x->c->K;
    memset(x->weight, 0, sizeof *x->weight * (size_t)n);
    weigh_path(x, x->plan_device);
    memcpy(x->plan_times, x->times, sizeof *x->times * (size_t)n);
    weigh_path(x, x->cut_device); /* last: `times` stays that of the bound's path */
    x->n_batch = 0;
    while (x->n_batch < BATCH) {
        int32_t best = -1;
        for (int32_t i = 0; i < n; i++)
            if (x->weight[i] > 0 && (best < 0 || x->weight[i] > x->weight[best]))
                best = i;
        if (best < 0 || (double)x->weight[best] < 0.0002 * (double)x->best->makespan_ns)
            return;
        x->weight[best] = 0;
        add_to_batch(x, best);
    }
}

/* The simulator's last run, if it fits and is better. */
static int take_simulated(engine *x, int64_t makespan_ns, char letter)
{
    if (makespan_ns < 0 || !wanted(x, makespan_ns))
        return MOIRAI_OK;
    if (moirai_sim_memory_excess(x->sim, NULL) > 0) {
        x->memory_binds = true;
        return MOIRAI_OK;
    }
    moirai_plan *plan;
    int result = moirai_sim_plan(&plan, x->sim);
    return result ? result : offer(x, plan, letter);
}

static int compose_path(engine *x)
{
    int64_t n = place_compose(x->c, x->plan_device, NULL, x->op_device, x->order);
    return take_simulated(x, moirai_sim_replay(x->sim, x->op_device, x->order, n), 'B');
}

/* The best chain of block plans as one plan; kept if it fits and is better. Paths that change devices less often are
 * tried as well: edges that jump over cuts may make them the faster ones. The path of the best plan stays in
 * plan_device. */
static int compose_best(engine *x)
{
    static const double part[] = {0, 0.03, 0.1, 0.3, 1, 3, 1000};
    int64_t length = pair_chain_path(x->c, PAIR_CHAIN_UPPER, x->plan_device);
    if (length == INT64_MAX)
        return MOIRAI_OK;
    int result = MOIRAI_OK;
    double mean = (double)length / (x->c->s->n_cuts + 1), best_part = 0;
    bool binds = false;
    for (size_t i = 0; i < sizeof part / sizeof *part && !result; i++) {
        const moirai_plan *before = x->best;
        pair_chain_steady_path(x->c, (int64_t)fmin(part[i] * mean, 1e17), x->plan_device);
        x->memory_binds = false;
        result = compose_path(x);
        binds |= i == 0 && x->memory_binds;
        if (x->best != before)
            best_part = part[i];
    }
    x->memory_binds = binds;
    pair_chain_steady_path(x->c, (int64_t)fmin(best_part * mean, 1e17), x->plan_device);
    return result;
}

static void raise_bound(engine *x)
{
    take_bound(x, pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->cut_device));
}

/* Every pair's first level, so that paths mean something; classes that take little of the time get little. */
static int first_level(void *data, int32_t i)
{
    engine *x = data;
    int32_t K = x->c->K;
    const pair_state *pair = &x->c->pair[i];
    if (!pair->open || pair->level > 0 || out_of_time(x))
        return MOIRAI_OK;
    /* Plans that do not mind the memory are of little use where it binds, and not worth the time where many classes
     * want it. */
    bool much = x->share[i / (K * K)] > SMALL_SHARE && (!x->memory_binds || x->n_large <= 1);
    pair_refine_task job = {.class_ = i / (K * K),
                              .entry_device = i / K % K,
                              .exit_device = i % K,
                              .level = 1,
                              .need_ns = INT64_MAX,
                              .improve = much,
                              .effort = x->o->effort * (much ? 1 : 0.4),
                              .seed = x->o->seed,
                              .stop = x->stop};
    return pair_refine(x->c, &job);
}

/* Prices on bytes: a composition that keeps to the memory, then a bound at its prices. */
static int price_memory(engine *x, int32_t rounds, int32_t looks, int64_t evaluations)
{
    int32_t searches = x->memory ? 3 : 6; /* at first there is nothing to begin with */
    bytes_plan_task search = {.evaluations = (int64_t)((double)evaluations * x->o->effort),
                                   .rounds = 18,
                                   .searches = searches,
                                   .seed = x->o->seed,
                                   .upper_ns = x->best ? x->best->makespan_ns : x->lower_ns,
                                   .threads = x->o->threads,
                                   .stop = x->stop};
    int64_t lower = 0, length = INT64_MAX;
    const int32_t *cut_device;
    const pair_plan *const *block_plan;
    int result = x->memory ? MOIRAI_OK : bytes_prices_new(&x->memory, x->c);
    if (!result)
        result = bytes_plan_find(&length, &cut_device, &block_plan, x->memory, &search);
    if (!result && length != INT64_MAX) {
        int64_t n = place_compose(x->c, cut_device, block_plan, x->op_device, x->order);
        result = take_simulated(x, moirai_sim_replay(x->sim, x->op_device, x->order, n), 'M');
    }
    bytes_bound_task bound = {.upper_ns = x->best ? x->best->makespan_ns : 2 * x->lower_ns,
                                .rounds = rounds,
                                .buckets = MEMORY_BUCKETS,
                                .looks = (int32_t)(looks * fmin(x->o->effort, 100)) + 4,
                                .threads = x->o->threads,
                                .stop = x->stop};
    if (!result)
        result = bytes_bound(&lower, x->memory, &bound);
    if (!result)
        take_bound(x, lower);
    return result;
}

/* Where memory binds: plans and bound at prices on bytes, each at what the other has found, until the gap is closed or
 * stays. */
static int improve_within_memory(engine *x)
{
    int result = price_memory(x, 1, 20, 1000);
    double before = 2;
    int64_t evaluations = 4000;
    int32_t most = 1 + (int32_t)((MEMORY_ROUNDS - 1) * fmin(x->o->effort, 1));
    for (int32_t round = 0; round < most && !result && gap(x) > x->o->gap && !out_of_time(x); round++) {
        if (round >= 3 && gap(x) > 0.95 * before)
            break; /* it stays */
        before = gap(x);
        int64_t known = x->best ? x->best->makespan_ns : INT64_MAX;
        result = price_memory(x, 3, 30, evaluations);
        /* Where more annealing has found nothing, a little will do until the prices have moved on. */
        evaluations = x->best && x->best->makespan_ns < known ? 4000 : 1000;
    }
    return result;
}

/* What the blocks of each class take of the makespan, against the class that takes most. */
static void set_shares(engine *x)
{
    double most = 1e-9;
    for (int32_t i = 0; i < x->c->s->n_classes; i++) {
        x->share[i] = x->best ? pair_chain_share(x->c, i, x->best->makespan_ns) : 1;
        most = fmax(most, x->c->block[i]->n_interior ? x->share[i] : 0);
    }
    x->n_large = 0;
    for (int32_t i = 0; i < x->c->s->n_classes; i++) {
        x->share[i] /= most;
        x->n_large += x->c->block[i]->n_interior && x->share[i] > SMALL_SHARE;
    }
}

static int improve(engine *x)
{
    int32_t pairs = x->c->s->n_classes * x->c->K * x->c->K;
    int result = pair_chain_open(x->c, x->o->threads);
    if (!result) { /* already worth something, and soon there: every block whole on a device, every longest path */
        raise_bound(x);
        result = compose_best(x);
    }
    set_shares(x);
    if (!result)
        result = util_pool_run(first_level, x, pairs, x->o->threads);
    while (!result) {
        raise_bound(x);
        result = compose_best(x);
        if (!result && x->memory_binds)
            return improve_within_memory(x);
        if (result || !x->best || gap(x) <= x->o->gap || out_of_time(x))
            break;
        choose_batch(x);
        if (!x->n_batch || x->batches_left-- <= 0)
            break;
        result = util_pool_run(refine_one, x, x->n_batch, x->o->threads);
        x->work += x->n_batch;
    }
    return result;
}

static int prepare(engine *x)
{
    int result = pair_chain_new(&x->c, x->p);
    if (result)
        return result;
    size_t cuts = (size_t)x->c->s->n_cuts, pairs = (size_t)x->c->s->n_classes * (size_t)x->c->K * (size_t)x->c->K;
    x->cut_device = util_alloc(cuts, sizeof(int32_t));
    x->plan_device = util_alloc(cuts, sizeof(int32_t));
    x->op_device = util_alloc((size_t)x->p->n_ops, sizeof(int32_t));
    x->order = util_alloc((size_t)place_compose_capacity(x->p), sizeof(moirai_task));
    x->weight = util_alloc(pairs, sizeof(int64_t));
    x->times = util_alloc(pairs, sizeof(int64_t));
    x->plan_times = util_alloc(pairs, sizeof(int64_t));
    x->share = util_alloc((size_t)x->c->s->n_classes, sizeof(double));
    if (!x->cut_device || !x->plan_device || !x->op_device || !x->order || !x->weight || !x->times || !x->plan_times ||
        !x->share)
        return MOIRAI_EFAIL;
    return moirai_sim_new(&x->sim, x->p);
}

/* ---- spine ---- */

static engine *engine_new(const moirai_problem *p, const moirai_place_options *o)
{
    engine *x = util_alloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->p = p;
    x->o = o;
    x->begun = util_seconds();
    x->stop.interrupt = o->interrupt;
    if (o->time_limit_s > 0)
        x->stop.deadline = x->begun + o->time_limit_s;
    x->top_level = o->effort < 0.5 ? 2 : o->effort < 2 ? 3 : PAIR_LEVELS;
    x->batches_left = 2 + (int32_t)(16 * fmin(o->effort, 1000));
    return x;
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
        result = prepare(y);
    if (!result)
        result = improve(y);
    moirai_plan *plan;
    if (result || !x->best || gap(x) <= x->o->gap || (result = moirai_plan_copy(&plan, x->best)))
        return result;
    place_floats_task floats = {
        .evaluations = (int64_t)(FLOAT_EVALUATIONS * x->o->effort), .seed = x->o->seed, .stop = x->stop};
    result = place_floats_improve(&plan, x->spine, &floats);
    if (result)
        moirai_plan_free(plan);
    return result ? result : offer(x, plan, 'F');
}

/* The proof behind the bound, as far as prices carry it; of the spine where there is one. */
static int certify(engine *x)
{
    engine *y = x->inner ? x->inner : x;
    int result = y->c ? MOIRAI_OK : prepare(y);
    if (result)
        return result;
    /* Prices on bytes have a part of their own in the certificate. */
    int64_t goal = y->memory ? UTIL_MIN(pair_chain_path(y->c, PAIR_CHAIN_LOWER, NULL), x->lower_ns) : x->lower_ns;
    /* The search may have used up its time: writing the proof down gets as much again. */
    util_stop stop = {.interrupt = x->o->interrupt};
    if (x->o->time_limit_s > 0)
        stop.deadline = util_seconds() + fmax(x->o->time_limit_s, 10);
    bound_certify_task job = {
        .goal_ns = goal, .effort = x->o->effort, .threads = x->o->threads, .seed = x->o->seed, .stop = stop};
    result = bound_certify(y->c, &job);
    bytes_bound_task settle = {.upper_ns = x->best->makespan_ns,
                                 .buckets = MEMORY_BUCKETS,
                                 .looks = 30,
                                 .threads = x->o->threads,
                                 .stop = stop};
    if (!result && y->memory)
        result = bytes_settle(y->memory, &settle);
    bound_certificate from = {.c = y->c, .memory = y->memory, .spine = x->spine, .lower_bound_ns = x->lower_ns};
    return result ? result : bound_certificate_write(&from, x->o->certificate_path);
}

static void engine_free(engine *x)
{
    if (!x)
        return;
    engine_free(x->inner);
    decompose_spine_free(x->spine);
    bytes_prices_free(x->memory);
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
    free(x);
}

static int solve(engine *x)
{
    take_bound(x, UTIL_MAX(moirai_bound_critical_path(x->p), moirai_bound_load(x->p)));
    int result = try_starts(x);
    if (!result)
        result = try_exact(x);
    if (!result && gap(x) > x->o->gap)
        result = decompose_spine_new(&x->spine, x->p);
    if (!result && x->spine)
        result = improve_spine(x);
    else if (!result && gap(x) > x->o->gap && !(result = prepare(x)))
        result = improve(x);
    if (!result && !x->best)
        result = moirai_error(MOIRAI_EINFEASIBLE, "no plan of '%s' that fits the memory was found", x->p->name);
    return result;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    engine *x = engine_new(p, o);
    int result = x ? solve(x) : MOIRAI_EFAIL;
    if (!result && o->certificate_path)
        result = certify(x);
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
    .letters = "1 single device, H heft, E m-etf, T m-topo, R random, S start, X exhaustive, B blocks, M blocks within "
               "memory, F floating work beside the spine",
    .certifies = true,
    .place = place,
};
