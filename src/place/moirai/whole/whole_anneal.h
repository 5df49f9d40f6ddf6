/* Annealing of the whole problem: what improves a plan where nothing falls apart into blocks. */
#ifndef MOIRAI_PLACE_MOIRAI_WHOLE_ANNEAL_H
#define MOIRAI_PLACE_MOIRAI_WHOLE_ANNEAL_H

#include <moirai/plan.h>

#include "place/moirai/whole/whole_sim.h"
#include "util/stop.h"

#define PLACE_WHOLE_CHAINS 4 /* at once; their number is part of the result, that of the threads is not */

#define PLACE_WHOLE_HOT 0.008    /* first temperature, of the makespan */
#define PLACE_WHOLE_COLD 0.00003 /* last one */

typedef struct place_whole_task {
    int64_t evaluations; /* of each chain */
    double heat;         /* scales the first temperature; 0: 1 */
    bool exchanges;      /* of devices between two operators are among the moves; windows have none */
    double cold;         /* scales the last temperature; 0: 1 */
    double lean;         /* how much the devices' loads count beside the makespan; windows do not read it */
    int32_t patience;    /* of windows: larger ones, with more evaluations for each operator; 0: 1 */
    int64_t *second_ns;  /* out: where the second best chain has ended, whatever it met before; NULL: not asked */
    uint64_t seed;
    int threads;
    util_stop stop;
} place_whole_task;

/* Replaces *plan by a shorter one where one that fits the memory is found. Deterministic for seed and evaluations
 * unless it is stopped. O(chains * evaluations * positions changed), and O(V+E) for states that are accepted. */
int place_whole_anneal(moirai_plan **plan, const moirai_problem *p, const place_whole_task *job);

/* The same by windows of the order, each annealed alone and again and again; job->heat is not read. */
int place_whole_windows(moirai_plan **plan, const moirai_problem *p, const place_whole_task *job);

/* ---- states and plans ---- */

/* The plan's operators by their starts. The caller frees *out, also on failure. */
int place_whole_order(int32_t **out, const moirai_problem *p, const moirai_plan *plan);
/* The state as a plan in place of *plan, where it is shorter and fits the memory. */
int place_whole_take(moirai_plan **plan, moirai_sim *sim, const place_whole *w);

#endif
