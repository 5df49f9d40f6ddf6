/* Bounds of the period, and the plans that they and the plan of one request give.
 *
 * The relaxation of loads, ports and bytes (relax/cases.c, without heads and tails) and the bound of one request's latency, of which N take turns. What the relaxation's prices
 * say of devices and ports are weights for annealing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rate/search.h"
#include "util/util.h"

#define LATENCY_SHARE 0.2 /* of the time for the plan of one request, where few of them take turns */
#define FEW_IN_FLIGHT 8
#define LATENCY_EFFORT 0.2
#define BOUND_SHARE 0.25
#define BOUND_MOST_CELLS 2.5e8 /* edges and two devices each: what is left of a round takes some 0.8 s */
#define BOUND_CELL_S 1e-8
#define ONE_COPY_CASES 200
#define LEAST_WEIGHT 0.005 /* of what the bound has no price for */
#define EASE 300.0         /* of a port: at 0.84 of a load it counts as that of the dearest device (300^(1/32) = 1.2) */

static int find_latency(rate_search *x)
{
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget = util_stop_rest(&x->stop, &x->o->budget);
    if (x->o->budget.time_limit_s > 0)
        o.budget.time_limit_s =
            (x->in_flight <= FEW_IN_FLIGHT ? LATENCY_SHARE : LATENCY_SHARE / 2) * x->o->budget.time_limit_s;
    o.budget.effort = LATENCY_EFFORT * x->o->budget.effort;
    o.gap = x->o->gap;
    o.start = x->o->start;
    return moirai_place(&x->latency, x->p, moirai_placer_find("moirai") ? "moirai" : "heft", &o);
}

/* What comes after the last look at the clock, numbers of a leaf that are written down and evaluated, goes over all edges and pairs of devices: where
 * that would take more than a part of the time, or longer than who interrupts is to wait, loads alone are the bound. */
static bool has_time(const rate_search *x, const util_stop *stop)
{
    double K = x->p->n_devices, cells = x->p->n_edges * K * K;
    return cells <= BOUND_MOST_CELLS && util_stop_left_s(stop) >= BOUND_CELL_S * cells;
}

static int find_bound(rate_search *x)
{
    double effort = UTIL_MIN(x->o->budget.effort, 100);
    relax_task job = {.goal_ns = INT64_MAX / 4,
                      .cases = 1,
                      .rounds = 2 + (int32_t)(RATE_BOUND_ROUNDS * effort),
                      .plans = true,
                      .threads = x->o->budget.threads,
                      .stop = x->stop};
    if (util_stopped(&x->end) && !x->o->certificate_path) /* loads alone are a bound */
        return 0;
    if (x->o->budget.time_limit_s > 0)
        job.stop = util_stop_within(&x->stop, BOUND_SHARE * x->o->budget.time_limit_s);
    if (!has_time(x, &job.stop))
        return 0;
    int rc = rate_least_relax(&x->relaxed, x->p, &job);
    if (rc == MOIRAI_ELIMIT) { /* too many resources for its master */
        relax_answer_clear(&x->relaxed);
        rc = 0;
    }
    return rc;
}

/* Prices of the bound as weights. */
static int take_weights(rate_search *x)
{
    const relax_proof *proof = &x->relaxed.proof;
    int64_t most = 0;
    for (int32_t r = 0; proof->n_leaves > 0 && r < x->v.n_resources; r++)
        most = UTIL_MAX(most, proof->leaf[0].price[r]);
    if (most == 0)
        return 0;
    x->weight = util_alloc((size_t)x->v.n_resources, sizeof *x->weight);
    x->eased = util_alloc((size_t)x->v.n_resources, sizeof *x->eased);
    for (int32_t r = 0; x->weight && x->eased && r < x->v.n_resources; r++) {
        x->weight[r] = fmax((double)proof->leaf[0].price[r] / (double)most, LEAST_WEIGHT);
        x->eased[r] = r < x->v.K ? x->weight[r] : EASE;
    }
    return x->weight && x->eased ? 0 : MOIRAI_EFAIL;
}

