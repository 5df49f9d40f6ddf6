/* Refinement of one pair: better plans (improve.c), a better bound (cases.c), and for small blocks the exhaustive
 * search.
 *
 * A level is a number of buckets for the prices, of looks at cases, and of evaluations. */
#include "pair/pair_refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exact/exact.h"
#include "pair/cases.h"
#include "pair/improve.h"
#include "schedule/paths.h"
#include "util/pool.h"
#include "util/util.h"

#define EXACT_OPS 40 /* blocks up to this size are given to the exhaustive search as well */

typedef struct level_plan {
    int32_t buckets, rounds, looks;
    int64_t evaluations, nodes;
} level_plan;

static const level_plan levels[PAIR_LEVELS + 1] = {
    {0, 0, 0, 0, 0},
    {1, 40, 40, 3000, 2000},
    {8, 50, 60, 20000, 100000},
    {12, 60, 120, 50000, 1000000},
    {20, 100, 240, 120000, 4000000},
};

/* ---- opening ---- */

static int add_sending(pair_state *x, const pricing_sending *how)
{
    pricing_sending *grown = util_resize(x->sending, (size_t)x->n_sendings + 1, sizeof *grown);
    if (!grown)
        return MOIRAI_EFAIL;
    x->sending = grown;
    x->sending[x->n_sendings++] = *how;
    return MOIRAI_OK;
}

/* All ordered sets of receivers (congestion port), or all sets (the order does not matter elsewhere). */
static int add_sendings(pair_state *x, pricing_sending *how, uint64_t left, bool ordered)
{
    int result = add_sending(x, how);
    for (uint64_t rest = left; rest && !result; rest &= rest - 1) {
        int32_t k = __builtin_ctzll(rest);
        how->receiver[how->n_receivers++] = (int8_t)k;
        uint64_t next = left & ~(UINT64_C(1) << k);
        if (!ordered)
            next &= ~((UINT64_C(2) << k) - 1);
        result = add_sendings(x, how, next, ordered);
        how->n_receivers--;
    }
    return result;
}

/* Devices on which some reader of the tensor may run. */
static uint64_t reader_mask(const moirai_problem *q, int32_t t)
{
    uint64_t mask = 0;
    for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
        mask |= q->op_devices[q->edge_reader[e]];
    return mask;
}

static int list_sendings(pair_state *x, int32_t entry_device)
{
    const moirai_problem *q = &x->block.problem;
    pricing_sending how = {0};
    int32_t shared = decompose_block_shared_tensor(&x->block);
    if (shared < 0)
        return add_sending(x, &how);
    uint64_t others = reader_mask(q, shared) & ~(UINT64_C(1) << entry_device);
    bool ordered = q->congestion == MOIRAI_CONGESTION_PORT;
    if (__builtin_popcountll(others) > (ordered ? 4 : 6))
        return add_sending(x, &how); /* too many to go through: assume nothing */
    how.fixed = true;
    return add_sendings(x, &how, others, ordered);
}

/* The block with its own mask, pinned: others may use the block at the same time. */
static int pin_block(pair_state *x, const decompose_block *b, int32_t entry_device, int32_t exit_device)
{
    uint64_t *devices = util_alloc((size_t)b->problem.n_ops, sizeof *devices);
    if (!devices)
        return MOIRAI_EFAIL;
    memcpy(devices, b->problem.op_devices, sizeof *devices * (size_t)b->problem.n_ops);
    x->block = *b;
    x->block.problem.op_devices = devices;
    decompose_block_pin(&x->block, entry_device, exit_device);
    x->open = true;
    return MOIRAI_OK;
}

int pair_open(pair_chain *c, int32_t class_, int32_t a, int32_t b)
{
    pair_state *x = pair_chain_at(c, class_, a, b);
    if (x->open)
        return MOIRAI_OK;
    int result = pin_block(x, c->block[class_], a, b);
    if (result)
        return result;
    int64_t path_ns = schedule_longest_path(&(schedule_paths){.p = &x->block.problem});
    x->path_ns = x->lower_ns = UTIL_MAX(path_ns, 0); /* no bound is a bound */
    pair_improve_task start = {.pair = x, .entry_device = a, .exit_device = b, .seed = 1};
    result = pair_improve_plan(&start, 0);
    x->first_ns = x->plan.length_ns;
    if (!result && x->block.n_interior == 0) {
        x->lower_ns = x->plan.length_ns; /* nothing to decide */
        x->level = PAIR_LEVELS;
    } else if (!result) {
        result = list_sendings(x, a);
        if (!result)
            result = pair_cases_first(x);
    }
    return result;
}

