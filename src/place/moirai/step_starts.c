/* Plans to begin with: those of the other heuristics (place/starts.c), so that no plan is worse than theirs. */
#include <math.h>
#include <stdio.h>

#include "place/moirai/engine.h"
#include "place/starts.h"
#include "util/util.h"

#define RESERVE 8 /* composing the last plan and its check, in times of the first check */

/* What comes after the search is the check of the plan. It is measured once, with the first plan; the last one may send
 * every tensor. */
static void reserve_time(incumbent *x)
{
    double begun = util_seconds();
    moirai_plan_check(x->p, x->best, NULL, NULL);
    double tasks = (double)x->p->n_ops + x->best->n_transfers, most = (double)x->p->n_ops + x->p->n_edges;
    double reserve_s = RESERVE * (util_seconds() - begun) * most / fmax(tasks, 1);
    x->stop.deadline = fmax(x->stop.deadline - reserve_s, x->begun); /* not 0, which were none */
}

static int offer(void *data, moirai_plan *plan, char letter)
{
    incumbent *x = data;
    bool first = !x->best;
    if (letter != 'S') /* the user's own is no heuristic's */
        x->starts_ns = x->starts_ns ? UTIL_MIN(x->starts_ns, plan->makespan_ns) : plan->makespan_ns;
    int rc = incumbent_offer(x, plan, letter);
    if (!rc && first && x->best && !x->outer && x->stop.deadline > 0)
        reserve_time(x);
    return rc;
}

static int run(engine *x, const engine_turn *turn)
{
    (void)turn;
    incumbent *in = &x->in;
    place_starts_task task = {.p = in->p, .o = in->o, .stop = &in->stop, .offer = offer, .data = in};
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
