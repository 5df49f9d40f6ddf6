/* Prices of paths, in a proof by prices on loads. */
#ifndef MOIRAI_PROVE_PROVE_PATH_ROWS_H
#define MOIRAI_PROVE_PROVE_PATH_ROWS_H

#include <yyjson.h>

#include "prove/prove.h"

/* Adds to the costs [local * K + device] of the operators of each path its price for a nanosecond, and all prices to *prices. The list has for each
 * path a price, how many operators, and these. */
int prove_add_paths(__int128 *cost, __int128 *prices, const prove_block *b, const uint64_t *may, yyjson_val *list);

#endif
