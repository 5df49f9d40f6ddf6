/* HiGHS for programmes that are written down at once. See lp.c for why its functions are declared by hand. */
#include "pricing/lp_whole.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

void pricing_whole_clear(pricing_whole *m)
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
    *m = (pricing_whole){0};
}

void pricing_whole_reset(pricing_whole *m)
{
    m->n_columns = m->n_rows = m->n_values = 0;
}

int32_t pricing_whole_column(pricing_whole *m, double cost, double lower, double upper)
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

void pricing_whole_row(pricing_whole *m, double lower, double upper)
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

void pricing_whole_term(pricing_whole *m, int32_t column, double value)
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

void pricing_whole_answer_clear(pricing_whole_answer *a)
{
    free(a->column);
    free(a->row_dual);
    *a = (pricing_whole_answer){0};
}

#if MOIRAI_HAVE_HIGHS

enum {
    kError = -1, kRowwise = 2, kMinimise = 1,
    kModelOptimal = 7, kModelInfeasible = 8, kModelUnboundedOrInfeasible = 9, kModelUnbounded = 10, kModelUnknown = 15,
    kSolutionFeasible = 2,
    kSimplexInterrupt = 1, kIpmInterrupt = 2, kMipInterrupt = 6
};

/* The beginning of HighsCallbackDataIn, which is all that is written to. */
typedef struct callback_in {
    int user_interrupt;
} callback_in;

extern void *Highs_create(void);
extern void Highs_destroy(void *highs);
extern int Highs_setBoolOptionValue(void *highs, const char *option, int value);
extern int Highs_setIntOptionValue(void *highs, const char *option, int value);
extern int Highs_setDoubleOptionValue(void *highs, const char *option, double value);
extern int Highs_setStringOptionValue(void *highs, const char *option, const char *value);
extern double Highs_getInfinity(const void *highs);
extern int Highs_passLp(void *highs, int columns, int rows, int values, int format, int sense, double offset,
                        const double *cost, const double *lower, const double *upper, const double *row_lower,
                        const double *row_upper, const int *start, const int *index, const double *value);
extern int Highs_passMip(void *highs, int columns, int rows, int values, int format, int sense, double offset,
                         const double *cost, const double *lower, const double *upper, const double *row_lower,
                         const double *row_upper, const int *start, const int *index, const double *value,
                         const int *integrality);
extern int Highs_setSolution(void *highs, const double *column, const double *row, const double *column_dual,
                             const double *row_dual);
extern int Highs_setCallback(void *highs, void (*listen)(int, const char *, const void *, callback_in *, void *),
                             void *data);
extern int Highs_startCallback(void *highs, int type);
extern int Highs_run(void *highs);
extern int Highs_getModelStatus(const void *highs);
extern int Highs_getIntInfoValue(const void *highs, const char *info, int *value);
extern int Highs_getSolution(const void *highs, double *column, double *column_dual, double *row, double *row_dual);
extern double Highs_getObjectiveValue(const void *highs);

bool pricing_whole_available(const char **why)
{
    *why = NULL;
    return true;
}

static void listen(int type, const char *text, const void *out, callback_in *in, void *data)
{
    const moirai_interrupt *interrupt = data;
    (void)type, (void)text, (void)out;
    if (in && moirai_interrupt_raised(interrupt))
        in->user_interrupt = 1;
}

static void set_options(void *h, const pricing_whole_task *task)
{
    Highs_setBoolOptionValue(h, "output_flag", 0);
    Highs_setIntOptionValue(h, "threads", 1);
    Highs_setStringOptionValue(h, "presolve", task->presolve ? "on" : "off");
    if (task->method != PRICING_MIP)
        Highs_setStringOptionValue(h, "solver", task->method == PRICING_INTERIOR ? "ipm" : "simplex");
    if (task->method == PRICING_INTERIOR)
        Highs_setStringOptionValue(h, "run_crossover", "off");
    if (task->method == PRICING_MIP) {
        Highs_setIntOptionValue(h, "random_seed", (int)(task->seed & 0x7fffffff));
        Highs_setDoubleOptionValue(h, "mip_rel_gap", task->gap);
    }
    if (task->stop.deadline > 0) /* HiGHS takes 0 for no time at all */
        Highs_setDoubleOptionValue(h, "time_limit", util_stop_left_s(&task->stop));
    if (task->stop.interrupt) {
        Highs_setCallback(h, listen, (void *)(uintptr_t)task->stop.interrupt);
        Highs_startCallback(h, kSimplexInterrupt);
        Highs_startCallback(h, kIpmInterrupt);
        Highs_startCallback(h, kMipInterrupt);
    }
}

