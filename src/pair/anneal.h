/* Plans for one block between two devices: starts, then annealing. */
#ifndef MOIRAI_PAIR_ANNEAL_H
#define MOIRAI_PAIR_ANNEAL_H

#include <moirai/schedule.h>

#include "decompose/block.h"
#include "pricing/master.h"

/* A plan of a block: devices and the order of tasks, in local numbers. */
typedef struct pair_plan {
    int64_t length_ns;  /* from the finish of the entry to the start of the exit */
    int64_t cost;       /* length in units plus memory cost (PRICING_UNIT-ths of ns) */
    int32_t *device;    /* per local operator */
    moirai_task *order; /* sorted by start */
    int64_t n_order;
} pair_plan;

void pair_plan_free(pair_plan *plan);
/* Copies devices (of n_ops operators) and order; length and cost are the caller's. */
int pair_plan_set(pair_plan *plan, int32_t n_ops, const int32_t *device, const moirai_task *order,
                          int64_t n_order);

/* What a short search from the mix of a case has found. */
typedef struct pair_trial {
    int32_t index; /* of the case */
    pair_plan plan;
} pair_trial;

/* The cheapest plan first, trials without a plan last; equal ones by index. */
void pair_trials_sort(pair_trial *t, int32_t n);

typedef struct pair_anneal_task {
    int32_t entry_device, exit_device;
    const int64_t *memory_price;        /* or NULL */
    const pricing_chosen_column *pattern; /* hints from the prices, or NULL */
    int32_t n_patterns;
    const double *weight;        /* per resource: its part of the prices; or NULL */
    const int32_t *start_device; /* a plan to begin from, or NULL */
    bool keep_readers;           /* starts leave what reads the entry's tensors on its device */
    bool mix_only;               /* no other starts than the mix of the patterns */
    int64_t evaluations;
    double heat; /* scales the first temperature; 0: 1 */
    uint64_t seed;
    util_stop stop;
} pair_anneal_task;

/* Improves *plan (whose device is NULL at first). The block must be pinned to the devices of the task. */
int pair_anneal(pair_plan *plan, const decompose_block *b, moirai_sim *sim, const pair_anneal_task *job);

#endif
