/* HiGHS for programmes that are written down at once. The one file that includes its C header, which defines constants
 * with external linkage. */
#include "place/list/lp_whole.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

void lp_whole_clear(lp_whole *m)
{
    free(m->cost);
    free(m->lower);
    free(m->upper);
    free(m->integral);
    free(m->row_lower);
    free(m->row_upper);
    free(m->row_off);
    free(m->index);
    free(m->value);
    *m = (lp_whole){0};
}

void lp_whole_reset(lp_whole *m)
{
    m->n_columns = m->n_rows = m->n_values = 0;
}

int lp_whole_reserve(lp_whole *m, size_t columns, size_t rows, size_t values)
{
    return util_grow(&m->cost, &m->column_capacity[0], columns, sizeof *m->cost) ||
                   util_grow(&m->lower, &m->column_capacity[1], columns, sizeof *m->lower) ||
                   util_grow(&m->upper, &m->column_capacity[2], columns, sizeof *m->upper) ||
                   util_grow(&m->integral, &m->column_capacity[3], columns, sizeof *m->integral) ||
                   util_grow(&m->row_lower, &m->row_capacity[0], rows, sizeof *m->row_lower) ||
                   util_grow(&m->row_upper, &m->row_capacity[1], rows, sizeof *m->row_upper) ||
                   util_grow(&m->row_off, &m->row_capacity[2], rows + 1, sizeof *m->row_off) ||
                   util_grow(&m->index, &m->value_capacity[0], values, sizeof *m->index) ||
                   util_grow(&m->value, &m->value_capacity[1], values, sizeof *m->value)
               ? MOIRAI_EFAIL
               : 0;
}

int32_t lp_whole_column(lp_whole *m, double cost, double lower, double upper)
{
    size_t n = (size_t)m->n_columns, *capacity = m->column_capacity;
    if (m->failed || util_grow(&m->cost, &capacity[0], n + 1, sizeof *m->cost) ||
        util_grow(&m->lower, &capacity[1], n + 1, sizeof *m->lower) ||
        util_grow(&m->upper, &capacity[2], n + 1, sizeof *m->upper) ||
        util_grow(&m->integral, &capacity[3], n + 1, sizeof *m->integral)) {
        m->failed = true;
        return 0;
    }
    m->cost[n] = cost;
    m->lower[n] = lower;
    m->upper[n] = upper;
    m->integral[n] = 0;
    return m->n_columns++;
}

void lp_whole_row(lp_whole *m, double lower, double upper)
{
    size_t n = (size_t)m->n_rows, *capacity = m->row_capacity;
    if (m->failed || util_grow(&m->row_lower, &capacity[0], n + 1, sizeof *m->row_lower) ||
        util_grow(&m->row_upper, &capacity[1], n + 1, sizeof *m->row_upper) ||
        util_grow(&m->row_off, &capacity[2], n + 2, sizeof *m->row_off)) {
        m->failed = true;
        return;
    }
    m->row_lower[n] = lower;
    m->row_upper[n] = upper;
    m->row_off[n] = m->n_values;
    m->n_rows++;
}

void lp_whole_term(lp_whole *m, int32_t column, double value)
{
    size_t n = (size_t)m->n_values, *capacity = m->value_capacity;
    if (m->failed || util_grow(&m->index, &capacity[0], n + 1, sizeof *m->index) ||
        util_grow(&m->value, &capacity[1], n + 1, sizeof *m->value)) {
        m->failed = true;
        return;
    }
    m->index[n] = column;
    m->value[n] = value;
    m->n_values++;
}

void lp_whole_answer_clear(lp_whole_answer *a)
{
    free(a->column);
    free(a->row_dual);
    *a = (lp_whole_answer){0};
}

#if MOIRAI_HAVE_HIGHS

#include <interfaces/highs_c_api.h>

#define MOST_VALUE 1e15 /* HiGHS takes no model with larger coefficients */

bool lp_whole_available(const char **why)
{
    *why = NULL;
    return true;
}

/* The limit as well: where HiGHS' presolve has taken all of it, its interior point goes on without one. */
static bool goes_on(const lp_whole_task *task, double bound, int64_t nodes)
{
    return !util_stopped(&task->stop) && (!task->keep_on || task->keep_on(task->data, bound, nodes));
}

