/* Prices on a grid that are kept: the proof behind a bound, or where the next solve begins. */
#ifndef MOIRAI_PRICING_DUALS_H
#define MOIRAI_PRICING_DUALS_H

#include "pricing/grid.h"

/* Prices on a grid: cells, then branches. */
typedef struct pricing_duals {
    pricing_grid grid;
    int64_t *price;     /* NULL: none */
    int32_t n_branches; /* that have prices: the first so many of the case */
} pricing_duals;

/* A copy of these prices (cells, then branches; NULL: none) in place of those in *to. MOIRAI_EFAIL: *to is as it was.
 */
int pricing_duals_set(pricing_duals *to, const moirai_problem *q, const pricing_grid *grid, const int64_t *price,
                      int32_t n_branches);

#endif
