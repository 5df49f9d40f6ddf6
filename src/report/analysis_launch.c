/* How much of a makespan is launches.
 *
 * A problem says what starting an operator costs on a device, where its times were made from figures. An operator on
 * the critical path has that launch in its time. While the path waits for a device, that device runs other operators;
 * of this time the device's own share of launches counts. Nothing is counted where operators were measured. O(V). */
#include "report/report.h"

#include "util/util.h"

#define MOSTLY 0.5 /* of the makespan */

static int64_t launch_of(const moirai_analysis *a, int32_t op)
{
    int32_t k = a->plan->op_device[op];
    return UTIL_MIN(a->problem->device_launch_ns[k], moirai_op_ns(a->problem, op, k));
}

void report_find_launches(moirai_analysis *a)
{
    double all[MOIRAI_MAX_DEVICES] = {0}, sum = 0;
    if (a->problem->partial || !a->problem->device_launch_ns)
        return;
    for (int32_t i = 0; i < a->n_ops; i++) {
        all[a->plan->op_device[i]] += (double)launch_of(a, i);
        sum += a->on_path[i] ? (double)launch_of(a, i) : 0;
    }
    for (int32_t k = 0; k < a->n_devices; k++)
        if (a->busy_ns[k] > 0)
            sum += all[k] / (double)a->busy_ns[k] * (double)a->path_wait_ns[k];
    a->launch_ns = (int64_t)sum;
    a->mostly_launches = sum > MOSTLY * (double)a->plan->makespan_ns;
}
