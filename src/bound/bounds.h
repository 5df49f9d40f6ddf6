/* The bounds of this library. A new one: its own file, its line here, its line in bound_registry.c. Private. */
#ifndef MOIRAI_BOUND_BOUNDS_H
#define MOIRAI_BOUND_BOUNDS_H

#include <moirai/bound.h>

extern const moirai_bound bound_critical_path;
extern const moirai_bound bound_load;
extern const moirai_bound bound_transfers;
extern const moirai_bound bound_blocks;
extern const moirai_bound bound_prices_1;
extern const moirai_bound bound_spine;
extern const moirai_bound bound_prices_2;
extern const moirai_bound bound_prices_3;
extern const moirai_bound bound_prices_4;
extern const moirai_bound bound_bytes;
extern const moirai_bound bound_loads;
extern const moirai_bound bound_shifts;
extern const moirai_bound bound_interval_chains;
extern const moirai_bound bound_search;

/* Every plain bound, handed to `take` with its name; ends at the first failure of either. */
int bound_each_plain(const moirai_problem *p, const moirai_budget *budget,
                     int (*take)(void *data, int64_t lower_ns, const char *name), void *data);

#endif
