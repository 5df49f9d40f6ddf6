/* Layers that repeat: annealed once for all (copies.c), and what one has found for the others. */
#include "place/moirai/engine.h"

static int anneal(engine *x, const engine_turn *turn)
{
    int rc = engine_blocks(x);
    x->copies = false;
    rc = rc ? rc : blocks_anneal_copies(x->blocks, &x->copies, turn->share);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

static int share(engine *x, const engine_turn *turn)
{
    (void)turn;
    return x->blocks ? blocks_share_copies(x->blocks) : 0;
}

const engine_step step_copies = {.method = UTIL_METHOD_COPIES, .run = anneal},
                  step_share = {.method = UTIL_METHOD_SHARE, .run = share};
