/* Annealing of the whole problem: what improves a plan where nothing falls apart into blocks. */
#ifndef MOIRAI_PLACE_MOIRAI_WHOLE_ANNEAL_H
#define MOIRAI_PLACE_MOIRAI_WHOLE_ANNEAL_H

#include <moirai/plan.h>

#include "place/moirai/whole/whole_sim.h"
#include "util/stop.h"

#define PLACE_WHOLE_CHAINS 4 /* at once; their number is part of the result, that of the threads is not */

typedef struct place_whole_task {
    int64_t evaluations; /* of each chain */
    double heat;         /* scales the first temperature; 0: 1 */
    bool exchanges;      /* of devices between two operators are among the moves */
    double cold;         /* scales the last temperature; 0: 1 */
    int64_t *second_ns;  /* out: where the second best chain has ended, whatever it met before; NULL: not asked */
    uint64_t seed;
    int threads;
    util_stop stop;
} place_whole_task;

/* Replaces *plan by a shorter one where one that fits the memory is found. Deterministic for seed and evaluations
 * unless it is stopped. O(chains * evaluations * positions changed), and O(V+E) for states that are accepted. */
int place_whole_anneal(moirai_plan **plan, const moirai_problem *p, const place_whole_task *job);

/* ---- one chain: random changes of a state ---- */

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
