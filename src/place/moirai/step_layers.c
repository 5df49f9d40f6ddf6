/* Layers: large blocks between cuts, annealed each by itself, copies once for all (layers.c).
 *
 * Cuts over which no edge jumps make blocks whose lengths add up to the whole's. Where these are too few or too large, blocks between all
 * cuts do where they are copies of each other. */
#include <stdlib.h>

#include "place/moirai/engine.h"
#include "util/util.h"

static int make_layers(engine *x)
{
    if (x->layers || incumbent_stopped(&x->in))
        return 0;
    bool *clean = util_alloc((size_t)x->in.p->n_ops, sizeof *clean);
    int rc = clean ? decompose_cuts_clean(clean, x->in.p) : MOIRAI_EFAIL;
    rc = rc ? rc : blocks_new(&x->layers, &x->in, clean);
    free(clean);
    return rc;
}

static int anneal(engine *x, const engine_turn *turn)
{
    int rc = engine_blocks(x);
    x->copies = !rc && blocks_repeat(x->blocks);
    rc = rc ? rc : make_layers(x);
    blocks *which = rc || !x->layers ? NULL : blocks_have_layers(x->layers) ? x->layers : x->copies ? x->blocks : NULL;
    rc = which ? blocks_anneal_layers(which, turn->share) : rc;
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

const engine_step step_layers = {.method = UTIL_METHOD_LAYERS, .run = anneal};
