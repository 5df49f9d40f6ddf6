/* chain: contiguous pieces, their lengths and devices chosen by dynamic programming, as pipeline tools do.
 *
 * chain_split.c finds the split of least cost (times, what crosses the cuts, memory). All orders of the devices are
 * searched while the states stay below MOST_STATES; beyond that, devices come fastest first, any left out. The plan is
 * the faster of two simulations of that split: in topological order, and dispatched by upward rank. Every device gets
 * one contiguous piece or none; where no such plan fits the memory, there is none: that is an answer, and nothing is
 * repaired.
 *
 * With peak memory the split counts every tensor that is handed on at each piece in between. Where nothing fits so, the
 * operators' bytes alone are counted, and the simulated schedules, also those that wait to save memory, decide.
 * Complexity: see chain_split.c. */
#include "place/list/chain_split.h"
#include "place/list/contiguous.h"
#include "place/list/speed.h"
#include "place/placers.h"
#include "schedule/sim.h"
#include "util/util.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_STATES 20000000 /* per problem: 6 bytes each */

static void tell(const moirai_place_options *o, const place_split *split, bool any_order)
{
    char note[160];
    if (!o->budget.progress)
        return;
    snprintf(note, sizeof note, "%d pieces, %.3f ms one by one, devices in %s", split->n_pieces,
             (double)split->cost_ns * 1e-6, any_order ? "the best order" : "order of speed");
    o->budget.progress(o->budget.progress_data, &(moirai_progress){.letter = ' ',
                                                                   .makespan_ns = MOIRAI_UNKNOWN,
                                                                   .lower_bound_ns = MOIRAI_UNKNOWN,
                                                                   .note = note});
}

/* The plan of one split, or NULL where its schedules do not fit. */
static int plan_split(moirai_plan **out, int64_t *short_bytes, moirai_sim *sim, const moirai_problem *p,
                      const place_split *split, int32_t *device, const util_stop *stop)
{
    for (int32_t piece = 0, r = 0; piece < split->n_pieces; piece++)
        for (; r < split->end[piece]; r++)
            device[p->topo[r]] = split->device[piece];
    int rc = place_contiguous_plan(out, sim, p, device);
    if (!rc && !*out)
        rc = place_fit_schedule(out, short_bytes, sim, p, device, stop);
    return rc;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    int32_t order[MOIRAI_MAX_DEVICES], *device = util_alloc((size_t)p->n_ops, sizeof *device);
    bool any_order = place_split_states(p->n_devices) <= MOST_STATES / UTIL_MAX(p->n_ops, 1);
    moirai_sim *sim = NULL;
    int64_t short_bytes = 0;
    int rc = device ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    place_fastest_first(p, order);
    util_stop stop = util_stop_of(&o->budget);
    if (!rc)
        schedule_sim_obey(sim, &stop);
    bool peak = p->memory == MOIRAI_MEMORY_PEAK;
    for (int loose = 0; !rc && !*out && loose <= peak; loose++) {
        place_split split;
        rc = place_split_find(&split, p, &(place_split_task){any_order ? NULL : order, stop, loose});
        if (rc == MOIRAI_EINFEASIBLE && loose < peak) {
            rc = 0;
            continue;
        }
        if (!rc) {
            tell(o, &split, any_order);
            rc = plan_split(out, &short_bytes, sim, p, &split, device, &stop);
        }
        place_split_clear(&split);
    }
    if (!rc && !*out && short_bytes < 0)
        rc = moirai_error(MOIRAI_ELIMIT, "the time was up before a split was simulated");
    if (!rc && !*out)
        rc = moirai_error(MOIRAI_EINFEASIBLE, "no contiguous split fits: the best is %s short of the peak",
                          util_human_bytes(short_bytes).s);
    moirai_sim_free(sim);
    free(device);
    return rc;
}

const moirai_placer place_chain = {
    .name = "chain",
    .summary = "the best contiguous pieces by dynamic programming, as pipeline tools split",
    .place = place,
};
