/* single: everything on the one device that is fastest. The verdict that users ask for first: is it worth splitting at
 * all?
 *
 * No transfers, no idle time: the makespan is the sum of the times on that device, so the order matters to peak memory
 * only. A device is out where it can't run some operator or lacks memory; if all are out, the message says of each why.
 * O(V K). */
#include "place/fit.h"
#include "problem/device_set.h"
#include "place/placers.h"
#include "util/text.h"
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TIME 0.2 /* of the limit */

static int32_t first_banned(const moirai_problem *p, int32_t device)
{
    for (int32_t i = 0; i < p->n_ops; i++)
        if (!moirai_op_may(p, i, device))
            return i;
    return MOIRAI_NONE;
}

static int64_t replay_in_order(moirai_sim *sim, const moirai_problem *p, const int32_t *device)
{
    moirai_task *order = util_alloc((size_t)p->n_ops, sizeof *order);
    if (!order)
        return -1;
    for (int32_t i = 0; i < p->n_ops; i++)
        order[i] = p->topo[i];
    int64_t makespan = moirai_sim_replay(sim, device, order, p->n_ops);
    free(order);
    return makespan;
}

/* A plan on device k, or NULL with the reason in `why`. */
static int try_device(moirai_plan **out, moirai_sim *sim, const moirai_problem *p, int32_t *device, int32_t k,
                      char *why, size_t size, const util_stop *stop)
{
    *out = NULL;
    int32_t banned = first_banned(p, k);
    if (banned != MOIRAI_NONE) {
        snprintf(why, size, "cannot run '%.100s'", p->op_name[banned]);
        return 0;
    }
    int64_t least = place_fit_least_bytes(p, k);
    if (least > p->device_memory_bytes[k]) {
        snprintf(why, size, "%s short of memory", util_human_bytes(least - p->device_memory_bytes[k]).s);
        return 0;
    }
    for (int32_t i = 0; i < p->n_ops; i++)
        device[i] = k;
    /* Any order takes the same time; only peak memory asks for a good one. */
    int64_t makespan =
        p->memory == MOIRAI_MEMORY_STATIC ? replay_in_order(sim, p, device) : moirai_sim_dispatch(sim, device, NULL);
    if (makespan < 0)
        return moirai_error(MOIRAI_EFAIL, "device '%s' could not be simulated", p->device_name[k]);
    int64_t excess = moirai_sim_memory_excess(sim, NULL);
    if (excess == 0)
        return moirai_sim_plan(out, sim);
    int rc = 0;
    if (p->memory == MOIRAI_MEMORY_PEAK)
        rc = place_fit_schedule(out, &excess, sim, p, device, stop);
    if (excess < 0)
        snprintf(why, size, "not tried to the end, the time was up");
    else
        snprintf(why, size, "%s short of memory", util_human_bytes(excess).s);
    return rc;
}

/* Sums of times, which are the makespans; INT64_MAX where some operator can't run. */
static void sum_times(const moirai_problem *p, int64_t *sum)
{
    device_set all;
    int32_t words = moirai_device_words(p);
    memset(&all, 0xff, sizeof all);
    memset(sum, 0, (size_t)p->n_devices * sizeof *sum);
    for (int32_t i = 0; i < p->n_ops; i++) {
        for (int32_t w = 0; w < words; w++)
            all.word[w] &= p->op_devices[(int64_t)i * words + w];
        for (int32_t k = 0; k < p->n_devices; k++) /* what can't run there counts for nothing below */
            sum[k] += moirai_op_ns(p, i, k);
    }
    for (int32_t k = 0; k < p->n_devices; k++)
        sum[k] = device_set_has(&all, k) ? sum[k] : INT64_MAX;
}

/* The fastest device not tried yet, ties by number. */
static int32_t next_device(const int64_t *sum, int32_t n, const device_set *tried)
{
    int32_t best = MOIRAI_NONE;
    for (int32_t k = 0; k < n; k++)
        if (!device_set_has(tried, k) && (best == MOIRAI_NONE || sum[k] < sum[best]))
            best = k;
    return best;
}

static int try_all(moirai_plan **out, moirai_sim *sim, const moirai_problem *p, int32_t *device, const util_stop *stop)
{
    char why[MOIRAI_MAX_DEVICES][160], reasons[768] = "";
    int64_t sum[MOIRAI_MAX_DEVICES];
    device_set tried = {{0}};
    size_t length = 0;
    int64_t too_small = -1; /* the largest memory whose peak was short */
    sum_times(p, sum);
    for (int32_t n = 0; n < p->n_devices; n++) {
        int32_t k = next_device(sum, p->n_devices, &tried);
        device_set_add(&tried, k);
        if (n > 0 && util_stopped(stop)) {
            snprintf(why[k], sizeof why[k], "not tried, the time was up");
            continue;
        }
        if (p->n_ops >= PLACE_FIT_LARGE && p->device_memory_bytes[k] <= too_small) {
            snprintf(why[k], sizeof why[k], "no larger than one that is short of memory");
            continue;
        }
        int rc = try_device(out, sim, p, device, k, why[k], sizeof why[k], stop);
        if (rc || *out)
            return rc;
        if (sum[k] != INT64_MAX)
            too_small = UTIL_MAX(too_small, p->device_memory_bytes[k]);
    }
    for (int32_t k = 0; k < p->n_devices && length < sizeof reasons; k++)
        length += (size_t)snprintf(reasons + length, sizeof reasons - length, "%s%s: %s", length ? "; " : "",
                                   p->device_name[k], why[k]);
    return moirai_error(MOIRAI_EINFEASIBLE, "no single device will do: %s", reasons);
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    util_stop stop = util_stop_of(&o->budget);
    if (o->budget.time_limit_s > 0) /* many devices and orders with memory mode peak: others are to have their turn */
        stop = util_stop_within(&stop, MOST_TIME * o->budget.time_limit_s);
    moirai_sim *sim = NULL;
    int32_t *device = util_alloc((size_t)p->n_ops, sizeof *device);
    int rc = device ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    rc = rc ? rc : try_all(out, sim, p, device, &stop);
    moirai_sim_free(sim);
    free(device);
    return rc;
}

const moirai_placer place_single = {
    .name = "single",
    .summary = "the fastest single device that fits",
    .place = place,
};
