/* Running a placer: settings in, a checked plan out. Nothing leaves here that moirai_plan_check has not seen. */
#include "bound/bounds.h"
#include "place/placers.h"
#include "problem/problem_write.h"
#include <moirai/prove.h>

#include "schedule/plan.h"
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void moirai_place_options_init(moirai_place_options *o)
{
    *o = (moirai_place_options){.gap = 0.01};
    moirai_budget_init(&o->budget);
}

static int unknown_placer(const char *name)
{
    char known[256] = "";
    size_t length = 0;
    for (int i = 0; i < moirai_placer_count() && length < sizeof known; i++)
        length +=
            (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "", moirai_placer_at(i)->name);
    return moirai_error(MOIRAI_EUSAGE, "no placer '%s'; there are %s", name, known);
}

static int check_options(const moirai_placer *placer, const moirai_place_options *o)
{
    const char *why = "";
    if (placer->available && !placer->available(&why))
        return moirai_error(MOIRAI_EFAIL, "placer '%s' is not available: %s", placer->name, why);
    if (!(o->gap >= 0))
        return moirai_error(MOIRAI_EUSAGE, "gap %g: may not be negative", o->gap);
    int rc = moirai_budget_check(&o->budget);
    if (o->certificate_path && !placer->certifies)
        return moirai_error(MOIRAI_EUSAGE, "placer '%s' writes no certificate; placer 'moirai' does", placer->name);
    for (int i = 0; i < o->n_settings && !rc; i++)
        rc = place_check_setting(placer, &o->setting[i]);
    return rc;
}

/* A bound and whose it is; one that is no higher than what is known is passed over. */
static int take_bound(void *data, int64_t bound_ns, const char *who)
{
    moirai_plan *plan = data;
    if (bound_ns <= plan->lower_bound_ns)
        return 0;
    plan->lower_bound_ns = bound_ns;
    return schedule_origin_bound_by(&plan->origin, who);
}

static int sign(moirai_plan *plan, const moirai_problem *p, const moirai_placer *placer, const moirai_place_options *o)
{
    char *problem = util_strdup(p->name), *name = util_strdup(placer->name);
    if (!problem || !name) {
        free(problem);
        free(name);
        return MOIRAI_EFAIL;
    }
    free(plan->problem);
    free(plan->placer);
    plan->problem = problem;
    plan->placer = name;
    plan->seed = o->budget.seed;
    if (placer->bounds)
        return 0;
    schedule_origin_clear(&plan->origin);
    int rc = plan->lower_bound_ns >= 0 ? schedule_origin_bound_by(&plan->origin, placer->name) : 0;
    return rc ? rc : bound_each_plain(p, &o->budget, take_bound, plan);
}

/* ---- the certificate ---- */

#define VERIFY_KEPT 0.08  /* of the time limit, for the verifier; and */
#define VERIFY_SHARE 0.03 /* of it even where the search was late */
#define WRITE_SHARE 0.08  /* of the time limit, to write the verifier's problem */
#define VERIFY_READS 5    /* times what that took, kept for the verifier: it reads it */
#define SEARCH_LEAST 0.25 /* of the time limit is the search's all the same */
#define ANSWER_S 0.2      /* for the verifier after an interrupt */

/* What the verifier is given: the problem as text, NULL where that takes too long, and how long it took. */
typedef struct verifying {
    moirai_prove_file problem;
    double write_s, begun;
} verifying;

/* What certificates have no proof for, of this problem. */
static uint32_t uncertified(const moirai_problem *p)
{
    uint32_t bits = MOIRAI_UNCERTIFIED_SEARCH;
    int64_t bytes = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        bytes += p->op_memory_bytes[i];
    for (int32_t k = 0; k < p->n_devices; k++)
        if (bytes > p->device_memory_bytes[k])
            bits |= MOIRAI_UNCERTIFIED_MEMORY;
    bits |= p->n_groups ? MOIRAI_UNCERTIFIED_GROUPS : 0;
    bits |= p->n_weights ? MOIRAI_UNCERTIFIED_WEIGHTS : 0;
    return bits | (p->memory == MOIRAI_MEMORY_PEAK ? MOIRAI_UNCERTIFIED_PEAK : 0);
}

