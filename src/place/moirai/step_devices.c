/* More devices than a mask has (MOIRAI_MASK_DEVICES).
 *
 * Plans: the whole engine, where few of the devices can matter, whose plan and bound are those of the whole.
 * What the other steps do on few devices, heuristics and annealing, they do on many. Neither a search on the fastest 64 devices nor a
 * list scheduler by kinds of devices is worth its time (docs/results.md).
 *
 * Bounds hold for all devices: loads and paths of the whole.
 *
 * Which matter: devices that can be exchanged are of one kind (problem/equal_devices.h). Units (operators, or groups that share a device)
 * that may be on a kind use at most as many of its devices as there are such units, and which of them does not matter. */
#include <stdlib.h>

#include "place/fit.h"
#include "place/moirai/engine.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "problem/device_part.h"
#include "problem/equal_devices.h"
#include "schedule/paths.h"
#include "schedule/plan_order.h"
#include "util/util.h"

int engine_choose_part(engine_part *out, const moirai_problem *p)
{
    int32_t least[MOIRAI_MAX_DEVICES], units[MOIRAI_MAX_DEVICES] = {0}, used[MOIRAI_MAX_DEVICES] = {0};
    place_units *u = NULL;
    *out = (engine_part){0};
    int rc = place_units_new(&u, p);
    if (rc)
        return rc;
    problem_equal_devices(p, least); /* kinds are known by their least device */
    for (int32_t unit = 0; unit < u->n; unit++)
        for (int32_t k = 0; k < p->n_devices; k++)
            units[k] += least[k] == k && place_unit_may(u, unit, k);
    place_units_free(u);
    for (int32_t k = 0; k < p->n_devices; k++) {
        if (used[least[k]]++ >= units[least[k]])
            continue;
        if (out->n == MOIRAI_MASK_DEVICES) {
            out->n = 0;
            return 0;
        }
        out->device[out->n++] = k;
    }
    return 0;
}

/* The part's plan in the whole: devices and transfers by their numbers there. */
static int carry_back(incumbent *in, const moirai_problem *q, const engine_part *part, const moirai_plan *plan)
{
    const moirai_problem *p = in->p;
    int32_t V = p->n_ops, *device = util_alloc((size_t)V, sizeof *device);
    moirai_task *order = NULL;
    moirai_sim *sim = NULL;
    int64_t n = 0;
    int rc = device ? schedule_plan_order(&order, &n, q, plan) : MOIRAI_EFAIL;
    rc = rc ? rc : moirai_sim_new(&sim, p);
    for (int32_t i = 0; i < V && !rc; i++)
        device[i] = part->device[plan->op_device[i]];
    for (int64_t j = 0; j < n && !rc && p->flow == MOIRAI_FLOW_TENSOR; j++)
        if (order[j] >= V) {
            moirai_task slot = order[j] - V;
            order[j] = V + slot / q->n_devices * p->n_devices + part->device[slot % q->n_devices];
        }
    rc = rc ? rc : incumbent_take_simulated(in, sim, moirai_sim_replay(sim, device, order, n), 'D');
    moirai_sim_free(sim);
    free(device);
    free(order);
    return rc;
}

static int search_part(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    moirai_problem q;
    moirai_plan *plan = NULL;
    util_stop stop = incumbent_part(in, turn->share);
    moirai_place_options o = *in->o;
    o.budget = util_stop_rest(&stop, &in->o->budget);
    o.start = NULL;
    o.certificate_path = NULL;
    int rc = problem_part(&q, in->p, x->part.device, x->part.n);
    rc = rc ? rc : x->place(&plan, &q, &o);
    if (!rc) {
        incumbent_take_bound(in, plan->lower_bound_ns);
        rc = carry_back(in, &q, &x->part, plan);
    }
    moirai_plan_free(plan);
    problem_part_clear(&q);
    return rc == MOIRAI_EINFEASIBLE || rc == MOIRAI_ELIMIT
               ? 0
               : rc; /* that there is less room on fewer devices says nothing */
}

static int bound_paths(engine *x, const engine_turn *turn)
{
    incumbent *in = &x->in;
    util_stop stop = incumbent_part(in, turn->share);
    double cells = (double)in->p->n_ops * in->p->n_devices * sizeof(int64_t);
    if (cells > 4 * MANY_MOST_BYTES)
        return 0;
    int64_t ns = schedule_longest_path(&(schedule_paths){.p = in->p, .groups = true, .stop = &stop});
    if (ns < 0)
        return MOIRAI_EFAIL;
    in->at_work = "transfers";
    incumbent_take_bound(in, ns);
    return 0;
}

const engine_step step_part = {.method = UTIL_METHOD_DEVICES, .without_plan = true, .run = search_part},
                  step_paths = {.method = UTIL_METHOD_DEVICES, .without_plan = true, .run = bound_paths};
