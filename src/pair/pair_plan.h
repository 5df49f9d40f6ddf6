/* A plan of one block between two devices. */
#ifndef MOIRAI_PAIR_PAIR_PLAN_H
#define MOIRAI_PAIR_PAIR_PLAN_H

#include <moirai/schedule.h>

/* A plan of a block: devices and the order of tasks, in local numbers. */
typedef struct pair_plan {
    int64_t length_ns;  /* from the finish of the entry to the start of the exit */
    int64_t cost;       /* length in units plus memory cost */
    int32_t *device;    /* per local operator */
    moirai_task *order; /* sorted by start */
    int64_t n_order;
} pair_plan;

void pair_plan_free(pair_plan *plan);
/* Copies devices (of n_ops operators) and order; length and cost are the caller's. */
int pair_plan_set(pair_plan *plan, int32_t n_ops, const int32_t *device, const moirai_task *order, int64_t n_order);
/* The same with length and cost; nothing where there is no plan yet. */
int pair_plan_copy(pair_plan *to, const pair_plan *from, int32_t n_ops);

#endif
