/* Plans and bounds block by block.
 *
 * Each pair (a class of blocks between two devices) has a plan and a bound; the chain of pairs composes either. Work
 * goes where the answer is still open: only pairs on the path that the bound or the plan takes are refined, the widest
 * first; tightening one moves the path to others. So a bound is raised by a stride, and the path is looked at again: what
 * a pair is raised above the next best path is of no use yet. Pairs on the plan's path alone get plans alone; a plan that
 * one pair finds is tried between the devices of the others. Refinements run in batches of fixed size on as many threads
 * as there are; a batch is chosen before it starts and read after it ends, so that the result depends on seed and effort,
 * not on the number of threads. */
#include <math.h>
#include <string.h>

#include "place/moirai/compose.h"
#include "place/moirai/engine.h"
#include "util/pool.h"
#include "util/util.h"

#define OPEN_ALL_FEW 8192    /* pairs that are opened at once, on few devices */
#define OPEN_ALL_MANY 1024   /* and on many */
#define NEARLY 1.02          /* of the best plan: a path of plans may be so long to be of interest */
#define STRIDE 40            /* parts of a pair's bound: when it has risen by one, the path is looked at again */
#define OFTEN 4              /* parts of a class on the paths: what a pair needs for a plan of its own */
#define DEEP_OPS 48          /* of a block: plans of smaller ones are soon at the bottom of their valley */
#define MINOR 8              /* parts of the widest pair: what is below can wait */
#define PATH_ROUNDS 200      /* in which the bound's path may meet unknown pairs, at effort 1 */
#define MANY_CLASSES 6       /* of blocks: the first levels of all their pairs take long */
#define PROGRAMMES_SHARE 0.5 /* of the time that is left */
#define SMALL_SHARE 0.15     /* of the largest: classes with less of the makespan get less work at first */

/* ---- the next batch ---- */

static int refine_one(void *data, int32_t i)
{
    engine *x = data;
    pair_refine_task job = x->batch[i];
    int32_t level = job.level;
    int64_t at = pair_chain_index(x->c, job.class_, job.entry_device, job.exit_device);
    pair_state *pair = x->c->pair[at];
    if (x->times[at] && engine_wants_cases(x, pair)) {
        int rc = engine_raise_cases(x, pair);
        if (rc || !x->plan_times[at])
            return rc;
    }
    job.level = UTIL_MIN(level, PAIR_LEVELS);
    int rc = pair_refine(x->c, &job);
    if (job.improve)
        pair->plan_level = UTIL_MAX(pair->plan_level, level);
    if (!job.plans_only)
        pair->level = pair->climbing ? level - 1 : level;
    return rc;
}

static const pair_state *batch_pair(const engine *x, int32_t i)
{
    const pair_refine_task *job = &x->batch[i];
    return pair_chain_at(x->c, job->class_, job->entry_device, job->exit_device);
}

/* How often the path of `device` goes through each pair. */
static void count_path(engine *x, const int32_t *device)
{
    memset(x->times, 0, sizeof *x->times * (size_t)pair_chain_count(x->c));
    for (int32_t i = 0; i < x->c->s->n_blocks; i++)
        x->times[pair_chain_on_path(x->c, i, device)]++;
}

static bool plan_is_due(const engine *x, int64_t i)
{
    const pair_state *pair = pair_chain_get(x->c, i);
    return x->plan_times[i] && UTIL_MAX(pair->plan_level, 1) < x->top_level;
}

static bool bound_is_due(const engine *x, int64_t i)
{
    return x->times[i] && pair_chain_get(x->c, i)->level < x->top_level;
}

/* The part of the gap that hangs on each pair of a path. */
static void weigh_path(engine *x, const int32_t *device, bool (*due)(const engine *, int64_t))
{
    int64_t n = pair_chain_count(x->c);
    count_path(x, device);
    for (int64_t i = 0; i < n; i++) {
        const pair_state *pair = pair_chain_get(x->c, i);
        if (due(x, i) && pair->plan.device)
            x->weight[i] += x->times[i] * (pair->plan.length_ns - pair->lower_ns);
    }
}

