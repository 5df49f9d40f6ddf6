/* Refinement of one pair: annealing for its plan, branch and bound over cases for its bound.
 *
 * A case says how the shared tensor is sent and in which ranges some counts lie (how many components of a kind have operator i on
 * device k: a whole number, which the master does not know). A pair's bound is the least over its cases. The weakest case is
 * taken first: the prices are asked to exclude a length a little above what is proven; if they can, it is no longer the weakest;
 * if they can't, it is split in two at a count that the master has left fractional. That is best-first branch and
 * bound with the length as the value of a node; every leaf carries its prices as proof.
 * Component schedules of the last master that could not be excluded become the starts of the annealing.
 *
 * A level is a grid (steps, buckets), a number of masters that may be solved, and a number of evaluations. */
#include "place/moirai/refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/exact/exact.h"
#include "util/util.h"

#define MASTER_STEPS 512
#define RESTARTS 6   /* of the annealing from the master's mix, every other one guided by its prices */
#define EXACT_OPS 40 /* blocks up to this size are given to the exhaustive search as well */

typedef struct level_plan {
    int32_t buckets, rounds, solves;
    int64_t evaluations, nodes;
} level_plan;

static const level_plan levels[MOIRAI_REFINE_LEVELS + 1] = {
    {0, 0, 0, 0, 0},
    {1, 40, 80, 3000, 2000},
    {8, 50, 90, 20000, 100000},
    {12, 60, 120, 50000, 1000000},
    {20, 100, 200, 120000, 4000000},
};

/* ---- opening ---- */

/* head(i, k): least start of i on k; every input may come from wherever it is quickest. */
static int64_t longest_path(const moirai_block *b)
{
    const moirai_problem *q = &b->problem;
    int32_t K = q->n_devices;
    int64_t *head = moirai_alloc((size_t)q->n_ops * (size_t)K, sizeof *head), longest = 0;
    if (!head)
        return 0; /* no bound is a bound */
    for (int32_t i = 0; i < q->n_ops; i++) {
        int64_t least = INT64_MAX;
        for (int32_t k = 0; k < K; k++) {
            if (!(q->op_devices[i] >> k & 1))
                continue;
            int64_t ready = 0;
            for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++) {
                int32_t t = q->op_in[j], from = q->tensor_producer[t];
                int64_t soonest = INT64_MAX;
                for (int32_t l = 0; l < K; l++)
                    if (q->op_devices[from] >> l & 1)
                        soonest = MOIRAI_MIN(soonest, head[from * K + l] + moirai_op_ns(q, from, l) +
                                                          moirai_transfer_ns(q, t, l, k));
                ready = MOIRAI_MAX(ready, soonest);
            }
            head[i * K + k] = ready;
            least = MOIRAI_MIN(least, ready + moirai_op_ns(q, i, k));
        }
        longest = MOIRAI_MAX(longest, least);
    }
    free(head);
    return longest;
}

static int add_sending(moirai_pair *x, const moirai_sending *how)
{
    moirai_sending *grown = moirai_resize(x->sending, (size_t)x->n_sendings + 1, sizeof *grown);
    if (!grown)
        return MOIRAI_EFAIL;
    x->sending = grown;
    x->sending[x->n_sendings++] = *how;
    return MOIRAI_OK;
}

/* All ordered sets of receivers (congestion port), or all sets (the order does not matter elsewhere). */
static int add_sendings(moirai_pair *x, moirai_sending *how, uint64_t left, bool ordered)
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

static int list_sendings(moirai_pair *x, int32_t entry_device)
{
    const moirai_problem *q = &x->block.problem;
    moirai_sending how = {0};
    int32_t shared = moirai_block_shared_tensor(&x->block);
    if (shared < 0)
        return add_sending(x, &how);
    uint64_t others = reader_mask(q, shared) & ~(UINT64_C(1) << entry_device);
    bool ordered = q->congestion == MOIRAI_CONGESTION_PORT;
    if (__builtin_popcountll(others) > (ordered ? 4 : 6))
        return add_sending(x, &how); /* too many to go through: assume nothing */
    how.fixed = true;
    return add_sendings(x, &how, others, ordered);
}

static int first_cases(moirai_pair *x)
{
    if (moirai_grow(&x->cases, &x->case_capacity, (size_t)x->n_sendings, sizeof *x->cases))
        return MOIRAI_EFAIL;
    x->n_cases = x->n_sendings;
    for (int32_t i = 0; i < x->n_sendings; i++)
        x->cases[i] = (moirai_case){.sending = i, .proven_ns = x->path_ns, .failed_ns = INT64_MAX, .split = {.kind = -1}};
    return MOIRAI_OK;
}

