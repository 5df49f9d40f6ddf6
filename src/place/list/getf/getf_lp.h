/* GETF's linear programme (Su, Ren, Vardi, Wierman 2020): a bound on every plan, and how much of each operator belongs
 * to which device. Private. */
#ifndef MOIRAI_PLACE_LIST_GETF_LP_H
#define MOIRAI_PLACE_LIST_GETF_LP_H

#include <moirai/bound.h>

#include "util/stop.h"

typedef struct place_getf_task {
    uint64_t devices; /* those that may be used; an operator that none of them can run may use all that can */
    bool milp;        /* whole operators: branch and bound after the linear programme, from its rounding */
    bool plain;       /* one variable per operator, not per colour (for tests: the value must be the same) */
    util_stop stop;
    double gap; /* of the branch and bound */
    uint64_t seed;
} place_getf_task;

typedef struct place_getf_result {
    bool solved;      /* the linear programme came to its end */
    bool milp_found;  /* `share` is the branch and bound's, not the linear programme's */
    double value_ns;  /* the linear programme's value, as the solver says */
    int64_t lower_ns; /* proven in whole numbers from its duals, for plans that use these devices; 0 where not solved */
    double *share;    /* [operator * n_devices + device] in 0 .. 1; NULL where not solved */
} place_getf_result;

/* O(E K) besides the solver. */
int place_getf_solve(place_getf_result *out, const moirai_problem *p, const place_getf_task *task);
void place_getf_clear(place_getf_result *g);

#endif
