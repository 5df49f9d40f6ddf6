/* A programme that grows by columns and is solved again and again, by HiGHS: masters that are too large for the simplex of
 * our own (simplex.c), and those of prices on bytes. The basis stays from one solve to the next.
 *
 * Without HiGHS there is none (pricing_lp_available): masters then stay with the simplex of our own, and prices on bytes
 * are left out. */
#include "lp/lp.h"
#include "lp/lp_whole.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#if MOIRAI_HAVE_HIGHS

/* The C header of HiGHS defines its constants with external linkage, so that only one file of a program can include it,
 * and lp_whole.c does. What is used here is declared by hand; HighsInt is int in every packaged build. */
enum { kStatusError = -1, kModelOptimal = 7, kDualSimplex = 1, kPrimalSimplex = 4 };
extern void *Highs_create(void);
extern void Highs_destroy(void *highs);
extern int Highs_setBoolOptionValue(void *highs, const char *option, int value);
extern int Highs_setIntOptionValue(void *highs, const char *option, int value);
extern int Highs_setStringOptionValue(void *highs, const char *option, const char *value);
extern int Highs_setDoubleOptionValue(void *highs, const char *option, double value);
extern double Highs_getRunTime(const void *highs);
extern double Highs_getInfinity(const void *highs);
extern int Highs_addRow(void *highs, double lower, double upper, int n, const int *index, const double *value);
extern int Highs_addCol(void *highs, double cost, double lower, double upper, int n, const int *index,
                        const double *value);
extern int Highs_run(void *highs);
extern int Highs_clearSolver(void *highs);
extern int Highs_getModelStatus(const void *highs);
extern int Highs_getSolution(const void *highs, double *column, double *column_dual, double *row, double *row_dual);
extern double Highs_getObjectiveValue(const void *highs);

struct pricing_lp {
    void *highs;
    int32_t n_rows, n_columns;
    double *value; /* scratch for the solution: columns, then rows */
    size_t capacity;
};

bool pricing_lp_available(void)
{
    return true;
}

void pricing_lp_free(pricing_lp *lp)
{
    if (!lp)
        return;
    if (lp->highs)
        Highs_destroy(lp->highs);
    free(lp->value);
    free(lp);
}

int pricing_lp_new(pricing_lp **out, int32_t n_rows, const double *lower, const double *upper)
{
    *out = NULL;
    pricing_lp *lp = util_alloc(1, sizeof *lp);
    if (!lp)
        return MOIRAI_EFAIL;
    lp->highs = Highs_create();
    lp->n_rows = n_rows;
    if (!lp->highs) {
        pricing_lp_free(lp);
        return moirai_error(MOIRAI_EFAIL, "HiGHS: cannot be started");
    }
    Highs_setBoolOptionValue(lp->highs, "output_flag", 0);
    Highs_setIntOptionValue(lp->highs, "threads", 1);
    Highs_setStringOptionValue(lp->highs, "solver", "simplex");
    Highs_setStringOptionValue(lp->highs, "presolve", "off");               /* keeps the basis warm between rounds */
    Highs_setIntOptionValue(lp->highs, "simplex_strategy", kPrimalSimplex); /* new columns keep it feasible */
    double infinity = Highs_getInfinity(lp->highs);
    for (int32_t r = 0; r < n_rows; r++)
        if (Highs_addRow(lp->highs, isinf(lower[r]) ? -infinity : lower[r], isinf(upper[r]) ? infinity : upper[r], 0,
                         NULL, NULL) == kStatusError) {
            pricing_lp_free(lp);
            return moirai_error(MOIRAI_ELIMIT, "HiGHS: cannot add row %d", r);
        }
    *out = lp;
    return 0;
}

int pricing_lp_add_column(pricing_lp *lp, double cost, int32_t n, const int32_t *row, const double *value)
{
    if (Highs_addCol(lp->highs, cost, 0, Highs_getInfinity(lp->highs), n, row, value) == kStatusError)
        return moirai_error(MOIRAI_ELIMIT, "HiGHS: cannot add column %d", lp->n_columns);
    lp->n_columns++;
    return 0;
}

/* The clock of HiGHS runs on from one solve to the next. */
static void limit_time(pricing_lp *lp, const util_stop *stop)
{
    double left = util_stop_left_s(stop);
    Highs_setDoubleOptionValue(lp->highs, "time_limit",
                               isinf(left) ? Highs_getInfinity(lp->highs) : Highs_getRunTime(lp->highs) + left);
}

/* Within the stop; MOIRAI_EFAIL where there is no room for a solution. */
static int run(pricing_lp *lp, const util_stop *stop)
{
    size_t n = (size_t)lp->n_columns, m = (size_t)lp->n_rows;
    if (util_grow(&lp->value, &lp->capacity, 2 * n + 2 * m, sizeof *lp->value))
        return MOIRAI_EFAIL;
    limit_time(lp, stop);
    pricing_highs_heed(lp->highs, stop->interrupt);
    Highs_run(lp->highs);
    return 0;
}

/* What the run has found; each may be NULL. */
static int take_solution(pricing_lp *lp, double *row_dual, double *primal)
{
    size_t n = (size_t)lp->n_columns, m = (size_t)lp->n_rows;
    double *column = lp->value, *column_dual = column + n, *row = column_dual + n, *dual = row + m;
    if (Highs_getModelStatus(lp->highs) != kModelOptimal ||
        Highs_getSolution(lp->highs, column, column_dual, row, dual) == kStatusError)
        return moirai_error(MOIRAI_ELIMIT, "HiGHS: model status %d", Highs_getModelStatus(lp->highs));
    if (row_dual)
        memcpy(row_dual, dual, m * sizeof *dual);
    if (primal)
        memcpy(primal, column, n * sizeof *column);
    return 0;
}

int pricing_lp_solve(pricing_lp *lp, const util_stop *stop, double *objective, double *row_dual, double *primal)
{
    if (run(lp, stop))
        return MOIRAI_EFAIL;
    /* A tired basis: once more from scratch, the other way round. */
    if (Highs_getModelStatus(lp->highs) != kModelOptimal && !util_stopped(stop)) {
        Highs_clearSolver(lp->highs);
        Highs_setIntOptionValue(lp->highs, "simplex_strategy", kDualSimplex);
        Highs_run(lp->highs);
        Highs_setIntOptionValue(lp->highs, "simplex_strategy", kPrimalSimplex);
    }
    int rc = take_solution(lp, row_dual, primal);
    if (!rc)
        *objective = Highs_getObjectiveValue(lp->highs);
    return rc;
}

#else

bool pricing_lp_available(void)
{
    return false;
}

int pricing_lp_new(pricing_lp **out, int32_t n_rows, const double *lower, const double *upper)
{
    (void)n_rows, (void)lower, (void)upper;
    *out = NULL;
    return moirai_error(MOIRAI_ELIMIT, "this build has no HiGHS");
}

void pricing_lp_free(pricing_lp *lp)
{
    (void)lp;
}

int pricing_lp_add_column(pricing_lp *lp, double cost, int32_t n, const int32_t *row, const double *value)
{
    (void)lp, (void)cost, (void)n, (void)row, (void)value;
    return MOIRAI_EFAIL;
}

int pricing_lp_solve(pricing_lp *lp, const util_stop *stop, double *objective, double *row_dual, double *primal)
{
    (void)lp, (void)stop, (void)objective, (void)row_dual, (void)primal;
    return MOIRAI_EFAIL;
}

#endif
