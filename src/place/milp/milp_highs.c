/* HiGHS: the model goes in through its C interface, incumbents and bounds come out through its callbacks.
 *
 * Scaling is by powers of two, so that no coefficient changes its digits: times so that the horizon stays below 10^4
 * or so, bytes likewise. Tolerances are set to 10^-9: with big-M rows an integer that is off by 10^-6 would let a start
 * slip by a thousandth of the horizon's thousandth, more than the grid of a fine-grained problem.
 *
 * The solver's bound is a floating-point number: a margin of 10^-6 of the horizon is taken off, and the rest rounded up
 * to a whole grid unit, which is where makespans are (milp_dag.c). An answer "infeasible" needs no margin. */
#include "place/milp/milp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_TIME 1e4
#define MARGIN 1e-6 /* of the horizon */

int64_t milp_safe_bound(const milp_program *g, double bound)
{
    double safe = bound - MARGIN * UTIL_MAX((double)g->d->upper, 1.0);
    if (!(safe > 0))
        return 0;
    return safe >= (double)g->d->upper ? g->d->upper : (int64_t)ceil(safe);
}

#if !MOIRAI_HAVE_HIGHS

bool milp_available(const char **why)
{
    *why = "built without HiGHS (libhighs-dev)";
    return false;
}

int milp_solve_run(milp_solve *s)
{
    (void)s;
    return moirai_error(MOIRAI_EFAIL, "milp: built without HiGHS (libhighs-dev)");
}

#else

#include <interfaces/highs_c_api.h>

bool milp_available(const char **why)
{
    *why = NULL;
    return true;
}

/* The model in HiGHS's own arrays. */
typedef struct loaded {
    double *cost, *lo, *hi, *row_lo, *row_hi, *value;
    HighsInt *integrality, *start, *index;
    double *answer;    /* one solution in the caller's units */
    double *col_scale; /* caller's units per solver's unit */
    double time_scale, byte_scale;
} loaded;

static void unload(loaded *l)
{
    free(l->cost);
    free(l->lo);
    free(l->hi);
    free(l->row_lo);
    free(l->row_hi);
    free(l->value);
    free(l->integrality);
    free(l->start);
    free(l->index);
    free(l->answer);
    free(l->col_scale);
}

static int reserve(loaded *l, const milp_model *m)
{
    size_t n = (size_t)m->n_cols, r = (size_t)m->n_rows, z = (size_t)m->n_nonzeros;
    l->cost = util_alloc(n, sizeof *l->cost);
    l->lo = util_alloc(n, sizeof *l->lo);
    l->hi = util_alloc(n, sizeof *l->hi);
    l->integrality = util_alloc(n, sizeof *l->integrality);
    l->answer = util_alloc(n, sizeof *l->answer);
    l->col_scale = util_alloc(n, sizeof *l->col_scale);
    l->row_lo = util_alloc(r, sizeof *l->row_lo);
    l->row_hi = util_alloc(r, sizeof *l->row_hi);
    l->start = util_alloc(r + 1, sizeof *l->start);
    l->index = util_alloc(z, sizeof *l->index);
    l->value = util_alloc(z, sizeof *l->value);
    return l->cost && l->lo && l->hi && l->integrality && l->answer && l->col_scale && l->row_lo && l->row_hi &&
                   l->start && l->index && l->value
               ? 0
               : MOIRAI_EFAIL;
}

static double power_of_two(double most, double limit)
{
    int e = 0;
    if (most > limit)
        frexp(most / limit, &e);
    return ldexp(1.0, e);
}

static double largest_bytes(const milp_model *m)
{
    double most = 0;
    for (int64_t r = 0; r < m->n_rows; r++)
        for (int64_t z = m->row_off[r]; m->row_unit[r] == MILP_BYTES && z < m->row_off[r + 1]; z++)
            if (m->col_kind[m->index[z]] == MILP_BINARY)
                most = UTIL_MAX(most, fabs(m->value[z]));
    return most;
}