/* What pair `i` would have to prove for the gap's goal, were the path to stay; a little more, since it will not. */
static int64_t needed(const engine *x, int64_t i)
{
    const pair_state *pair = pair_chain_get(x->c, i);
    if (!x->best)
        return INT64_MAX;
    double goal = (double)x->best->makespan_ns * (1 - 0.5 * x->o->gap), rise = goal - (double)x->lower_ns;
    int64_t times = UTIL_MAX(x->times[i], 1);
    return pair->lower_ns + (int64_t)(rise / (double)times * 1.1) + 1;
}

/* The bound of a pair of the same class and entry that is ahead: where results go matters little. 0: none. */
static int64_t likely(const engine *x, int64_t i)
{
    int64_t K = x->c->K, first = i / K * K, most = 0;
    for (int64_t j = first; j < first + K; j++) {
        const pair_state *other = pair_chain_get(x->c, j);
        if (j != i && (other->level >= 2 || other->climbing))
            most = UTIL_MAX(most, other->lower_ns);
    }
    return most;
}

/* Plans of pairs that a path often takes: what they find others can use, too. */
static bool worth_a_plan(const engine *x, int64_t i, int32_t level)
{
    int64_t K = x->c->K, times = x->plan_times[i] + x->times[i];
    bool often = times * OFTEN >= x->c->s->class_count[i / K / K];
    return pair_chain_get(x->c, i)->plan_level < level && often && (x->plan_times[i] > 0 || level <= 2);
}

/* The widest pair of a batch that is on the plan's path; the others' time is the bound's, and all of it where several
 * classes are large: their pairs are many. */
static bool gets_a_turn(const engine *x, int64_t i)
{
    bool first = true;
    for (int32_t j = 0; j < x->n_batch; j++)
        first &= !x->batch[j].deepen;
    return first && x->n_large <= 1 && x->plan_times[i] > 0 && pair_chain_get(x->c, i)->block.n_interior >= DEEP_OPS;
}

static void add_to_batch(engine *x, int64_t i)
{
    const pair_state *pair = pair_chain_get(x->c, i);
    int32_t K = x->c->K;
    bool bound = bound_is_due(x, i);
    int32_t level = bound ? pair->level + 1 : UTIL_MAX(pair->plan_level, 1) + 1;
    x->batch[x->n_batch++] = (pair_refine_task){.class_ = (int32_t)(i / K / K),
                                                .entry_device = (int32_t)(i / K % K),
                                                .exit_device = (int32_t)(i % K),
                                                .level = level,
                                                .need_ns = needed(x, i),
                                                .stride_ns = pair->lower_ns / STRIDE,
                                                .likely_ns = likely(x, i),
                                                .improve = !bound || worth_a_plan(x, i, level),
                                                .plans_only = !bound,
                                                .deepen = gets_a_turn(x, i),
                                                .few_trials = x->n_large > 1,
                                                .effort = x->effort,
                                                .seed = x->o->budget.seed + (uint64_t)x->passes,
                                                .stop = x->stop};
}

/* The first rise of a pair's bound takes little and is most of it: until then the path goes where nothing is known. */
static bool first_stride(const engine *x, int64_t i)
{
    const pair_state *pair = pair_chain_get(x->c, i);
    return bound_is_due(x, i) && pair->level < 2 && !pair->climbing;
}

/* The pairs on which most of the gap hangs, widest first, ties by number. */
static void choose_batch(engine *x)
{
    int64_t n = pair_chain_count(x->c);
    memset(x->weight, 0, sizeof *x->weight * (size_t)n);
    count_path(x, x->plan_device);
    memcpy(x->plan_times, x->times, sizeof *x->times * (size_t)n);
    weigh_path(x, x->plan_device, plan_is_due);
    weigh_path(x, x->cut_device, bound_is_due); /* last: `times` stays that of the bound's path */
    x->n_batch = 0;
    int64_t most = 0;
    double least = ldexp(0.0002, -x->passes) * (double)x->best->makespan_ns;
    while (x->n_batch < ENGINE_BATCH) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (x->weight[i] > 0 && (best < 0 || x->weight[i] > x->weight[best]))
                best = i;
        if (best < 0 || (double)x->weight[best] < least)
            return;
        most = UTIL_MAX(most, x->weight[best]);
        if (x->weight[best] >= most / MINOR || first_stride(x, best))
            add_to_batch(x, best);
        x->weight[best] = 0;
    }
}

