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

#endif