static int load(loaded *l, const milp_program *g)
{
    const milp_model *m = &g->m;
    if (m->n_nonzeros > INT32_MAX || reserve(l, m) != 0)
        return m->n_nonzeros > INT32_MAX ? moirai_error(MOIRAI_ELIMIT, "milp: too many coefficients") : MOIRAI_EFAIL;
    l->time_scale = power_of_two((double)g->d->upper, LARGEST_TIME);
    l->byte_scale = power_of_two(largest_bytes(m), 1024);
    for (int32_t c = 0; c < m->n_cols; c++) {
        l->col_scale[c] = m->col_kind[c] == MILP_TIME     ? l->time_scale
                          : m->col_kind[c] == MILP_AMOUNT ? l->byte_scale
                                                          : 1;
        l->cost[c] = c == 0;
        l->lo[c] = m->col_lo[c] / l->col_scale[c];
        l->hi[c] = m->col_hi[c] / l->col_scale[c];
        l->integrality[c] = m->col_kind[c] == MILP_BINARY ? kHighsVarTypeInteger : kHighsVarTypeContinuous;
    }
    for (int64_t r = 0; r < m->n_rows; r++) {
        double scale = m->row_unit[r] == MILP_TIMES ? l->time_scale : m->row_unit[r] == MILP_BYTES ? l->byte_scale : 1;
        l->row_lo[r] = m->row_sense[r] == '<' ? -INFINITY : m->row_rhs[r] / scale;
        l->row_hi[r] = m->row_sense[r] == '>' ? INFINITY : m->row_rhs[r] / scale;
        l->start[r] = (HighsInt)m->row_off[r];
        for (int64_t z = m->row_off[r]; z < m->row_off[r + 1]; z++) {
            l->index[z] = m->index[z];
            l->value[z] = m->value[z] * l->col_scale[m->index[z]] / scale;
        }
    }
    l->start[m->n_rows] = (HighsInt)m->n_nonzeros;
    return 0;
}

static void give_back(loaded *l, const milp_solve *s, const double *value, double *out)
{
    for (int32_t c = 0; c < s->g->m.n_cols; c++)
        out[c] = value[c] * l->col_scale[c];
}

typedef struct listener {
    milp_solve *s;
    loaded *l;
} listener;

static void listen(int type, const char *text, const HighsCallbackDataOut *out, HighsCallbackDataIn *in, void *data)
{
    listener *me = data;
    milp_solve *s = me->s;
    (void)text;
    if (type == kHighsCallbackMipImprovingSolution && out->mip_solution && s->solution) {
        give_back(me->l, s, out->mip_solution, me->l->answer);
        s->solution(s->data, me->l->answer);
    }
    if (type == kHighsCallbackMipInterrupt && in && s->keep_on) {
        double bound = isfinite(out->mip_dual_bound) ? out->mip_dual_bound * me->l->col_scale[0] : 0;
        bool spent = s->max_iterations > 0 && out->mip_total_lp_iterations > s->max_iterations;
        in->user_interrupt = !spent && s->keep_on(s->data, bound, out->mip_node_count) ? 0 : 1;
    }
    if ((type == kHighsCallbackSimplexInterrupt || type == kHighsCallbackIpmInterrupt) && in && s->keep_on)
        in->user_interrupt = s->keep_on(s->data, 0, 0) ? 0 : 1;
}

static void set_options(void *h, const milp_solve *s, const loaded *l)
{
    Highs_setBoolOptionValue(h, "output_flag", 0);
    Highs_setIntOptionValue(h, "random_seed", (HighsInt)(s->seed & 0x7fffffff));
    Highs_setDoubleOptionValue(h, "mip_feasibility_tolerance", 1e-9);
    Highs_setDoubleOptionValue(h, "primal_feasibility_tolerance", 1e-9);
    Highs_setDoubleOptionValue(h, "mip_rel_gap", s->gap);
    if (s->g->m.col_kind[0] == MILP_TIME && MARGIN * (double)s->g->d->upper < 0.4)
        Highs_setDoubleOptionValue(h, "mip_abs_gap", 0.5 / l->time_scale);
    if (s->time_limit_s > 0)
        Highs_setDoubleOptionValue(h, "time_limit", s->time_limit_s);
    if (s->threads > 0)
        Highs_setIntOptionValue(h, "threads", s->threads);
}

