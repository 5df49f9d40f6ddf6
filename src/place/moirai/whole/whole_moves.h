/* Random changes of a state of the whole problem, and annealing by them. */
#ifndef MOIRAI_PLACE_MOIRAI_WHOLE_MOVES_H
#define MOIRAI_PLACE_MOIRAI_WHOLE_MOVES_H

#include "place/moirai/whole/whole_sim.h"
#include "util/stop.h"

typedef struct place_mover {
    place_whole *w;
    util_rng rng;
    bool exchanges;  /* of devices between two operators are among the moves */
    int64_t best_ns; /* of all states since the first, and that state */
    int32_t *best_device, *best_order;
    int32_t *stretch; /* working memory */
    int32_t *seen;    /* per operator: number of the move that has seen it */
    int32_t move;
    util_memory memory; /* of the arrays */
} place_mover;

/* What was made before a failure is freed by place_mover_clear. */
int place_mover_open(place_mover *m, const moirai_problem *p, const util_stop *stop);
void place_mover_clear(place_mover *m);
/* The first state; as place_whole_set. */
void place_mover_begin(place_mover *m, const int32_t *device, const int32_t *order);
/* Anneals from temperature hot_ns to cold_ns, above 0. */
void place_mover_cool(place_mover *m, double hot_ns, double cold_ns, int64_t evaluations, const util_stop *stop);

#endif