static int open_one(void *data, int32_t i)
{
    pair_chain *c = data;
    int32_t K = c->K, class_ = i / (K * K), a = i / K % K, b = i % K;
    return pair_chain_possible(c, class_, a, b) ? pair_open(c, class_, a, b) : MOIRAI_OK;
}

int pair_chain_open(pair_chain *c, int threads)
{
    return util_pool_run(open_one, c, c->s->n_classes * c->K * c->K, threads);
}

/* Small blocks: look for anything better than the plan; finding nothing proves it optimal. */
static int exhaust(pair_state *x, const pair_refine_task *job, int64_t nodes)
{
    if (x->block.n_interior > EXACT_OPS || !exact_fits(&x->block.problem, NULL))
        return MOIRAI_OK;
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    o.below_ns = x->plan.length_ns;
    o.node_limit = (int64_t)((double)nodes * job->effort);
    o.interrupt = job->stop.interrupt;
    if (job->stop.deadline > 0)
        o.time_limit_s = fmax(job->stop.deadline - util_seconds(), 0.001);
    int result = exact_solve(&x->block.problem, &o, &found);
    if (result)
        return result == MOIRAI_ELIMIT ? MOIRAI_OK : result;
    if (found.found && found.makespan_ns < x->plan.length_ns) {
        x->plan.length_ns = found.makespan_ns;
        x->plan.cost = pricing_units(found.makespan_ns);
        result = pair_plan_set(&x->plan, x->block.problem.n_ops, found.op_device, found.order, found.n_order);
    }
    int64_t proven = UTIL_MIN(found.lower_bound_ns, x->plan.length_ns);
    if (proven > x->lower_ns) {
        x->lower_ns = proven;
        x->exhausted = true;
    }
    exact_result_clear(&found);
    return result;
}

static int raise_and_improve(const pair_improve_task *search, const pair_refine_task *job, int64_t evaluations)
{
    pair_state *x = search->pair;
    const level_plan *level = &levels[job->level];
    pair_bound_task r = {.pair = x, .entry_device = job->entry_device, .exit_device = job->exit_device,
                      .need_ns = job->need_ns, .buckets = level->buckets, .rounds = level->rounds,
                      .looks = (int32_t)(level->looks * fmin(job->effort, 1000)), .stop = job->stop};
    int result = pricing_pricer_new(&r.pricer, &x->block, PAIR_CASE_STEPS + 2);
    if (!result)
        result = pair_cases_solve(&r);
    if (!result && x->lower_ns < x->plan.length_ns && job->improve)
        result = pair_improve_from_cases(search, &r, evaluations);
    pricing_pricer_free(r.pricer);
    return result;
}

int pair_refine(pair_chain *c, const pair_refine_task *job)
{
    pair_state *x = pair_chain_at(c, job->class_, job->entry_device, job->exit_device);
    const level_plan *level = &levels[job->level];
    pair_improve_task search = {.pair = x, .entry_device = job->entry_device, .exit_device = job->exit_device,
                             .level = job->level, .seed = job->seed, .stop = job->stop};
    int64_t evaluations = (int64_t)((double)(job->improve ? level->evaluations : 200) * job->effort);
    int result = pair_improve_plan(&search, evaluations / 4);
    if (!result && !job->prices_only)
        result = exhaust(x, job, level->nodes);
    /* Prices alone may still have something to prove where the exhaustive search has left nothing. */
    bool open = x->lower_ns < x->plan.length_ns;
    if (!result && (open || (job->prices_only && x->cases[pair_cases_weakest(x)].proven_ns < x->plan.length_ns)))
        result = raise_and_improve(&search, job, evaluations);
    x->level = job->level;
    return result;
}
