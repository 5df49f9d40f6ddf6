/* Plans to begin with: those of the other heuristics (place/starts.c), so that no plan is worse than theirs. A turn of size
 * 1 ends with the first of them. */
#include <stdio.h>

#include "place/moirai/engine.h"
#include "place/starts.h"
#include "util/util.h"

static int run(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    util_stop part = incumbent_part(in, turn->share);
    place_starts_task task = {.p = in->p,
                              .o = in->o,
                              .stop = turn->share > 0 ? &part : &in->stop,
                              .offer = incumbent_offer_start,
                              .data = in,
                              .has_plan = in->best != NULL,
                              .first = turn->size == 1};
    moirai_place_options without_start = *in->o;
    if (in->outer) { /* the user's start is one of the whole problem */
        without_start.start = NULL;
        task.o = &without_start;
    }
    int rc = place_starts(&task);
    snprintf(x->why, sizeof x->why, "%s", task.why);
    return rc;
}

const engine_step step_starts = {.method = UTIL_METHOD_STARTS, .without_plan = true, .run = run};
