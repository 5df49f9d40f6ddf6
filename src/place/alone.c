/* A plan beside the best device alone.
 *
 * Times of single operators do not add up to what a device takes for the whole network: a runtime fuses operators and
 * keeps tensors in layouts of its own (on 24 networks and four threads of a Xeon it took 0.57 to 1.28 times their sum,
 * docs/profile.md). A plan's segments lose some of that, and nobody knows how much before they have run: the makespan
 * has the operators' times. So what was measured of the whole network takes the place of the sum on one device.
 * O(V K). */
#include "place/fit.h"
#include "place/placers.h"

#include <stddef.h>

static bool can_take(const moirai_problem *p, int32_t k)
{
    for (int32_t i = 0; i < p->n_ops; i++)
        if (!moirai_op_may(p, i, k))
            return false;
    return place_fit_least_bytes(p, k) <= p->device_memory_bytes[k];
}

/* The one device that has all of the plan's operators, or MOIRAI_NONE. */
static int32_t only_device(const moirai_plan *plan)
{
    int32_t k = plan->n_ops ? plan->op_device[0] : MOIRAI_NONE;
    for (int32_t i = 1; i < plan->n_ops; i++)
        if (plan->op_device[i] != k)
            return MOIRAI_NONE;
    return k;
}

int moirai_alone_find(moirai_alone *out, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_plan *single;
    int rc = moirai_place(&single, p, "single", NULL);
    if (rc)
        return rc;
    int32_t only = only_device(plan);
    *out = (moirai_alone){p->n_ops ? single->op_device[0] : MOIRAI_NONE, single->makespan_ns, single->makespan_ns, 1};
    moirai_plan_free(single);
    if (out->device != MOIRAI_NONE && p->device_whole_ns[out->device])
        out->ns = p->device_whole_ns[out->device];
    for (int32_t k = 0; k < p->n_devices; k++) /* by their sums another device may have seemed faster */
        if (p->device_whole_ns[k] && p->device_whole_ns[k] < out->ns && can_take(p, k)) {
            out->device = k;
            out->ns = p->device_whole_ns[k];
        }
    int64_t ns = only != MOIRAI_NONE && p->device_whole_ns[only] ? p->device_whole_ns[only] : plan->makespan_ns;
    out->speed_up = ns > 0 ? (double)out->ns / (double)ns : 1;
    return 0;
}
