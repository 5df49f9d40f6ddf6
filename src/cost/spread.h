/* How far predicted times may be off. Private to this room. */
#ifndef MOIRAI_COST_SPREAD_H
#define MOIRAI_COST_SPREAD_H

#include "cost/cost_class.h"

/* Standard deviations of the logarithm of predicted over measured, of a class: `bias` is common to all operators of the
 * class on one device, `noise` is each operator's own. */
typedef struct cost_spread {
    double bias, noise;
} cost_spread;

/* On a device type whose times the fit has seen, and on one that it has not. */
cost_spread cost_spread_of(cost_class k, bool seen);
/* Whether the fit has seen times of that type. */
bool cost_spread_seen(const char *type);

/* Half of an 80 % interval, in standard deviations. */
#define COST_SPREAD_80 1.2816

#endif
