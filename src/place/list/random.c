/* random: every unit on a device drawn evenly from those that can run it, repaired to fit the memory, dispatched by
 * upward rank. What any method must beat, and a source of varied feasible plans for tests. O((V + E) log V). */
#include "place/fit.h"
#include "place/placers.h"
#include "schedule/sim.h"
#include "util/util.h"

#include <stdlib.h>

static void draw(int32_t *device, const place_units *u, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    for (int32_t unit = 0; unit < u->n; unit++) {
        uint32_t n = util_rng_below(&rng, (uint32_t)place_unit_count(u, unit));
        int32_t k = place_unit_device(u, unit, (int32_t)n);
        for (int32_t j = u->off[unit]; j < u->off[unit + 1]; j++)
            device[u->op[j]] = k;
    }
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    util_stop stop = util_stop_of(&o->budget);
    moirai_sim *sim = NULL;
    place_units *u = NULL;
    int32_t *device = util_alloc((size_t)p->n_ops, sizeof *device);
    int rc = device ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    rc = rc ? rc : place_units_new(&u, p);
    if (!rc) {
        draw(device, u, o->budget.seed);
        schedule_sim_obey(sim, &stop);
        rc = place_fit_plan(out, sim, p, u, device, NULL, NULL, 0, &stop);
    }
    moirai_sim_free(sim);
    place_units_free(u);
    free(device);
    return rc;
}

const moirai_placer place_random = {
    .name = "random",
    .summary = "a random placement that fits, the same for the same seed",
    .place = place,
};
