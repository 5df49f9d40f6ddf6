/* New chains from what all chains have found. */
#ifndef MOIRAI_BOUND_INTERVALS_INTERVAL_RECOMBINE_H
#define MOIRAI_BOUND_INTERVALS_INTERVAL_RECOMBINE_H

#include "bound/intervals/interval_chain.h"

/* mark: the operators of the chain that the known intervals make best; *worth: what it proves. */
int bound_interval_best_parts(int64_t *worth, bool *mark, const moirai_problem *p, const bound_interval_list *known);
/* Takes operators of the chain away where that is worth it, no two in a row, beginning with the first or with the second;
 * whether there were any. */
bool bound_interval_merge(bool *mark, const moirai_problem *p, const decompose_intervals *all, int32_t first);

#endif
