/* The pool of all devices (pair/pool.c) of a whole problem, as a bound. */
#include <moirai/schedule.h>

#include "bound/bounds.h"
#include "pair/pool.h"
#include "schedule/paths.h"
#include "util/util.h"

#define ROUNDS 3
#define CUTS 120
#define NODES 4000
#define BEYOND 1.25 /* of what is known: so far lengths are tried */

static int find_pool(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    int64_t known = UTIL_MAX(schedule_longest_path(&(schedule_paths){.p = p}), moirai_bound_load(p));
    pair_pool_task job = {.proven_ns = known,
                          .upper_ns = (int64_t)((double)known * BEYOND) + 2,
                          .rounds = ROUNDS,
                          .cuts = CUTS,
                          .nodes = NODES,
                          .threads = budget->threads,
                          .stop = util_stop_of(budget)};
    return pair_pool(lower_ns, p, &job, NULL);
}

const moirai_bound bound_pool = {
    .name = "pool", .summary = "all devices as one pool with a price per time: minimum cuts", .find = find_pool};