static void set_start(void *h, const milp_solve *s, const loaded *l)
{
    HighsInt n = 0;
    HighsInt *index = util_alloc((size_t)s->g->m.n_cols, sizeof *index);
    double *value = util_alloc((size_t)s->g->m.n_cols, sizeof *value);
    for (int32_t c = 0; index && value && c < s->g->m.n_cols; c++)
        if (!isnan(s->start[c])) {
            index[n] = c;
            value[n++] = s->start[c] / l->col_scale[c];
        }
    if (n > 0)
        Highs_setSparseSolution(h, n, index, value);
    free(index);
    free(value);
}

static int read_answer(void *h, milp_solve *s, loaded *l)
{
    HighsInt status = Highs_getModelStatus(h), primal = kHighsSolutionStatusNone;
    double bound = 0;
    s->status = status == kHighsModelStatusOptimal      ? MILP_OPTIMAL
                : status == kHighsModelStatusInfeasible ? MILP_INFEASIBLE
                                                        : MILP_STOPPED;
    if (status == kHighsModelStatusSolveError || status == kHighsModelStatusPresolveError ||
        status == kHighsModelStatusPostsolveError || status == kHighsModelStatusModelError)
        return moirai_error(MOIRAI_EFAIL, "milp: HiGHS failed with model status %d", (int)status);
    Highs_getDoubleInfoValue(h, "mip_dual_bound", &bound);
    Highs_getInt64InfoValue(h, "mip_node_count", &s->nodes);
    s->bound = isfinite(bound) ? bound * l->col_scale[0] : 0;
    Highs_getIntInfoValue(h, "primal_solution_status", &primal);
    if (primal == kHighsSolutionStatusFeasible) {
        double *value = util_alloc((size_t)s->g->m.n_cols, sizeof *value);
        if (!value)
            return MOIRAI_EFAIL;
        Highs_getSolution(h, value, NULL, NULL, NULL);
        give_back(l, s, value, s->value);
        s->has_value = true;
        free(value);
    }
    return 0;
}

static int run(void *h, milp_solve *s, loaded *l)
{
    const milp_model *m = &s->g->m;
    listener me = {s, l};
    if (Highs_passMip(h, m->n_cols, (HighsInt)m->n_rows, (HighsInt)m->n_nonzeros, kHighsMatrixFormatRowwise,
                      kHighsObjSenseMinimize, 0, l->cost, l->lo, l->hi, l->row_lo, l->row_hi, l->start, l->index,
                      l->value, l->integrality) == kHighsStatusError)
        return moirai_error(MOIRAI_EFAIL, "milp: HiGHS does not take the model (%d columns, %lld rows)", m->n_cols,
                            (long long)m->n_rows);
    if (s->start)
        set_start(h, s, l);
    Highs_setCallback(h, listen, &me);
    Highs_startCallback(h, kHighsCallbackMipImprovingSolution);
    Highs_startCallback(h, kHighsCallbackMipInterrupt);
    Highs_startCallback(h, kHighsCallbackSimplexInterrupt);
    if (Highs_run(h) == kHighsStatusError) {
        /* The process-wide thread pool keeps its first size: take what is there. */
        Highs_setIntOptionValue(h, "threads", 0);
        if (Highs_run(h) == kHighsStatusError)
            return moirai_error(MOIRAI_EFAIL, "milp: HiGHS failed with model status %d", (int)Highs_getModelStatus(h));
    }
    return read_answer(h, s, l);
}

int milp_solve_run(milp_solve *s)
{
    loaded l = {0};
    s->has_value = false;
    s->bound = 0;
    s->nodes = 0;
    s->status = MILP_STOPPED;
    int result = load(&l, s->g);
    void *h = result == 0 ? Highs_create() : NULL;
    if (result == 0 && !h)
        result = moirai_error(MOIRAI_EFAIL, "milp: HiGHS cannot be started");
    if (result == 0) {
        set_options(h, s, &l);
        result = run(h, s, &l);
    }
    if (h)
        Highs_destroy(h);
    unload(&l);
    return result;
}

#endif
