/* The tasks of a schedule in the order of their starts, such that replaying them gives the schedule again.
 *
 * Starts alone are not enough: tasks that take no time share theirs with others. So these come first among equal
 * starts, and then precedence decides: an operator ranks at twice its place in the topological order, and what it sends
 * right behind it. O(n log n). */
#include "schedule/plan_order.h"

#include <stdlib.h>

schedule_timed_task schedule_timed_op(const moirai_problem *p, int32_t op, int64_t start_ns, int64_t finish_ns)
{
    return (schedule_timed_task){start_ns, finish_ns > start_ns, 2 * p->topo_rank[op], op};
}

schedule_timed_task schedule_timed_transfer(const moirai_problem *p, int32_t tensor, int64_t start_ns,
                                            int64_t finish_ns, moirai_task task)
{
    return (schedule_timed_task){start_ns, finish_ns > start_ns, 2 * p->topo_rank[p->tensor_producer[tensor]] + 1,
                                 task};
}

static int by_start(const void *left, const void *right)
{
    const schedule_timed_task *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->lasts != b->lasts)
        return a->lasts - b->lasts;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return (a->task > b->task) - (a->task < b->task);
}

void schedule_timed_sort(schedule_timed_task *task, size_t n)
{
    qsort(task, n, sizeof *task, by_start);
}
