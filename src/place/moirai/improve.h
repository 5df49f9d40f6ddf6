/* Plans for a pair: annealing from plans and from what the masters of its cases mix. */
#ifndef MOIRAI_IMPROVE_H
#define MOIRAI_IMPROVE_H

#include "place/moirai/cases.h"

typedef struct moirai_improve {
    moirai_pair *pair;
    int32_t entry_device, exit_device;
    int32_t level;
    uint64_t seed;
    moirai_stop stop;
} moirai_improve;

/* From the pair's plan, or from nothing. */
int moirai_improve_plan(const moirai_improve *job, int64_t evaluations);
/* From the mixes of the cases' masters. */
int moirai_improve_from_cases(const moirai_improve *job, moirai_raise *r, int64_t evaluations);

#endif
