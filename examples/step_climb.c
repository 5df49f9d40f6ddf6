/* A step of the engine of one's own: one file, as it would stand in src/place/moirai, and three rows (CONTRIBUTING.md,
 * "Adding a step to the engine"; examples/CMakeLists.txt adds them to copies of the files that hold them).
 *
 * The method: one operator after the other goes where the simulated makespan falls most, until nothing helps or the
 * turn is over. The incumbent is asked for the best plan and the time, and told of every better one: nothing else of
 * the engine has to be known. O(passes V K) simulations. */
#include <stdlib.h>
#include <string.h>

#include "place/moirai/engine.h"
#include "util/util.h"

#define LETTER 'c' /* in logs, at plans that this step has found */

/* The best device of one operator, the others as they are; *best_ns falls with it. */
static int move_op(incumbent *in, moirai_sim *sim, int32_t *device, int32_t op, int64_t *best_ns)
{
    int32_t best = device[op];
    int rc = 0;
    for (int32_t k = 0; k < in->p->n_devices && !rc; k++) {
        if (!(in->p->op_devices[op] >> k & 1))
            continue;
        device[op] = k;
        int64_t ns = moirai_sim_dispatch(sim, device, NULL);
        if (ns < 0 || ns >= *best_ns || moirai_sim_memory_excess(sim, NULL) > 0)
            continue;
        *best_ns = ns;
        best = k;
        rc = incumbent_take_simulated(in, sim, ns, LETTER);
    }
    device[op] = best;
    return rc;
}

static int run(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    util_stop stop = incumbent_part(in, turn->share);
    moirai_sim *sim = NULL;
    int32_t *device = util_alloc((size_t)in->p->n_ops, sizeof *device);
    int rc = device ? moirai_sim_new(&sim, in->p) : MOIRAI_EFAIL;
    int64_t best_ns = INT64_MAX, before = 0;
    if (!rc)
        memcpy(device, in->best->op_device, sizeof *device * (size_t)in->p->n_ops);
    while (!rc && best_ns != before) {
        before = best_ns;
        for (int32_t i = 0; i < in->p->n_ops && !rc && !util_stopped(&stop); i++)
            rc = move_op(in, sim, device, i, &best_ns);
    }
    moirai_sim_free(sim);
    free(device);
    return rc;
}

const engine_step step_climb = {.method = UTIL_METHOD_CLIMB, .run = run};
