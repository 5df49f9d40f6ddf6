/* Inside `split`: segments and transfers played through. Private to split_segment.c and split_merge.c. */
#ifndef MOIRAI_SPLIT_SPLIT_TASKS_H
#define MOIRAI_SPLIT_SPLIT_TASKS_H

#include "schedule/tasks.h"
#include "split/split.h"

typedef struct split_tasks {
    const split_plan *p;
    schedule_tasks tasks; /* segments, then transfers */
    int32_t n_readers;    /* (transfer, unit that waits for it) pairs */
    int32_t *reader_of, *reader;
    int32_t *last_sent; /* [device] */
} split_tasks;

/* split_tasks_free in every case. */
int split_tasks_init(split_tasks *x, const split_plan *p);
void split_tasks_free(split_tasks *x);
/* Plays the segments that `unit_segment` makes of the plan's units, numbered in the plan's order; each takes price_ns
 * and its units' times. False: they wait in a circle. */
bool split_tasks_play(split_tasks *x, const int32_t *unit_segment, int32_t n_segments, int64_t price_ns,
                      double *end_ns);

#endif