/* The block with its own mask, pinned: others may use the block at the same time. */
static int pin_block(moirai_pair *x, const moirai_block *b, int32_t entry_device, int32_t exit_device)
{
    uint64_t *devices = moirai_alloc((size_t)b->problem.n_ops, sizeof *devices);
    if (!devices)
        return MOIRAI_EFAIL;
    memcpy(devices, b->problem.op_devices, sizeof *devices * (size_t)b->problem.n_ops);
    x->block = *b;
    x->block.problem.op_devices = devices;
    moirai_block_pin(&x->block, entry_device, exit_device);
    x->open = true;
    return MOIRAI_OK;
}

static int search_plan(moirai_pair *x, const moirai_refine_task *job, int64_t evaluations, const moirai_kept_pattern *hints,
                       int32_t n_hints, const double *weight, double heat)
{
    moirai_sim *sim;
    if (moirai_sim_new(&sim, &x->block.problem))
        return MOIRAI_EFAIL;
    int32_t *start = NULL;
    if (x->plan.device && (start = moirai_alloc((size_t)x->block.problem.n_ops, sizeof *start)))
        memcpy(start, x->plan.device, sizeof *start * (size_t)x->block.problem.n_ops);
    moirai_search_task task = {.entry_device = job->entry_device, .exit_device = job->exit_device,
                               .evaluations = evaluations, .seed = job->seed + (uint64_t)job->level + (n_hints > 0),
                               .stop = job->stop, .start_device = start, .pattern = hints, .n_patterns = n_hints,
                               .weight = weight, .heat = heat};
    int result = moirai_block_search(&x->plan, &x->block, sim, &task);
    free(start);
    moirai_sim_free(sim);
    return result;
}

int moirai_pair_open(moirai_chain *c, int32_t class_, int32_t a, int32_t b)
{
    moirai_pair *x = moirai_chain_pair(c, class_, a, b);
    if (x->open)
        return MOIRAI_OK;
    int result = pin_block(x, c->block[class_], a, b);
    if (result)
        return result;
    x->path_ns = x->lower_ns = longest_path(&x->block);
    moirai_refine_task job = {.entry_device = a, .exit_device = b, .seed = 1};
    result = search_plan(x, &job, 0, NULL, 0, NULL, 1);
    x->first_ns = x->plan.length_ns;
    if (!result && x->block.n_interior == 0) {
        x->lower_ns = x->plan.length_ns; /* nothing to decide */
        x->level = MOIRAI_REFINE_LEVELS;
    } else if (!result) {
        result = list_sendings(x, a);
        if (!result && !(x->master = moirai_alloc((size_t)x->n_sendings, sizeof *x->master)))
            result = MOIRAI_EFAIL;
        if (!result)
            result = first_cases(x);
    }
    return result;
}

/* ---- raising ---- */

typedef struct raise {
    moirai_pair *pair;
    const moirai_refine_task *job;
    level_plan level;
    int64_t step_ns;    /* how far above the proven length to try */
} raise;

static moirai_master *master_of(raise *r, int32_t sending)
{
    moirai_pair *x = r->pair;
    if (!x->master[sending])
        moirai_master_new(&x->master[sending], &x->block, r->job->entry_device, r->job->exit_device, &x->sending[sending],
                          x->longest_ns, MASTER_STEPS);
    return x->master[sending];
}

static int store_proof(moirai_pair *x, moirai_case *c, const moirai_master *m, const moirai_master_result *found, int64_t length_ns)
{
    size_t cells = (size_t)moirai_resource_count(&x->block.problem) * (size_t)moirai_master_grid(m)->n_buckets;
    int64_t *price = moirai_alloc(cells + (size_t)c->n_counts, sizeof *price);
    if (!price)
        return MOIRAI_EFAIL;
    memcpy(price, found->price, cells * sizeof *price);
    memcpy(price + cells, found->count_price, (size_t)c->n_counts * sizeof *price);
    free(c->price);
    c->price = price;
    c->n_priced = c->n_counts;
    c->grid = *moirai_master_grid(m);
    c->proven_ns = length_ns + 1;
    return MOIRAI_OK;
}

