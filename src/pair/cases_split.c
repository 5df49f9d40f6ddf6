/* Where a case is split, and its parts.
 *
 * A case is split at what the master's LP solution does that no plan could: a number of components that is not whole, or a
 * tensor that is read before it arrives; of these the one on which most time of the dearest devices hangs. Who receives
 * the shared tensor is asked before either: it says most. */
#include "pair/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem/equal_devices.h"
#include "util/util.h"

void pair_case_free(pair_case *c)
{
    free(c->proof.price);
    free(c->duals.price);
    free(c->branch);
}

void pair_cases_weights(const pair_state *x, const pricing_master *m, const int64_t *price, double *weight)
{
    const pricing_grid *grid = pricing_master_grid(m);
    int32_t resources = schedule_resources(&x->block.problem);
    double sum = 1e-9;
    for (int32_t r = 0; r < resources; r++) {
        weight[r] = 0;
        for (int32_t i = 0; i < grid->n_buckets; i++)
            weight[r] += (double)price[r * grid->n_buckets + i] * (double)pricing_bucket_ns(grid, i);
        sum += weight[r];
    }
    for (int32_t r = 0; r < resources; r++)
        weight[r] /= sum;
}

typedef struct choice {
    pricing_branch split;
    double score; /* how much time of how expensive a device hangs on it */
} choice;

/* The number that is furthest from whole, by the weight of the time that hangs on it. */
static void choose_number(choice *best, const decompose_block *b, const pricing_master *m, const double *weight)
{
    for (int32_t kind = 0; kind < b->n_kinds; kind++) {
        int32_t begin = b->component_off[b->kind_component[kind]];
        int32_t n = b->component_off[b->kind_component[kind] + 1] - begin;
        for (int32_t i = 0; i < n; i++)
            for (int32_t k = 0; k < b->problem.n_devices; k++) {
                int32_t op = b->component_op[begin + i];
                if (!(b->problem.op_devices[op] >> k & 1))
                    continue;
                double number = pricing_master_number(m, kind, i, k), part = number - floor(number);
                double score =
                    fmin(part, 1 - part) * (weight[k] + 0.01) * (double)(moirai_op_ns(&b->problem, op, k) + 1);
                if (fmin(part, 1 - part) > 1e-4 && score > best->score)
                    *best = (choice){{PRICING_NUMBER, kind, i, k, (int64_t)floor(number), (int64_t)floor(number) + 1},
                                     score};
            }
    }
}

/* The receiver where most is read before the tensor arrives. */
static void choose_arrival(choice *best, const pricing_sending *how, const pricing_master *m, const double *weight)
{
    for (int32_t j = 0; how->fixed && j < how->n_receivers; j++) {
        double mean, early = pricing_master_early(m, j, &mean) * weight[how->receiver[j]];
        int64_t first = pricing_master_arrival(m, j), split = first + ((int64_t)mean - first) / 2;
        if (early > best->score && split - first > pricing_master_grid(m)->length_ns / 200)
            *best = (choice){{PRICING_ARRIVAL, 0, 0, how->receiver[j], split, split + 1}, early};
    }
}

pricing_branch pair_cases_branch_on(const pair_state *x, int32_t sending, const pricing_master *m, const int64_t *price)
{
    choice best = {.split = {.on = PRICING_NO_BRANCH}};
    double *weight = util_alloc((size_t)schedule_resources(&x->block.problem), sizeof *weight);
    if (weight) {
        pair_cases_weights(x, m, price, weight);
        choose_number(&best, &x->block, m, weight);
        choose_arrival(&best, &x->sending.how[sending], m, weight);
    }
    free(weight);
    return best.split;
}

int pair_cases_branch(pricing_branch **below, pricing_branch **above, int32_t n, const decompose_block *b,
                      pricing_branch split)
{
    pricing_branch *grown = util_resize(*below, (size_t)n + 1, sizeof *grown);
    *above = NULL;
    if (!grown)
        return MOIRAI_EFAIL;
    *below = grown;
    grown[n] = split;
    if (!(*above = util_copy(grown, (size_t)n + 1, sizeof *grown)))
        return MOIRAI_EFAIL;
    grown[n].least = 0;
    grown[n].most = split.least;
    (*above)[n].least = split.most;
    (*above)[n].most = split.on == PRICING_NUMBER ? b->kind_count[split.kind] : INT64_MAX;
    return 0;
}

/* Two cases in place of one, d in place of what c leaves out: at most c->split.least, or at least c->split.most. Both
 * inherit proof and duals. */
static int halve(const pair_state *x, pair_case *c, pair_case *d)
{
    *d = *c;
    d->proof.price = d->duals.price = NULL;
    int rc = pair_cases_branch(&c->branch, &d->branch, c->n_branches, &x->block, c->split);
    rc = rc ? rc : pricing_duals_set(&d->proof, &x->block.problem, &c->proof);
    rc = rc ? rc : pricing_duals_set(&d->duals, &x->block.problem, &c->duals);
    if (rc)
        pair_case_free(d);
    else
        d->n_branches = ++c->n_branches;
    c->seen = d->seen = false;
    return rc;
}

/* ---- receivers ---- */

