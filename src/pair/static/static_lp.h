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
 * two devices (sharing), per edge (path), per operator (end), per load row, per number (cases). */
#define PAIR_STATIC_UNIT (INT64_C(1) << 22)

/* A case of a static proof: all plans, or a part of them. It is divided into its children, or judged. */
typedef enum pair_static_division {
    PAIR_UNDIVIDED,
    PAIR_BY_NUMBER,
    PAIR_BY_SENDING,
    PAIR_BY_DEVICE,
    PAIR_BY_RETURN
} pair_static_division;
typedef struct pair_static_case {
    int32_t parent; /* MOIRAI_NONE: all plans */
    int32_t which;  /* child of its parent; by sending: the device that receives next, MOIRAI_NONE: nobody else does */
    pair_static_division division;
    int32_t child,
        n_children;        /* by number: at most `most`, more; by sending: a device each, nobody else; by device: there,
                                * elsewhere */
    int32_t group, device; /* by number; by device: operator and device */
    int64_t most;
    int64_t bound_ns;
    int64_t own_ns;   /* proven by its own multipliers when it was judged first; 0: not yet */
    int64_t upper_ns; /* plans up to this length were spoken of when it was judged */
    bool settled;     /* nothing to divide */
    /* of a case that is judged; dual NULL: it has no plans */
    int32_t n_loads;
    pair_load *load;
    int64_t n_duals, *dual;
} pair_static_case;

typedef struct pair_static_proof {
    int64_t upper_ns; /* plans that are longer are not spoken of */
    int64_t bound_ns; /* what it proves, given what the proofs before it prove */
    int32_t n_loads;
    pair_load *load;
    int64_t n_duals;
    int64_t *dual; /* [out E * K][in E * K][share E * K * K][path E][end n][load] */
} pair_static_proof;

void pair_static_proof_free(pair_static_proof *proof, int32_t n);

/* A proof by cases: the first case is all plans. Duals as above, then [number groups * K][readers of sent K]. */
typedef struct pair_static_tree {
    int64_t upper_ns, bound_ns;
    int32_t n_groups, *group_off, *group_op; /* operators alike */
    int32_t sent;                            /* the tensor whose receivers are told apart; MOIRAI_NONE: none */
    int64_t return_ns;                       /* what takes as long to the exit's device is a result; 0: nothing is */
    int32_t n_cases;
    size_t capacity;
    pair_static_case *cases;
} pair_static_tree;

#define PAIR_STATIC_ROUNDS 3

typedef struct pair_static_task {
    int64_t proven_ns; /* a bound that is known */
    int64_t upper_ns;  /* no use in proving more */
    int32_t rounds;    /* up to PAIR_STATIC_ROUNDS; each begins with what the one before has proven */
    int32_t entry;     /* operator that precedes all others, on one device; MOIRAI_NONE: none is known */
    int32_t exit;      /* operator that follows all others, on one device; MOIRAI_NONE: none is known */
    util_stop stop;
} pair_static_task;

/* The size of a programme, in cells. Those of more than PAIR_STATIC_CELLS are not made: *lower_ns is what was known. */
#define PAIR_STATIC_CELLS 40000
static inline int64_t pair_static_cells(const moirai_problem *q)
{
    return (int64_t)q->n_edges * q->n_devices * q->n_devices;
}

/* A programme that can be gone on with: rounds first, then cases, as many at a time as one likes. */
typedef struct pair_static pair_static;

/* Of `q`, which stays where it is; masks of q->op_devices count, memory and groups are left out. *out is NULL without
 * HiGHS, and where the programme would be too large or its times are too far apart. */
int pair_static_new(pair_static **out, const moirai_problem *q, const pair_static_task *job);
void pair_static_free(pair_static *s);
/* *lower_ns: the makespan of every plan is at least this; at least what was known. `proof` (room for
 * PAIR_STATIC_ROUNDS) gets *n_proofs proofs, one for each round that has proven more than the one before. */
int pair_static_rounds(int64_t *lower_ns, pair_static *s, const util_stop *stop, pair_static_proof *proof,
                       int32_t *n_proofs);
/* The same by so many more cases, or until need_ns is proven. The numbers of operators alike on a device and the
 * order in which devices receive what the entry sends are divided. */
int pair_static_divide(int64_t *lower_ns, pair_static *s, int32_t cases, int64_t need_ns, const util_stop *stop);
/* The cases so far; NULL: none, or they prove nothing beyond the rounds. */
const pair_static_tree *pair_static_proven(const pair_static *s);
/* How many cases there are by now. */
int32_t pair_static_cases(const pair_static *s);
/* Nothing is left to divide, or dividing does not help. */
bool pair_static_exhausted(const pair_static *s);

/* Both at once, for a problem as a whole; cases 0: rounds alone. */
int pair_static_lp(int64_t *lower_ns, const moirai_problem *q, const pair_static_task *job, int32_t cases);

#endif