/* How dear each device is in the master's prices: counts on devices with time to spare decide nothing. */
static void device_worth(const moirai_pair *x, const moirai_master *m, const int64_t *price, double *worth)
{
    const moirai_grid *grid = moirai_master_grid(m);
    double sum = 1e-9;
    for (int32_t k = 0; k < x->block.problem.n_devices; k++) {
        worth[k] = 0;
        for (int32_t i = 0; i < grid->n_buckets; i++)
            worth[k] += (double)price[k * grid->n_buckets + i] * (double)moirai_bucket_ns(grid, i);
        sum += worth[k];
    }
    for (int32_t k = 0; k < x->block.problem.n_devices; k++)
        worth[k] = worth[k] / sum + 0.01;
}

/* The count that is furthest from whole, by the worth of the time that hangs on it. */
static moirai_count choose_split(const moirai_pair *x, const moirai_master *m, const int64_t *price)
{
    const moirai_block *b = &x->block;
    moirai_count best = {.kind = -1};
    double best_score = 0, worth[MOIRAI_MAX_DEVICES];
    device_worth(x, m, price, worth);
    for (int32_t kind = 0; kind < b->n_kinds; kind++) {
        int32_t begin = b->component_off[b->kind_component[kind]];
        int32_t n = b->component_off[b->kind_component[kind] + 1] - begin;
        for (int32_t i = 0; i < n; i++)
            for (int32_t k = 0; k < b->problem.n_devices; k++) {
                int32_t op = b->component_op[begin + i];
                if (!(b->problem.op_devices[op] >> k & 1))
                    continue;
                double count = moirai_master_count(m, kind, i, k), part = count - floor(count);
                double score = fmin(part, 1 - part) * worth[k] * (double)(moirai_op_ns(&b->problem, op, k) + 1);
                if (fmin(part, 1 - part) > 1e-4 && score > best_score) {
                    best_score = score;
                    best = (moirai_count){kind, i, k, (int32_t)floor(count), (int32_t)floor(count) + 1};
                }
            }
    }
    return best;
}

/* Try to exclude a length in a case. */
static int try_length(raise *r, moirai_case *c, int64_t length_ns, double *theta)
{
    moirai_pair *x = r->pair;
    moirai_master *m = master_of(r, c->sending);
    if (!m)
        return MOIRAI_EFAIL;
    moirai_master_task task = {.form = MOIRAI_PRICE_LENGTH, .length_ns = length_ns, .buckets = r->level.buckets, .n_counts = c->n_counts, .count = c->count,
                               .max_rounds = r->level.rounds, .converge = theta != NULL, .stop = r->job->stop};
    moirai_master_result found;
    int result = moirai_master_solve(&found, m, &task);
    x->solves++;
    if (result)
        return result;
    if (theta)
        *theta = found.theta;
    if (found.proven)
        return store_proof(x, c, m, &found, length_ns);
    c->failed_ns = MOIRAI_MIN(c->failed_ns, length_ns);
    c->split = choose_split(x, m, found.price);
    return MOIRAI_OK;
}

/* Two cases in place of one: the count at most floor, or at least floor + 1. Both inherit the proof. */
static int split_case(moirai_pair *x, int32_t index)
{
    if (moirai_grow(&x->cases, &x->case_capacity, (size_t)x->n_cases + 1, sizeof *x->cases))
        return MOIRAI_EFAIL;
    moirai_case *c = &x->cases[index], *d = &x->cases[x->n_cases];
    size_t cells = c->price ? (size_t)moirai_resource_count(&x->block.problem) * (size_t)c->grid.n_buckets + (size_t)c->n_priced : 0;
    moirai_count split = c->split;
    *d = *c;
    d->count = moirai_alloc((size_t)c->n_counts + 1, sizeof *d->count);
    d->price = c->price ? moirai_alloc(cells, sizeof *d->price) : NULL;
    moirai_count *grown = moirai_resize(c->count, (size_t)c->n_counts + 1, sizeof *grown);
    if (!d->count || (c->price && !d->price) || !grown) {
        free(d->count);
        free(d->price);
        if (grown)
            c->count = grown;
        return MOIRAI_EFAIL;
    }
    c->count = grown;
    memcpy(d->count, c->count, sizeof *d->count * (size_t)c->n_counts);
    if (d->price)
        memcpy(d->price, c->price, cells * sizeof *d->price);
    c->count[c->n_counts++] = (moirai_count){split.kind, split.op, split.device, 0, split.least};
    d->count[d->n_counts++] = (moirai_count){split.kind, split.op, split.device, split.most, x->block.kind_count[split.kind]};
    c->failed_ns = d->failed_ns = INT64_MAX;
    c->split.kind = d->split.kind = -1;
    x->n_cases++;
    return MOIRAI_OK;
}

