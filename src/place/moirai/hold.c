/* Plans where transfers hold their devices.
 *
 * A transfer that holds the two devices also holds a send port and a receive port that belong to them alone: whatever is proven with
 * congestion port holds here, and a plan for ports says where operators belong. So the placer plans for ports, and its devices are carried
 * out by the rules that hold here, in its own order and in the simulator's. Ports let sending be free beside computing,
 * so that such devices send too much: annealing of the whole, which knows what transfers hold, makes up for that. */
#include "place/fit.h"
#include "place/moirai/whole/whole_anneal.h"
#include "place/placers.h"
#include "schedule/plan.h"
#include "schedule/plan_order.h"
#include "schedule/sim.h"
#include "util/stop.h"
#include "util/util.h"

#define PLAN_SHARE 0.6     /* of the time limit, for the plan with ports */
#define EVALUATIONS 40000  /* of annealing, times the effort, and */
#define EVALUATIONS_OP 300 /* more for every operator */
#define MOST_EVALUATIONS 1e12
#define SIMULATIONS_KEPT 16 /* of the time: annealing ends with a dozen, and the plan is checked */

/* The shorter of the port plan in its own order and of its devices as the simulator takes them; on other devices only
 * where neither fits the memory. *simulation_s: what a simulation takes. */
static int carry_out(moirai_plan **out, double *simulation_s, const moirai_problem *p, const moirai_plan *ports,
                     const util_stop *stop)
{
    moirai_sim *sim = NULL;
    int rc = schedule_plan_tighten(out, p, ports, stop->interrupt);
    if (!rc && p->memory == MOIRAI_MEMORY_PEAK && moirai_plan_check(p, *out, NULL, NULL)) {
        moirai_plan_free(*out); /* by peak memory alone: the times are the simulator's */
        *out = NULL;
    }
    if (rc || (*out && util_stopped(stop))) /* a million operators take long to dispatch */
        return rc;
    rc = moirai_sim_new(&sim, p);
    if (!rc) {
        double begun = util_seconds();
        schedule_sim_obey(sim, *out ? stop : NULL); /* without any plan the first simulation is made to its end */
        rc = schedule_sim_take_better(out, sim, moirai_sim_dispatch(sim, ports->op_device, NULL));
        *simulation_s = util_seconds() - begun;
    }
    moirai_sim_free(sim);
    return rc || *out ? rc : place_fit_devices(out, p, ports->op_device, stop);
}

static int improve(moirai_plan **plan, const moirai_problem *p, const moirai_budget *budget, double simulation_s,
                   const util_stop *stop)
{
    double evaluations = budget->effort * (EVALUATIONS + (double)EVALUATIONS_OP * p->n_ops);
    place_whole_task job = {.evaluations = (int64_t)UTIL_MIN(evaluations, MOST_EVALUATIONS),
                            .seed = budget->seed,
                            .threads = budget->threads,
                            .stop = *stop};
    if (job.stop.deadline > 0)
        job.stop.deadline -= SIMULATIONS_KEPT * simulation_s;
    bool much = p->n_ops >= PLACE_FIT_LARGE || !place_whole_fits(p);
    return p->n_devices == 1 || much || util_stopped(&job.stop) ? 0 : place_whole_anneal(plan, p, &job);
}

int place_holding_devices(moirai_plan **out, const moirai_problem *p, const moirai_placer *placer,
                          const moirai_place_options *o)
{
    moirai_problem ports = *p;
    moirai_place_options some = *o;
    moirai_plan *plan = NULL;
    double simulation_s = 0;
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
    rc = rc ? rc : carry_out(out, &simulation_s, p, plan, &stop);
    if (!rc && (*out)->makespan_ns > plan->lower_bound_ns)
        rc = improve(out, p, &o->budget, simulation_s, &stop);
    if (!rc) {
        (*out)->lower_bound_ns = plan->lower_bound_ns;
        rc = schedule_plan_keep_origin(*out, plan);
    }
    moirai_plan_free(plan);
    return rc;
}
