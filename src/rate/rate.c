/* The door: options, the search, and the winner as a plan. */
#include <moirai/rate.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rate/search.h"
#include "schedule/plan.h"
#include "util/util.h"

#define USUAL_PER_DEVICE 2
#define CURVE_MOST 12

void moirai_rate_options_init(moirai_rate_options *o)
{
    *o = (moirai_rate_options){.gap = 0.01};
    moirai_budget_init(&o->budget);
}

const char *moirai_rate_letters(void)
{
    return "l latency plan, s stages, r relaxation or replicas, a annealing, p moves that the simulator judges, g "
           "groups, m mixture";
}

int rate_check_devices(const moirai_problem *p)
{
    if (p->n_devices <= MOIRAI_MASK_DEVICES)
        return 0;
    return moirai_error(MOIRAI_EUSAGE, "rates are of up to %d devices, '%.200s' has %d", MOIRAI_MASK_DEVICES, p->name,
                        p->n_devices);
}

static int check_options(const moirai_problem *p, const moirai_rate_options *o)
{
    int rc = rate_check_devices(p);
    if (rc)
        return rc;
    if (o->in_flight < 0 || o->in_flight > MOIRAI_MOST_IN_FLIGHT)
        return moirai_error(MOIRAI_EUSAGE, "%d requests in flight, expected 1 .. %d, or 0 for twice the devices",
                            o->in_flight, MOIRAI_MOST_IN_FLIGHT);
    if (o->latency_limit_ns < 0)
        return moirai_error(MOIRAI_EUSAGE, "a limit of latency of %lld ns: it can't be negative",
                            (long long)o->latency_limit_ns);
    if (o->copies < 0)
        return moirai_error(MOIRAI_EUSAGE, "%d copies, expected 1 or more, or 0 for any number", o->copies);
    if (o->kind && strcmp(o->kind, "latency") && strcmp(o->kind, "stages") && strcmp(o->kind, "replicas") &&
        strcmp(o->kind, "loads"))
        return moirai_error(MOIRAI_EUSAGE, "plans of kind '%s': expected latency, stages, replicas or loads", o->kind);
    if (!(o->gap >= 0 && o->gap <= 1))
        return moirai_error(MOIRAI_EUSAGE, "gap %g, expected 0 .. 1", o->gap);
    return moirai_budget_check(&o->budget);
}

static int nothing_found(const rate_search *x)
{
    if (x->o->kind)
        return moirai_error(MOIRAI_EINFEASIBLE, "no plan of '%s' of kind '%s' was found that fits%s", x->p->name,
                            x->o->kind, x->o->latency_limit_ns > 0 ? " and keeps the limit of latency" : "");
    return moirai_error(
        MOIRAI_EINFEASIBLE,
        "no plan of '%s' was found that keeps a latency of %.6g ms: one request alone takes %.6g ms, and "
        "%.6g ms are proven to be the least",
        x->p->name, (double)x->o->latency_limit_ns / 1e6, (double)x->latency->makespan_ns / 1e6,
        (double)UTIL_MAX(x->latency->lower_bound_ns, 0) / 1e6);
}

/* Shares in parts of a million: those that turns go by, or, with slots, as they came out; the rest of rounding is the first copy's. */
static void set_copies(moirai_rate *r, const rate_candidate *c, int32_t n_ops)
{
    int64_t left = 1000000, all = 0;
    const int64_t *part_of = c->slots[0] > 0 ? c->outcome.of_copy : c->share;
    for (int32_t i = 0; i < c->n_copies; i++)
        all += part_of[i];
    for (int32_t i = 0; i < c->n_copies; i++) {
        __int128 part = (__int128)part_of[i] * 1000000 / UTIL_MAX(all, 1);
        r->copy[i].share_ppm = (int64_t)part;
        r->copy[i].slots = c->slots[i];
        left -= (int64_t)part;
        memcpy(r->copy[i].op_device, c->device[i], sizeof *r->copy[i].op_device * (size_t)n_ops);
    }
    r->copy[0].share_ppm += left;
}

