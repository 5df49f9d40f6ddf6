/* A bound by one linear programme over devices, transfers, paths and loads, evaluated in whole numbers. */
#ifndef MOIRAI_BOUND_STATIC_LP_H
#define MOIRAI_BOUND_STATIC_LP_H

#include <moirai/problem.h>

#include "util/stop.h"

typedef struct bound_static_task {
    int64_t proven_ns; /* a bound that is known */
    int64_t upper_ns;  /* no use in proving more */
    int32_t rounds;    /* of solving; each begins with what the one before has proven */
    util_stop stop;
} bound_static_task;

/* Programmes of more cells than this (edges * devices^2) are not made: *lower_ns is what was known. */
#define BOUND_STATIC_CELLS 40000

/* *lower_ns: the makespan of every plan of `q` is at least this; at least proven_ns. Masks of q->op_devices count; memory
 * and groups are left out. Without HiGHS: what was known. */
int bound_static_lp(int64_t *lower_ns, const moirai_problem *q, const bound_static_task *job);

#endif
