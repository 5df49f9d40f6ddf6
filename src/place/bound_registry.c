/* The list of bounds, cheap ones first. */
#include <string.h>

#include "place/bounds.h"

static const moirai_bound *const bounds[] = {
    &moirai_bound_of_critical_path,
    &moirai_bound_of_load,
    &moirai_bound_of_transfers,
    &moirai_bound_of_getf,
    &moirai_bound_of_blocks,
    &moirai_bound_of_prices_1,
    &moirai_bound_of_spine,
    &moirai_bound_of_prices_2,
    &moirai_bound_of_prices_3,
    &moirai_bound_of_prices_4,
    &moirai_bound_of_bytes,
    &moirai_bound_of_search,
};

void moirai_bound_options_init(moirai_bound_options *o)
{
    *o = (moirai_bound_options){.effort = 1, .seed = 1};
}

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
