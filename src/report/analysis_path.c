/* The critical path of a schedule, and what its time goes to.
 *
 * From the operator that finishes last, the path goes back to the task that brought the last of its inputs, from there
 * on in the same way, until a task reads nothing that is made. What lies between the arrival of the last input and
 * the start of a task is waiting, split by why (analysis_delay.c). So the path's tasks and waits fill the time from 0
 * to the makespan without a hole, and the five shares sum to the makespan, exactly.
 *
 * Where one device or port is busy nearly all the time, that path may hardly touch it: it waits while the device runs
 * operators that the last one does not need, and those are what limits the plan. So a task that waits for a busy
 * device or port has two ways back, to its last input and to the task that it was behind, and every choice gives a
 * path that fills the makespan. Shown is the one that spends most time on the resource that limits the plan and least on
 * waiting (a nanosecond there counts twice, one of any other task once); of equal ones the one along inputs. Where nothing is that busy, only inputs are followed: a reader wants to know that
 * operators of a chain stand in a queue. Ties go to the first input. O(V+E). */
#include "report/report.h"

#include <stdlib.h>

#include "util/util.h"

#define BUSY_SHARE 0.9 /* of the makespan: from here on a device or a port is called the bottleneck */

int32_t report_largest(const int64_t *value, int32_t n)
{
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++)
        if (value[k] > value[best])
            best = k;
    return best;
}

report_limit report_find_limit(const moirai_analysis *a)
{
    const int64_t *busy_ns[REPORT_TRACKS] = {a->busy_ns, a->send_busy_ns, a->receive_busy_ns};
    for (int track = 0; track < REPORT_TRACKS; track++) {
        int32_t k = report_largest(busy_ns[track], a->n_devices);
        if (a->plan->makespan_ns > 0 && (double)busy_ns[track][k] >= BUSY_SHARE * (double)a->plan->makespan_ns)
            return (report_limit){(report_track)track, k, busy_ns[track][k]};
    }
    return (report_limit){.device = MOIRAI_NONE};
}

static int32_t last_operator(const moirai_analysis *a)
{
    int32_t last = MOIRAI_NONE;
    for (int32_t i = 0; i < a->n_ops; i++)
        if (last == MOIRAI_NONE || a->plan->op_finish_ns[i] > a->plan->op_finish_ns[last])
            last = i;
    return last;
}

/* What a task that waits was behind. One that starts no earlier takes no time: it held nothing up, and might lead back
 * to the task itself. */
static int32_t behind(const moirai_analysis *a, int32_t task)
{
    int32_t b = a->delay[task].behind;
    return b != MOIRAI_NONE && moirai_task_start(a, b) < moirai_task_start(a, task) ? b : MOIRAI_NONE;
}

/* A task's time, twice where it takes the limit. */
static int64_t worth(const moirai_analysis *a, const report_limit *limit, int32_t task)
{
    bool transfer = report_is_transfer(a, task);
    int32_t device = !transfer                     ? a->plan->op_device[task]
                     : limit->track == REPORT_SEND ? report_transfer(a, task)->from
                                                   : report_transfer(a, task)->to;
    bool there = transfer == (limit->track != REPORT_COMPUTE) && device == limit->device;
    return (1 + there) * (moirai_task_finish(a, task) - moirai_task_start(a, task));
}

/* before[task]: the way back that is worth most, for all tasks that `last` can be led back to. Depth
 * first, since starts alone do not order tasks that take no time. */
static int choose(int32_t *before, const moirai_analysis *a, const report_limit *limit, int32_t last)
{
    size_t tasks = (size_t)a->n_ops + (size_t)a->n_transfers;
    int64_t *best = util_alloc(tasks, sizeof *best);
    int32_t *stack = util_alloc(2 * tasks + 1, sizeof *stack); /* each task pushes its two ways once */
    size_t n = 0;
    for (size_t i = 0; best && i < tasks; i++)
        best[i] = MOIRAI_UNKNOWN;
    if (best && stack)
        stack[n++] = last;
    while (n) {
        int32_t task = stack[n - 1], way[2] = {a->delay[task].cause, behind(a, task)};
        size_t above = n;
        for (int i = 0; i < 2; i++)
            if (way[i] != MOIRAI_NONE && best[way[i]] < 0)
                stack[n++] = way[i];
        if (n > above)
            continue;
        int64_t along = way[0] == MOIRAI_NONE ? 0 : best[way[0]], other = way[1] == MOIRAI_NONE ? -1 : best[way[1]];
        before[task] = way[other > along];
        best[task] = UTIL_MAX(along, other) + worth(a, limit, task);
        n--;
    }
    bool ok = best && stack;
    free(stack);
    free(best);
    return ok ? 0 : MOIRAI_EFAIL;
}

static void add_step(moirai_analysis *a, int32_t task, int32_t before)
{
    const moirai_delay *d = &a->delay[task];
    int64_t start = moirai_task_start(a, task), lasts = moirai_task_finish(a, task) - start;
    bool transfer = report_is_transfer(a, task), along = before == d->cause;
    int64_t busy_ns = along ? d->busy_ns : 0;
    a->share_ns[transfer ? MOIRAI_SHARE_TRANSFER : MOIRAI_SHARE_COMPUTE] += lasts;
    a->share_ns[transfer ? MOIRAI_SHARE_PORT : MOIRAI_SHARE_DEVICE] += busy_ns;
    a->share_ns[MOIRAI_SHARE_HELD] += along ? d->held_ns : start - moirai_task_finish(a, before);
    if (transfer) {
        const moirai_transfer *t = report_transfer(a, task);
        a->path_link_ns[t->from * a->n_devices + t->to] += lasts + busy_ns;
    } else {
        a->path_compute_ns[a->plan->op_device[task]] += lasts;
        a->path_wait_ns[a->plan->op_device[task]] += busy_ns;
    }
    a->on_path[task] = true;
    a->step[a->n_steps++] = task;
}

int report_find_path(moirai_analysis *a)
{
    size_t tasks = (size_t)a->n_ops + (size_t)a->n_transfers;
    if (a->problem->partial || !a->n_ops)
        return 0;
    int32_t last = last_operator(a), *before = util_alloc(tasks, sizeof *before);
    report_limit limit = report_find_limit(a);
    if (!before)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < tasks; i++)
        before[i] = a->delay[i].cause;
    int rc = limit.device == MOIRAI_NONE ? 0 : choose(before, a, &limit, last);
    for (int32_t task = rc ? MOIRAI_NONE : last; task != MOIRAI_NONE; task = before[task])
        add_step(a, task, before[task]);
    for (int32_t i = 0, j = a->n_steps - 1; i < j; i++, j--) {
        int32_t swap = a->step[i];
        a->step[i] = a->step[j];
        a->step[j] = swap;
    }
    free(before);
    return rc;
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
