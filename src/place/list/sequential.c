/* sequential: fill one device after the other, as layer offloading and device maps do. What most people have today.
 *
 * Operators in topological order; a device takes them until the next does not fit its memory, then the next device is
 * begun, never going back. No time and no link is looked at, only bytes. Devices come fastest first (--order fastest),
 * as somebody who has to list them by hand would, or as the problem lists them.
 *
 * Made to fit model.md: a group goes where its first member goes, with all its bytes; an operator that the current
 * device can't run goes to the next one that can and has room, and the current device stays. With peak memory, a piece
 * needs its operators' bytes and the most bytes of tensors alive while one of its operators runs, all running one by
 * one. Where devices run out, or the simulated peak does not fit, the assignment is repaired (fit_plan.c). O((V + E)
 * log V + V K). */
#include "place/list/contiguous.h"
#include "place/list/speed.h"
#include "place/placers.h"
#include "schedule/sim.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

static const moirai_param params[] = {
    {.name = "order",
     .kind = MOIRAI_PARAM_CHOICE,
     .choices = "fastest|given",
     .help = "devices to fill: fastest first, or as the problem lists them"},
};

typedef struct filling {
    const moirai_problem *p;
    const place_units *u;
    int32_t order[MOIRAI_MAX_DEVICES];
    int32_t current;                                                /* position in order */
    int64_t bytes[MOIRAI_MAX_DEVICES], tensors[MOIRAI_MAX_DEVICES]; /* of operators; most of tensors at once */
    int64_t *alive;                                                 /* per rank; all 0 with static memory */
    int32_t *device;
} filling;

static bool fits(const filling *x, int32_t unit, int32_t rank, int32_t k)
{
    int64_t tensors = UTIL_MAX(x->tensors[k], x->alive[rank]), room = x->p->device_memory_bytes[k];
    return tensors <= room && x->bytes[k] <= room - tensors - x->u->bytes[unit];
}

/* MOIRAI_NONE: no device from the current one on holds it. */
static int32_t choose(filling *x, int32_t unit, int32_t rank)
{
    int32_t K = x->p->n_devices;
    while (x->current < K - 1 && place_unit_may(x->u, unit, x->order[x->current]) &&
           !fits(x, unit, rank, x->order[x->current]))
        x->current++;
    for (int32_t at = x->current; at < K; at++)
        if (place_unit_may(x->u, unit, x->order[at]) && fits(x, unit, rank, x->order[at]))
            return x->order[at];
    return MOIRAI_NONE;
}

static void assign(filling *x)
{
    const moirai_problem *p = x->p;
    for (int32_t i = 0; i < p->n_ops; i++)
        x->device[i] = MOIRAI_NONE;
    for (int32_t r = 0; r < p->n_ops; r++) {
        int32_t op = p->topo[r], unit = x->u->of_op[op];
        if (x->device[op] == MOIRAI_NONE) {
            int32_t k = choose(x, unit, r), here = x->order[x->current];
            if (k == MOIRAI_NONE) /* full: the repair will find it a place */
                k = place_unit_may(x->u, unit, here) ? here : place_unit_device(x->u, unit, 0);
            x->bytes[k] += x->u->bytes[unit];
            for (int32_t j = x->u->off[unit]; j < x->u->off[unit + 1]; j++)
                x->device[x->u->op[j]] = k;
        }
        x->tensors[x->device[op]] = UTIL_MAX(x->tensors[x->device[op]], x->alive[r]);
    }
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    util_stop stop = util_stop_of(&o->budget);
    filling x = {.p = p,
                 .device = util_alloc((size_t)p->n_ops, sizeof *x.device),
                 .alive = util_alloc((size_t)p->n_ops, sizeof *x.alive)};
    moirai_sim *sim = NULL;
    place_units *u = NULL;
    int rc = x.device && x.alive ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    rc = rc ? rc : place_units_new(&u, p);
    if (!rc) {
        x.u = u;
        for (int32_t k = 0; k < p->n_devices; k++)
            x.order[k] = k;
        if (!strcmp(moirai_setting_choice(o, &place_sequential, "order"), "fastest"))
            place_fastest_first(p, x.order);
        if (p->memory == MOIRAI_MEMORY_PEAK)
            place_alive_bytes(p, x.alive);
        assign(&x);
        schedule_sim_obey(sim, &stop);
        rc = place_contiguous_plan(out, sim, p, x.device);
    }
    if (!rc && !*out)
        rc = place_fit_plan(out, sim, p, u, x.device, NULL, NULL, 0, &stop);
    moirai_sim_free(sim);
    place_units_free(u);
    free(x.device);
    free(x.alive);
    return rc;
}

const moirai_placer place_sequential = {
    .name = "sequential",
    .summary = "fill one device after the other in topological order, as layer offloading does",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .place = place,
};
