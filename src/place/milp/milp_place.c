/* The placer "milp": the paper's steps 3 and 4, with proof.
 *
 * Rounds of: build the program for what is still open, solve it, time the answer in whole nanoseconds, check it.
 * With a plan of length L in hand the tight formulation asks for a strictly shorter one (cutoff): its windows are built
 * from L less one grid unit, and "infeasible" proves L optimal without any rounding. The paper formulation, and
 * warm-start=solution, hand the plan to the solver instead and read its bound. Every answer is simulated; an "optimum"
 * that the simulation does not confirm ends the search with what is proven, and says so. Memory "peak" adds rounds
 * (milp_peak.c).
 *
 * What counts is only: plans that were simulated and fit, and bounds that were rounded safely. */
#include "place/milp/milp.h"
#include "place/placers.h"
#include "place/starts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITERATIONS 300000 /* an effort below 1 is that share of these, per round */

static const moirai_param params[] = {
    {"formulation", MOIRAI_PARAM_CHOICE, "how equations 4 to 8 are written", 0, 0, 0, "tight|paper"},
    {"warm-start", MOIRAI_PARAM_CHOICE, "use the best known plan as a cutoff or as the solver's first solution", 0, 0,
     0, "cutoff|solution|none"},
    {"max-rows", MOIRAI_PARAM_INT, "refuse models with more rows", MOIRAI_MILP_MAX_ROWS, 1, 1e9, NULL},
};

typedef struct search {
    const moirai_problem *p;
    const moirai_place_options *o;
    moirai_formulation formulation;
    bool cutoff, warm;
    int64_t max_rows, grid_ns;
    double began, last_news;
    moirai_sim *sim;
    milp_answer answer;
    milp_peak peak;
    int32_t *clique;
    milp_program *g; /* of this round */
    moirai_plan *best;
    int64_t lower_ns;  /* with the solver's word, by which the search goes on or ends */
    int64_t proven_ns; /* without it: by whole numbers alone */
    int64_t nodes;
    bool overflow; /* this round's answer did not fit */
    bool new_clique;
} search;

/* ---- news ---- */

static bool interrupted(const search *s)
{
    return moirai_interrupt_raised(s->o->budget.interrupt);
}

static double time_left(const search *s)
{
    return s->o->budget.time_limit_s > 0 ? s->o->budget.time_limit_s - (util_seconds() - s->began) : 1e30;
}

static bool proven(const search *s)
{
    return s->best && (double)(s->best->makespan_ns - s->lower_ns) <= s->o->gap * (double)s->best->makespan_ns;
}

static void tell(search *s, char letter, const char *note)
{
    double now = util_seconds() - s->began;
    s->last_news = now;
    if (!s->o->budget.progress)
        return;
    moirai_progress news = {now,
                            letter,
                            s->best ? s->best->makespan_ns : MOIRAI_UNKNOWN,
                            s->lower_ns > 0 ? s->lower_ns : MOIRAI_UNKNOWN,
                            s->nodes,
                            note};
    s->o->budget.progress(s->o->budget.progress_data, &news);
}

static void raise_bound(search *s, double bound)
{
    int64_t ns = milp_safe_bound(s->g, bound) * s->grid_ns;
    /* Plans beyond the cutoff are not in the model: it speaks for shorter ones only. */
    if (s->best)
        ns = UTIL_MIN(ns, s->best->makespan_ns);
    s->lower_ns = UTIL_MAX(s->lower_ns, ns);
}

/* ---- answers ---- */

/* Keep `plan` if it fits and is shorter; frees it otherwise. */
static bool offer(search *s, moirai_plan *plan, char letter)
{
    for (int32_t k = 0; k < s->p->n_devices; k++) {
        int32_t n = 0;
        if (milp_overflow(s->p, plan, k, s->clique, &n) == 0)
            continue;
        s->overflow = true;
        if (n > 0 && milp_peak_add(&s->peak, k, s->clique, n))
            s->new_clique = true;
        moirai_plan_free(plan);
        return false;
    }
    if (s->best && s->best->makespan_ns <= plan->makespan_ns) {
        moirai_plan_free(plan);
        return false;
    }
    moirai_plan_free(s->best);
    s->best = plan;
    tell(s, letter, NULL);
    return true;
}

