/* A linear programme that grows by columns: the master of the price search. Minimises. */
#ifndef MOIRAI_LP_H
#define MOIRAI_LP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct moirai_lp moirai_lp;

bool moirai_lp_available(void);
/* Rows lower <= a x <= upper; use +-HUGE_VAL for none. */
int moirai_lp_new(moirai_lp **out, int32_t n_rows, const double *lower, const double *upper);
void moirai_lp_free(moirai_lp *lp);
/* A column x >= 0. */
int moirai_lp_add_column(moirai_lp *lp, double cost, int32_t n, const int32_t *row, const double *value);
/* Solve to optimality; row_dual (n_rows) and primal (columns so far) may be NULL. Deterministic. MOIRAI_ELIMIT where
 * the solver gives up on it: what was found before stays valid. */
int moirai_lp_solve(moirai_lp *lp, double *objective, double *row_dual, double *primal);

#endif
