/* Annealing of devices on the loads of all resources. Private. */
#ifndef MOIRAI_RATE_ANNEAL_H
#define MOIRAI_RATE_ANNEAL_H

#include "place/fit.h"
#include "relax/view.h"

typedef struct rate_anneal_task {
    const relax_view *v;
    const place_units *units;
    uint64_t devices;       /* that may be used; the start is on them */
    double send_price;      /* what a nanosecond of sending costs beside the load that it is */
    double heat, last_heat; /* of the value, at the start and at the end; 0: the usual */
    const double *
        weight; /* of each resource's part of the norm, whose power rises then; NULL: all count the same, at its full power */
    const double *price; /* of a nanosecond on each resource: the sum is made small; NULL: the largest load is */
    int64_t steps;
    uint64_t seed;
    util_stop stop;
} rate_anneal_task;

/* Improves `device`, which fits the memory. *load_ns: its largest load. Deterministic for the seed, unless the stop ends it.
 * O(steps * degree * K). */
int rate_anneal(int32_t *device, int64_t *load_ns, const rate_anneal_task *task);

#endif