static int write_down(moirai_plan **out, const rate_search *x, moirai_rate_figures *figures)
{
    const rate_candidate *c = x->best;
    moirai_plan *plan = NULL;
    int rc = moirai_plan_copy(&plan, c->plan);
    if (rc)
        return rc;
    free(plan->placer);
    free(plan->problem);
    plan->placer = util_strdup("rate");
    plan->problem = util_strdup(x->p->name);
    plan->rate = schedule_rate_new(c->n_copies, x->p->n_ops);
    if (!plan->placer || !plan->problem || !plan->rate) {
        moirai_plan_free(plan);
        return MOIRAI_EFAIL;
    }
    plan->seed = x->o->budget.seed;
    plan->lower_bound_ns = x->latency->lower_bound_ns;
    plan->certified_bound_ns = MOIRAI_UNKNOWN;
    plan->uncertified = 0;
    plan->generation_ns = (int64_t)((util_seconds() - x->begun) * 1e9);
    plan->rate->in_flight = c->in_flight;
    plan->rate->pace = c->pace;
    plan->rate->period_ns = c->outcome.period_ns;
    plan->rate->period_bound_ns = UTIL_MIN(x->bound_ns, c->outcome.period_ns);
    plan->rate->period_certified_ns = UTIL_MIN(x->certified_ns, plan->rate->period_bound_ns);
    plan->rate->alone_ns = x->latency->makespan_ns;
    plan->rate->latency_ns = c->outcome.latency_ns;
    set_copies(plan->rate, c, x->p->n_ops);
    if (moirai_plan_check(x->p, plan, NULL, NULL) || rate_check_written(x->p, plan, c, figures)) {
        moirai_plan_free(plan);
        return moirai_error_prefix(MOIRAI_EFAIL, "the search for the best rate made a wrong plan of '%s'", x->p->name);
    }
    *out = plan;
    return 0;
}

static int take(moirai_plan **out, const rate_search *x, moirai_rate_figures *figures)
{
    return x->best ? write_down(out, x, figures) : nothing_found(x);
}

#define CERTIFY_SHARE 0.15 /* of the time, for a certificate that is written and verified */
#define CURVE_SHARE 0.3    /* of the rest, for the plans of fewer requests */

/* When the search must be over that began now: `whole` is the end of the budget. */
static util_stop search_end(const util_stop *whole, const moirai_rate_options *o, bool curve)
{
    double part = (o->certificate_path ? 1 - CERTIFY_SHARE : 1) * (curve ? 1 - CURVE_SHARE : 1);
    return util_stop_part(whole, part);
}

static int32_t in_flight_of(const moirai_rate_options *o, const moirai_problem *p)
{
    return o->in_flight > 0 ? o->in_flight : USUAL_PER_DEVICE * p->n_devices;
}

int moirai_rate_place(moirai_plan **out, const moirai_problem *p, const moirai_rate_options *options)
{
    moirai_rate_options defaults;
    moirai_rate_options_init(&defaults);
    rate_search x = {.p = p, .o = options ? options : &defaults, .certified_ns = MOIRAI_UNKNOWN};
    *out = NULL;
    int rc = check_options(p, x.o);
    if (rc)
        return rc;
    util_stop whole = util_stop_of(&x.o->budget);
    x.in_flight = in_flight_of(x.o, p);
    x.end = search_end(&whole, x.o, false);
    rc = rate_search_open(&x);
    rc = rc ? rc : rate_search_run(&x);
    rc = rc ? rc : rate_certify(&x);
    rc = rc ? rc : take(out, &x, x.o->figures);
    rate_search_close(&x);
    return rc;
}