/* ---- composing ---- */

static int compose_path(engine *x)
{
    int64_t n = place_compose(x->c, x->plan_device, NULL, x->op_device, x->order);
    return engine_take_simulated(x, moirai_sim_replay(x->sim, x->op_device, x->order, n), 'B');
}

/* When the time is up, what is at hand is still composed, but not for long: a large problem takes a while for each. */
static bool late(const engine *x, double begun)
{
    return engine_stopped(x) && util_seconds() - begun > 0.05;
}

/* How long the plans of a path's pairs take, INT64_MAX where one has none. */
static int64_t planned_ns(const engine *x, const int32_t *device)
{
    const decompose_cuts *s = x->c->s;
    int64_t sum = 0;
    for (int32_t i = 0; i < s->n_blocks; i++) {
        const pair_state *pair = pair_chain_get(x->c, pair_chain_on_path(x->c, i, device));
        if (!pair->open || !pair->plan.device)
            return INT64_MAX;
        sum += pair->plan.length_ns;
        if (i < s->n_cuts)
            sum += moirai_op_ns(x->c->p, s->cut[i], device[i]);
    }
    return sum;
}

/* Whether the plans of a path that would be shorter than the best plan, or nearly so, do not fit. */
static bool overflows(engine *x, const int32_t *device)
{
    const moirai_problem *p = x->c->p;
    int64_t bytes[MOIRAI_MAX_DEVICES] = {0}, length = planned_ns(x, device);
    if (length == INT64_MAX || (x->best && (double)length > NEARLY * (double)x->best->makespan_ns))
        return false;
    place_compose(x->c, device, NULL, x->op_device, x->order);
    for (int32_t i = 0; i < p->n_ops; i++)
        bytes[x->op_device[i]] += p->op_memory_bytes[i];
    for (int32_t k = 0; k < p->n_devices; k++)
        if (bytes[k] > p->device_memory_bytes[k])
            return true;
    return false;
}

/* Paths that change devices less often are tried as well: edges that jump over cuts may make them the faster ones. */
int engine_compose(engine *x)
{
    static const double part[] = {0, 0.03, 0.1, 0.3, 1, 3, 1000};
    int64_t length = pair_chain_path(x->c, PAIR_CHAIN_UPPER, x->plan_device);
    if (length == INT64_MAX)
        return 0;
    int rc = 0;
    double mean = (double)length / (x->c->s->n_cuts + 1), best_part = 0, begun = util_seconds();
    bool binds = false;
    for (size_t i = 0; i < sizeof part / sizeof *part && !rc && !late(x, begun); i++) {
        const moirai_plan *before = x->best;
        pair_chain_steady_path(x->c, (int64_t)fmin(part[i] * mean, 1e17), x->plan_device);
        x->memory_binds = false;
        rc = compose_path(x);
        binds |= i == 0 && x->memory_binds;
        if (x->best != before)
            best_part = part[i];
    }
    /* A plan that happens to fit may hide what binds: prices without bytes would raise the bound along a path that does
     * not fit. */
    x->memory_binds = binds || overflows(x, x->cut_device);
    pair_chain_steady_path(x->c, (int64_t)fmin(best_part * mean, 1e17), x->plan_device);
    return rc;
}

static void raise_bound(engine *x)
{
    engine_take_bound(x, pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->cut_device));
}

/* ---- opening ---- */

/* A pair's first level, so that paths mean something; classes that take little of the time get little. */
static int first_level(void *data, int32_t i)
{
    engine *x = data;
    int32_t K = x->c->K, class_ = (int32_t)(x->opened[i] / K / K);
    const pair_state *pair = pair_chain_get(x->c, x->opened[i]);
    if (!pair->open || pair->level > 0 || engine_stopped(x))
        return 0;
    if (engine_wants_programme(x, pair))
        return engine_raise_static(x, x->c->pair[x->opened[i]]);
    /* Plans that do not mind the memory are of little use where it binds, and not worth the time where many classes
     * want it. */
    bool much = x->share[class_] > SMALL_SHARE && (!x->memory_binds || x->n_large <= 1);
    pair_refine_task job = {.class_ = class_,
                            .entry_device = (int32_t)(x->opened[i] / K % K),
                            .exit_device = (int32_t)(x->opened[i] % K),
                            .level = 1,
                            .need_ns = INT64_MAX,
                            .improve = much,
                            .effort = x->o->budget.effort * (much ? 1 : 0.4),
                            .seed = x->o->budget.seed,
                            .threads = 1,
                            .stop = x->stop};
    return pair_refine(x->c, &job);
}

