/* Opening pairs: all where they are few, else those that paths meet, and their first levels.
 *
 * The first rise of a pair's bound takes little and is most of it; until then a path goes where nothing is known. */
#include <math.h>
#include <stdlib.h>

#include "place/moirai/blocks/blocks.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "util/pool.h"
#include "util/util.h"

void blocks_set_shares(blocks *x)
{
    double most = 1e-9;
    for (int32_t i = 0; i < x->c->s->n_classes; i++) {
        x->share[i] = x->in->best ? pair_chain_share(x->c, i, x->in->best->makespan_ns) : 1;
        most = fmax(most, x->c->s->block_size[x->c->s->class_block[i]] ? x->share[i] : 0);
    }
    x->n_large = 0;
    for (int32_t i = 0; i < x->c->s->n_classes; i++) {
        x->share[i] /= most;
        x->n_large += x->c->s->block_size[x->c->s->class_block[i]] && x->share[i] > BLOCKS_OPEN_SMALL_SHARE;
    }
}

/* A pair's first level, so that paths mean something; classes that take little of the time get little. */
static int first_level(void *data, int32_t i)
{
    blocks *x = data;
    int32_t K = x->c->K, class_ = (int32_t)(x->opened[i] / K / K);
    pair_state *pair = x->c->pair[x->opened[i]];
    if (!pair || !pair->open || pair->level > 0 || incumbent_stopped(x->in))
        return 0;
    if (x->many && !pair->loads.tried)
        return pair_raise_loads(pair, x->in->stop);
    /* Plans that do not mind the memory are of little use where it binds, and not worth the time where many classes
     * want it. */
    bool much = x->share[class_] > BLOCKS_OPEN_SMALL_SHARE && (!x->in->memory_binds || x->n_large <= 1);
    pair_refine_task job = {.level = 1,
                            .need_ns = INT64_MAX,
                            .improve = much,
                            .effort = x->in->o->budget.effort * (much ? 1 : 0.4),
                            .seed = x->in->o->budget.seed,
                            .threads = 1,
                            .stop = x->in->stop};
    return pair_refine(pair, &job);
}

static int first_levels(blocks *x, const int64_t *opened, int32_t n)
{
    x->opened = opened;
    return util_pool_run(first_level, x, n, x->in->o->budget.threads);
}

/* Does for a first level: milliseconds where that takes a tenth of a second, and most of what it proves. */
static bool raised_by_loads(const blocks *x, const pair_state *pair)
{
    return x->many && pair->loads.proof.n_leaves > 0;
}

/* The pairs of a path of which nothing is known but lengths of paths, if that: each once, in x->index; returns how
 * many. */
static int32_t unknown_on_path(blocks *x, const int32_t *device)
{
    int32_t n = 0;
    blocks_count_path(x, x->batch.times, device);
    for (int32_t i = 0; i < x->c->s->n_blocks; i++) {
        int64_t pair = pair_chain_on_path(x->c, i, device);
        const pair_state *known = x->c->pair[pair];
        bool unknown = !known || (known->level == 0 && known->open && known->block.n_interior);
        if (unknown && !(known && raised_by_loads(x, known)) && x->batch.times[pair])
            x->index[n++] = pair;
        x->batch.times[pair] = 0;
    }
    return n;
}

static int open_path(blocks *x, const int32_t *device, int32_t *n)
{
    *n = unknown_on_path(x, device);
    return pair_chain_open(x->c, x->index, *n, x->in->o->budget.threads, &x->in->stop);
}

/* Devices of the best plan at the cuts, and each of its devices for all: paths to begin with where pairs are many. */
static int open_some(blocks *x)
{
    int32_t n, n_cuts = x->c->s->n_cuts;
    uint64_t used = 0;
    if (!x->in->best)
        return 0;
    blocks_follow_best(x);
    for (int32_t i = 0; i < n_cuts; i++)
        used |= UINT64_C(1) << x->plan_device[i];
    int rc = open_path(x, x->plan_device, &n);
    for (; used && !rc && !incumbent_stopped(x->in); used &= used - 1) {
        for (int32_t i = 0; i < n_cuts; i++)
            x->plan_device[i] = __builtin_ctzll(used);
        rc = open_path(x, x->plan_device, &n);
    }
    return rc;
}

int blocks_open_pairs(blocks *x)
{
    bool all = pair_chain_distinct(x->c) <= (x->c->K <= 8 ? BLOCKS_OPEN_OPEN_ALL_FEW : BLOCKS_OPEN_OPEN_ALL_MANY);
    return all ? pair_chain_open_all(x->c, x->in->o->budget.threads, &x->in->stop) : open_some(x);
}

int blocks_first_levels(blocks *x)
{
    int32_t n = 0;
    int64_t all = pair_chain_count(x->c), *opened = util_alloc((size_t)all, sizeof *opened);
    for (int64_t i = 0; opened && i < all; i++)
        if (x->c->pair[i])
            opened[n++] = i;
    int rc = opened ? first_levels(x, opened, n) : MOIRAI_EFAIL;
    free(opened);
    return rc;
}

int blocks_open_bound_path(blocks *x, bool *any)
{
    int32_t n = 1, rounds = (int32_t)(BLOCKS_OPEN_PATH_ROUNDS * fmin(fmax(x->in->effort, 0.05), 1000));
    int rc = 0;
    while (n > 0 && rounds-- > 0 && !rc && !incumbent_stopped(x->in)) {
        rc = open_path(x, x->cut_device, &n);
        *any |= n > 0;
        if (n > 0 && !rc)
            rc = first_levels(x, x->index, n);
        if (n > 0)
            blocks_raise_bound(x);
    }
    return rc;
}
