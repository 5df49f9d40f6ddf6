/* The search on more devices than a mask has (MOIRAI_MASK_DEVICES).
 *
 * Plans: a list scheduler that knows kinds of devices (many_list.c), the other heuristics, and the whole engine on a part of the
 * devices (many_choose.c), whose plan is one of the whole; then annealing of the whole, whose moves know every device.
 *
 * Bounds hold for all devices: loads and paths of the whole; what the engine has proven of the part only where the part
 * has all devices that can matter. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/many/many.h"
#include "place/moirai/whole/whole_anneal.h"
#include "place/placers.h"
#include "place/starts.h"
#include "problem/device_part.h"
#include "problem/problem_build.h"
#include "relax/relax.h"
#include "schedule/load.h"
#include "schedule/paths.h"
#include "schedule/plan_order.h"
#include "util/util.h"

/* ---- the first plans ---- */

static int list_kinds(incumbent *in)
{
    moirai_plan *plan;
    util_stop stop = incumbent_part(in, MANY_LIST_SHARE);
    int rc = many_list(&plan, in->p, &stop);
    return rc || !plan ? rc : incumbent_offer_start(in, plan, 'K');
}

static int try_heuristics(incumbent *in, char *why)
{
    util_stop stop = incumbent_part(in, MANY_STARTS_SHARE);
    place_starts_task task = {.p = in->p,
                              .o = in->o,
                              .stop = &stop,
                              .offer = incumbent_offer_start,
                              .data = in,
                              .has_plan = in->best != NULL};
    int rc = place_starts(&task);
    snprintf(why, sizeof task.why, "%s", task.why);
    return rc;
}

/* ---- a part of the devices ---- */

/* The part's plan in the whole: devices and transfers by their numbers there. */
static int carry_back(incumbent *in, const moirai_problem *q, const many_part *part, const moirai_plan *plan)
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

static int search_part(incumbent *in, many_place *place, const many_part *part)
{
    moirai_problem q;
    moirai_plan *plan = NULL;
    util_stop stop = incumbent_part(in, part->whole ? 1 : MANY_PART_SHARE);
    moirai_place_options o = *in->o;
    o.budget = util_stop_rest(&stop, &in->o->budget);
    o.start = NULL;
    o.certificate_path = NULL;
    int rc = problem_part(&q, in->p, part->device, part->n);
    rc = rc ? rc : place(&plan, &q, &o);
    if (!rc && part->whole)
        incumbent_take_bound(in, plan->lower_bound_ns);
    rc = rc ? rc : carry_back(in, &q, part, plan);
    moirai_plan_free(plan);
    problem_part_clear(&q);
    return rc == MOIRAI_EINFEASIBLE || rc == MOIRAI_ELIMIT
               ? 0
               : rc; /* that there is less room on fewer devices says nothing */
}

/* ---- all devices ---- */

static int bound_paths(incumbent *in)
{
    util_stop stop = incumbent_part(in, MANY_PATHS_SHARE);
    double cells = (double)in->p->n_ops * in->p->n_devices * sizeof(int64_t);
    if (cells > 4 * MANY_MOST_BYTES)
        return 0;
    int64_t ns = schedule_longest_path(&(schedule_paths){.p = in->p, .groups = true, .stop = &stop});
    if (ns < 0)
        return MOIRAI_EFAIL;
    incumbent_take_bound(in, ns);
    return 0;
}

/* Bytes of one state: transfers of every tensor to every device, and when each line is free at every mark. */
static double state_bytes(const moirai_problem *p)
{
    double K = p->n_devices, lines = K + (p->congestion == MOIRAI_CONGESTION_CHANNEL ? K * K : 2 * K);
    double slots = p->flow == MOIRAI_FLOW_EDGE ? p->n_edges : p->n_tensors * K;
    return slots * (sizeof(place_whole_slot) + 2 * sizeof(int64_t)) +
           (p->n_ops / (double)PLACE_WHOLE_STRIDE + 2) * lines * 4 * sizeof(int64_t) + p->n_ops * K * sizeof(int64_t);
}

static int anneal_round(incumbent *in, int32_t round)
{
    moirai_plan *plan;
    const moirai_budget *b = &in->o->budget;
    double most = fmax(MANY_EVALUATIONS, MANY_EVALUATIONS_OP * in->p->n_ops) * (1 + round);
    int rc = moirai_plan_copy(&plan, in->best);
    if (rc)
        return rc;
    place_whole_task job = {.evaluations =
                                (int64_t)(fmin(most, MANY_STEPS / fmax(in->p->n_ops, 1)) * fmin(b->effort, 1e6)) + 1,
                            .heat = round == 0 ? 1 : 0.4,
                            .seed = b->seed * 1000 + (uint64_t)round,
                            .threads = b->threads,
                            .stop = in->stop};
    rc = place_whole_anneal(&plan, in->p, &job);
    in->work += job.evaluations;
    if (!rc)
        return incumbent_offer(in, plan, 'W');
    moirai_plan_free(plan);
    return rc;
}

