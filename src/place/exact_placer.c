/* exact: the placer around the exact search.
 *
 * The quick placers of the registry give the first plans; the best of them is what the search
 * has to beat, which ends with the optimum and its proof, or at a limit with the best plan and a proven bound. A problem
 * too large for the search's tables gets the best quick plan and plain bounds. */
#include "exact/exact_search.h"
#include "place/placers.h"
#include "place/starts.h"

#include <stdio.h>
#include <string.h>

#define WORK_PER_EFFORT 5e8 /* tasks * devices * nodes: about a minute */

static const moirai_param params[] = {
    {.name = "node-limit",
     .kind = MOIRAI_PARAM_INT,
     .help = "stop after this many nodes; 0: as effort and time limit say",
     .value = 0,
     .least = 0,
     .most = 1e15},
};

typedef struct first_plans {
    moirai_plan *best;
    double begun_s;
    place_starts_task starts;
    const moirai_place_options *o;
} first_plans;

static void tell(first_plans *f, char letter)
{
    if (!f->o->budget.progress)
        return;
    moirai_progress news = {
        util_seconds() - f->begun_s, letter, f->best ? f->best->makespan_ns : MOIRAI_UNKNOWN, MOIRAI_UNKNOWN, 0, NULL};
    f->o->budget.progress(f->o->budget.progress_data, &news);
}

static int take_start(void *data, moirai_plan *plan, char letter)
{
    first_plans *f = data;
    if (f->best && plan->makespan_ns >= f->best->makespan_ns) {
        moirai_plan_free(plan);
        return 0;
    }
    moirai_plan_free(f->best);
    f->best = plan;
    tell(f, letter);
    return 0;
}

/* A budget of work in nodes: an effort below 1, or no time limit, bounds it; otherwise time alone does. */
static int64_t node_limit(const moirai_problem *p, const moirai_place_options *o)
{
    double given = moirai_setting_real(o, &place_exact, "node-limit");
    if (given > 0)
        return (int64_t)given;
    if (o->budget.time_limit_s > 0 && o->budget.effort >= 1)
        return 0;
    double size = ((double)p->n_ops + p->n_edges + 1) * p->n_devices,
           share = o->budget.effort < 1 ? o->budget.effort * o->budget.effort * o->budget.effort : o->budget.effort;
    return (int64_t)UTIL_MAX(16.0, WORK_PER_EFFORT * share / size);
}

static int search(moirai_plan **out, const moirai_problem *p, first_plans *f)
{
    const moirai_place_options *o = f->o;
    exact_options options;
    exact_result r;
    exact_options_init(&options);
    options.start = f->best;
    options.node_limit = node_limit(p, o);
    options.stop = *f->starts.stop;
    options.progress = o->budget.progress;
    options.progress_data = o->budget.progress_data;
    int rc = exact_solve(p, &options, &r);
    if (rc)
        return rc;
    if (r.found)
        rc = exact_plan(out, p, &r);
    else if (r.complete)
        rc = moirai_error(MOIRAI_EINFEASIBLE, "problem '%s': proven that no plan fits the memory%s%s", p->name,
                          f->starts.why[0] != '\0' ? "; the nearest try: " : "", f->starts.why);
    else
        rc = moirai_error(MOIRAI_ELIMIT, "problem '%s': no plan that fits the memory in %lld nodes", p->name,
                          (long long)r.nodes);
    exact_result_clear(&r);
    return rc;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    first_plans f = {.begun_s = util_seconds(), .o = o};
    const char *why;
    util_stop stop = util_stop_of(&o->budget);
    f.starts = (place_starts_task){.p = p, .o = o, .stop = &stop, .offer = take_start, .data = &f};
    int rc = place_starts(&f.starts);
    if (!rc && exact_fits(p, &why)) {
        rc = search(out, p, &f);
    } else if (!rc && f.best) {
        *out = f.best;
        f.best = NULL;
    } else if (!rc) {
        rc = moirai_error(MOIRAI_ELIMIT, "problem '%s': %s, and no quick plan fits: %s", p->name, why, f.starts.why);
    }
    moirai_plan_free(f.best);
    return rc;
}

const moirai_placer place_exact = {
    .name = "exact",
    .summary = "branch and bound over devices and orders: the optimum of small problems, proven",
    .letters = PLACE_STARTS_KEY ", X exact search",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .few_devices = true,
    .place = place,
};
