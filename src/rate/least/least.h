/* The devices that are cheapest at given prices, exactly. Private. */
#ifndef MOIRAI_RATE_LEAST_H
#define MOIRAI_RATE_LEAST_H

#include "relax/relax.h"
#include "relax/view.h"

typedef struct rate_least rate_least;

/* For any number of prices; refers to v and of_op: operators with the same number stay together, below n_units (NULL: each for itself). *out is NULL where tables would be too large. */
int rate_least_new(rate_least **out, const relax_view *v, const int32_t *of_op, int32_t n_units, const util_stop *stop);
void rate_least_free(rate_least *x);
/* Devices of which the sum of cost[op * K + device] (HUGE_VAL: not there) and price x time of all transfers is least, and that sum. From several threads at once.
 * MOIRAI_ELIMIT: `stop` came, or nothing is allowed. */
int rate_least_find(const rate_least *x, const double *cost, const double *price, uint8_t *device, double *sum,
                    const util_stop *stop);

/* relax_solve for the time between requests, with prices that are found so where tables are small enough. */
int rate_least_relax(relax_answer *out, const moirai_problem *p, const relax_task *job);

#endif
