#include "pricing/duals.h"

#include <stdlib.h>

#include "util/util.h"

int pricing_duals_set(pricing_duals *to, const moirai_problem *q, const pricing_grid *grid, const int64_t *price,
                      int32_t n_branches)
{
    pricing_duals copy = {*grid, NULL, n_branches};
    if (price) {
        size_t n = (size_t)pricing_resource_count(q) * (size_t)grid->n_buckets + (size_t)n_branches;
        if (!(copy.price = util_copy(price, n, sizeof *price)))
            return MOIRAI_EFAIL;
    }
    free(to->price);
    *to = copy;
    return 0;
}
