/* Random changes of a state of the whole problem. */
#ifndef MOIRAI_PLACE_MOIRAI_WHOLE_MOVES_H
#define MOIRAI_PLACE_MOIRAI_WHOLE_MOVES_H

#include "place/moirai/whole/whole_sim.h"
#include "util/stop.h"

typedef struct place_mover {
    place_whole *w;
    util_rng rng;
    bool exchanges;   /* of devices between two operators are among the moves */
    int32_t *stretch; /* working memory */
    int32_t *seen;    /* per operator: number of the move that has seen it */
    int32_t move;
} place_mover;

/* What was made before a failure is freed by place_mover_clear. */
int place_mover_open(place_mover *m, const moirai_problem *p, const util_stop *stop);
void place_mover_clear(place_mover *m);
/* A trial: begins one and changes something; the caller evaluates it. */
void place_mover_make(place_mover *m);

/* Annealing by these moves, from temperature hot_ns to cold_ns. */
typedef struct place_cooling {
    double hot_ns, cold_ns;
    int64_t evaluations;
    double lean;         /* how much the loads count beside the makespan */
    const double *worth; /* of a nanosecond of each device, 1 in all; NULL: loads do not count */
    const util_stop *stop;
    void (*accepted)(void *data); /* called with every state that is taken */
    void *data;
} place_cooling;
void place_mover_cool(place_mover *m, const place_cooling *job);

#endif
