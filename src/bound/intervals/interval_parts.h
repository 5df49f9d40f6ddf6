/* The parts of a long interval, searched from the smallest up. */
#ifndef MOIRAI_BOUND_INTERVALS_INTERVAL_PARTS_H
#define MOIRAI_BOUND_INTERVALS_INTERVAL_PARTS_H

#include "bound/intervals/interval_chain.h"

typedef struct bound_part_task {
    int32_t entry, exit; /* of the long interval; MOIRAI_NONE: the beginning, the end */
    int32_t most_ops;    /* of a part */
} bound_part_task;

/* Searches all parts of the interval from a fork to a join that have not been searched before between all devices, each
 * with a few nodes (job->effort, threads and stop), and adds what they prove to `known`. */
int bound_interval_parts(bound_interval_list *known, const moirai_problem *p, const decompose_intervals *all,
                         const bound_part_task *task, const bound_interval_task *job);

#endif