static void listen(int type, const char *text, const HighsCallbackDataOut *out, HighsCallbackDataIn *in, void *data)
{
    const lp_whole_task *task = data;
    (void)text;
    if (type == kHighsCallbackMipImprovingSolution && out->mip_solution && task->solution)
        task->solution(task->data, out->mip_solution);
    if (type == kHighsCallbackMipInterrupt && in) {
        bool spent = task->max_iterations > 0 && out->mip_total_lp_iterations > task->max_iterations;
        in->user_interrupt = !spent && goes_on(task, out->mip_dual_bound, out->mip_node_count) ? 0 : 1;
    }
    if ((type == kHighsCallbackSimplexInterrupt || type == kHighsCallbackIpmInterrupt) && in)
        in->user_interrupt = goes_on(task, -HUGE_VAL, 0) ? 0 : 1;
}

static void set_mip_options(void *h, const lp_whole_task *task)
{
    Highs_setIntOptionValue(h, "random_seed", (HighsInt)(task->seed & 0x7fffffff));
    Highs_setDoubleOptionValue(h, "mip_rel_gap", task->gap);
    if (task->gap_absolute > 0)
        Highs_setDoubleOptionValue(h, "mip_abs_gap", task->gap_absolute);
    if (task->tolerance > 0) {
        Highs_setDoubleOptionValue(h, "mip_feasibility_tolerance", task->tolerance);
        Highs_setDoubleOptionValue(h, "primal_feasibility_tolerance", task->tolerance);
    }
    if (task->threads > 0)
        Highs_setIntOptionValue(h, "threads", task->threads);
}

static void set_options(void *h, const lp_whole_task *task)
{
    Highs_setBoolOptionValue(h, "output_flag", 0);
    if (task->stop.deadline > 0)
        Highs_setDoubleOptionValue(h, "time_limit", util_stop_left_s(&task->stop));
    if (task->method == LP_MIP) {
        set_mip_options(h, task);
    } else {
        Highs_setIntOptionValue(h, "threads", 1);
        Highs_setStringOptionValue(h, "presolve", task->presolve ? "on" : "off");
        Highs_setStringOptionValue(h, "solver", task->method == LP_INTERIOR ? "ipm" : "simplex");
        if (task->method == LP_INTERIOR)
            Highs_setStringOptionValue(h, "run_crossover", "off");
    }
}

static void set_callbacks(void *h, const lp_whole_task *task)
{
    if (!task->stop.interrupt && task->stop.deadline <= 0 && !task->solution && !task->keep_on &&
        task->max_iterations == 0)
        return;
    Highs_setCallback(h, listen, (void *)(uintptr_t)task);
    Highs_startCallback(h, kHighsCallbackSimplexInterrupt);
    if (task->method == LP_INTERIOR)
        Highs_startCallback(h, kHighsCallbackIpmInterrupt);
    if (task->method == LP_MIP) {
        Highs_startCallback(h, kHighsCallbackMipImprovingSolution);
        Highs_startCallback(h, kHighsCallbackMipInterrupt);
    }
}

static void set_start(void *h, const lp_whole *m, const double *start)
{
    HighsInt n = 0;
    HighsInt *index = util_alloc((size_t)m->n_columns, sizeof *index);
    double *value = util_alloc((size_t)m->n_columns, sizeof *value);
    for (int32_t c = 0; index && value && c < m->n_columns; c++)
        if (!isnan(start[c])) {
            index[n] = c;
            value[n++] = start[c];
        }
    if (n > 0)
        Highs_setSparseSolution(h, n, index, value);
    free(index);
    free(value);
}

static bool is_too_large(const lp_whole *m)
{
    for (int32_t i = 0; i < m->n_values; i++)
        if (fabs(m->value[i]) >= MOST_VALUE)
            return true;
    return false;
}

