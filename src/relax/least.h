/* The devices that are cheapest at given prices, exactly. Private. */
#ifndef MOIRAI_RELAX_LEAST_H
#define MOIRAI_RELAX_LEAST_H

#include "relax/view.h"

typedef struct relax_least relax_least;

/* For any number of prices; refers to v and of_op: operators with the same number stay together, below n_units (NULL: each for itself). *out is NULL where tables would be too large. */
int relax_least_new(relax_least **out, const relax_view *v, const int32_t *of_op, int32_t n_units,
                    const util_stop *stop);
void relax_least_free(relax_least *x);
/* Devices of which the sum of cost[op * K + device] (HUGE_VAL: not there) and price x time of all transfers is least, and that sum. From several threads at once.
 * MOIRAI_ELIMIT: `stop` came, or nothing is allowed. */
int relax_least_find(const relax_least *x, const double *cost, const double *price, uint8_t *device, double *sum,
                     const util_stop *stop);

#endif