static int anneal(incumbent *in)
{
    double gain = 1;
    int rc = 0;
    if (state_bytes(in->p) > MANY_MOST_BYTES)
        return 0;
    for (int32_t i = 0; i < MANY_ROUNDS && gain > MANY_WORTH_A_ROUND && !rc && !incumbent_done(in); i++) {
        double before = (double)in->best->makespan_ns;
        rc = anneal_round(in, i);
        gain = 1 - (double)in->best->makespan_ns / fmax(before, 1);
    }
    return rc;
}

int many_search(incumbent *in, many_place *place, char *why)
{
    many_part part;
    in->at_work = util_method_name(UTIL_METHOD_DEVICES);
    int rc = many_choose(&part, in->p);
    if (!rc && part.whole && !incumbent_off(in, DEVICES))
        rc = search_part(in, place, &part);
    if (!rc && !incumbent_done(in) && !incumbent_off(in, DEVICES))
        rc = list_kinds(in);
    if (!rc && (!in->best || !incumbent_done(in))) {
        in->at_work = util_method_name(UTIL_METHOD_STARTS);
        rc = try_heuristics(in, why);
    }
    in->at_work = "transfers";
    rc = rc || incumbent_done(in) ? rc : bound_paths(in);
    in->at_work = util_method_name(UTIL_METHOD_DEVICES);
    if (!rc && !part.whole && part.n > 0 && !incumbent_done(in) && !incumbent_off(in, DEVICES))
        rc = search_part(in, place, &part);
    in->at_work = util_method_name(UTIL_METHOD_WHOLE);
    return rc || !in->best || incumbent_off(in, WHOLE) ? rc : anneal(in);
}

/* ---- the certificate ---- */

/* Without groups, of which verifiers know nothing: what may run an operator is all that has a time for it. */
static int without_groups(moirai_problem *out, const moirai_problem *p)
{
    *out = *p;
    out->n_groups = 0;
    out->op_group = util_alloc((size_t)p->n_ops, sizeof *out->op_group);
    out->op_devices = util_alloc((size_t)p->n_ops * (size_t)moirai_device_words(p), sizeof *out->op_devices);
    for (int32_t i = 0; out->op_group && i < p->n_ops; i++)
        out->op_group[i] = MOIRAI_NONE;
    return out->op_group && out->op_devices ? problem_mask_devices(out) : MOIRAI_EFAIL;
}

/* The verifier finds longest paths by itself. */
static int certify_paths(const incumbent *in)
{
    relax_certificate from = {.p = in->p, .lower_bound_ns = in->lower_ns};
    return relax_certificate_write(&from, in->o->certificate_path);
}

int many_certify(int64_t *certified_ns, incumbent *in, double plain_s, const util_stop *stop)
{
    *certified_ns = 0;
    if (util_stopped(stop) || util_stop_left_s(stop) < MANY_PLAIN_KEPT * plain_s)
        return certify_paths(in);
    moirai_problem q;
    relax_leaf leaf = {0};
    relax_proof proof = {.n_leaves = 1, .leaf = &leaf};
    size_t R = (size_t)UTIL_MAX(in->p->n_devices * 3, in->p->n_devices * (in->p->n_devices + 1));
    int rc = without_groups(&q, in->p);
    leaf.price = util_alloc(R, sizeof *leaf.price);
    rc = rc ? rc : leaf.price ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        int64_t load = schedule_bound_load(leaf.price, &q), path = moirai_bound_critical_path(&q);
        util_stop part = util_stop_at_least(stop, 0.1);
        if ((double)q.n_ops * q.n_devices * sizeof(int64_t) <= 4 * MANY_MOST_BYTES)
            path = UTIL_MAX(path, schedule_longest_path(&(schedule_paths){.p = &q, .stop = &part}));
        *certified_ns = UTIL_MIN(UTIL_MAX(load, path), in->lower_ns);
        relax_certificate from = {
            .p = in->p, .whole = &proof, .proven_ns = *certified_ns, .lower_bound_ns = in->lower_ns};
        rc = relax_certificate_write(&from, in->o->certificate_path);
    }
    free(leaf.price);
    free(q.op_group);
    free(q.op_devices);
    return rc;
}
