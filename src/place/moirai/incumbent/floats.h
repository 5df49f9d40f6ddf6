/* Floating work put beside a plan of the spine. */
#ifndef MOIRAI_PLACE_MOIRAI_FLOATS_H
#define MOIRAI_PLACE_MOIRAI_FLOATS_H

#include "decompose/spine.h"
#include "util/stop.h"

/* A plan of the whole from one of the spine; *out is NULL where none that fits the memory was found. */
int place_floats_insert(moirai_plan **out, const decompose_spine *s, const moirai_plan *spine_plan,
                        const util_stop *stop);

#endif
