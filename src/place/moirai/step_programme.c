/* A bound by the static programme of the whole problem (pair/static/static_lp.c), as one block without cuts.
 *
 * Prices on loads see no order, and mix "all here" with "all there"; a programme of the whole has its paths and the loads
 * of what lies between heads and tails as well. It is for wide problems of moderate size: chains of intervals cut through
 * what they do side by side. */
#include <math.h>

#include "place/moirai/engine.h"
#include "util/util.h"

#define CELLS 1e5      /* of a programme (pair_static_cells), at effort 1, */
#define MOST_CELLS 5e3 /* and however much there is: beyond, it takes longer than it is worth */

static int run(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    pair_chain *whole = NULL;
    if ((double)pair_static_cells(in->p) > fmin(CELLS * in->o->budget.effort, MOST_CELLS) || incumbent_stopped(in))
        return 0;
    int rc = engine_whole_block(&whole, in->p);
    rc = rc ? rc : pair_raise_static(whole->pair[0], incumbent_part(in, turn->share));
    int64_t lower = rc ? 0 : whole->pair[0]->lower_ns;
    if (lower > in->lower_ns) { /* kept for the certificate */
        incumbent_take_bound(in, lower);
        pair_chain_free(x->one_block);
        x->one_block = whole;
    } else {
        pair_chain_free(whole);
    }
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

const engine_step step_programme = {.method = UTIL_METHOD_PROGRAMMES, .run = run};
