/* exact: the placer around the exact search.
 *
 * The quick placers of the registry give the first plans; the best of them is what the search
 * has to beat, which ends with the optimum and its proof, or at a limit with the best plan and a proven bound. A problem
 * too large for the search's tables gets the best quick plan and plain bounds. */
#include "exact/exact_search.h"
#include "place/moirai/incumbent/incumbent.h"
#include "place/placers.h"
#include "place/starts.h"

#define WORK_PER_EFFORT 5e8 /* tasks * devices * nodes: about a minute */

static const moirai_param params[] = {
    {.name = "node-limit",
     .kind = MOIRAI_PARAM_INT,
     .help = "stop after this many nodes; 0: as effort and time limit say",
     .value = 0,
     .least = 0,
     .most = 1e15},
};

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

static int search(moirai_plan **out, const incumbent *in, const char *why)
{
    const moirai_problem *p = in->p;
    exact_options options;
    exact_result r;
    exact_options_init(&options);
    options.start = in->best;
    options.node_limit = node_limit(p, in->o);
    options.stop = in->stop;
    options.progress = in->o->budget.progress;
    options.progress_data = in->o->budget.progress_data;
    int rc = exact_solve(p, &options, &r);
    if (rc)
        return rc;
    if (r.found)
        rc = exact_plan(out, p, &r);
    else if (r.complete)
        rc = moirai_error(MOIRAI_EINFEASIBLE, "problem '%s': proven that no plan fits the memory%s%s", p->name,
                          *why ? "; the nearest try: " : "", why);
    else
        rc = moirai_error(MOIRAI_ELIMIT, "problem '%s': no plan that fits the memory in %lld nodes", p->name,
                          (long long)r.nodes);
    exact_result_clear(&r);
    return rc;
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    incumbent in;
    const char *why;
    incumbent_begin(&in, p, o);
    in.lower_ns = MOIRAI_UNKNOWN; /* for the log: no bound is looked for before the search */
    place_starts_task starts = {.p = p, .o = o, .stop = &in.stop, .offer = incumbent_offer_start, .data = &in};
    int rc = place_starts(&starts);
    if (!rc && exact_fits(p, &why)) {
        rc = search(out, &in, starts.why);
    } else if (!rc && in.best) {
        *out = in.best;
        in.best = NULL;
    } else if (!rc) {
        rc = moirai_error(MOIRAI_ELIMIT, "problem '%s': %s, and no quick plan fits: %s", p->name, why, starts.why);
    }
    incumbent_clear(&in);
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