static bool take_values(search *s, const double *value)
{
    moirai_plan *plan;
    if (milp_answer_from(&s->answer, s->g, value) || milp_peak_arcs(&s->answer, s->g, &s->peak, value) ||
        milp_answer_plan(&plan, s->p, &s->answer, s->sim))
        return false;
    return offer(s, plan, 'M');
}

static void on_solution(void *data, const double *value)
{
    take_values(data, value);
}

static bool on_bound(void *data, double bound, int64_t nodes)
{
    search *s = data;
    int64_t before = s->lower_ns;
    s->nodes = UTIL_MAX(s->nodes, nodes);
    raise_bound(s, bound);
    if (s->lower_ns > before || util_seconds() - s->began > s->last_news + 5)
        tell(s, ' ', NULL);
    return !interrupted(s) && !proven(s) && time_left(s) > 0;
}

/* ---- a first plan ---- */

static int take_start(void *data, moirai_plan *plan, char letter)
{
    offer(data, plan, letter);
    return 0;
}

/* A search for the first plan may take a tenth of the time. */
static int find_start(search *s)
{
    util_stop all = util_stop_of(&s->o->budget);
    double limit = s->o->budget.time_limit_s;
    util_stop stop = util_stop_within(&all, limit > 0 ? UTIL_MAX(0.1 * limit, 0.01) : 5);
    place_starts_task task = {.p = s->p, .o = s->o, .stop = &stop, .offer = take_start, .data = s};
    return place_starts(&task);
}

/* ---- rounds ---- */

static int give_start(search *s, double **value)
{
    *value = NULL;
    if (!s->warm || !s->best || s->cutoff)
        return 0;
    *value = util_alloc((size_t)s->g->m.n_cols, sizeof **value);
    return *value ? milp_encode(*value, s->g, s->best) : MOIRAI_EFAIL;
}

static int solve_round(search *s, milp_status *status)
{
    double *start = NULL, left = time_left(s);
    double *value = util_alloc((size_t)s->g->m.n_cols, sizeof *value);
    int rc = value ? give_start(s, &start) : MOIRAI_EFAIL;
    milp_solve job = {.g = s->g,
                      .gap = s->o->gap,
                      .threads = s->o->budget.threads,
                      .seed = s->o->budget.seed,
                      .start = start,
                      .time_limit_s = left < 1e29 ? UTIL_MAX(left, 0.01) : 0,
                      .data = s,
                      .solution = on_solution,
                      .keep_on = on_bound,
                      .value = value};
    if (s->o->budget.effort < 1)
        job.max_iterations = (int64_t)UTIL_MAX(s->o->budget.effort * ITERATIONS, 1000);
    rc = rc ? rc : milp_solve_run(&job);
    if (!rc) {
        *status = job.status;
        s->nodes += job.nodes;
        if (job.has_value) {
            s->overflow = false;
            take_values(s, value);
        }
        if (job.status != MILP_INFEASIBLE)
            raise_bound(s, job.bound);
    }
    free(start);
    free(value);
    return rc;
}

/* The program has no solution: with a cutoff that proves the plan; without a plan that there is none. */
static int no_solution(search *s, bool by_solver)
{
    if (s->best && s->cutoff) {
        s->lower_ns = s->best->makespan_ns;
        s->proven_ns = by_solver ? s->proven_ns : s->lower_ns;
        return 0;
    }
    if (s->best) {
        tell(s, ' ', "the solver finds no solution where there is one: its answer is not used");
        return 0;
    }
    int rc = milp_check_memory(s->p, s->o);
    if (rc)
        return rc;
    return moirai_error(MOIRAI_EINFEASIBLE,
                        "problem '%s': no plan fits the devices' memory with the lives of its tensors", s->p->name);
}

