/* The parts of a case that is split: halves of a range, or one for each device that may receive the shared tensor next. */
#include "pair/case.h"

#include <stdlib.h>
#include <string.h>

#include "problem/equal_devices.h"
#include "util/util.h"

/* ---- halves ---- */

int pair_case_branch(pricing_branch **below, pricing_branch **above, int32_t n, const decompose_block *b,
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

/* Another case with the same prices; the list of its branches is not copied. */
static int copy_case(const pair_cases *v, pair_case *to, const pair_case *from)
{
    const moirai_problem *q = &v->pair->block.problem;
    *to = *from;
    to->branch = NULL;
    to->prices.price = NULL;
    return pricing_duals_set(&to->prices, q, &from->prices);
}

/* What the next branch of the case says of it. */
static void ask(const pair_cases *v, pair_case *c)
{
    pricing_branch question = c->branch[c->n_branches++];
    c->end.solved = false;
    if (question.on != PRICING_LENGTH)
        return;
    c->least_ns = UTIL_MAX(c->least_ns, question.least);
    c->most_ns = UTIL_MIN(c->most_ns, question.most);
    c->value = UTIL_MAX(c->value, pair_length_value(v, c->least_ns, v->byte_price));
}

/* *c becomes the lower half, *d the upper one. */
static int halve(const pair_cases *v, pair_case *c, pair_case *d)
{
    int rc = copy_case(v, d, c);
    if (rc)
        return rc;
    rc = pair_case_branch(&c->branch, &d->branch, c->n_branches, &v->pair->block, c->end.split);
    if (rc) {
        pair_case_free(d);
        return rc;
    }
    ask(v, c);
    ask(v, d);
    return 0;
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

/* The part of case `index` that sends so: in its place, or as a new case. Prices of the whole are priced anew: they may prove less. */
static int add_part(pair_cases *v, int32_t index, const pricing_sending *how, bool in_place)
{
    pair_case part, *whole = &v->list[index];
    int rc = copy_case(v, &part, whole);
    rc = rc ? rc : pair_sending(&part.sending, v->pair, how);
    if (!rc && !(part.branch = util_copy(whole->branch, (size_t)whole->n_branches, sizeof *part.branch)))
        rc = MOIRAI_EFAIL;
    if (rc) {
        pair_case_free(&part);
        return rc;
    }
    part.end.solved = false;
    pair_case_revalue(v, &part);
    if (in_place)
        pair_case_free(whole);
    v->list[in_place ? index : v->n++] = part;
    return 0;
}

/* Nobody else receives the shared tensor, or one of these next: the last takes the place of the case. */
static int split_receivers(pair_cases *v, int32_t index)
{
    pricing_sending how = v->pair->sending.how[v->list[index].sending];
    uint64_t next = next_receivers(v->pair, &how);
    int32_t all = __builtin_popcountll(pair_may_receive(v->pair)), n = how.n_receivers;
    if (util_grow(&v->list, &v->capacity, (size_t)(v->n + __builtin_popcountll(next)), sizeof *v->list))
        return MOIRAI_EFAIL;
    int rc = 0;
    for (; next && !rc; next &= next - 1) {
        how.receiver[n] = (int8_t)__builtin_ctzll(next);
        how.n_receivers = (int8_t)(n + 1);
        how.open = n + 1 < all;
        rc = add_part(v, index, &how, false);
    }
    how.n_receivers = (int8_t)n;
    how.open = false;
    return rc ? rc : add_part(v, index, &how, true);
}

int pair_case_split(pair_cases *v, int32_t index)
{
    if (v->list[index].end.split.on == PRICING_RECEIVER)
        return split_receivers(v, index);
    if (util_grow(&v->list, &v->capacity, (size_t)v->n + 1, sizeof *v->list))
        return MOIRAI_EFAIL;
    int rc = halve(v, &v->list[index], &v->list[v->n]);
    v->n += !rc;
    return rc;
}