/* What holds for plans of one copy alone: an operator on which many transfers hang is on one device then, which are cases. */
static int find_bound_of_one(rate_search *x)
{
    double effort = UTIL_MIN(x->o->budget.effort, 100);
    relax_answer answer = {0};
    relax_task job = {.goal_ns = INT64_MAX / 4,
                      .cases = ONE_COPY_CASES,
                      .rounds = 2 + (int32_t)(RATE_BOUND_ROUNDS / 2 * effort),
                      .one_copy = true,
                      .threads = x->o->budget.threads,
                      .stop = x->stop};
    if (x->o->copies != 1 || x->v.n_packets == 0 || util_stopped(&x->end))
        return 0;
    if (x->o->budget.time_limit_s > 0)
        job.stop = util_stop_within(&x->stop, BOUND_SHARE / 2 * x->o->budget.time_limit_s);
    if (!has_time(x, &job.stop))
        return 0;
    int rc = rate_least_relax(&answer, x->p, &job);
    x->one_copy_ns = rc ? 0 : answer.lower_ns;
    relax_answer_clear(&answer);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

void rate_set_bound(rate_search *x)
{
    int64_t latency = UTIL_MAX(x->latency->lower_bound_ns, 0), turns = (latency + x->in_flight - 1) / x->in_flight;
    x->bound_ns = UTIL_MAX(UTIL_MAX(UTIL_MAX(x->relaxed.lower_ns, x->one_copy_ns), moirai_bound_load(x->p)), turns);
}

/* The relaxation knows nothing of groups and shared weights: its devices are mended. */
static int add_relaxed(rate_search *x)
{
    int32_t *device = util_alloc((size_t)x->p->n_ops, sizeof *device);
    int rc = device ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < x->relaxed.n_choices && !rc; i++) {
        for (int32_t op = 0; op < x->p->n_ops; op++)
            device[op] = x->relaxed.choice[i].device[op];
        for (int32_t op = 0; op < x->p->n_ops; op++) /* the first of a group decides, where all of it may go there */
            device[op] = device[x->units->op[x->units->off[x->units->of_op[op]]]];
        int fit = place_fit_assignment(x->p, x->units, x->p->device_memory_bytes, device);
        if (!fit)
            rc = rate_search_add_devices(x, "relaxed", device);
        else if (fit != MOIRAI_EINFEASIBLE)
            rc = fit;
    }
    free(device);
    return rc;
}

static int add_latency(rate_search *x, bool alone)
{
    rate_candidate *c;
    int rc = rate_candidate_of(&c, x->p, "latency", x->latency->op_device);
    if (rc)
        return rc;
    c->alone = alone;
    rc = moirai_plan_copy(&c->plan, x->latency);
    if (rc) {
        rate_candidate_free(c);
        return rc;
    }
    return rate_search_add(x, c);
}

int rate_search_open(rate_search *x)
{
    const moirai_problem *p = x->p;
    x->begun = util_seconds();
    rate_search_reserve(x);
    x->seed = x->o->budget.seed * UINT64_C(0x9e3779b97f4a7c15);
    x->all_devices = p->n_devices == 64 ? UINT64_MAX : (UINT64_C(1) << p->n_devices) - 1;
    int rc = relax_view_open(&x->v, p, 100);
    rc = rc ? rc : moirai_problem_check_memory(p);
    rc = rc ? rc : place_units_new(&x->units, p);
    rc = rc ? rc : find_latency(x);
    rc = rc ? rc : rate_search_time_streams(x);
    rc = rc ? rc : find_bound(x);
    rc = rc ? rc : take_weights(x);
    rc = rc ? rc : find_bound_of_one(x);
    if (rc)
        return rc;
    rate_set_bound(x);
    rc = add_latency(x, true);
    rc = rc ? rc : rate_search_judge(x);
    rc = rc ? rc : add_latency(x, false);
    if (x->in_flight == 1 || (x->best && util_stopped(&x->end))) /* nobody would simulate them */
        return rc;
    rc = rc ? rc : rate_add_stages(x);
    rc = rc ? rc : add_relaxed(x);
    if (!rc && x->o->copies != 1 && !x->o->kind)
        rc = rate_least_new(&x->columns.least, &x->v, x->units->of_op, x->units->n, &x->stop);
    return rc;
}