/* One round. *done: nothing more to do. */
static int round_of(search *s, bool *done)
{
    milp_status status = MILP_STOPPED;
    int64_t upper = s->best ? s->best->makespan_ns - (s->cutoff ? s->grid_ns : 0) : -1,
            best = s->best ? s->best->makespan_ns : -1;
    int64_t lower = s->lower_ns;
    *done = true;
    int rc = milp_program_new(&s->g, s->p, s->formulation, upper, s->max_rows, &s->peak);
    if (rc == MOIRAI_EINFEASIBLE)
        return no_solution(s, false);
    if (rc)
        return rc;
    s->new_clique = s->overflow = false;
    /* Longest paths that know devices need no solver. */
    s->proven_ns =
        UTIL_MAX(s->proven_ns, UTIL_MIN((int64_t)s->g->m.col_lo[0] * s->grid_ns, best >= 0 ? best : INT64_MAX));
    s->lower_ns = UTIL_MAX(s->lower_ns, s->proven_ns);
    rc = solve_round(s, &status);
    if (!rc && status == MILP_INFEASIBLE)
        rc = no_solution(s, true);
    else if (!rc && status == MILP_OPTIMAL && !proven(s)) {
        bool better = s->best && s->best->makespan_ns != best;
        *done = !(better || s->new_clique || (s->lower_ns > lower && s->cutoff));
        if (*done)
            tell(s, ' ', "the solver's optimum is not confirmed by the simulation: reported as feasible only");
    }
    milp_program_free(s->g);
    s->g = NULL;
    return rc;
}

static int rounds(search *s)
{
    bool done = false;
    int rc = 0;
    while (!rc && !done && !interrupted(s) && !proven(s) && time_left(s) > 0)
        rc = round_of(s, &done);
    return rc;
}

static int prepare(search *s)
{
    const char *warm = moirai_setting_choice(s->o, &place_milp, "warm-start");
    int rc = moirai_formulation_parse(&s->formulation, moirai_setting_choice(s->o, &place_milp, "formulation"));
    if (rc)
        return rc;
    s->warm = strcmp(warm, "none") != 0;
    s->cutoff = !strcmp(warm, "cutoff");
    s->max_rows = (int64_t)moirai_setting_real(s->o, &place_milp, "max-rows");
    s->began = util_seconds();
    s->grid_ns = milp_grid_ns(s->p);
    s->lower_ns = s->proven_ns = UTIL_MAX(moirai_bound_critical_path(s->p), moirai_bound_load(s->p));
    s->clique = util_alloc((size_t)s->p->n_tensors, sizeof *s->clique);
    if (!s->clique || (rc = moirai_sim_new(&s->sim, s->p)))
        return MOIRAI_EFAIL;
    return milp_answer_init(&s->answer, s->p);
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    search s = {.p = p, .o = o};
    int64_t rows = 0;
    int rc = prepare(&s);
    /* Refuse the hopeless before spending time on a first plan. */
    if (!rc && !(rc = milp_rows_estimate(&rows, p, s.formulation)) && rows / 16 > s.max_rows)
        rc = milp_refuse(p, s.formulation, rows, s.max_rows);
    if (!rc && s.warm)
        rc = find_start(&s);
    if (!rc && !s.best)
        rc = milp_check_memory(p, o);
    rc = rc ? rc : rounds(&s);
    if (!rc && !s.best)
        rc = moirai_error(MOIRAI_ELIMIT, "problem '%s': milp found no plan within the limits", p->name);
    if (!rc) {
        s.best->lower_bound_ns = UTIL_MIN(s.proven_ns, s.best->makespan_ns);
        s.best->solver_bound_ns = UTIL_MIN(s.lower_ns, s.best->makespan_ns);
        *out = s.best;
        s.best = NULL;
    }
    moirai_plan_free(s.best);
    moirai_sim_free(s.sim);
    milp_answer_free(&s.answer);
    milp_peak_free(&s.peak);
    free(s.clique);
    return rc;
}

const moirai_placer place_milp = {
    .name = "milp",
    .summary = "the paper's mixed-integer program, solved by HiGHS in floating point",
    .letters = PLACE_STARTS_KEY ", M program",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .few_devices = true,
    .available = milp_available,
    .place = place,
};
