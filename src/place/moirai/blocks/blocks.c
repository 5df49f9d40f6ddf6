/* Plans and bounds block by block.
 *
 * Each pair (a class of blocks between two devices) has a plan and a bound; the chain of pairs composes either. Work
 * goes where the answer is still open: pairs are opened (open.c), those on which most of the gap hangs are refined
 * (batch.c), their plans composed (compose.c), until the gap is closed. */
#include "place/moirai/blocks/blocks.h"

#include <math.h>
#include <stdlib.h>

#include "place/moirai/incumbent/engine_tuning.h"
#include "util/util.h"

static int allocate(blocks *x, const bool *chosen)
{
    const moirai_problem *p = x->in->p;
    int rc = pair_chain_over(&x->c, p, chosen);
    if (rc)
        return rc;
    pair_chain_join_equals(x->c);
    size_t cuts = (size_t)x->c->s->n_cuts, pairs = (size_t)pair_chain_count(x->c);
    UTIL_TAKE(&x->arrays, x->cut_device, cuts);
    UTIL_TAKE(&x->arrays, x->plan_device, cuts);
    UTIL_TAKE(&x->arrays, x->op_device, (size_t)p->n_ops);
    UTIL_TAKE(&x->arrays, x->order, (size_t)place_compose_capacity(p));
    UTIL_TAKE(&x->arrays, x->batch.weight, pairs);
    UTIL_TAKE(&x->arrays, x->batch.times, pairs);
    UTIL_TAKE(&x->arrays, x->annealed, pairs);
    UTIL_TAKE(&x->arrays, x->share, (size_t)x->c->s->n_classes);
    UTIL_TAKE(&x->arrays, x->index, (size_t)x->c->s->n_blocks);
    if (x->arrays.failed)
        return MOIRAI_EFAIL;
    return moirai_sim_new(&x->sim, p);
}

int blocks_new(blocks **out, incumbent *in, const bool *chosen)
{
    blocks *x = util_alloc(1, sizeof *x);
    *out = NULL;
    if (!x)
        return MOIRAI_EFAIL;
    x->in = in;
    x->top_level = in->effort < 0.5 ? 2 : in->effort < 2 ? 3 : PAIR_LEVELS;
    x->batches_left = 2 + (int32_t)(16 * fmin(in->effort, 1000));
    int rc = allocate(x, chosen);
    if (rc)
        blocks_free(x);
    else
        *out = x;
    return rc;
}

void blocks_free(blocks *x)
{
    if (!x)
        return;
    bytes_prices_free(x->memory);
    pair_chain_free(x->c);
    moirai_sim_free(x->sim);
    util_release(&x->arrays);
    free(x);
}

/* Classes that have something between their cuts. */
static int32_t count_classes(const blocks *x)
{
    int32_t n = 0;
    for (int32_t i = 0; i < x->c->s->n_classes; i++)
        n += x->c->s->block_size[x->c->s->class_block[i]] > 0;
    return n;
}

int blocks_improve(blocks *x)
{
    int rc = blocks_open_pairs(x);
    if (!rc) { /* already worth something, and soon there: every block whole on a device, every longest path */
        blocks_raise_bound(x);
        rc = blocks_compose(x);
    }
    blocks_set_shares(x);
    x->many = count_classes(x) >= BLOCKS_MANY_CLASSES;
    /* First levels of many classes take longer than prices that know the bytes from the start. */
    if (!rc && x->in->memory_binds && x->n_large > 1 && x->many)
        return blocks_improve_within_memory(x);
    if (!rc && !x->many) /* else those on the bound's path, as it goes */
        rc = blocks_first_levels(x);
    for (bool done = false, found = true; !rc && !done;) {
        blocks_raise_bound(x);
        rc = blocks_open_bound_path(x, &found);
        if (!rc && found)
            rc = blocks_compose(x);
        if (!rc && x->in->memory_binds)
            return blocks_improve_within_memory(x);
        if (rc || !x->in->best || incumbent_gap(x->in) <= x->in->o->gap || incumbent_stopped(x->in))
            break;
        rc = blocks_refine_batch(x, &done, &found);
        if (!rc && done)
            done = !blocks_grow(x);
    }
    return rc;
}
