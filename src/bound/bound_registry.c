/* The list of bounds, cheap ones first. */
#include <string.h>

#include "bound/bounds.h"

static const moirai_bound *const bounds[] = {
    &bound_critical_path, &bound_load,     &bound_transfers,       &bound_blocks,   &bound_prices_1,
    &bound_spine,         &bound_prices_2, &bound_prices_3,        &bound_prices_4, &bound_bytes,
    &bound_loads,         &bound_shifts,   &bound_interval_chains, &bound_search,
};

int moirai_bound_count(void)
{
    return (int)(sizeof bounds / sizeof *bounds);
}

const moirai_bound *moirai_bound_at(int index)
{
    return bounds[index];
}

const moirai_bound *moirai_bound_find(const char *name)
{
    for (int i = 0; i < moirai_bound_count(); i++)
        if (!strcmp(bounds[i]->name, name))
            return bounds[i];
    return NULL;
}

int bound_each_plain(const moirai_problem *p, const moirai_budget *budget,
                     int (*take)(void *data, int64_t lower_ns, const char *name), void *data)
{
    int rc = 0;
    for (int i = 0; i < moirai_bound_count() && !rc; i++) {
        int64_t lower_ns = 0;
        if (!bounds[i]->plain)
            continue;
        rc = bounds[i]->find(&lower_ns, p, budget);
        rc = rc || lower_ns == MOIRAI_UNKNOWN ? rc : take(data, lower_ns, bounds[i]->name);
    }
    return rc;
}
