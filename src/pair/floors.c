/* One bound for all pairs of a class.
 *
 * Where no two layers are copies, each has K^2 pairs, all of which begin with longest paths that say next to nothing of
 * work side by side: raising one moves the bound's path to the next, until all of them have been raised. But most of
 * what a programme proves of a pair are loads, which do not depend on where the block begins and ends. So the static
 * programme (static_lp.h) is first put to the block with entry and exit on any device they may have. Every solution
 * between two devices is one of that problem, so that what it proves holds for all pairs: one programme in place of K^2.
 * Pairs that are still on the path then get one of their own, in which both ends are pinned.
 *
 * Where devices are many, this says little: with the best entry for each part of the work the shared tensor is
 * everywhere at once. Whether it is worth its time is asked after a few classes. */
#include "pair/floors.h"

#include <stdlib.h>
#include <string.h>

#include "pair/pair_tuning.h"
#include "util/pool.h"
#include "util/util.h"

typedef struct floors {
    pair_chain *c;
    int32_t *class_;  /* that are raised, largest first */
    int64_t *before;  /* the least bound of its pairs */
    int64_t *open;    /* from there to the best of their plans */
    int64_t *weight;  /* the same, times its blocks */
    int32_t begun, n; /* of the batch, of all */
    util_stop stop;
} floors;

bool pair_programme_fits(const decompose_block *b)
{
    return b->n_interior >= PAIR_PROGRAMME_OPS && b->n_interior <= PAIR_FLOORS_MOST_OPS &&
           pair_static_cells(&b->problem) <= PAIR_PROGRAMME_CELLS;
}

bool pair_wants_programme(const pair_state *x)
{
    return !x->by_static.tried && pair_programme_fits(&x->block);
}

bool pair_floors_fit(const decompose_block *b)
{
    return pair_programme_fits(b) && pair_static_cells(&b->problem) <= PAIR_FLOORS_FLOOR_CELLS;
}

static int64_t least_of_pairs(const pair_chain *c, int32_t class_, bool plans)
{
    int64_t least = INT64_MAX, squares = (int64_t)c->K * c->K;
    for (int64_t i = class_ * squares; i < (class_ + 1) * squares; i++) {
        const pair_state *x = c->pair[i];
        if (x && x->open && x->plan.device)
            least = UTIL_MIN(least, plans ? x->plan.length_ns : x->lower_ns);
    }
    return least;
}

/* The block's problem with its ends wherever those of any block of the class may be; *devices is to be freed. */
static moirai_problem with_free_ends(const pair_chain *c, int32_t class_, uint64_t **devices)
{
    const decompose_block *b = c->block[class_];
    moirai_problem q = b->problem;
    *devices = q.op_devices = util_alloc((size_t)q.n_ops, sizeof **devices);
    if (!*devices)
        return q;
    memcpy(q.op_devices, b->problem.op_devices, sizeof **devices * (size_t)q.n_ops);
    for (int32_t i = c->class_off[class_]; i < c->class_off[class_ + 1]; i++) {
        if (b->entry >= 0)
            q.op_devices[b->entry] |= pair_chain_entry_mask(c, c->class_member[i]);
        if (b->exit >= 0)
            q.op_devices[b->exit] |= pair_chain_exit_mask(c, c->class_member[i]);
    }
    return q;
}

int pair_floors_class(int64_t *lower_ns, const pair_chain *c, int32_t class_, const util_stop *stop)
{
    const decompose_block *b = c->block[class_];
    uint64_t *devices;
    moirai_problem q = with_free_ends(c, class_, &devices);
    pair_static_task job = {.proven_ns = pair_chain_floor(c, class_),
                            .upper_ns = least_of_pairs(c, class_, true),
                            .rounds = PAIR_STATIC_ROUNDS,
                            .entry = b->entry,
                            .exit = b->exit,
                            .stop = *stop};
    *lower_ns = job.proven_ns;
    int rc = !devices ? MOIRAI_EFAIL : util_stopped(stop) ? 0 : pair_static_lp(lower_ns, &q, &job, 0);
    free(devices);
    return rc;
}

static int raise_one(void *data, int32_t i)
{
    const floors *x = data;
    int32_t class_ = x->class_[x->begun + i];
    return pair_floors_class(&x->c->raised_ns[class_], x->c, class_, &x->stop);
}

/* Classes that a programme can take, those with most to gain first. */
static void list_classes(floors *x)
{
    pair_chain *c = x->c;
    for (int32_t i = 0; i < c->s->n_classes; i++) {
        const decompose_block *b = c->block[i];
        int64_t least = least_of_pairs(c, i, false);
        if (!b || !pair_floors_fit(b) || least == INT64_MAX)
            continue;
        int64_t open = least_of_pairs(c, i, true) - least, weight = open * c->s->class_count[i];
        int32_t at = x->n++;
        for (; at > 0 && x->weight[at - 1] < weight; at--) {
            x->class_[at] = x->class_[at - 1];
            x->before[at] = x->before[at - 1];
            x->open[at] = x->open[at - 1];
            x->weight[at] = x->weight[at - 1];
        }
        x->class_[at] = i;
        x->before[at] = least;
        x->open[at] = open;
        x->weight[at] = weight;
    }
}

/* Whether the classes so far have closed enough of what was open. */
static bool worth_it(const floors *x, int32_t n)
{
    double rise = 0, open = 0;
    for (int32_t i = 0; i < n; i++) {
        rise += (double)UTIL_MAX(x->c->raised_ns[x->class_[i]] - x->before[i], 0);
        open += (double)x->open[i];
    }
    return rise >= PAIR_PROGRAMME_WORTH * open && open > 0;
}

static void tell_pairs(pair_chain *c)
{
    for (int64_t i = 0; i < pair_chain_count(c); i++) {
        pair_state *x = c->pair[i];
        if (x && x->open)
            x->lower_ns = UTIL_MAX(x->lower_ns, c->raised_ns[i / c->K / c->K]);
    }
}

int pair_floors_raise(bool *useful, pair_chain *c, int threads, const util_stop *stop)
{
    size_t n = (size_t)c->s->n_classes;
    floors x = {.c = c, .stop = *stop};
    x.class_ = util_alloc(n, sizeof *x.class_);
    x.before = util_alloc(n, sizeof *x.before);
    x.open = util_alloc(n, sizeof *x.open);
    x.weight = util_alloc(n, sizeof *x.weight);
    int rc = x.class_ && x.before && x.open && x.weight ? 0 : MOIRAI_EFAIL;
    if (!rc)
        list_classes(&x);
    *useful = !rc && x.n > 0 && !util_off(stop, UTIL_METHOD_FLOORS);
    for (; !rc && *useful && x.begun < x.n && !util_stopped(stop); x.begun += PAIR_FLOORS_BATCH) {
        int32_t batch = UTIL_MIN(PAIR_FLOORS_BATCH, x.n - x.begun);
        rc = util_pool_run(raise_one, &x, batch, threads);
        *useful = worth_it(&x, x.begun + batch);
    }
    tell_pairs(c);
    free(x.class_);
    free(x.before);
    free(x.open);
    free(x.weight);
    return rc;
}
