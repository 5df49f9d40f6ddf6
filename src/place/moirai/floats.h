/* Floating work put beside a plan of the spine. */
#ifndef MOIRAI_PLACE_MOIRAI_FLOATS_H
#define MOIRAI_PLACE_MOIRAI_FLOATS_H

#include "decompose/spine.h"
#include "util/stop.h"

/* A plan of the whole from one of the spine; *out is NULL where none that fits the memory was found. */
int place_floats_insert(moirai_plan **out, const decompose_spine *s, const moirai_plan *spine_plan,
                        const util_stop *stop);

typedef struct place_floats_task {
    int64_t evaluations;
    uint64_t seed;
    util_stop stop;
} place_floats_task;

/* Other devices for floating work, as long as they make *plan (of the whole) no longer. */
int place_floats_improve(moirai_plan **plan, const decompose_spine *s, const place_floats_task *job);

#endif