/* HUGE_VAL is what HiGHS calls infinity; this says so where it is not. */
static int pass(void *h, pricing_whole *m, const pricing_whole_task *task)
{
    if (m->failed)
        return moirai_error(MOIRAI_EFAIL, "out of memory for %d columns and %d rows", m->n_columns, m->n_rows);
    if (!isinf(Highs_getInfinity(h)))
        return moirai_error(MOIRAI_EFAIL, "HiGHS: its infinity is a number, %g", Highs_getInfinity(h));
    m->row_off[m->n_rows] = m->n_values;
    int status = task->method == PRICING_MIP
                     ? Highs_passMip(h, m->n_columns, m->n_rows, m->n_values, kRowwise, kMinimise, 0, m->cost, m->lower,
                                     m->upper, m->row_lower, m->row_upper, m->row_off, m->index, m->value, m->integral)
                     : Highs_passLp(h, m->n_columns, m->n_rows, m->n_values, kRowwise, kMinimise, 0, m->cost, m->lower,
                                    m->upper, m->row_lower, m->row_upper, m->row_off, m->index, m->value);
    if (status == kError)
        return moirai_error(MOIRAI_EFAIL, "HiGHS: does not take %d columns and %d rows", m->n_columns, m->n_rows);
    if (task->start && task->method == PRICING_MIP)
        Highs_setSolution(h, task->start, NULL, NULL, NULL);
    return 0;
}

static int read_answer(pricing_whole_answer *a, void *h, const pricing_whole *m)
{
    int status = Highs_getModelStatus(h), primal = 0, dual = 0;
    if (status == kModelInfeasible || status == kModelUnbounded || status == kModelUnboundedOrInfeasible)
        return moirai_error(MOIRAI_EFAIL, "HiGHS: a programme of %d columns and %d rows is called infeasible or unbounded",
                            m->n_columns, m->n_rows);
    Highs_getIntInfoValue(h, "primal_solution_status", &primal);
    Highs_getIntInfoValue(h, "dual_solution_status", &dual);
    a->column = util_alloc((size_t)m->n_columns, sizeof *a->column);
    a->row_dual = util_alloc((size_t)m->n_rows, sizeof *a->row_dual);
    double *spare = util_alloc((size_t)m->n_columns + (size_t)m->n_rows, sizeof *spare);
    bool ready = a->column && a->row_dual && spare;
    if (ready)
        Highs_getSolution(h, a->column, spare, spare + m->n_columns, a->row_dual);
    free(spare);
    a->end = status == kModelOptimal ? PRICING_OPTIMAL : PRICING_STOPPED;
    a->has_columns = status == kModelOptimal || primal == kSolutionFeasible;
    a->has_duals = status == kModelOptimal || dual == kSolutionFeasible;
    a->objective = Highs_getObjectiveValue(h);
    return ready ? 0 : MOIRAI_EFAIL;
}

int pricing_whole_solve(pricing_whole_answer *out, pricing_whole *m, const pricing_whole_task *task)
{
    *out = (pricing_whole_answer){0};
    void *h = Highs_create();
    if (!h)
        return moirai_error(MOIRAI_EFAIL, "HiGHS: cannot be started");
    set_options(h, task);
    int rc = pass(h, m, task);
    if (!rc) {
        Highs_run(h);
        rc = read_answer(out, h, m);
    }
    Highs_destroy(h);
    return rc;
}

#else

bool pricing_whole_available(const char **why)
{
    *why = "built without HiGHS (libhighs-dev)";
    return false;
}

int pricing_whole_solve(pricing_whole_answer *out, pricing_whole *m, const pricing_whole_task *task)
{
    (void)m, (void)task;
    *out = (pricing_whole_answer){0};
    return moirai_error(MOIRAI_EFAIL, "this build has no HiGHS");
}

#endif
