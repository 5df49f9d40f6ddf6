/* Layers that repeat: annealed once for all (copies.c). */
#include "place/moirai/engine.h"

static int anneal(engine *x, const engine_turn *turn)
{
    int rc = engine_blocks(x);
    x->copies = false;
    rc = rc ? rc : blocks_anneal_copies(x->blocks, &x->copies, turn->share);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

const engine_step step_copies = {.method = UTIL_METHOD_COPIES, .run = anneal};
