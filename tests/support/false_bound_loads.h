/* Certificates by prices on loads: accepted for what they claim, never for more than is true. */
#ifndef MOIRAI_TEST_FALSE_BOUND_LOADS_H
#define MOIRAI_TEST_FALSE_BOUND_LOADS_H

#include "support/attack.h"

typedef struct false_bound_loads_counts {
    int64_t certificates, raised, rows, rates, shifts, paths;
    attack_counts attacks;
} false_bound_loads_counts;

/* Of one request: the whole, with shifts and without, and blocks in a row where there are some; of small problems also of the time between requests. False, with a line
 * in `why` (256 bytes), where one is not accepted, or one of them, changed or not, proves more than `optimum` (brute force for the period:
 * all assignments, and all pairs of them by quarters). */
bool false_bound_loads(const moirai_problem *p, int64_t optimum, uint64_t seed, false_bound_loads_counts *counts,
                       char *why);

#endif