static int first_levels(engine *x, const int64_t *opened, int32_t n)
{
    x->opened = opened;
    return util_pool_run(first_level, x, n, x->o->budget.threads);
}

/* The pairs of a path of which nothing is known but lengths of paths, if that: each once, in x->index; returns how
 * many. */
static int32_t unknown_on_path(engine *x, const int32_t *device)
{
    int32_t n = 0;
    count_path(x, device);
    for (int32_t i = 0; i < x->c->s->n_blocks; i++) {
        int64_t pair = pair_chain_on_path(x->c, i, device);
        const pair_state *known = x->c->pair[pair];
        bool programme = known && x->programmes && known->n_static > 0; /* does for a first level */
        if ((!known || (known->level == 0 && known->open && known->block.n_interior && !programme)) && x->times[pair])
            x->index[n++] = pair;
        x->times[pair] = 0;
    }
    return n;
}

static int open_path(engine *x, const int32_t *device, int32_t *n)
{
    *n = unknown_on_path(x, device);
    return pair_chain_open(x->c, x->index, *n, x->o->budget.threads, &x->stop);
}

/* Devices of the best plan at the cuts, and each of its devices for all: paths to begin with where pairs are many. */
static int open_some(engine *x)
{
    const decompose_cuts *s = x->c->s;
    uint64_t used = 0;
    int32_t n, result = 0;
    for (int32_t i = 0; x->best && i < s->n_cuts; i++) {
        x->plan_device[i] = x->best->op_device[s->cut[i]];
        used |= UINT64_C(1) << x->plan_device[i];
    }
    if (x->best)
        result = open_path(x, x->plan_device, &n);
    for (; used && !result && !engine_stopped(x); used &= used - 1) {
        for (int32_t i = 0; i < s->n_cuts; i++)
            x->plan_device[i] = __builtin_ctzll(used);
        result = open_path(x, x->plan_device, &n);
    }
    return result;
}

int engine_open_pairs(engine *x)
{
    bool all = pair_chain_distinct(x->c) <= (x->c->K <= 8 ? OPEN_ALL_FEW : OPEN_ALL_MANY);
    return all ? pair_chain_open_all(x->c, x->o->budget.threads, &x->stop) : open_some(x);
}

/* First levels of all that is open. */
static int all_first_levels(engine *x)
{
    int64_t n = 0, all = pair_chain_count(x->c), *opened;
    for (int64_t i = 0; i < all; i++)
        n += x->c->pair[i] != NULL;
    if (!(opened = util_alloc((size_t)n, sizeof *opened)))
        return MOIRAI_EFAIL;
    n = 0;
    for (int64_t i = 0; i < all; i++)
        if (x->c->pair[i])
            opened[n++] = i;
    int rc = first_levels(x, opened, (int32_t)n);
    free(opened);
    return rc;
}

/* The bound's path goes through pairs with a first level alone in the end; those it meets without get it. *any: there
 * were such. */
static int open_bound_path(engine *x, bool *any)
{
    int32_t n = 1, rounds = (int32_t)(PATH_ROUNDS * fmin(fmax(x->effort, 0.05), 1000));
    /* Programmes leave time for the first plans, and go on after them. */
    util_stop until = engine_part(x, x->programmes && !x->begun_by_programmes ? PROGRAMMES_SHARE : 1);
    int rc = 0;
    while (n > 0 && rounds-- > 0 && !rc && !util_stopped(&until)) {
        rc = open_path(x, x->cut_device, &n);
        *any |= n > 0;
        if (n > 0 && !rc)
            rc = first_levels(x, x->index, n);
        if (n > 0)
            raise_bound(x);
    }
    return rc;
}

/* ---- the search ---- */

