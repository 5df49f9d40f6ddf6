/* single: everything on the one device that is fastest. The verdict that users ask for first: is it worth splitting at all?
 *
 * No transfers, no idle time: the makespan is the sum of the times on that device, so the order matters to peak memory
 * only. A device is out where it can't run some operator or lacks memory; if all are out, the message says of each why. O(V K). */
#include "place/fit.h"
#include "place/placers.h"
#include "util/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t first_banned(const moirai_problem *p, int32_t device)
{
    for (int32_t i = 0; i < p->n_ops; i++)
        if (!(p->op_devices[i] >> device & 1))
            return i;
    return MOIRAI_NONE;
}

/* A plan on device k, or NULL with the reason in `why`. */
static int try_device(moirai_plan **out, moirai_sim *sim, const moirai_problem *p, int32_t *device, int32_t k, char *why,
                      size_t size)
{
    *out = NULL;
    int32_t banned = first_banned(p, k);
    if (banned != MOIRAI_NONE) {
        snprintf(why, size, "cannot run '%.100s'", p->op_name[banned]);
        return 0;
    }
    for (int32_t i = 0; i < p->n_ops; i++)
        device[i] = k;
    if (moirai_sim_dispatch(sim, device, NULL) < 0)
        return moirai_error(MOIRAI_EFAIL, "device '%s' could not be simulated", p->device_name[k]);
    int64_t excess = moirai_sim_memory_excess(sim, NULL);
    if (excess == 0)
        return moirai_sim_plan(out, sim);
    int rc = 0;
    if (p->memory == MOIRAI_MEMORY_PEAK)
        rc = place_fit_schedule(out, &excess, sim, p, device);
    snprintf(why, size, "%" PRId64 " bytes short", excess);
    return rc;
}

static int try_all(moirai_plan **out, moirai_sim *sim, const moirai_problem *p, int32_t *device)
{
    char reasons[768] = "", why[160];
    size_t length = 0;
    for (int32_t k = 0; k < p->n_devices; k++) {
        moirai_plan *plan;
        int rc = try_device(&plan, sim, p, device, k, why, sizeof why);
        if (rc != 0)
            return rc;
        if (plan == NULL) {
            if (length < sizeof reasons)
                length += (size_t)snprintf(reasons + length, sizeof reasons - length, "%s%s: %s", length ? "; " : "",
                                           p->device_name[k], why);
        } else if (*out == NULL || plan->makespan_ns < (*out)->makespan_ns) {
            moirai_plan_free(*out);
            *out = plan;
        } else {
            moirai_plan_free(plan);
        }
    }
    return *out != NULL ? 0 : moirai_error(MOIRAI_EINFEASIBLE, "no single device will do: %s", reasons);
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    (void)o;
    moirai_sim *sim = NULL;
    int32_t *device = util_alloc((size_t)p->n_ops, sizeof *device);
    int rc = device != NULL ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    if (rc == 0)
        rc = try_all(out, sim, p, device);
    moirai_sim_free(sim);
    free(device);
    return rc;
}

const moirai_placer place_single = {
    .name = "single",
    .summary = "the fastest single device that fits",
    .place = place,
};
