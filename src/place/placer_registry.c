/* The list of placers, in the order in which they are shown. */
#include "place/placers.h"

#include <string.h>

static const moirai_placer *const registry[] = {
    &place_single, &place_heft,   &place_sequential, &place_chain, &place_m_topo, &place_m_etf, &place_m_sct,
    &place_getf,   &place_random, &place_placeto,    &place_hrl,   &place_exact,  &place_milp,  &place_moirai,
};

int moirai_placer_count(void)
{
    return (int)(sizeof registry / sizeof *registry);
}

const moirai_placer *moirai_placer_at(int index)
{
    return index >= 0 && index < moirai_placer_count() ? registry[index] : NULL;
}

const moirai_placer *moirai_placer_find(const char *name)
{
    for (int i = 0; i < moirai_placer_count(); i++)
        if (!strcmp(registry[i]->name, name))
            return registry[i];
    return NULL;
}
