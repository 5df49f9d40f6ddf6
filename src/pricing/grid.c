/* Grids of steps and buckets, and what capacity is worth at prices on them. */
#include <stdlib.h>

#include "pricing/pricer.h"
#include "util/util.h"

void pricing_grid_init(pricing_grid *grid, int64_t length_ns, int64_t step_ns, int32_t buckets)
{
    grid->length_ns = length_ns;
    grid->step_ns = step_ns;
    grid->n_steps = (int32_t)(length_ns / step_ns) + 1;
    grid->n_buckets = UTIL_MIN(UTIL_MIN(buckets, grid->n_steps), PRICING_MAX_BUCKETS);
    for (int32_t i = 0; i < grid->n_buckets; i++) {
        /* A third of the buckets for each end's eighth, the rest even. */
        double x = (double)i / grid->n_buckets;
        double y = x < 1.0 / 3 ? x * 3 / 8 : x > 2.0 / 3 ? 1 - (1 - x) * 3 / 8 : 0.125 + (x - 1.0 / 3) * 2.25;
        int32_t at = (int32_t)((grid->n_buckets < 6 ? x : y) * grid->n_steps + 0.5);
        grid->bucket_step[i] = i && at <= grid->bucket_step[i - 1] ? grid->bucket_step[i - 1] + 1 : at;
    }
    /* Pushing apart may have run over the end. */
    grid->bucket_step[grid->n_buckets] = grid->n_steps;
    for (int32_t i = grid->n_buckets - 1; i > 0 && grid->bucket_step[i] >= grid->bucket_step[i + 1]; i--)
        grid->bucket_step[i] = grid->bucket_step[i + 1] - 1;
}

static void swap_boundaries(pricing_grid *grid, uint64_t *kept, int32_t i)
{
    int32_t step = grid->bucket_step[i];
    uint64_t low = *kept >> i & 1, high = *kept >> (i + 1) & 1;
    grid->bucket_step[i] = grid->bucket_step[i + 1];
    grid->bucket_step[i + 1] = step;
    *kept = (*kept & ~(UINT64_C(3) << i)) | high << i | low << (i + 1);
}

void pricing_grid_snap(pricing_grid *grid, uint64_t *kept, int64_t at_ns)
{
    int64_t at = at_ns / grid->step_ns;
    int32_t best = -1, *step = grid->bucket_step;
    if (at_ns < 0 || at >= grid->n_steps)
        return;
    for (int32_t i = 0; i < grid->n_buckets; i++) {
        if (step[i] == at) { /* there already */
            *kept |= UINT64_C(1) << i;
            return;
        }
        if (i && !(*kept >> i & 1) && (best < 0 || llabs(step[i] - at) < llabs(step[best] - at)))
            best = i;
    }
    if (best < 0)
        return;
    step[best] = (int32_t)at;
    *kept |= UINT64_C(1) << best;
    for (; best > 1 && step[best - 1] > step[best]; best--) /* past those that stay */
        swap_boundaries(grid, kept, best - 1);
    for (; best + 1 < grid->n_buckets && step[best] > step[best + 1]; best++)
        swap_boundaries(grid, kept, best);
}

int64_t pricing_bucket_ns(const pricing_grid *grid, int32_t bucket)
{
    int64_t from = grid->bucket_step[bucket] * grid->step_ns, to = grid->bucket_step[bucket + 1] * grid->step_ns;
    return UTIL_MIN(to, grid->length_ns) - UTIL_MIN(from, grid->length_ns);
}

void pricing_grid_spread(const pricing_grid *grid, int32_t r, const pricing_use *use, const double *per_ns,
                         double *cell)
{
    for (int32_t i = 0; i < grid->n_buckets; i++) {
        int64_t from = UTIL_MAX(use->start_ns, grid->bucket_step[i] * grid->step_ns), at = r * grid->n_buckets + i;
        int64_t to = UTIL_MIN(use->start_ns + use->ns, grid->bucket_step[i + 1] * grid->step_ns);
        if (to > from)
            cell[at] += use->part * (double)(to - from) / (per_ns ? per_ns[at] : 1);
    }
}

int64_t pricing_branch_term(const pricing_case *at, const int64_t *branch_price)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < at->n_branches; i++)
        sum += branch_price[i] * (branch_price[i] > 0 ? at->branch[i].most : at->branch[i].least);
    return sum;
}

int64_t pricing_capacity(const moirai_problem *q, const pricing_grid *grid, const int64_t *price)
{
    int64_t sum = 0;
    int32_t resources = schedule_resources(q);
    for (int32_t r = 0; r < resources; r++)
        for (int32_t i = 0; i < grid->n_buckets; i++)
            sum += price[r * grid->n_buckets + i] * pricing_bucket_ns(grid, i);
    return sum;
}

int64_t pricing_length_term(const moirai_problem *q, const pricing_grid *grid, const int64_t *price, int64_t unit,
                            int64_t least_ns)
{
    int32_t resources = schedule_resources(q);
    __int128 value = 0, least = INT64_MAX;
    for (int32_t i = 0; i < grid->n_buckets; i++) { /* linear within a bucket: the ends are enough */
        int64_t from = UTIL_MIN(grid->bucket_step[i] * grid->step_ns, grid->length_ns),
                to = from + pricing_bucket_ns(grid, i);
        __int128 rate = 0;
        for (int32_t r = 0; r < resources; r++)
            rate += price[r * grid->n_buckets + i];
        if (least_ns >= from && least_ns <= to)
            least = UTIL_MIN(least, (__int128)unit * least_ns - value - rate * (least_ns - from));
        value += rate * (to - from);
        if (to >= least_ns)
            least = UTIL_MIN(least, (__int128)unit * to - value);
    }
    return (int64_t)UTIL_MAX(least, -(__int128)PRICING_NONE);
}

int pricing_duals_set(pricing_duals *to, const moirai_problem *q, const pricing_duals *from)
{
    pricing_duals copy = *from;
    size_t n = (size_t)(schedule_resources(q) * from->grid.n_buckets + from->n_branches);
    if (from->price && !(copy.price = util_copy(from->price, n, sizeof *copy.price)))
        return MOIRAI_EFAIL;
    free(to->price);
    *to = copy;
    return 0;
}
