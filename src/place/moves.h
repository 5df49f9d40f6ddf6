/* Random moves of an assignment. Private. */
#ifndef MOIRAI_PLACE_MOVES_H
#define MOIRAI_PLACE_MOVES_H

#include "place/fit.h"
#include "util/util.h"

typedef struct place_moves {
    const moirai_problem *p; /* of one operator at least */
    const place_units *units;
    util_rng rng;
} place_moves;

/* An operator and some of those around it that share its device go to a device of a neighbour, or to any; groups stay together, and
 * nothing goes where it may not run. Perhaps nothing moves. */
void place_move(place_moves *m, int32_t *device);

#endif