uint64_t pair_may_receive(const pair_state *x)
{
    const moirai_problem *q = &x->block.problem;
    int32_t shared = decompose_block_shared_tensor(&x->block);
    uint64_t mask = 0;
    for (int32_t e = q->tensor_edge_off[shared]; e < q->tensor_edge_off[shared + 1]; e++)
        mask |= q->op_devices[q->edge_reader[e]];
    return mask & ~q->op_devices[x->block.entry];
}

int pair_sending(int32_t *number, pair_state *x, const pricing_sending *how)
{
    for (*number = 0; *number < x->sending.n; ++*number)
        if (pricing_same_sending(&x->sending.how[*number], how))
            return 0;
    pricing_sending *grown = util_resize(x->sending.how, (size_t)x->sending.n + 1, sizeof *grown);
    if (!grown)
        return MOIRAI_EFAIL;
    x->sending.how = grown;
    x->sending.how[x->sending.n++] = *how;
    return 0;
}

/* Devices that may be next to receive: one of several equal ones that are not listed, whose plans are images of each
 * other's. */
static uint64_t next_receivers(const pair_state *x, const pricing_sending *how)
{
    uint64_t left = pair_may_receive(x), next = 0, seen = 0;
    int32_t least[MOIRAI_MASK_DEVICES];
    problem_equal_devices(&x->block.problem, least);
    for (int32_t j = 0; j < how->n_receivers; j++)
        left &= ~(UINT64_C(1) << how->receiver[j]);
    for (; left; left &= left - 1) {
        int32_t k = __builtin_ctzll(left);
        if (!(seen >> least[k] & 1))
            next |= UINT64_C(1) << k;
        seen |= UINT64_C(1) << least[k];
    }
    return next;
}

/* A case as one part of `whole`, which has no branches yet, with another sending. Prices of the whole may prove less of
 * it, so they are a start and no proof. */
static int part_of_case(const pair_state *x, pair_case *out, const pair_case *whole, int32_t sending)
{
    *out = (pair_case){.sending = sending,
                       .proven_ns = x->path_ns,
                       .estimate_ns = whole->estimate_ns,
                       .split = {.on = PRICING_NO_BRANCH}};
    return pricing_duals_set(&out->duals, &x->block.problem, &whole->duals);
}

/* Nobody else receives the shared tensor, or one of these next: the last takes the place of the case. */
static int split_receivers(pair_state *x, int32_t index)
{
    pricing_sending how = x->sending.how[x->cases[index].sending];
    uint64_t next = next_receivers(x, &how);
    int32_t all = __builtin_popcountll(pair_may_receive(x)), n = how.n_receivers, sending;
    if (util_grow(&x->cases, &x->case_capacity, (size_t)(x->n_cases + __builtin_popcountll(next)), sizeof *x->cases))
        return MOIRAI_EFAIL;
    int rc = 0;
    for (; next && !rc; next &= next - 1) {
        how.receiver[n] = (int8_t)__builtin_ctzll(next);
        how.n_receivers = (int8_t)(n + 1);
        how.open = n + 1 < all;
        rc = pair_sending(&sending, x, &how);
        rc = rc ? rc : part_of_case(x, &x->cases[x->n_cases], &x->cases[index], sending);
        x->n_cases += !rc;
    }
    how.n_receivers = (int8_t)n;
    how.open = false;
    rc = rc ? rc : pair_sending(&sending, x, &how);
    if (rc)
        return rc;
    pair_case *c = &x->cases[index], old = *c;
    rc = part_of_case(x, c, &old, sending);
    if (rc)
        *c = old;
    else
        pair_case_free(&old);
    return rc;
}

int pair_cases_copy_proofs(pair_leaves *out, const pair_state *x)
{
    pair_case *copy = util_alloc((size_t)x->n_cases, sizeof *copy);
    *out = (pair_leaves){0, copy};
    for (int32_t i = 0; copy && i < x->n_cases; i++) {
        const pair_case *from = &x->cases[i];
        copy[i] = (pair_case){.sending = from->sending, .n_branches = from->n_branches, .proven_ns = from->proven_ns};
        copy[i].branch = util_copy(from->branch, (size_t)from->n_branches, sizeof *from->branch);
        out->n++;
        if (!copy[i].branch || pricing_duals_set(&copy[i].proof, &x->block.problem, &from->proof))
            return MOIRAI_EFAIL;
    }
    return copy ? 0 : MOIRAI_EFAIL;
}

int pair_case_split(pair_state *x, int32_t index)
{
    if (x->cases[index].split.on == PRICING_RECEIVER)
        return split_receivers(x, index);
    if (util_grow(&x->cases, &x->case_capacity, (size_t)x->n_cases + 1, sizeof *x->cases))
        return MOIRAI_EFAIL;
    int rc = halve(x, &x->cases[index], &x->cases[x->n_cases]);
    x->n_cases += !rc;
    return rc;
}

pricing_branch pair_case_choose_split(const pair_state *x, const pair_case *c, const pricing_master *m,
                                      const int64_t *price)
{
    const pricing_sending *how = &x->sending.how[c->sending];
    if (how->fixed && how->open)
        return (pricing_branch){.on = PRICING_RECEIVER};
    return pair_cases_branch_on(x, c->sending, m, price);
}
