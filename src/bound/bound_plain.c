/* Bounds that need no structure: the critical path, the load, and the longest path with transfers (all in
 * src/schedule: paths.h, load.c). */
#include <moirai/schedule.h>

#include "bound/bounds.h"
#include "schedule/paths.h"

static int find_critical_path(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    (void)budget;
    *lower_ns = moirai_bound_critical_path(p);
    return 0;
}

static int find_load(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    (void)budget;
    *lower_ns = moirai_bound_load(p);
    return 0;
}

static int find_transfers(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    (void)budget;
    *lower_ns = schedule_longest_path(&(schedule_paths){.p = p});
    return *lower_ns < 0 ? MOIRAI_EFAIL : 0;
}

const moirai_bound bound_critical_path = {.name = "critical-path",
                                          .summary = "longest path, every operator at its least time",
                                          .find = find_critical_path,
                                          .plain = true};
const moirai_bound bound_load = {
    .name = "load", .summary = "all work shared out over the devices at best", .find = find_load, .plain = true};
const moirai_bound bound_transfers = {
    .name = "transfers", .summary = "longest path with the transfers between devices", .find = find_transfers};