/* The problem as text, before the search: under a time limit how long that takes tells how much to leave for reading it. */
static int write_problem(verifying *v, double *search_s, const moirai_problem *p, const moirai_place_options *o)
{
    double limit_s = o->budget.time_limit_s, begun = util_seconds();
    char *text = NULL;
    util_stop stop = util_stop_of(&o->budget);
    if (limit_s > 0)
        stop = util_stop_within(&stop, WRITE_SHARE * limit_s);
    int rc = problem_text_within(&text, &v->problem.length, p, &stop);
    v->problem.label = p->name;
    v->problem.text = text;
    v->write_s = util_seconds() - begun;
    double rest_s = (1 - VERIFY_KEPT) * limit_s - (VERIFY_READS + 1) * v->write_s;
    *search_s = limit_s > 0 ? UTIL_MAX(SEARCH_LEAST * limit_s, text ? rest_s : limit_s - v->write_s) : 0;
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

/* The time that is left to the verifier; false: not enough to read the problem. */
static bool verifier_budget(moirai_budget *budget, const verifying *v, const moirai_place_options *o)
{
    double limit_s = o->budget.time_limit_s;
    *budget = o->budget;
    if (limit_s > 0)
        budget->time_limit_s = UTIL_MAX(limit_s - (util_seconds() - v->begun), VERIFY_SHARE * limit_s);
    if (moirai_interrupt_raised(budget->interrupt)) { /* of which nobody waits for the end of a long proof */
        budget->interrupt = NULL;
        budget->time_limit_s = limit_s > 0 ? UTIL_MIN(budget->time_limit_s, ANSWER_S) : ANSWER_S;
    }
    return v->problem.text && (budget->time_limit_s <= 0 || v->write_s < budget->time_limit_s);
}

/* The number that goes into the plan is the verifier's, from the file as it was written. */
static int verify(moirai_plan *plan, const moirai_problem *p, verifying *v, const moirai_place_options *o)
{
    char *certificate = NULL;
    moirai_proof proof = {0};
    moirai_prove_file file = {.label = o->certificate_path};
    moirai_budget budget;
    plan->certified_bound_ns = 0;
    plan->uncertified = MOIRAI_UNCERTIFIED_LIMIT;
    if (!verifier_budget(&budget, v, o))
        return 0;
    int rc = util_file_read(&certificate, &file.length, o->certificate_path);
    if (!rc) {
        file.text = certificate;
        int verdict = moirai_prove_text(&proof, &v->problem, &file, &budget);
        plan->certified_bound_ns = verdict ? 0 : UTIL_MIN(proof.proven_ns, plan->makespan_ns);
        if (!verdict && proof.proven_ns > plan->makespan_ns)
            rc = moirai_error(MOIRAI_EFAIL, "%s proves %lld ns, but there is a plan of %lld", o->certificate_path,
                              (long long)proof.proven_ns, (long long)plan->makespan_ns);
        rc = rc ? rc : take_bound(plan, plan->certified_bound_ns, "certificate");
        plan->uncertified = verdict == MOIRAI_ELIMIT                          ? MOIRAI_UNCERTIFIED_LIMIT
                            : verdict                                         ? MOIRAI_UNCERTIFIED_REJECTED
                            : plan->certified_bound_ns < plan->lower_bound_ns ? uncertified(p)
                                                                              : 0;
    }
    free(certificate);
    return rc;
}

int moirai_place(moirai_plan **out, const moirai_problem *p, const char *name, const moirai_place_options *options)
{
    *out = NULL;
    moirai_place_options defaults;
    moirai_place_options_init(&defaults);
    const moirai_place_options *o = options ? options : &defaults;
    const moirai_placer *placer = moirai_placer_find(name);
    if (!placer)
        return unknown_placer(name);
    int rc = check_options(placer, o);
    if (!rc && placer->few_devices && p->n_devices > MOIRAI_MASK_DEVICES)
        rc = moirai_error(MOIRAI_EUSAGE, "placer '%s' takes up to %d devices, '%s' has %d; placer 'moirai' takes them",
                          placer->name, MOIRAI_MASK_DEVICES, p->name, p->n_devices);
    if (rc)
        return rc;
    moirai_plan *plan = NULL;
    verifying v = {.begun = util_seconds()};
    moirai_place_options some = *o;
    bool verified = o->certificate_path && strcmp(o->certificate_path, "-");
    if (verified)
        rc = write_problem(&v, &some.budget.time_limit_s, p, o);
    rc = rc                                          ? rc
         : p->congestion == MOIRAI_CONGESTION_DEVICE ? place_holding_devices(&plan, p, placer, &some)
                                                     : placer->place(&plan, p, &some);
    if (!rc && verified)
        rc = verify(plan, p, &v, o);
    free((char *)v.problem.text);
    double seconds = util_seconds() - v.begun;
    if (rc) {
        moirai_plan_free(plan);
        return moirai_error_prefix(rc, "%s", placer->name);
    }
    plan->generation_ns = (int64_t)(seconds * 1e9);
    rc = sign(plan, p, placer, o);
    if (!rc && moirai_plan_check(p, plan, NULL, NULL))
        rc = moirai_error_prefix(MOIRAI_EFAIL, "placer '%s' made a wrong plan of '%s'", placer->name, p->name);
    if (rc) {
        moirai_plan_free(plan);
        return rc;
    }
    *out = plan;
    return 0;
}
