/* Blocks between cuts (blocks/). */
#include "place/moirai/engine.h"

#define FEW_BATCHES 2 /* where levels are limited */

static int improve(engine *x, const engine_turn *turn)
{
    int rc = engine_blocks(x);
    if (!rc && turn->size > 0) {
        x->blocks->top_level = turn->size;
        x->blocks->batches_left = FEW_BATCHES;
    }
    return rc ? rc : blocks_improve(x->blocks);
}

/* A problem with too many pairs is left to the other steps. */
static int run(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    util_stop all = in->stop;
    in->stop = incumbent_part(in, turn->share);
    int rc = improve(x, turn);
    in->stop = all;
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

const engine_step step_blocks = {.method = UTIL_METHOD_BLOCKS, .without_plan = true, .run = run};
