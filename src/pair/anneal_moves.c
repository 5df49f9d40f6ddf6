/* Moves of annealing on one block.
 *
 * They keep to what good plans are made of: a component takes over the devices of another one of its kind or of a kept
 * column, an operator or a connected part of a component changes device, two operators or components swap priorities.
 * The first kind is the one that leads on (layers of GPT-3 and Swin: 45 of a hundred moves find cheaper plans in equal time
 * than 30 or 15); exchanges of devices between two operators, which help where a few heavy operators are shared out
 * (place/moirai/whole/whole_anneal.c), cost here more than they find.
 *
 * Components are copies of each other, and most of them wear one of a few patterns: what is drawn often changes nothing,
 * and is drawn again. */
#include "pair/anneal_state.h"
#include "pair/pair_tuning.h"

#include <string.h>

#define FAR (INT64_C(1) << 60) /* priorities stay within; all times of a problem together are less than twice that */

int32_t pair_annealing_nearest(const pair_annealing *x, int32_t op, int32_t k)
{
    if (pair_annealing_can_run(x, op, k))
        return k;
    int32_t best = __builtin_ctzll(x->q->op_devices[op]);
    for (int32_t l = 0; l < x->q->n_devices; l++)
        if (pair_annealing_can_run(x, op, l) && moirai_op_ns(x->q, op, l) < moirai_op_ns(x->q, op, best))
            best = l;
    return best;
}

void pair_annealing_follow(pair_annealing *x, int32_t op)
{
    int32_t group = x->q->op_group[op];
    if (group < 0)
        return;
    for (int32_t i = 0; i < x->q->n_ops; i++)
        if (x->q->op_group[i] == group)
            x->device[i] = x->device[op];
}

void pair_annealing_put(pair_annealing *x, int32_t op, int32_t k)
{
    x->device[op] = pair_annealing_nearest(x, op, k);
    pair_annealing_follow(x, op);
}

void pair_annealing_wear(pair_annealing *x, int32_t c, const pricing_chosen_column *h, bool priorities)
{
    int32_t begin = x->b->component_off[c], n = x->b->component_off[c + 1] - begin;
    for (int32_t i = 0; i < n; i++) {
        int32_t op = x->b->component_op[begin + i];
        pair_annealing_put(x, op, h->device[i]);
        if (priorities)
            x->priority[op] = -h->start[i];
    }
}

/* ---- moves ---- */

static int32_t random_interior(pair_annealing *x)
{
    return x->b->first + (int32_t)util_rng_below(&x->rng, (uint32_t)x->b->n_interior);
}

static void move_component(pair_annealing *x)
{
    const decompose_block *b = x->b;
    int32_t c = b->op_component[random_interior(x)], kind = b->component_kind[c];
    if (x->job->n_columns && util_rng_below(&x->rng, 4)) {
        const pricing_chosen_column *h = &x->job->column[util_rng_below(&x->rng, (uint32_t)x->job->n_columns)];
        if (h->kind == kind) {
            pair_annealing_wear(x, c, h, false);
            return;
        }
    }
    int32_t d = (int32_t)util_rng_below(&x->rng, (uint32_t)b->n_components), begin = b->component_off[c];
    int32_t n = b->component_off[c + 1] - begin;
    if (d != c && b->component_kind[d] == kind) {
        for (int32_t i = 0; i < n; i++)
            pair_annealing_put(x, b->component_op[begin + i], x->device[b->component_op[b->component_off[d] + i]]);
        return;
    }
    int32_t k = (int32_t)util_rng_below(&x->rng, (uint32_t)x->q->n_devices);
    for (int32_t i = 0; i < n; i++)
        pair_annealing_put(x, b->component_op[begin + i], k);
}

