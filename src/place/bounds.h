/* The bounds of this library. A new one: its own file, its line here, its line in bound_registry.c. Private. */
#ifndef MOIRAI_BOUNDS_H
#define MOIRAI_BOUNDS_H

#include <moirai/bound.h>

extern const moirai_bound moirai_bound_of_critical_path;
extern const moirai_bound moirai_bound_of_load;
extern const moirai_bound moirai_bound_of_transfers;
extern const moirai_bound moirai_bound_of_getf;
extern const moirai_bound moirai_bound_of_blocks;
extern const moirai_bound moirai_bound_of_prices_1;
extern const moirai_bound moirai_bound_of_spine;
extern const moirai_bound moirai_bound_of_prices_2;
extern const moirai_bound moirai_bound_of_prices_3;
extern const moirai_bound moirai_bound_of_prices_4;
extern const moirai_bound moirai_bound_of_bytes;
extern const moirai_bound moirai_bound_of_search;

#endif
