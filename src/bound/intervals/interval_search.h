/* The bound of an interval between two devices by the exhaustive search. */
#ifndef MOIRAI_BOUND_INTERVALS_INTERVAL_SEARCH_H
#define MOIRAI_BOUND_INTERVALS_INTERVAL_SEARCH_H

#include "pair/pair.h"

/* Raises y->lower_ns up to need_ns or the length of the pair's plan within so many nodes, and keeps plans that are found
 * on the way. */
int bound_interval_search(pair_state *y, int64_t need_ns, int64_t nodes, const util_stop *stop);

#endif
