/* Pairs against schedules that exist: found by the exhaustive search, put to every proof about them. */
#include "support/false_bound_parts.h"

#include <stdlib.h>
#include <string.h>

#include "exact/exact.h"
#include "pair/pair_refine.h"
#include "support/proving.h"
#include "util/util.h"

/* ---- schedules that exist are never excluded ---- */

static pricing_sending sending_of(const decompose_block *b, const moirai_plan *found, int32_t entry_device)
{
    const moirai_problem *q = &b->problem;
    int32_t shared = decompose_block_shared_tensor(b);
    pricing_sending how = {.fixed = true};
    uint64_t readers = 0;
    for (int32_t e = q->tensor_edge_off[shared]; e < q->tensor_edge_off[shared + 1]; e++)
        readers |= UINT64_C(1) << found->op_device[q->edge_reader[e]];
    readers &= ~(UINT64_C(1) << entry_device);
    while (readers) {
        int32_t pick = __builtin_ctzll(readers);
        int64_t soonest = INT64_MAX;
        for (int32_t i = 0; i < found->n_transfers && q->congestion == MOIRAI_CONGESTION_PORT; i++)
            if (found->transfer[i].tensor == shared && (readers >> found->transfer[i].to & 1) &&
                found->transfer[i].finish_ns < soonest) {
                soonest = found->transfer[i].finish_ns;
                pick = found->transfer[i].to;
            }
        readers &= ~(UINT64_C(1) << pick);
        how.receiver[how.n_receivers++] = (int8_t)pick;
    }
    return how;
}

/* Up to two times of arrival that the schedule obeys. */
static int32_t arrivals_of(const decompose_block *b, const moirai_plan *found, const pricing_sending *how,
                           util_rng *rng, pricing_branch *count)
{
    int32_t n = 0, shared = decompose_block_shared_tensor(b);
    for (int32_t i = 0; how->fixed && i < found->n_transfers && n < 2; i++) {
        const moirai_transfer *t = &found->transfer[i];
        bool listed = false;
        for (int32_t j = 0; j < how->n_receivers; j++)
            listed |= how->receiver[j] == t->to;
        if (t->tensor != shared || !listed || util_rng_below(rng, 2))
            continue;
        bool below = util_rng_below(rng, 2);
        count[n++] =
            (pricing_branch){PRICING_ARRIVAL, 0, 0, t->to, below ? 0 : t->finish_ns, below ? t->finish_ns : INT64_MAX};
    }
    return n;
}

/* Up to three counts that the schedule obeys. */
static int32_t counts_of(const decompose_block *b, const moirai_plan *found, util_rng *rng, pricing_branch *count)
{
    int32_t n = b->n_kinds ? (int32_t)util_rng_below(rng, 4) : 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t kind = (int32_t)util_rng_below(rng, (uint32_t)b->n_kinds), c = b->kind_component[kind];
        int32_t ops = b->component_off[c + 1] - b->component_off[c], op = (int32_t)util_rng_below(rng, (uint32_t)ops);
        int32_t device = (int32_t)util_rng_below(rng, (uint32_t)b->problem.n_devices), here = 0;
        for (c = 0; c < b->n_components; c++)
            here +=
                b->component_kind[c] == kind && found->op_device[b->component_op[b->component_off[c] + op]] == device;
        bool below = util_rng_below(rng, 2);
        count[i] =
            (pricing_branch){PRICING_NUMBER, kind, op, device, below ? 0 : here, below ? here : b->kind_count[kind]};
    }
    return n;
}

/* The verifier's block for a class, with the placer's kinds and trees. */
static bool verifier_block(prove_block *v, const prove_problem *p, pair_chain *c, int32_t class_)
{
    const decompose_block *b = pair_chain_block(c, class_);
    const moirai_problem *q = &b->problem;
    pricing_pricer *w = NULL;
    int32_t *op = calloc((size_t)q->n_ops + 1, sizeof *op), *number = calloc(3 * (size_t)q->n_ops + 1, sizeof *number);
    pricing_tree_edge *edge = calloc((size_t)q->n_ops + 1, sizeof *edge);
    for (int32_t i = 0; op && i < q->n_ops; i++)
        op[i] = p->place[decompose_block_global_op(b, c->p, c->s, c->s->class_block[class_], i)];
    bool good = op && number && edge && !prove_block_new(v, p, q->n_ops, op, b->entry >= 0, b->exit >= 0) &&
                !prove_kinds(v, b->component_kind, (size_t)b->n_components) && !pricing_pricer_new(&w, b, 1);
    for (int32_t kind = 0; good && kind < b->n_kinds; kind++) {
        int32_t n = pricing_pricer_tree(w, kind, edge);
        for (int32_t i = 0; i < n; i++) {
            number[3 * i] = b->op_place[edge[i].producer];
            number[3 * i + 1] = edge[i].tensor - q->op_out_off[edge[i].producer];
            number[3 * i + 2] = b->op_place[edge[i].reader];
        }
        good = !prove_span(v, kind, number, 3 * (size_t)n);
    }
    int32_t shared = decompose_block_shared_tensor(b);
    if (good && shared >= 0)
        good = !prove_share(v, shared - q->op_out_off[b->entry]);
    pricing_pricer_free(w);
    free(op);
    free(number);
    free(edge);
    return good;
}

