/* Inside annealing of a block: the state at hand, and what changes it. Private. */
#ifndef MOIRAI_PAIR_ANNEAL_STATE_H
#define MOIRAI_PAIR_ANNEAL_STATE_H

#include "pair/anneal.h"
#include "util/util.h"

typedef struct pair_annealing {
    const decompose_block *b;
    const moirai_problem *q;
    moirai_sim *sim;
    const pair_anneal_task *job;
    pair_plan *plan;
    util_rng rng;
    int32_t *device, *old_device; /* per operator: of the trial, and of the state that it came from */
    int64_t *priority, *old_priority;
    int64_t *tail_ns;                         /* [op * n_devices + device]: what follows at least */
    int64_t rest_ns[3 * MOIRAI_MASK_DEVICES]; /* what follows all of a device or a port */
    int32_t *mark;                            /* scratch of the part moves */
    int64_t energy;                           /* of the state at hand; INT64_MAX: it is not allowed */
    int64_t evaluations;
    int failed;
} pair_annealing;

static inline bool pair_annealing_can_run(const pair_annealing *x, int32_t op, int32_t k)
{
    return x->q->op_devices[op] >> k & 1;
}

/* The allowed device for an operator that should go to k: k, or the fastest. */
int32_t pair_annealing_nearest(const pair_annealing *x, int32_t op, int32_t k);
/* Groups stay together: everyone follows the one that moved. */
void pair_annealing_follow(pair_annealing *x, int32_t op);
/* The operator, and its group, to that device. */
void pair_annealing_put(pair_annealing *x, int32_t op, int32_t k);
/* Column `h` onto component c: its devices and, if wanted, its starts as priorities. */
void pair_annealing_wear(pair_annealing *x, int32_t c, const pricing_chosen_column *h, bool priorities);
/* A random change of old_device and old_priority, written to device and priority. */
void pair_annealing_move(pair_annealing *x);

#endif
