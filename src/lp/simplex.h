/* A small linear programme that grows by columns, kept between solves: the primal simplex with the whole inverse of the
 * basis. Minimises. For a few hundred rows at most. */
#ifndef MOIRAI_LP_SIMPLEX_H
#define MOIRAI_LP_SIMPLEX_H

#include <stdint.h>

#include "util/stop.h"

#define PRICING_SIMPLEX_ROWS 1536 /* its work and its memory grow with their square */

typedef struct pricing_simplex pricing_simplex;

/* Rows lower <= a x <= upper; use +-HUGE_VAL for none. */
int pricing_simplex_new(pricing_simplex **out, int32_t n_rows, const double *lower, const double *upper);
void pricing_simplex_free(pricing_simplex *s);
/* A column x >= 0; each row at most once. */
int pricing_simplex_add_column(pricing_simplex *s, double cost, int32_t n, const int32_t *row, const double *value);
/* From where the last solve ended; row_dual (rows) and primal (columns so far) may be NULL. Deterministic. Limits of rows
 * may be overstepped by a few 1e-7. MOIRAI_ELIMIT where it gives up (no solution, no least one, numbers that are too
 * far apart, the stop). */
int pricing_simplex_solve(pricing_simplex *s, const util_stop *stop, double *objective, double *row_dual,
                          double *primal);

#endif