/* The verifier on the same prices. */
static bool verifier_excludes(const prove_block *v, const pair_state *x, int32_t a, int32_t z,
                              const pricing_master_task *task, const pricing_master_result *found,
                              const pricing_grid *grid, const pricing_sending *how)
{
    const pricing_case *at = &task->at;
    int64_t *price = (int64_t *)found->price;
    prove_branch count[6];
    prove_leaf leaf = {.fixed = how->fixed,
                       .open = how->open,
                       .n_receivers = how->n_receivers,
                       .n_branches = at->n_branches,
                       .branch = count,
                       .priced = true,
                       .length_ns = grid->length_ns,
                       .step_ns = grid->step_ns,
                       .n_steps = grid->n_steps,
                       .n_buckets = grid->n_buckets,
                       .bucket = (int32_t *)grid->bucket_step,
                       .price = price,
                       .branch_price = price + schedule_resources(&x->block.problem) * grid->n_buckets};
    for (int32_t i = 0; i < how->n_receivers; i++)
        leaf.receiver[i] = how->receiver[i];
    for (int32_t i = 0; i < at->n_branches; i++)
        count[i] = (prove_branch){at->branch[i].on == PRICING_NUMBER ? at->branch[i].kind : PROVE_ARRIVAL,
                                  at->branch[i].op, at->branch[i].device, at->branch[i].least, at->branch[i].most};
    bool holds = false;
    return !prove_prices(&holds, v, a, z, &leaf) && holds;
}

static bool schedule_survives(const pair_chain *c, pair_state *x, const prove_block *v, int32_t a, int32_t z,
                              const exact_result *found, uint64_t seed, char *why)
{
    static const int32_t grids[][2] = {{512, 1}, {512, 8}, {60, 6}, {7, 32}, {1, 1}, {200, 32}};
    util_rng rng;
    util_rng_seed(&rng, seed);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        pricing_sending how = {0};
        if (decompose_block_shared_tensor(&x->block) >= 0 && util_rng_below(&rng, 4))
            how = sending_of(&x->block, found->plan, a);
        if (how.fixed && x->block.problem.congestion == MOIRAI_CONGESTION_PORT && util_rng_below(&rng, 2)) {
            how.open = true; /* some of the first receivers */
            how.n_receivers = (int8_t)util_rng_below(&rng, (uint32_t)how.n_receivers + 1);
        }
        pricing_branch count[6];
        int32_t arrivals = arrivals_of(&x->block, found->plan, &how, &rng, count);
        /* The schedule's own length, and sometimes more. */
        int64_t length = found->makespan_ns + (util_rng_below(&rng, 4) ? 0 : util_rng_below(&rng, 20));
        pricing_master_task task = {
            .at = {&how, arrivals + counts_of(&x->block, found->plan, &rng, count + arrivals), count},
            .form = PRICING_LENGTH_FORM,
            .length_ns = length,
            .buckets = grids[i][1],
            .max_rounds = 30,
            .converge = true};
        pricing_master *m;
        pricing_master_result result;
        if (pricing_master_new(&m, &x->block, grids[i][0]) ||
            pricing_pricer_new(&task.pricer, &x->block, grids[i][0] + 2))
            return false_bound_fail(why, "out of memory");
        int rc = pricing_master_solve(&result, m, &task);
        bool false_proof = !rc && result.proven;
        bool false_verdict = !rc && verifier_excludes(v, x, a, z, &task, &result, pricing_master_grid(m), &how);
        pricing_master_free(m);
        pricing_pricer_free(task.pricer);
        if (rc || false_proof || false_verdict)
            return false_bound_fail(
                why,
                "%s excludes a schedule of %lld ns at T = %lld, pair %d %d, steps %d, buckets %d, %d receivers, "
                "%d counts (%s)",
                false_proof     ? "pricing"
                : false_verdict ? "verifier"
                                : "failure",
                (long long)found->makespan_ns, (long long)length, a, z, grids[i][0], grids[i][1],
                how.fixed ? how.n_receivers : -1, task.at.n_branches, c->p->name);
    }
    return true;
}

/* Sends that take no time hold no port: a plan may have them at any moment between their producer's end and their first
 * reader, also within another send. Here they are put anywhere (`rng`), or at their producer's end (NULL), where
 * Lemma 32 of docs/theory.md counts them. */
