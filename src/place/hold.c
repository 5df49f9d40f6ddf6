/* Plans where transfers hold their devices.
 *
 * A transfer that holds the two devices also holds a send port and a receive port that belong to them alone: whatever is proven with
 * congestion port holds here, and a plan for ports says where operators belong. So the placer plans for ports, and its devices are carried
 * out by the rules that hold here, in its own order and in the simulator's. Ports let sending be free beside computing,
 * so that such devices send too much: units then move, at random, to devices of their neighbours, or to any, and what is faster stays. */
#include <stdlib.h>
#include <string.h>

#include "place/moves.h"
#include "place/placers.h"
#include "schedule/plan.h"
#include "schedule/plan_order.h"
#include "schedule/sim.h"
#include "util/stop.h"
#include "util/util.h"

#define TRIES 4000      /* moves, times the effort, and */
#define TRIES_PER_OP 20 /* more for every operator */
#define PLAN_SHARE 0.6  /* of the time limit, for the plan with ports */
#define STOP_EVERY 16
#define QUICK_S 1e-3 /* a try that takes longer looks at the clock every time */
#define ANSWER_S 0.1 /* a try that takes longer is not made once more after an interrupt */
#define TRIES_KEPT 3 /* times what a try takes, kept of the time: the plan is made from the best of them, and checked */

typedef struct climb {
    const moirai_problem *p;
    moirai_sim *sim;
    place_units *units;
    place_moves moves;
    int32_t *device, *tried;
    int64_t best_ns; /* of `device`, dispatched; MOIRAI_UNKNOWN where that does not fit */
    double try_s;    /* what that takes */
} climb;

static int64_t judge(climb *x, const int32_t *device)
{
    int64_t ns = moirai_sim_dispatch(x->sim, device, NULL);
    return ns >= 0 && moirai_sim_memory_excess(x->sim, NULL) == 0 ? ns : MOIRAI_UNKNOWN;
}

static void improve(climb *x, const moirai_budget *budget, const util_stop *until, int64_t lower_ns)
{
    util_stop stop = *until;
    if (stop.deadline > 0)
        stop.deadline -= TRIES_KEPT * x->try_s;
    size_t bytes = sizeof *x->device * (size_t)x->p->n_ops;
    int64_t tries = (int64_t)UTIL_MIN(budget->effort * (TRIES + (double)TRIES_PER_OP * x->p->n_ops), 1e12);
    if (x->p->n_ops == 0 || x->p->n_devices == 1)
        return;
    for (int64_t i = 0; i < tries && (x->best_ns == MOIRAI_UNKNOWN || x->best_ns > lower_ns); i++) {
        if ((i % STOP_EVERY == 0 || x->try_s > QUICK_S) && util_stopped(&stop))
            return;
        memcpy(x->tried, x->device, bytes);
        place_move(&x->moves, x->tried);
        int64_t ns = judge(x, x->tried);
        if (ns == MOIRAI_UNKNOWN || (x->best_ns != MOIRAI_UNKNOWN && ns > x->best_ns))
            continue; /* equal ones are taken: the search drifts over plateaus */
        x->best_ns = ns;
        memcpy(x->device, x->tried, bytes);
    }
}

/* ---- the door ---- */

/* What the climb needs, beginning from the port plan's devices. */
static int open_climb(climb *x, const moirai_plan *ports, uint64_t seed)
{
    size_t n = (size_t)x->p->n_ops;
    int rc = moirai_sim_new(&x->sim, x->p);
    rc = rc ? rc : place_units_new(&x->units, x->p);
    x->device = util_alloc(n, sizeof *x->device);
    x->tried = util_alloc(n, sizeof *x->tried);
    if (rc || !x->device || !x->tried)
        return rc ? rc : MOIRAI_EFAIL;
    if (n > 0)
        memcpy(x->device, ports->op_device, n * sizeof *x->device);
    x->moves = (place_moves){.p = x->p, .units = x->units};
    util_rng_seed(&x->moves.rng, seed);
    return 0;
}

/* The best of: the port plan's own order, its devices as the simulator takes them, and what the climb came to. */
static int carry_out(moirai_plan **out, climb *x, const moirai_plan *ports, const moirai_budget *budget,
                     const util_stop *stop)
{
    moirai_plan *own = NULL;
    int rc = schedule_plan_tighten(&own, x->p, ports, stop->interrupt);
    if (rc)
        return rc;
    if (x->p->memory == MOIRAI_MEMORY_PEAK && moirai_plan_check(x->p, own, NULL, NULL)) {
        moirai_plan_free(own); /* by peak memory alone: the times are the simulator's */
        own = NULL;
    }
    if (own && util_stopped(stop)) { /* a million operators take long to dispatch */
        *out = own;
        return 0;
    }
    rc = open_climb(x, ports, budget->seed);
    if (rc) {
        moirai_plan_free(own);
        return rc;
    }
    double begun = util_seconds();
    schedule_sim_obey(x->sim, own ? stop : NULL); /* without any plan the first try is made to its end */
    x->best_ns = judge(x, x->device);
    x->try_s = util_seconds() - begun;
    improve(x, budget, stop, ports->lower_bound_ns);
    bool late = x->try_s > ANSWER_S && util_stopped(stop);
    if (own && (late || x->best_ns == MOIRAI_UNKNOWN || own->makespan_ns <= x->best_ns)) {
        *out = own;
        return 0;
    }
    moirai_plan_free(own);
    schedule_sim_obey(x->sim, NULL);
    return place_fit_plan(out, x->sim, x->p, x->units, x->device, NULL, NULL, 0, stop);
}

int place_holding_devices(moirai_plan **out, const moirai_problem *p, const moirai_placer *placer,
                          const moirai_place_options *o)
{
    moirai_problem ports = *p;
    moirai_place_options some = *o;
    moirai_plan *plan = NULL;
    climb x = {.p = p};
    util_stop stop = util_stop_of(&o->budget);
    if (o->certificate_path)
        return moirai_error(MOIRAI_EUSAGE, "congestion device: certificates are of periods alone (--objective rate)");
    ports.congestion = MOIRAI_CONGESTION_PORT;
    some.budget.time_limit_s *= PLAN_SHARE;
    int rc = placer->place(&plan, &ports, &some);
    bool alone = placer == &place_single;                                  /* and stays so */
    if (!rc && plan->n_transfers == 0 && (alone || util_stopped(&stop))) { /* it holds no device but to compute */
        *out = plan;
        return 0;
    }
    rc = rc ? rc : carry_out(out, &x, plan, &o->budget, &stop);
    if (!rc) {
        (*out)->lower_bound_ns = plan->lower_bound_ns;
        rc = schedule_plan_keep_origin(*out, plan);
    }
    free(x.device);
    free(x.tried);
    place_units_free(x.units);
    moirai_sim_free(x.sim);
    moirai_plan_free(plan);
    return rc;
}
