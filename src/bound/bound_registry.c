/* The list of bounds, cheap ones first. */
#include <string.h>

#include "bound/bounds.h"

static const moirai_bound *const bounds[] = {
    &bound_critical_path, &bound_load,
    &bound_transfers,     &bound_getf,
    &bound_blocks,        &bound_prices_1,
    &bound_spine,         &bound_prices_2,
    &bound_prices_3,      &bound_prices_4,
    &bound_bytes,         &bound_static,
    &bound_pool,          &bound_interval_chains,
    &bound_interval_pool, &bound_search,
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
