/* The critical path of a schedule, and what its time goes to.
 *
 * From the operator that finishes last, the path goes back to the task that brought the last of its inputs, from there
 * on in the same way, until a task reads nothing that is made. What lies between the arrival of the last input and
 * the start of a task is waiting, split by why (analysis_delay.c). So the path's tasks and waits fill the time from 0
 * to the makespan without a hole, and the five shares sum to the makespan, exactly.
 *
 * Another tradition follows the task that held the device instead, and then has no waits at all; but the device was
 * held by operators that the last one does not need, and a reader wants to know just that. Ties go to the first input.
 * O(V+E). */
#include "report/report.h"

static int32_t last_operator(const moirai_analysis *a)
{
    int32_t last = MOIRAI_NONE;
    for (int32_t i = 0; i < a->n_ops; i++)
        if (last == MOIRAI_NONE || a->plan->op_finish_ns[i] > a->plan->op_finish_ns[last])
            last = i;
    return last;
}

static void add_step(moirai_analysis *a, int32_t task)
{
    const moirai_delay *d = &a->delay[task];
    int64_t lasts = moirai_task_finish(a, task) - moirai_task_start(a, task);
    bool transfer = report_is_transfer(a, task);
    a->share_ns[transfer ? MOIRAI_SHARE_TRANSFER : MOIRAI_SHARE_COMPUTE] += lasts;
    a->share_ns[transfer ? MOIRAI_SHARE_PORT : MOIRAI_SHARE_DEVICE] += d->busy_ns;
    a->share_ns[MOIRAI_SHARE_HELD] += d->held_ns;
    if (transfer) {
        const moirai_transfer *t = report_transfer(a, task);
        a->path_link_ns[t->from * a->n_devices + t->to] += lasts + d->busy_ns;
    } else {
        a->path_compute_ns[a->plan->op_device[task]] += lasts;
        a->path_wait_ns[a->plan->op_device[task]] += d->busy_ns;
    }
    a->on_path[task] = true;
    a->step[a->n_steps++] = task;
}

int report_find_path(moirai_analysis *a)
{
    if (a->problem->partial)
        return 0;
    for (int32_t task = last_operator(a); task != MOIRAI_NONE; task = a->delay[task].cause)
        add_step(a, task);
    for (int32_t i = 0, j = a->n_steps - 1; i < j; i++, j--) {
        int32_t swap = a->step[i];
        a->step[i] = a->step[j];
        a->step[j] = swap;
    }
    return 0;
}

int report_find_levels(moirai_analysis *a)
{
    const moirai_problem *p = a->problem;
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z], level = 0;
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++) {
            int32_t above = a->op_level[p->tensor_producer[p->op_in[j]]] + 1;
            level = above > level ? above : level;
        }
        a->op_level[i] = level;
        a->n_levels = level + 1 > a->n_levels ? level + 1 : a->n_levels;
    }
    return 0;
}