/* What serves fewer requests in flight serves more as well: where it is faster it takes the plan's place, with the bound for more. */
static int no_slower(moirai_plan **plan, const moirai_plan *fewer)
{
    moirai_plan *copy;
    if ((*plan)->rate->period_ns <= fewer->rate->period_ns)
        return 0;
    int rc = moirai_plan_copy(&copy, fewer);
    if (rc)
        return rc;
    copy->rate->period_bound_ns = (*plan)->rate->period_bound_ns;
    copy->rate->period_certified_ns = (*plan)->rate->period_certified_ns;
    moirai_plan_free(*plan);
    *plan = copy;
    return 0;
}

int moirai_rate_curve(moirai_plan **out, int *n, const moirai_problem *p, const moirai_rate_options *options)
{
    moirai_rate_options defaults;
    moirai_rate_options_init(&defaults);
    rate_search x = {.p = p, .o = options ? options : &defaults, .certified_ns = MOIRAI_UNKNOWN};
    int32_t flights[CURVE_MOST], most;
    *n = 0;
    int rc = check_options(p, x.o);
    if (rc)
        return rc;
    most = x.in_flight = in_flight_of(x.o, p);
    for (int32_t f = 1; f < most; f *= 2)
        flights[(*n)++] = f;
    flights[(*n)++] = most;
    for (int i = 0; i < *n; i++)
        out[i] = NULL;
    util_stop whole = util_stop_of(&x.o->budget);
    x.end = search_end(&whole, x.o, *n > 1);
    rc = rate_search_open(&x);
    rc = rc ? rc : rate_search_run(&x);
    rc = rc ? rc : rate_certify(&x);
    moirai_rate_figures figures[CURVE_MOST] = {0};
    for (int i = *n - 1; i >= 0 && !rc; i--) {
        x.end = util_stop_part(&whole, 1.0 / (i + 1));
        if (i < *n - 1)
            rc = rate_search_again(&x, flights[i]);
        rc = rc ? rc : take(&out[i], &x, &figures[i]);
    }
    int last = 0; /* whose plan the last one is */
    for (int i = 1; i < *n && !rc; i++) {
        last = out[i]->rate->period_ns <= out[i - 1]->rate->period_ns ? i : last;
        rc = no_slower(&out[i], out[i - 1]);
    }
    for (int i = 0; i < *n; i++)
        if (!rc && x.o->figures && i == last)
            *x.o->figures = figures[i];
        else
            moirai_rate_figures_clear(&figures[i]);
    for (int i = 0; i < *n && rc; i++) {
        moirai_plan_free(out[i]);
        out[i] = NULL;
    }
    rate_search_close(&x);
    return rc;
}

int moirai_rate_bound(int64_t *bound_ns, const moirai_problem *p, int32_t in_flight, int64_t latency_bound_ns,
                      const moirai_budget *budget)
{
    double effort = UTIL_MIN(budget->effort, 100);
    *bound_ns = 0;
    if (in_flight < 1 || in_flight > MOIRAI_MOST_IN_FLIGHT)
        return moirai_error(MOIRAI_EUSAGE, "%d requests in flight, expected 1 .. %d", in_flight, MOIRAI_MOST_IN_FLIGHT);
    int rc = moirai_budget_check(budget);
    relax_answer answer = {0};
    relax_task job = {.goal_ns = INT64_MAX / 4,
                      .cases = 1,
                      .rounds = 2 + (int32_t)(RATE_BOUND_ROUNDS * effort),
                      .threads = budget->threads,
                      .stop = util_stop_of(budget)};
    rc = rc ? rc : rate_least_relax(&answer, p, &job);
    if (!rc || rc == MOIRAI_ELIMIT) { /* of too many resources the loads alone */
        int64_t turns = (UTIL_MAX(latency_bound_ns, 0) + in_flight - 1) / in_flight;
        *bound_ns = UTIL_MAX(UTIL_MAX(answer.lower_ns, moirai_bound_load(p)), turns);
        rc = 0;
    }
    relax_answer_clear(&answer);
    return rc;
}
