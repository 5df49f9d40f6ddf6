/* What pairs of a class learn from each other at prices on bytes.
 *
 * Where a block begins and ends changes little of what a good plan of it looks like, and block plans are searched for at
 * the pairs of a path alone: a pair next to it keeps the plan of its first level, which minds no bytes, and never comes
 * to be on the path. (gpt3-13B on inter-server, fitted costs: a layer with both ends on B costs 18.9 ms by its own plan
 * and 15.9 by one that was found from D to D.) So every new block plan is played through between all other devices of
 * the class, both ends moved there, its order as priorities, and the cheapest is kept where it is cheaper than all that
 * the pair has at the present prices. One dispatch each, O((V+E) log V) of the block; pairs side by side, each by its own
 * plans and those that were there before: the result does not depend on the threads. */
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_state.h"
#include "bytes/bytes_tuning.h"
#include "util/pool.h"
#include "util/util.h"

typedef struct sharing {
    bytes_prices *m;
    const bytes_plan_task *job;
    int32_t *n_plans; /* per pair, before anything was shared */
} sharing;

typedef struct stage {
    moirai_sim *sim;
    int32_t *device;
    int64_t *priority;
} stage;

static int stage_open(stage *x, const moirai_problem *q)
{
    x->device = util_alloc((size_t)q->n_ops, sizeof *x->device);
    x->priority = util_alloc((size_t)q->n_ops, sizeof *x->priority);
    return x->device && x->priority ? moirai_sim_new(&x->sim, q) : MOIRAI_EFAIL;
}

static void stage_clear(stage *x)
{
    moirai_sim_free(x->sim);
    free(x->device);
    free(x->priority);
}

/* Length of the plan with both ends on the devices of the pair; -1: not allowed there. */
static int64_t play(stage *x, const decompose_block *b, const pair_plan *from)
{
    const moirai_problem *q = &b->problem;
    const int32_t end[] = {b->entry, b->exit};
    memcpy(x->device, from->device, sizeof *x->device * (size_t)q->n_ops);
    for (int32_t i = 0; i < 2; i++)
        if (end[i] >= 0)
            x->device[end[i]] = __builtin_ctzll(q->op_devices[end[i]]);
    for (int64_t i = 0; i < from->n_order; i++)
        if (from->order[i] < q->n_ops)
            x->priority[from->order[i]] = from->n_order - i;
    return moirai_sim_dispatch(x->sim, x->device, x->priority);
}

static int64_t cost_of(const bytes_prices *m, const decompose_block *b, int64_t length_ns, const int32_t *device)
{
    int64_t cost = pricing_units(m->c->s->unit, length_ns);
    for (int32_t i = b->first; i < b->first + b->n_interior; i++)
        cost += m->now.price[device[i]] * b->problem.op_memory_bytes[i];
    return cost;
}

/* Plays one plan of another pair; *found becomes it where it is cheaper. */
static int try_plan(sharing *s, stage *x, int32_t pair, const pair_plan *from, pair_plan *found)
{
    const decompose_block *b = &pair_chain_get(s->m->c, pair)->block;
    int64_t length = play(x, b, from), cost = length < 0 ? INT64_MAX : cost_of(s->m, b, length, x->device);
    if (cost >= found->cost)
        return 0;
    const moirai_task *order;
    int64_t n = moirai_sim_order(x->sim, &order);
    found->length_ns = length;
    found->cost = cost;
    return pair_plan_set(found, b->problem.n_ops, x->device, order, n);
}

/* Whether the pair has use for plans of others: those that follow a class of equal shape take from that. What is searched
 * for at its own devices should find room, too. */
static bool wants_plans(const bytes_prices *m, int64_t pair)
{
    const pair_state *y = pair_chain_get(m->c, pair);
    return y->open && y->plan.device && y->block.n_interior > 1 && bytes_alike(m, pair) < 0 &&
           m->pair[pair].n_plans < BYTES_BLOCK_PLANS - BYTES_SHARE_PLANS_ROOM &&
           (m->K * m->K <= BYTES_SHARE_PLANS_FEW_PAIRS || m->pair[pair].priced.n_cases > 0);
}

/* The plan numbered i of a pair, where it is new to others; -1 is the pair's own. NULL: it is not. */
static const pair_plan *new_plan(const bytes_prices *m, int32_t pair, int32_t i)
{
    const pair_state *y = pair_chain_get(m->c, pair);
    if (i >= 0)
        return &m->pair[pair].plans[i].plan;
    return y->open && y->plan.device && y->plan.length_ns != m->pair[pair].shared_ns ? &y->plan : NULL;
}

/* New plans of the class, of all pairs but this one; the cheapest is kept. */
static int try_others(void *data, int32_t pair)
{
    sharing *s = data;
    bytes_prices *m = s->m;
    int32_t cells = m->K * m->K, first = pair / cells * cells;
    stage x = {0};
    int8_t pick;
    if (!wants_plans(m, pair))
        return 0;
    int64_t best = bytes_block_plan_cost(m, pair, m->now.price, &pick);
    pair_plan found = {.cost = best - best / BYTES_SHARE_PLANS_CHEAPER};
    int rc = stage_open(&x, &pair_chain_get(m->c, pair)->block.problem);
    for (int32_t other = first; other < first + cells && !rc; other++)
        for (int32_t i = -1; i < s->n_plans[other] && other != pair && !rc;
             i += i < 0 ? m->pair[other].n_shared + 1 : 1) {
            const pair_plan *plan = util_stopped(&s->job->stop) ? NULL : new_plan(m, other, i);
            rc = plan ? try_plan(s, &x, pair, plan, &found) : 0;
        }
    stage_clear(&x);
    if (!rc)
        bytes_block_plan_keep(m, pair, &found);
    else
        pair_plan_free(&found);
    return rc;
}

int bytes_share_plans(bytes_prices *m, const bytes_plan_task *job)
{
    int32_t pairs = m->c->s->n_classes * m->K * m->K;
    sharing s = {.m = m, .job = job, .n_plans = util_alloc((size_t)pairs, sizeof *s.n_plans)};
    if (!s.n_plans)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < pairs; i++)
        s.n_plans[i] = m->pair[i].n_plans;
    int rc = util_pool_run(try_others, &s, pairs, job->threads);
    for (int32_t i = 0; i < pairs; i++) {
        m->pair[i].n_shared = m->pair[i].n_plans; /* what came from others they have seen */
        m->pair[i].shared_ns = pair_chain_get(m->c, i)->plan.length_ns;
    }
    free(s.n_plans);
    return rc;
}