/* An operator and what hangs on it, upstream or downstream, while on the same device. */
static void move_part(pair_annealing *x)
{
    const moirai_problem *q = x->q;
    const decompose_block *b = x->b;
    int32_t op = random_interior(x), from = x->device[op], c = b->op_component[op], begin = b->component_off[c];
    int32_t n = b->component_off[c + 1] - begin, k = (int32_t)util_rng_below(&x->rng, (uint32_t)q->n_devices);
    bool down = util_rng_below(&x->rng, 2);
    for (int32_t i = 0; i < n; i++)
        x->mark[b->component_op[begin + i]] = 0;
    x->mark[op] = 1;
    for (int32_t i = 0; i < n; i++) {
        int32_t o = b->component_op[begin + (down ? i : n - 1 - i)];
        if (down) {
            for (int32_t j = q->op_in_off[o]; j < q->op_in_off[o + 1] && !x->mark[o]; j++) {
                int32_t s = q->tensor_producer[q->op_in[j]];
                x->mark[o] = s != b->entry && x->mark[s] && x->device[o] == from;
            }
        } else {
            for (int32_t t = q->op_out_off[o]; t < q->op_out_off[o + 1]; t++)
                for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1] && !x->mark[o]; e++) {
                    int32_t s = q->edge_reader[e];
                    x->mark[o] = s != b->exit && x->mark[s] && x->device[o] == from;
                }
        }
    }
    for (int32_t i = 0; i < n; i++)
        if (x->mark[b->component_op[begin + i]])
            pair_annealing_put(x, b->component_op[begin + i], k);
}

/* Whether two components of one kind have the same devices: they can change places without changing anything. */
static bool are_equal(const pair_annealing *x, int32_t c, int32_t d)
{
    const decompose_block *b = x->b;
    const int32_t *o = b->component_op + b->component_off[c], *p = b->component_op + b->component_off[d];
    int32_t n = b->component_off[c + 1] - b->component_off[c], i = 0;
    while (i < n && x->device[o[i]] == x->device[p[i]])
        i++;
    return i == n;
}

static void swap_components(pair_annealing *x)
{
    const decompose_block *b = x->b;
    int32_t c = (int32_t)util_rng_below(&x->rng, (uint32_t)b->n_components);
    int32_t d = (int32_t)util_rng_below(&x->rng, (uint32_t)b->n_components);
    if (b->component_kind[c] != b->component_kind[d] || are_equal(x, c, d))
        return;
    for (int32_t i = 0; i < b->component_off[c + 1] - b->component_off[c]; i++) {
        int32_t o = b->component_op[b->component_off[c] + i], p = b->component_op[b->component_off[d] + i];
        int64_t keep = x->priority[o];
        x->priority[o] = x->priority[p];
        x->priority[p] = keep;
    }
}

/* Shifts of whole components add up, and may double what is between two operators each time. */
static int64_t shifted(int64_t priority, int64_t shift)
{
    int64_t to = priority + shift;
    return to > FAR ? FAR : to < -FAR ? -FAR : to;
}

static void shift_priority(pair_annealing *x)
{
    const decompose_block *b = x->b;
    int32_t op = random_interior(x), other = random_interior(x);
    int64_t shift = x->priority[other] - x->priority[op];
    if (util_rng_below(&x->rng, 2)) {
        x->priority[op] = shifted(x->priority[op], shift + (util_rng_below(&x->rng, 2) ? 1 : -1));
        return;
    }
    int32_t c = b->op_component[op];
    for (int32_t i = b->component_off[c]; i < b->component_off[c + 1]; i++)
        x->priority[b->component_op[i]] = shifted(x->priority[b->component_op[i]], shift);
}

static void make_one(pair_annealing *x)
{
    uint32_t dice = util_rng_below(&x->rng, 100);
    bool many = x->b->n_components > 1;
    if (dice < 45 && many)
        move_component(x);
    else if (dice < 60)
        move_part(x);
    else if (dice < 70)
        pair_annealing_put(x, random_interior(x), (int32_t)util_rng_below(&x->rng, (uint32_t)x->q->n_devices));
    else if (dice < 80 && many)
        swap_components(x);
    else
        shift_priority(x);
}

static bool differs(const pair_annealing *x)
{
    size_t n = (size_t)x->q->n_ops;
    return memcmp(x->old_device, x->device, n * sizeof *x->device) ||
           memcmp(x->old_priority, x->priority, n * sizeof *x->priority);
}

void pair_annealing_move(pair_annealing *x)
{
    make_one(x);
    if (util_rng_below(&x->rng, 4) == 0)
        make_one(x);
    for (int32_t draw = 1; draw < PAIR_ANNEAL_MOVES_DRAWS && !differs(x); draw++)
        make_one(x);
}
