/* Resources, and grids of steps and buckets over the time between a block's cuts. */
#ifndef MOIRAI_PRICING_GRID_H
#define MOIRAI_PRICING_GRID_H

#include "decompose/block.h"

/* Resources: device k is k. Congestion port: sender k is K + k, receiver k is 2K + k. Congestion channel: the channel
 * from a to b is K + a * K + b. Congestion none: devices only. */
int32_t pricing_resource_count(const moirai_problem *q);

/* A grid of steps and buckets over the time between the block's cuts. */
#define PRICING_MAX_BUCKETS 64
typedef struct pricing_grid {
    int64_t length_ns; /* T: the block is assumed to take no longer */
    int64_t step_ns;
    int32_t n_steps; /* floor(T / step) + 1 */
    int32_t n_buckets;
    int32_t bucket_step[PRICING_MAX_BUCKETS + 1]; /* bucket i covers steps bucket_step[i] .. bucket_step[i+1]-1 */
} pricing_grid;

/* Steps of step_ns up to T. Buckets are finer near the ends, where devices wait for their first input or have sent
 * their last output. */
void pricing_grid_init(pricing_grid *grid, int64_t length_ns, int64_t step_ns, int32_t buckets);
/* Moves the boundary next to `at_ns` there: prices can then tell before from after. Boundaries in the mask `kept` stay,
 * and this one is added to it. Nothing is done where all of them are kept. */
void pricing_grid_snap(pricing_grid *grid, uint64_t *kept, int64_t at_ns);
int64_t pricing_bucket_ns(const pricing_grid *grid, int32_t bucket); /* its length within [0, T] */

/* A task of a component's schedule: what it holds and when. */
typedef struct pricing_use {
    int32_t r1, r2; /* resources, -1: none */
    int64_t start_ns, ns;
    double part; /* of the task that this component pays for */
} pricing_use;

/* Adds the time of each bucket of resource r that the task takes, times its part, to `cell` [resource * n_buckets + bucket];
 * with `per_ns` (likewise), divided by that. */
void pricing_grid_spread(const pricing_grid *grid, int32_t r, const pricing_use *use, const double *per_ns,
                         double *cell);

/* Prices on a grid that are kept, cells and then branches: the proof behind a bound, or where the next solve begins. */
typedef struct pricing_duals {
    pricing_grid grid;
    int64_t *price;     /* NULL: none */
    int32_t n_branches; /* that have prices: the first so many of the case */
} pricing_duals;

/* A copy of these prices (cells, then branches; NULL: none) in place of those in *to. MOIRAI_EFAIL: *to is as it was.
 */
int pricing_duals_set(pricing_duals *to, const moirai_problem *q, const pricing_grid *grid, const int64_t *price,
                      int32_t n_branches);

#endif