static void move_free_sends(const moirai_problem *q, moirai_plan *found, util_rng *rng)
{
    for (int32_t i = 0; i < found->n_transfers; i++) {
        moirai_transfer *t = &found->transfer[i];
        int32_t producer = q->tensor_producer[t->tensor];
        int64_t soonest = found->op_start_ns[producer] + moirai_op_ns(q, producer, found->op_device[producer]);
        int64_t latest = INT64_MAX;
        if (t->start_ns != t->finish_ns)
            continue;
        for (int32_t e = q->tensor_edge_off[t->tensor]; e < q->tensor_edge_off[t->tensor + 1]; e++)
            if (found->op_device[q->edge_reader[e]] == t->to &&
                (t->reader == MOIRAI_NONE || t->reader == q->edge_reader[e]))
                latest = UTIL_MIN(latest, found->op_start_ns[q->edge_reader[e]]);
        int64_t room = UTIL_MIN(latest - soonest, INT32_MAX - 1);
        t->start_ns = t->finish_ns = soonest + (rng ? (int64_t)util_rng_below(rng, (uint32_t)room + 1) : 0);
    }
}

/* ---- pairs at all levels ---- */

/* Prices on loads between two devices. */
static bool check_loads(pair_state *x, const exact_result *found, char *why)
{
    if (pair_raise_loads(x, (util_stop){0}))
        return false_bound_fail(why, "loads: %s", moirai_error_message());
    return !found || x->lower_ns <= found->makespan_ns ||
           false_bound_fail(why, "loads of a pair: bound %lld, optimum %lld", (long long)x->lower_ns,
                            (long long)found->makespan_ns);
}

static bool check_pair(pair_chain *c, int32_t class_, int32_t a, int32_t z, const prove_block *v, uint64_t seed,
                       false_bound_counts *counts, char *why)
{
    int64_t index = pair_chain_index(c, class_, a, z);
    exact_options o;
    exact_result found;
    if (pair_open(c, class_, a, z))
        return false_bound_fail(why, "pair %d %d does not open", a, z);
    pair_state *x = c->pair[index];
    exact_options_init(&o);
    o.node_limit = FALSE_BOUND_NODES;
    bool ran = !exact_solve(&x->block.problem, &o, &found), solved = ran && found.complete && found.found, good;
    int32_t levels = x->block.n_interior ? PAIR_LEVELS : 0;
    good = check_loads(x, solved ? &found : NULL, why);
    for (int32_t level = 1; level <= levels && good; level++) {
        pair_refine_task job = {.level = level,
                                .need_ns = INT64_MAX,
                                .prices_only = true,
                                .improve = level > 2,
                                .effort = 0.2,
                                .seed = seed};
        if (pair_refine(x, &job))
            good = false_bound_fail(why, "level %d: %s", level, moirai_error_message());
        else if (solved && x->lower_ns > found.makespan_ns)
            good = false_bound_fail(why, "pair %d %d, level %d: bound %lld, optimum %lld", a, z, level,
                                    (long long)x->lower_ns, (long long)found.makespan_ns);
    }
    if (good && solved && x->lower_ns > found.makespan_ns)
        good = false_bound_fail(why, "pair %d %d: bound %lld, optimum %lld", a, z, (long long)x->lower_ns,
                                (long long)found.makespan_ns);
    if (good && solved && levels) {
        util_rng rng;
        util_rng_seed(&rng, seed);
        move_free_sends(&x->block.problem, found.plan, &rng);
        move_free_sends(&x->block.problem, found.plan, NULL); /* the plan that stands for it */
        good = schedule_survives(c, x, v, a, z, &found, seed, why);
        counts->schedules++;
    }
    if (ran)
        exact_result_clear(&found);
    counts->pairs++;
    return good;
}

bool false_bound_pairs(pair_chain *c, uint64_t seed, false_bound_counts *counts, char *why)
{
    static const util_stop never;
    prove_problem p;
    bool good = !pair_chain_open_all(c, 1, &never) || false_bound_fail(why, "pairs can't be opened");
    if (!proving_problem(&p, c->p))
        good = false_bound_fail(why, "the verifier reads another problem");
    for (int32_t class_ = 0; class_ < c->s->n_classes && good; class_++) {
        prove_block v = {0};
        if (!verifier_block(&v, &p, c, class_))
            good = false_bound_fail(why, "the verifier sees another block");
        for (int32_t i = 0; i < c->K * c->K && good; i++) {
            int32_t a = i / c->K, z = i % c->K;
            /* Equal devices share pairs: the images are proven as well. */
            bool image = pair_chain_index(c, class_, a, z) != (int64_t)class_ * c->K * c->K + i;
            if (image || !pair_chain_possible(c, class_, a, z))
                continue;
            if (counts->pair_every && (seed + (uint64_t)(class_ * c->K * c->K + i)) % (uint64_t)counts->pair_every)
                good = !pair_open(c, class_, a, z) || false_bound_fail(why, "a pair can't be opened");
            else
                good = check_pair(c, class_, a, z, &v, seed + (uint64_t)i, counts, why);
        }
        prove_block_free(&v);
    }
    prove_problem_free(&p);
    return good;
}
