/* A task graph played through: every task takes its length and starts when all that it waits for is done. Private.
 *
 * For tasks that are not the model's: sub-models with a price of their own, transfers as a runtime sends them, measured
 * times. What shares a device or a port is told by a wait for the one before it. (The model's own rules, which find the
 * transfers and the order on ports by themselves, are the simulator's: sim_replay.c.) Lengths are real numbers, since
 * measured ones are; whole nanoseconds stay whole up to 2^53, which is a hundred days. */
#ifndef MOIRAI_SCHEDULE_TASKS_H
#define MOIRAI_SCHEDULE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct schedule_tasks {
    int32_t n, n_waits;
    double *length_ns; /* [task], the caller's to set */
    double *finish_ns; /* [task], of the last play */
    /* Inside: */
    int32_t *missing, *waits; /* [task] how many it waits for, and of these, those that are not done */
    int32_t *first, *next;    /* [task] its first entry among those that wait, [entry] the one after it */
    int32_t *who;             /* [entry] who waits */
    int32_t *queue;
} schedule_tasks;

/* Room for so many tasks and waits; schedule_tasks_free in every case. MOIRAI_EFAIL: no memory, or more than 2^31. */
int schedule_tasks_init(schedule_tasks *g, size_t most_tasks, size_t most_waits);
void schedule_tasks_free(schedule_tasks *g);

/* n tasks of length 0 that wait for nobody, in the place of those before. */
void schedule_tasks_reset(schedule_tasks *g, int32_t n);
/* `task` starts after `before` has finished. */
void schedule_tasks_wait(schedule_tasks *g, int32_t task, int32_t before);
/* Sets the finishes, and *end_ns to the last of them. False: some tasks wait in a circle. May be called again with
 * other lengths. O(tasks + waits), no allocation. */
bool schedule_tasks_play(schedule_tasks *g, double *end_ns);

#endif
