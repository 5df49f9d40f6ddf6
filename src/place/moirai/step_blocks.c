/* Blocks between cuts; of the spine where a network has none.
 *
 * Near-cuts become cuts when work that floats beside them is taken away (decompose/spine.h): the blocks of what is left,
 * the spine, are refined by an engine within the engine, whose plans and bounds come back through its incumbent. What
 * floats is put into gaps (floats.c). */
#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"

static int improve(engine *x, const engine_turn *turn)
{
    int rc = engine_blocks(x);
    if (!rc && turn->size > 0) {
        x->blocks->top_level = turn->size;
        x->blocks->batches_left = STEP_BLOCKS_FEW_BATCHES;
    }
    return rc ? rc : blocks_improve(x->blocks);
}

static int begin_spine(engine *x)
{
    static const engine_turn starts = {.step = &step_starts}; /* all of them, whatever the size of this turn */
    engine *y = engine_new(x->spine->problem, x->in.o);
    if (!y)
        return MOIRAI_EFAIL;
    x->inner = y;
    y->in.outer = &x->in;
    y->in.spine = x->spine;
    y->in.stop = x->in.stop;
    return starts.step->run(y, &starts);
}

/* A second turn goes on where the first has ended. */
static int improve_spine(engine *x, const engine_turn *turn)
{
    int rc = x->inner ? 0 : begin_spine(x);
    if (!rc)
        x->inner->in.stop = x->in.stop;
    return rc ? rc : improve(x->inner, turn);
}

/* A problem with too many pairs is left to the other steps. */
static int run(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    util_stop all = in->stop;
    in->stop = incumbent_part(in, turn->share);
    bool known = x->spine || incumbent_off(in, SPINE);
    int rc = known ? 0 : decompose_spine_new(&x->spine, in->p, &in->stop);
    rc = rc ? rc : x->spine ? improve_spine(x, turn) : improve(x, turn);
    in->stop = all;
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

const engine_step step_blocks = {.method = UTIL_METHOD_BLOCKS, .without_plan = true, .run = run};
