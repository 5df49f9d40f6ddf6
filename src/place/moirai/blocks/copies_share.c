/* What layers that are copies of each other learn from each other.
 *
 * Annealing the whole (whole_anneal.c) sees every layer as a different one: what it finds for the third is of no use to
 * the seventh. And pairs of devices are annealed apart (copies.c), although where a layer begins and ends changes
 * little of what a good plan of it looks like. So
 *  - every layer of the best plan is played through as a plan of its pair, and kept if it is shorter than what the pair
 *    has: the best layer becomes all of them;
 *  - the shortest plans of a class are played through between all other devices, with both ends moved there.
 * A trial is one append-only simulation of a block, O(operators + edges): microseconds. What is kept is composed by the
 * caller. */
#include <stdlib.h>
#include <string.h>

#include "place/moirai/blocks/blocks.h"
#include "place/moirai/whole/whole_sim.h"
#include "util/util.h"

#define SOURCES 4 /* plans of a class that are tried at its other pairs */

typedef struct local {
    place_whole *w;
    moirai_sim *sim;
    int32_t *device, *order;
    int64_t *start_ns;
    moirai_task *task;
} local;

static void local_clear(local *l)
{
    place_whole_free(l->w);
    moirai_sim_free(l->sim);
    free(l->device);
    free(l->order);
    free(l->start_ns);
    free(l->task);
    *l = (local){0};
}

static int local_open(local *l, const moirai_problem *q)
{
    size_t n = (size_t)q->n_ops;
    l->device = util_alloc(n, sizeof *l->device);
    l->order = util_alloc(n, sizeof *l->order);
    l->start_ns = util_alloc(n, sizeof *l->start_ns);
    l->task = util_alloc(n + (size_t)q->n_edges, sizeof *l->task);
    int rc = l->device && l->order && l->start_ns && l->task ? place_whole_new(&l->w, q, NULL) : MOIRAI_EFAIL;
    return rc ? rc : moirai_sim_new(&l->sim, q);
}

static int sooner(const void *a, const void *b, void *data)
{
    const local *l = data;
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (l->start_ns[i] != l->start_ns[j])
        return l->start_ns[i] < l->start_ns[j] ? -1 : 1;
    return l->w->p->topo_rank[i] < l->w->p->topo_rank[j] ? -1 : 1;
}

/* Plays devices and order through between the devices of the pair, and keeps what is shorter than its plan. */
static int try_at(local *l, pair_state *y)
{
    const moirai_problem *q = &y->block.problem;
    const int32_t end[] = {y->block.entry, y->block.exit};
    for (int32_t i = 0; i < 2; i++)
        if (end[i] >= 0)
            l->device[end[i]] = __builtin_ctzll(q->op_devices[end[i]]);
    if (place_whole_set(l->w, l->device, l->order) >= y->plan.length_ns)
        return 0;
    const moirai_task *order;
    int64_t length = moirai_sim_replay(l->sim, l->device, l->task, place_whole_tasks(l->w, l->task));
    if (length < 0 || length >= y->plan.length_ns || moirai_sim_memory_excess(l->sim, NULL) > 0)
        return 0;
    int64_t n = moirai_sim_order(l->sim, &order);
    return pair_take_plan(y, length, l->device, order, n);
}

static bool usable(const pair_state *y)
{
    return y && y->open && y->plan.device && y->block.n_interior > 0;
}

/* ---- layers of the plan ---- */

/* A layer of the best plan, with the names that devices have in its pair. */
static void read_layer(const blocks *x, local *l, const pair_state *y, int32_t block, const int32_t *cut_device)
{
    const pair_chain *c = x->c;
    const decompose_block *b = &y->block;
    int32_t there[MOIRAI_MAX_DEVICES], here[MOIRAI_MAX_DEVICES], n = b->problem.n_ops;
    pair_chain_exchange(c, c->s->block_class[block], block > 0 ? cut_device[block - 1] : 0,
                        block < c->s->n_cuts ? cut_device[block] : 0, there);
    for (int32_t k = 0; k < c->K; k++)
        here[there[k]] = k;
    for (int32_t i = 0; i < n; i++) {
        bool interior = i >= b->first && i < b->first + b->n_interior;
        int32_t op = interior ? decompose_block_global_op(b, c->p, c->s, block, i) : 0;
        l->order[i] = i;
        l->device[i] = interior ? here[x->in->best->op_device[op]] : 0;
        l->start_ns[i] = interior ? x->in->best->op_start_ns[op] : i == b->entry ? -1 : INT64_MAX;
    }
    qsort_r(l->order, (size_t)n, sizeof *l->order, sooner, l);
}

static int learn_from_plan(blocks *x, int32_t class_)
{
    const decompose_cuts *s = x->c->s;
    local l = {0};
    int rc = 0;
    for (int32_t i = 0; i < s->n_cuts; i++)
        x->plan_device[i] = x->in->best->op_device[s->cut[i]];
    for (int32_t b = 0; b < s->n_blocks && !rc; b++) {
        if (s->block_class[b] != class_)
            continue;
        pair_state *y = x->c->pair[pair_chain_on_path(x->c, b, x->plan_device)];
        if (!usable(y))
            continue;
        rc = local_open(&l, &y->block.problem);
        if (!rc) {
            read_layer(x, &l, y, b, x->plan_device);
            rc = try_at(&l, y);
        }
        local_clear(&l);
    }
    return rc;
}

/* ---- plans of other pairs ---- */

/* The shortest plans of the class, at most SOURCES. */
static int32_t find_sources(const blocks *x, int32_t class_, const pair_state **source)
{
    int32_t K = x->c->K, n = 0;
    for (int64_t i = (int64_t)class_ * K * K; i < (int64_t)(class_ + 1) * K * K; i++) {
        const pair_state *y = x->c->pair[i];
        if (!usable(y) || (n == SOURCES && source[n - 1]->plan.length_ns <= y->plan.length_ns))
            continue;
        int32_t at = n < SOURCES ? n++ : n - 1;
        for (; at > 0 && source[at - 1]->plan.length_ns > y->plan.length_ns; at--)
            source[at] = source[at - 1];
        source[at] = y;
    }
    return n;
}

static void read_plan(local *l, const pair_state *y)
{
    const moirai_problem *q = &y->block.problem;
    int32_t n = 0;
    memcpy(l->device, y->plan.device, sizeof *l->device * (size_t)q->n_ops);
    for (int64_t i = 0; i < y->plan.n_order; i++)
        if (y->plan.order[i] < q->n_ops)
            l->order[n++] = (int32_t)y->plan.order[i];
}

static int learn_from_pairs(blocks *x, int32_t class_)
{
    const pair_state *source[SOURCES];
    int32_t K = x->c->K, n = find_sources(x, class_, source);
    int rc = 0;
    for (int64_t i = (int64_t)class_ * K * K; i < (int64_t)(class_ + 1) * K * K && !rc; i++) {
        pair_state *y = x->c->pair[i];
        local l = {0};
        if (!usable(y))
            continue;
        rc = local_open(&l, &y->block.problem);
        for (int32_t j = 0; j < n && !rc; j++)
            if (source[j] != y) {
                read_plan(&l, source[j]);
                rc = try_at(&l, y);
            }
        local_clear(&l);
    }
    return rc;
}

int blocks_share_class(blocks *x, int32_t class_)
{
    if (incumbent_off(x->in, SHARE))
        return 0;
    int rc = x->in->best ? learn_from_plan(x, class_) : 0;
    return rc ? rc : learn_from_pairs(x, class_);
}
