/* A bound by one linear programme over devices, transfers, paths and loads, evaluated in whole numbers. */
#ifndef MOIRAI_PAIR_STATIC_LP_H
#define MOIRAI_PAIR_STATIC_LP_H

#include <moirai/problem.h>

#include "util/stop.h"

/* A load row: tasks of a device, of a send port, of a receive port, or of the channel a * K + b, that start no sooner
 * than head_ns and are followed by tail_ns at least. */
typedef enum pair_load_kind { PAIR_LOAD_DEVICE, PAIR_LOAD_SEND, PAIR_LOAD_RECEIVE, PAIR_LOAD_CHANNEL } pair_load_kind;
typedef struct pair_load {
    pair_load_kind kind;
    int32_t which;
    int64_t head_ns, tail_ns;
} pair_load;

/* Multipliers in 1 / PAIR_STATIC_UNIT, whole numbers: per edge and device of its producer, of its reader, per edge and
 * two devices (sharing), per edge (path), per operator (end), per load row. */
#define PAIR_STATIC_UNIT (INT64_C(1) << 22)

typedef struct pair_static_proof {
    int64_t upper_ns; /* plans that are longer are not spoken of */
    int64_t bound_ns; /* what it proves, given what the proofs before it prove */
    int32_t n_loads;
    pair_load *load;
    int64_t n_duals;
    int64_t *dual; /* [out E * K][in E * K][share E * K * K][path E][end n][load] */
} pair_static_proof;

void pair_static_proof_free(pair_static_proof *proof, int32_t n);

#define PAIR_STATIC_ROUNDS 3

typedef struct pair_static_task {
    int64_t proven_ns; /* a bound that is known */
    int64_t upper_ns;  /* no use in proving more */
    util_stop stop;
} pair_static_task;

/* The size of a programme, in cells. Those of more than PAIR_STATIC_CELLS are not made: *lower_ns is what was known. */
#define PAIR_STATIC_CELLS 40000
static inline int64_t pair_static_cells(const moirai_problem *q)
{
    return (int64_t)q->n_edges * q->n_devices * q->n_devices;
}

/* *lower_ns: the makespan of every plan of `q` is at least this; at least what was known. Masks of q->op_devices count, memory
 * and groups are left out. `proof` (room for PAIR_STATIC_ROUNDS, or NULL) gets *n_proofs proofs, one for each round that has
 * proven more than the one before. Nothing is proven without HiGHS, and where the programme would be too large or its times are too
 * far apart. */
int pair_static_lp(int64_t *lower_ns, const moirai_problem *q, const pair_static_task *job, pair_static_proof *proof,
                   int32_t *n_proofs);

#endif
