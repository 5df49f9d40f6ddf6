/* Plans for one block between two devices: starts, then annealing. */
#ifndef MOIRAI_PAIR_ANNEAL_H
#define MOIRAI_PAIR_ANNEAL_H

#include "pair/pair.h"

/* What a short search from the LP solution of a case has found. */
typedef struct pair_trial {
    int32_t index; /* of the case */
    pair_plan plan;
    int64_t value; /* of the case, where trials are chosen by that */
} pair_trial;

/* Into a list of at most so many, the least value first: the last of too many goes. Returns how many there are. */
int32_t pair_trials_add(pair_trial *t, int32_t n, int32_t most, int32_t index, int64_t value);

/* The cheapest plan first, trials without a plan last; equal ones by index. */
void pair_trials_sort(pair_trial *t, int32_t n);

typedef struct pair_anneal_task {
    const int64_t *memory_price;         /* or NULL */
    const pricing_chosen_column *column; /* hints from the prices, or NULL */
    int32_t n_columns;
    const double *weight;        /* per resource: its part of the prices; or NULL */
    const int32_t *start_device; /* a plan to begin from, which may be the one at hand; or NULL */
    bool keep_readers;           /* starts leave what reads the entry's tensors on its device */
    bool solution_only;          /* no other starts than the LP solution of the columns */
    bool plan_only;              /* it goes on from the plan at hand: columns are moves, and not drawn from */
    int64_t evaluations;
    double heat; /* scales the first temperature; 0: 1 */
    uint64_t seed;
    util_stop stop;
} pair_anneal_task;

/* Improves *plan (whose device is NULL at first). The block must be pinned to the devices of the task. */
int pair_anneal(pair_plan *plan, const decompose_block *b, const pair_anneal_task *job);

#endif
