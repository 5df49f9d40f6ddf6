/* The list of placers, in the order in which they are shown. */
#include "place/placers.h"

#include <string.h>

static const moirai_placer *const registry[] = {
    &moirai_placer_single,
    &moirai_placer_heft,
    &moirai_placer_sequential,
    &moirai_placer_chain,
    &moirai_placer_m_topo,
    &moirai_placer_m_etf,
    &moirai_placer_m_sct,
    &moirai_placer_getf,
    &moirai_placer_random,
    &moirai_placer_exact,
    &moirai_placer_milp,
    &moirai_placer_moirai,
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
        if (strcmp(registry[i]->name, name) == 0)
            return registry[i];
    return NULL;
}