/* What the blocks of each class take of the makespan, against the class that takes most. */
static void set_shares(engine *x)
{
    double most = 1e-9;
    for (int32_t i = 0; i < x->c->s->n_classes; i++) {
        x->share[i] = x->best ? pair_chain_share(x->c, i, x->best->makespan_ns) : 1;
        most = fmax(most, x->c->s->block_size[x->c->s->class_block[i]] ? x->share[i] : 0);
    }
    x->n_large = 0;
    for (int32_t i = 0; i < x->c->s->n_classes; i++) {
        x->share[i] /= most;
        x->n_large += x->c->s->block_size[x->c->s->class_block[i]] && x->share[i] > SMALL_SHARE;
    }
}

/* Classes that have something between their cuts. */
static int32_t count_classes(const engine *x)
{
    int32_t n = 0;
    for (int32_t i = 0; i < x->c->s->n_classes; i++)
        n += x->c->s->block_size[x->c->s->class_block[i]] > 0;
    return n;
}

/* Pairs of the batch that have a shorter plan than before it, as bits. */
static uint32_t shorter_plans(const engine *x, const int64_t *before)
{
    uint32_t found = 0;
    for (int32_t i = 0; i < x->n_batch; i++)
        found |= (uint32_t)(batch_pair(x, i)->plan.length_ns < before[i]) << i;
    return found;
}

/* What one pair has found the others of its class can use, between their own devices. */
static int share_plans(engine *x, uint32_t found)
{
    int rc = 0;
    for (int32_t i = 0; i < x->n_batch && !rc; i++) {
        bool first = found >> i & 1;
        for (int32_t j = 0; j < i && first; j++)
            first = !(found >> j & 1) || x->batch[j].class_ != x->batch[i].class_;
        if (first)
            rc = engine_share_class(x, x->batch[i].class_);
    }
    return rc;
}

/* One batch; *done where nothing is left to refine, or no effort; *found: some plan is shorter. Those that only go on
 * with a level are not counted: each raises a bound by a stride. */
static int refine_batch(engine *x, bool *done, bool *found)
{
    int64_t before[ENGINE_BATCH];
    choose_batch(x);
    *found = false;
    *done = !x->n_batch || x->batches_left <= 0;
    if (*done)
        return 0;
    x->work += x->n_batch;
    bool begins = false;
    for (int32_t i = 0; i < x->n_batch; i++) {
        before[i] = batch_pair(x, i)->plan.length_ns;
        begins |= !batch_pair(x, i)->climbing || x->batch[i].plans_only;
    }
    x->batches_left -= begins;
    /* Cores that pairs leave over go to their cases and runs, also those that a pair leaves when it is done. */
    int32_t cores = x->o->budget.threads > 0 ? x->o->budget.threads : util_cores();
    for (int32_t i = 0; i < x->n_batch; i++)
        x->batch[i].threads = cores;
    int rc = util_pool_run(refine_one, x, x->n_batch, x->o->budget.threads);
    uint32_t shorter = shorter_plans(x, before);
    *found = shorter != 0;
    return rc ? rc : share_plans(x, shorter);
}

int engine_improve_blocks(engine *x)
{
    int rc = engine_open_pairs(x);
    if (!rc) { /* already worth something, and soon there: every block whole on a device, every longest path */
        raise_bound(x);
        rc = engine_compose(x);
    }
    set_shares(x);
    bool many = count_classes(x) >= MANY_CLASSES;
    /* First levels of many classes take longer than prices that know the bytes from the start. */
    if (!rc && x->memory_binds && x->n_large > 1 && many)
        return engine_improve_within_memory(x);
    if (!rc && x->layers_differ && !engine_stopped(x))
        rc = engine_begin_with_programmes(x);
    if (!rc && !many && !x->programmes) /* else those on the bound's path, as it goes */
        rc = all_first_levels(x);
    for (bool done = false, found = true; !rc && !done;) {
        raise_bound(x);
        rc = open_bound_path(x, &found);
        if (!rc && found)
            rc = engine_compose(x);
        if (!rc && x->memory_binds)
            return engine_improve_within_memory(x);
        if (rc || !x->best || engine_gap(x) <= x->o->gap || engine_stopped(x))
            break;
        if (x->programmes && !x->begun_by_programmes) {
            x->begun_by_programmes = true;
            rc = engine_refine_by_programmes(x);
            found = true;
            continue;
        }
        rc = refine_batch(x, &done, &found);
        if (!rc && done)
            done = !engine_grow(x);
    }
    return rc;
}