static int32_t weakest_case(const moirai_pair *x)
{
    int32_t weakest = 0;
    for (int32_t i = 1; i < x->n_cases; i++)
        if (x->cases[i].proven_ns < x->cases[weakest].proven_ns)
            weakest = i;
    return weakest;
}

/* First look at a case: all that is wanted at once, then what the master's theta says can be had. */
static int first_look(raise *r, moirai_case *c, int64_t ceiling)
{
    double theta = 0;
    c->seen = true;
    int result = try_length(r, c, ceiling - 1, &theta);
    int64_t guess = (int64_t)((double)ceiling * theta * 0.998);
    if (result || c->proven_ns >= ceiling || guess <= c->proven_ns)
        return result;
    return try_length(r, c, MOIRAI_MIN(guess, ceiling - 2), NULL);
}

static int raise_pair(raise *r)
{
    moirai_pair *x = r->pair;
    int64_t solves = x->solves + (int64_t)(r->level.solves * r->job->effort), stride = r->step_ns;
    int64_t ceiling = MOIRAI_MIN(r->job->need_ns, x->plan.length_ns);
    int result = MOIRAI_OK;
    while (!result && x->solves < solves && !moirai_stopped(&r->job->stop)) {
        int32_t index = weakest_case(x);
        moirai_case *c = &x->cases[index];
        if (c->proven_ns >= ceiling)
            break;
        if (!c->seen) {
            result = first_look(r, c, ceiling);
            continue;
        }
        if (c->failed_ns != INT64_MAX && c->failed_ns - c->proven_ns <= r->step_ns) {
            if (c->split.kind < 0 || c->n_counts >= 60)
                break; /* stuck: the mix is whole */
            result = split_case(x, index);
            continue;
        }
        /* Stride out while it works, close in where it did not. */
        int64_t before = c->proven_ns, length = MOIRAI_MAX(c->proven_ns, x->lower_ns) + stride;
        if (c->failed_ns != INT64_MAX)
            length = MOIRAI_MIN(length, c->proven_ns + (c->failed_ns - c->proven_ns) / 2);
        result = try_length(r, c, MOIRAI_MIN(length, ceiling - 1), NULL);
        stride = c->proven_ns > before ? stride * 2 : r->step_ns;
    }
    int32_t weakest = weakest_case(x);
    x->lower_ns = MOIRAI_MAX(x->lower_ns, x->cases[weakest].proven_ns);
    return result;
}

static void start_level(raise *r)
{
    moirai_pair *x = r->pair;
    r->step_ns = MOIRAI_MAX(x->plan.length_ns / 400, 1);
    if (!x->longest_ns)
        x->longest_ns = x->plan.length_ns;
}

/* Finer prices need fewer cases: a level begins with the sendings alone. What was proven before is kept until it is
 * surpassed. */
static int raise_afresh(raise *r)
{
    moirai_pair *x = r->pair, old = *x;
    x->cases = NULL;
    x->n_cases = 0;
    x->case_capacity = 0;
    int result = first_cases(x);
    if (!result)
        result = raise_pair(r);
    bool better = !result && x->cases[weakest_case(x)].proven_ns >= old.cases[weakest_case(&old)].proven_ns;
    if (!better) {
        moirai_case *cases = x->cases;
        int32_t n = x->n_cases;
        x->cases = old.cases;
        x->n_cases = old.n_cases;
        x->case_capacity = old.case_capacity;
        old.cases = cases;
        old.n_cases = n;
    }
    moirai_cases_free(old.cases, old.n_cases);
    return result;
}

/* The part of each resource in the prices, over all time. */
static void resource_weights(const moirai_pair *x, const moirai_master *m, const int64_t *price, double *weight)
{
    const moirai_grid *grid = moirai_master_grid(m);
    int32_t resources = moirai_resource_count(&x->block.problem);
    double sum = 1e-9;
    for (int32_t r = 0; r < resources; r++) {
        weight[r] = 0;
        for (int32_t i = 0; i < grid->n_buckets; i++)
            weight[r] += (double)price[r * grid->n_buckets + i] * (double)moirai_bucket_ns(grid, i);
        sum += weight[r];
    }
    for (int32_t r = 0; r < resources; r++)
        weight[r] /= sum;
}

