/* Floating work put beside a plan of the spine. */
#ifndef MOIRAI_FLOATS_H
#define MOIRAI_FLOATS_H

#include "place/moirai/spine.h"
#include "place/moirai/stop.h"

/* A plan of the whole from one of the spine; *out is NULL where none that fits the memory was found. */
int moirai_floats_insert(moirai_plan **out, const moirai_spine *s, const moirai_plan *spine_plan);

typedef struct moirai_floats_task {
    int64_t evaluations;
    uint64_t seed;
    moirai_stop stop;
} moirai_floats_task;

/* Other devices for floating work, as long as they make *plan (of the whole) no longer. */
int moirai_floats_improve(moirai_plan **plan, const moirai_spine *s, const moirai_floats_task *job);

#endif
