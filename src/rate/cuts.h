/* Contiguous stages by what intervals of an order cost. Private. */
#ifndef MOIRAI_RATE_CUTS_H
#define MOIRAI_RATE_CUTS_H

#include "place/fit.h"
#include "relax/view.h"

typedef struct rate_cuts_task {
    const relax_view *v;
    const place_units *units;
    const int32_t *order; /* operators */
    bool seats;           /* an operator alone goes behind the group that it is nearest to */
    util_stop stop;
} rate_cuts_task;

/* Stages of this order, each unit where its first operator is. *found false where none fit, there are too many kinds of devices, or the stop came;
 * `device` is then unspecified. Bytes of shared weights are not counted. O(P E + P^2 S) for P places to cut and S multisets of devices. */
int rate_cuts(int32_t *device, bool *found, const rate_cuts_task *task);

#endif