/* HUGE_VAL is what HiGHS calls infinity. */
static int pass(void *h, lp_whole *m, const lp_whole_task *task)
{
    if (m->failed || lp_whole_reserve(m, 0, (size_t)m->n_rows, 0))
        return moirai_error(MOIRAI_EFAIL, "out of memory for %d columns and %d rows", m->n_columns, m->n_rows);
    m->row_off[m->n_rows] = m->n_values;
    if (is_too_large(m))
        return moirai_error(MOIRAI_ELIMIT, "times of 10^15 ns and more are too large for HiGHS");
    HighsInt status =
        task->method == LP_MIP
            ? Highs_passMip(h, m->n_columns, m->n_rows, m->n_values, kHighsMatrixFormatRowwise, kHighsObjSenseMinimize,
                            0, m->cost, m->lower, m->upper, m->row_lower, m->row_upper, m->row_off, m->index, m->value,
                            m->integral)
            : Highs_passLp(h, m->n_columns, m->n_rows, m->n_values, kHighsMatrixFormatRowwise, kHighsObjSenseMinimize,
                           0, m->cost, m->lower, m->upper, m->row_lower, m->row_upper, m->row_off, m->index, m->value);
    if (status == kHighsStatusError)
        return moirai_error(MOIRAI_EFAIL, "HiGHS does not take the model (%d columns, %d rows)", m->n_columns,
                            m->n_rows);
    if (task->start && task->method == LP_MIP)
        set_start(h, m, task->start);
    set_callbacks(h, task);
    return 0;
}

static int read_columns(lp_whole_answer *a, void *h, const lp_whole *m)
{
    a->column = util_alloc((size_t)m->n_columns, sizeof *a->column);
    a->row_dual = util_alloc((size_t)m->n_rows, sizeof *a->row_dual);
    if (!a->column || !a->row_dual)
        return MOIRAI_EFAIL;
    Highs_getSolution(h, a->column, NULL, NULL, a->row_dual);
    return 0;
}

static int read_answer(lp_whole_answer *a, void *h, const lp_whole *m)
{
    HighsInt status = Highs_getModelStatus(h), primal = kHighsSolutionStatusNone, dual = kHighsSolutionStatusNone;
    if (status == kHighsModelStatusSolveError || status == kHighsModelStatusPresolveError ||
        status == kHighsModelStatusPostsolveError || status == kHighsModelStatusModelError)
        return moirai_error(MOIRAI_EFAIL, "HiGHS failed with model status %d", (int)status);
    a->end = status == kHighsModelStatusOptimal      ? LP_OPTIMAL
             : status == kHighsModelStatusInfeasible ? LP_INFEASIBLE
                                                     : LP_STOPPED;
    Highs_getDoubleInfoValue(h, "mip_dual_bound", &a->bound);
    Highs_getInt64InfoValue(h, "mip_node_count", &a->nodes);
    Highs_getIntInfoValue(h, "primal_solution_status", &primal);
    Highs_getIntInfoValue(h, "dual_solution_status", &dual);
    a->has_columns = primal == kHighsSolutionStatusFeasible;
    a->has_duals = a->end == LP_OPTIMAL || dual == kHighsSolutionStatusFeasible;
    a->objective = Highs_getObjectiveValue(h);
    return a->has_columns || a->has_duals ? read_columns(a, h, m) : 0;
}

static int run(lp_whole_answer *out, void *h, lp_whole *m, const lp_whole_task *task)
{
    set_options(h, task);
    int rc = pass(h, m, task);
    if (rc)
        return rc;
    if (Highs_run(h) == kHighsStatusError) {
        /* The process-wide thread pool keeps its first size: take what is there. */
        Highs_setIntOptionValue(h, "threads", 0);
        if (Highs_run(h) == kHighsStatusError)
            return moirai_error(MOIRAI_EFAIL, "HiGHS failed with model status %d", (int)Highs_getModelStatus(h));
    }
    return read_answer(out, h, m);
}

int lp_whole_solve(lp_whole_answer *out, lp_whole *m, const lp_whole_task *task)
{
    *out = (lp_whole_answer){0};
    void *h = Highs_create();
    if (!h)
        return moirai_error(MOIRAI_EFAIL, "HiGHS cannot be started");
    int rc = run(out, h, m, task);
    Highs_destroy(h);
    return rc;
}

#else

bool lp_whole_available(const char **why)
{
    *why = "built without HiGHS (libhighs-dev)";
    return false;
}

int lp_whole_solve(lp_whole_answer *out, lp_whole *m, const lp_whole_task *task)
{
    (void)m, (void)task;
    *out = (lp_whole_answer){0};
    return moirai_error(MOIRAI_EFAIL, "built without HiGHS (libhighs-dev)");
}

#endif
