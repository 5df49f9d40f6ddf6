/* Tasks by their starts. Private. */
#ifndef MOIRAI_SCHEDULE_PLAN_ORDER_H
#define MOIRAI_SCHEDULE_PLAN_ORDER_H

#include <moirai/budget.h>
#include <moirai/schedule.h>

/* A task with what it is sorted by. */
typedef struct schedule_timed_task {
    int64_t start_ns;
    int32_t lasts, depth; /* ties: what takes no time first, then producers before what they send before readers */
    moirai_task task;     /* ... then by number */
} schedule_timed_task;

schedule_timed_task schedule_timed_op(const moirai_problem *p, int32_t op, int64_t start_ns, int64_t finish_ns);
/* `task` is any number that tells the transfers of the schedule apart. */
schedule_timed_task schedule_timed_transfer(const moirai_problem *p, int32_t tensor, int64_t start_ns,
                                            int64_t finish_ns, moirai_task task);
void schedule_timed_sort(schedule_timed_task *task, size_t n);

/* The tasks of a plan in that order, for moirai_sim_replay; the caller frees *out. `p` may differ from the plan's
 * problem in times, and have further devices behind the plan's. MOIRAI_EINPUT where the plan does not fit it. */
int schedule_plan_order(moirai_task **out, int64_t *n_order, const moirai_problem *p, const moirai_plan *plan);

/* moirai_plan_tighten; where `hurry` is raised, peaks of memory stay unknown in memory mode static: a third of the time. */
int schedule_plan_tighten(moirai_plan **out, const moirai_problem *p, const moirai_plan *plan,
                          const moirai_interrupt *hurry);

#endif
