/* m-topo: Baechi's m-TOPO (Jeon et al. 2020), the simplest memory-aware baseline.
 *
 * Operators in topological order, devices in order. Each device is filled up to cap = total bytes / devices + the
 * largest operator's (never above the device's own memory), then the next one is begun, never going back.
 *
 * Changed to fit model.md: a group goes where its first member goes, with all its bytes; an operator that the current
 * device can't run goes to the next device that can and has room under its cap, else to any such, and the current
 * device stays; where devices run out, or the peak does not fit, the assignment is repaired (fit_plan.c) instead of
 * failing. Times come from dispatching by upward rank. O(V K). */
#include "place/fit.h"
#include "place/placers.h"
#include "schedule/sim.h"
#include "util/util.h"

#include <stdlib.h>

#define DISPATCH_TAKES 3 /* times what a plan in order takes, at least */

typedef struct topo {
    const moirai_problem *p;
    const place_units *u;
    int64_t cap[MOIRAI_MAX_DEVICES], load[MOIRAI_MAX_DEVICES];
    int32_t current;
    int32_t *device;
} topo;

static void set_caps(topo *x)
{
    int64_t total = 0, largest = 0;
    for (int32_t unit = 0; unit < x->u->n; unit++) {
        total += x->u->bytes[unit];
        largest = UTIL_MAX(largest, x->u->bytes[unit]);
    }
    for (int32_t k = 0; k < x->p->n_devices; k++)
        x->cap[k] = UTIL_MIN(total / x->p->n_devices + largest, x->p->device_memory_bytes[k]);
}

static bool holds(const topo *x, int32_t unit, int32_t k)
{
    return place_unit_may(x->u, unit, k) && x->load[k] <= x->cap[k] - x->u->bytes[unit];
}

/* MOIRAI_NONE: no device holds it under its cap. */
static int32_t choose(topo *x, int32_t unit)
{
    int32_t K = x->p->n_devices;
    while (x->current < K - 1 && x->load[x->current] > x->cap[x->current] - x->u->bytes[unit])
        x->current++;
    for (int32_t step = 0; step < K; step++)
        if (holds(x, unit, (x->current + step) % K))
            return (x->current + step) % K;
    return MOIRAI_NONE;
}

static void assign(topo *x)
{
    for (int32_t i = 0; i < x->p->n_ops; i++)
        x->device[i] = MOIRAI_NONE;
    for (int32_t r = 0; r < x->p->n_ops; r++) {
        int32_t unit = x->u->of_op[x->p->topo[r]], first = x->u->op[x->u->off[unit]];
        if (x->device[first] != MOIRAI_NONE)
            continue;
        int32_t k = choose(x, unit);
        if (k == MOIRAI_NONE) /* full: the repair will find it a place */
            k = place_unit_may(x->u, unit, x->current) ? x->current : place_unit_device(x->u, unit, 0);
        x->load[k] += x->u->bytes[unit];
        for (int32_t j = x->u->off[unit]; j < x->u->off[unit + 1]; j++)
            x->device[x->u->op[j]] = k;
    }
}

/* In topological order, as each operator's turn comes; no plan where that does not fit. */
static int plan_in_order(moirai_plan **out, moirai_sim *sim, const topo *x)
{
    int64_t ns = schedule_sim_replay_window(sim, x->device, x->p->topo, x->p->n_ops);
    return ns >= 0 && moirai_sim_memory_excess(sim, NULL) == 0 ? moirai_sim_plan(out, sim) : 0;
}

/* Dispatched. Where that is late, but some plan is wanted whatever the time, in topological order: a million operators that read each other at
 * random are simulated so in a tenth of the time. */
static int plan_soon(moirai_plan **out, moirai_sim *sim, topo *x, const util_stop *stop)
{
    moirai_plan *first = NULL;
    double begun = util_seconds();
    int rc = plan_in_order(&first, sim, x);
    if (rc)
        return rc;
    schedule_sim_obey(sim, first ? stop : NULL);
    bool hopeless = first && util_stop_left_s(stop) < DISPATCH_TAKES * (util_seconds() - begun);
    rc = hopeless || (first && util_stopped(stop))
             ? MOIRAI_ELIMIT
             : place_fit_plan(out, sim, x->p, x->u, x->device, NULL, NULL, 0, stop);
    if (rc && first) {
        *out = first;
        return 0;
    }
    moirai_plan_free(first);
    return rc;
}

static int plan(moirai_plan **out, moirai_sim *sim, topo *x, const util_stop *stop, bool may_fail)
{
    if (!may_fail && stop && x->p->n_ops >= PLACE_FIT_LARGE)
        return plan_soon(out, sim, x, stop);
    schedule_sim_obey(sim, may_fail ? stop : NULL);
    return place_fit_plan(out, sim, x->p, x->u, x->device, NULL, NULL, 0, stop);
}

int place_m_topo_within(moirai_plan **out, const moirai_problem *p, const util_stop *stop, bool may_fail)
{
    topo x = {.p = p};
    moirai_sim *sim = NULL;
    place_units *u = NULL;
    x.device = util_alloc((size_t)p->n_ops, sizeof *x.device);
    int rc = x.device ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    rc = rc ? rc : place_units_new(&u, p);
    if (!rc) {
        x.u = u;
        set_caps(&x);
        assign(&x);
        rc = plan(out, sim, &x, stop, may_fail);
    }
    moirai_sim_free(sim);
    place_units_free(u);
    free(x.device);
    return rc;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    util_stop stop = util_stop_of(&o->budget);
    return place_m_topo_within(out, p, &stop, false);
}

const moirai_placer place_m_topo = {
    .name = "m-topo",
    .summary = "Baechi's m-TOPO: fill the devices one after the other in topological order",
    .place = place,
};
