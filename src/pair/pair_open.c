/* What is known of a pair at once: its longest path, a first plan, and one case for each way of sending the tensor that
 * the block's components share. */
#include <stdlib.h>
#include <string.h>

#include "pair/cases.h"
#include "pair/improve.h"
#include "pair/pair_refine.h"
#include "pair/pair_tuning.h"
#include "schedule/paths.h"
#include "util/pool.h"
#include "util/util.h"

/* 0 where that is too much work, or memory runs out: no bound is a bound, and the class's floor stands in. */
static int64_t longest_path(const decompose_block *b)
{
    const moirai_problem *q = &b->problem;
    double steps = (double)q->n_edges * q->n_devices * q->n_devices;
    int64_t longest = steps > PAIR_OPEN_MOST_PATH_STEPS ? 0 : schedule_longest_path(&(schedule_paths){.p = q});
    return UTIL_MAX(longest, 0);
}

static int add_sending(pair_state *x, const pricing_sending *how)
{
    int32_t ignored;
    int rc = pair_sending(&ignored, x, how);
    x->sending.n_first = x->sending.n;
    return rc;
}

/* All ordered sets of receivers (congestion port), or all sets (the order does not matter elsewhere). */
static int add_sendings(pair_state *x, pricing_sending *how, uint64_t left, bool ordered)
{
    int rc = add_sending(x, how);
    for (uint64_t rest = left; rest && !rc; rest &= rest - 1) {
        int32_t k = __builtin_ctzll(rest);
        how->receiver[how->n_receivers++] = (int8_t)k;
        uint64_t next = left & ~(UINT64_C(1) << k);
        if (!ordered)
            next &= ~((UINT64_C(2) << k) - 1);
        rc = add_sendings(x, how, next, ordered);
        how->n_receivers--;
    }
    return rc;
}

static int list_sendings(pair_state *x, int32_t most_listed)
{
    const moirai_problem *q = &x->block.problem;
    pricing_sending how = {0};
    int32_t shared = decompose_block_shared_tensor(&x->block);
    if (shared < 0)
        return add_sending(x, &how);
    uint64_t others = pair_may_receive(x);
    bool ordered = q->congestion == MOIRAI_CONGESTION_PORT;
    bool many = __builtin_popcountll(others) > (ordered ? most_listed : PAIR_OPEN_MOST_SETS);
    how.fixed = how.open = many && ordered; /* too many to list: who receives is asked as it matters (cases.c) */
    if (many)
        return add_sending(x, &how);
    how.fixed = true;
    return add_sendings(x, &how, others, ordered);
}

/* The block with its own mask, pinned: others may use the block at the same time. */
static int pin_block(pair_state *x, const decompose_block *b, int32_t entry_device, int32_t exit_device)
{
    uint64_t *devices = util_copy(b->problem.op_devices, (size_t)b->problem.n_ops, sizeof *devices);
    if (!devices)
        return MOIRAI_EFAIL;
    x->block = *b;
    x->block.problem.op_devices = devices;
    decompose_block_pin(&x->block, entry_device, exit_device);
    x->open = true;
    return 0;
}

typedef struct opening {
    pair_chain *c;
    const int64_t *index;
    util_stop stop;
} opening;

/* Longest path and first plan, and the cases that the bound begins with. */
static int set_up(pair_state *x, const opening *job, int64_t index)
{
    const pair_chain *c = job->c;
    int32_t K = c->K, class_ = (int32_t)(index / K / K);
    int rc = pin_block(x, c->block[class_], (int32_t)(index / K % K), (int32_t)(index % K));
    if (rc)
        return rc;
    x->path_ns = x->lower_ns = UTIL_MAX(longest_path(&x->block), c->floor_ns[class_]);
    rc = pair_improve_plan(x, 0, 1, job->stop);
    if (!rc && x->block.n_interior == 0) {
        x->lower_ns = x->plan.length_ns; /* nothing to decide */
        x->level = PAIR_LEVELS;
    } else if (!rc) {
        rc = list_sendings(x, c->most_listed);
        rc = rc ? rc : pair_cases_first(x);
    }
    return rc;
}

static int open_one(void *data, int32_t i)
{
    const opening *x = data;
    pair_state **pair = &x->c->pair[x->index[i]];
    if (*pair || util_stopped(&x->stop))
        return 0;
    *pair = util_alloc(1, sizeof **pair);
    return *pair ? set_up(*pair, x, x->index[i]) : MOIRAI_EFAIL;
}

int pair_chain_open(pair_chain *c, const int64_t *index, int32_t n, int threads, const util_stop *stop)
{
    int rc = 0;
    for (int32_t i = 0; i < n && !rc && !util_stopped(stop); i++) {
        int32_t class_ = (int32_t)(index[i] / c->K / c->K);
        rc = pair_chain_block(c, class_) ? 0 : MOIRAI_EFAIL;
    }
    opening x = {.c = c, .index = index, .stop = *stop};
    return rc || util_stopped(stop) ? rc : util_pool_run(open_one, &x, n, threads);
}

int pair_open(pair_chain *c, int32_t class_, int32_t a, int32_t b)
{
    static const util_stop never;
    int64_t index = pair_chain_index(c, class_, a, b);
    return pair_chain_open(c, &index, 1, 1, &never);
}

int pair_chain_open_all(pair_chain *c, int threads, const util_stop *stop)
{
    size_t all = (size_t)pair_chain_count(c);
    int32_t found = 0, ends = c->K * c->K;
    int64_t *index = util_alloc(all, sizeof *index);
    bool *listed = util_alloc(all, sizeof *listed);
    for (int32_t i = 0; index && listed && i < c->s->n_blocks; i++)
        for (int32_t j = 0; j < ends; j++) {
            int64_t pair = pair_chain_index(c, c->s->block_class[i], j / c->K, j % c->K);
            if (!listed[pair] && pair_chain_may(c, i, j / c->K, j % c->K)) {
                listed[pair] = true;
                index[found++] = pair;
            }
        }
    int rc = index && listed ? pair_chain_open(c, index, found, threads, stop) : MOIRAI_EFAIL;
    free(index);
    free(listed);
    return rc;
}
