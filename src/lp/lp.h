/* A linear programme that grows by columns: the master of the price search. Minimises. */
#ifndef MOIRAI_LP_LP_H
#define MOIRAI_LP_LP_H

#include <stdbool.h>
#include <stdint.h>

#include "util/stop.h"

typedef struct pricing_lp pricing_lp;

bool pricing_lp_available(void);
/* Rows lower <= a x <= upper; use +-HUGE_VAL for none. MOIRAI_ELIMIT: this build has no HiGHS. */
int pricing_lp_new(pricing_lp **out, int32_t n_rows, const double *lower, const double *upper);
void pricing_lp_free(pricing_lp *lp);
/* A column x >= 0. MOIRAI_ELIMIT here and wherever the programme is changed: the solver does not take such numbers. */
int pricing_lp_add_column(pricing_lp *lp, double cost, int32_t n, const int32_t *row, const double *value);
/* Solve to optimality; row_dual (n_rows) and primal (columns so far) may be NULL. Deterministic. MOIRAI_ELIMIT where
 * the solver gives up on it: what was found before stays valid. */
int pricing_lp_solve(pricing_lp *lp, const util_stop *stop, double *objective, double *row_dual, double *primal);

/* For a programme that is solved once: with presolve, by the dual simplex, within the stop. Row duals of
 * the optimum; MOIRAI_ELIMIT where it was not reached. */
int pricing_lp_solve_once(pricing_lp *lp, const util_stop *stop, double *row_dual, double *primal);

/* Another upper limit of a column (HUGE_VAL: none). */
int pricing_lp_set_column(pricing_lp *lp, int32_t column, double upper);
/* One more row; columns by number. */
int pricing_lp_add_row(pricing_lp *lp, double lower, double upper, int32_t n, const int32_t *column,
                       const double *value);
/* Once more after that, from where the last solve ended, by the dual simplex. Also what the rows come to; `primal`
 * (columns) may be NULL. */
int pricing_lp_solve_again(pricing_lp *lp, const util_stop *stop, double *row_dual, double *row_value, double *primal);
/* After a solve that gave up: whether it did because there is no solution. row_dual gets multipliers that show it. */
bool pricing_lp_refuted(pricing_lp *lp, double *row_dual);

#endif