/* The weakest case is where the bound thinks the best plan is: its master's mix at a length that it can't exclude. */
static int search_with_hints(raise *r, int64_t evaluations)
{
    moirai_pair *x = r->pair;
    moirai_case *c = &x->cases[weakest_case(x)];
    moirai_master *m = master_of(r, c->sending);
    if (!m)
        return MOIRAI_EFAIL;
    int64_t length = MOIRAI_MIN(c->proven_ns + 2 * r->step_ns, x->longest_ns);
    moirai_master_task task = {.form = MOIRAI_PRICE_LENGTH, .length_ns = length, .buckets = r->level.buckets,
                               .n_counts = c->n_counts, .count = c->count, .max_rounds = r->level.rounds, .stop = r->job->stop};
    moirai_master_result found;
    int result = moirai_master_solve(&found, m, &task);
    if (result)
        return result;
    moirai_kept_pattern *hints = moirai_alloc((size_t)moirai_master_columns(m), sizeof *hints);
    int32_t n = hints ? moirai_master_kept(m, hints) : 0;
    double *weight = moirai_alloc((size_t)moirai_resource_count(&x->block.problem), sizeof *weight);
    result = hints && weight ? MOIRAI_OK : MOIRAI_EFAIL;
    if (!result)
        resource_weights(x, m, found.price, weight);
    static const double heat[RESTARTS] = {1, 1, 0.5, 0.5, 2, 2};
    for (int32_t i = 0; i < RESTARTS && !result; i++) {
        moirai_refine_task again = *r->job;
        again.seed += 100 * (uint64_t)i;
        result = search_plan(x, &again, evaluations / RESTARTS, hints, n, i % 2 ? NULL : weight, heat[i]);
    }
    free(weight);
    free(hints);
    return result;
}

/* The exhaustive search's plan as the pair's. */
static int take_exact(moirai_pair *x, const moirai_exact_result *found)
{
    size_t n = (size_t)x->block.problem.n_ops;
    int32_t *device = moirai_alloc(n, sizeof *device);
    moirai_task *order = moirai_alloc((size_t)found->n_order, sizeof *order);
    if (!device || !order) {
        free(device);
        free(order);
        return MOIRAI_EFAIL;
    }
    memcpy(device, found->op_device, n * sizeof *device);
    memcpy(order, found->order, sizeof *order * (size_t)found->n_order);
    moirai_block_plan_free(&x->plan);
    x->plan = (moirai_block_plan){found->makespan_ns, found->makespan_ns * MOIRAI_PRICE_UNIT, device, order, found->n_order};
    return MOIRAI_OK;
}

/* Small blocks: look for anything better than the plan; finding nothing proves it optimal. */
static int exhaust(moirai_pair *x, const moirai_refine_task *job, int64_t nodes)
{
    if (x->block.n_interior > EXACT_OPS || !moirai_exact_fits(&x->block.problem, NULL))
        return MOIRAI_OK;
    moirai_exact_options o;
    moirai_exact_result found;
    moirai_exact_options_init(&o);
    o.below_ns = x->plan.length_ns;
    o.node_limit = (int64_t)((double)nodes * job->effort);
    o.interrupt = job->stop.interrupt;
    if (job->stop.deadline > 0)
        o.time_limit_s = fmax(job->stop.deadline - moirai_seconds(), 0.001);
    int result = moirai_exact_solve(&x->block.problem, &o, &found);
    if (result)
        return result == MOIRAI_ELIMIT ? MOIRAI_OK : result;
    if (found.found && found.makespan_ns < x->plan.length_ns)
        result = take_exact(x, &found);
    int64_t proven = MOIRAI_MIN(found.lower_bound_ns, x->plan.length_ns);
    if (proven > x->lower_ns) {
        x->lower_ns = proven;
        x->exhausted = true;
    }
    moirai_exact_result_clear(&found);
    return result;
}

int moirai_pair_refine(moirai_chain *c, const moirai_refine_task *job)
{
    moirai_pair *x = moirai_chain_pair(c, job->class_, job->entry_device, job->exit_device);
    raise r = {.pair = x, .job = job, .level = levels[job->level]};
    int64_t evaluations = (int64_t)((double)(job->improve ? r.level.evaluations : 200) * job->effort);
    int result = search_plan(x, job, evaluations / 4, NULL, 0, NULL, 1);
    if (!result && !job->prices_only)
        result = exhaust(x, job, r.level.nodes);
    /* Prices alone may still have something to prove where the exhaustive search has left nothing. */
    bool open = x->lower_ns < x->plan.length_ns;
    if (!result && (open || (job->prices_only && x->cases[weakest_case(x)].proven_ns < x->plan.length_ns))) {
        start_level(&r);
        result = raise_afresh(&r);
    }
    if (!result && x->lower_ns < x->plan.length_ns && job->improve && x->longest_ns)
        result = search_with_hints(&r, evaluations);
    x->level = job->level;
    return result;
}
