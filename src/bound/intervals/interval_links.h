/* What is known of intervals within an interval. */
#ifndef MOIRAI_BOUND_INTERVALS_INTERVAL_LINKS_H
#define MOIRAI_BOUND_INTERVALS_INTERVAL_LINKS_H

#include "bound/intervals/interval_chain.h"
#include "exact/exact.h"

/* As links of a block's problem; they point into the list of what is known. */
typedef struct bound_links {
    exact_link *list;
    int32_t n;
} bound_links;

/* The parts of a class's block that have been searched. O(V + intervals * K^2). */
int bound_links_find(bound_links *out, bound_interval_chain *x, int32_t class_, const bound_interval_list *known);
void bound_links_clear(bound_links *x);
/* What they prove of the pair, one after the other along the longest way: raises y->lower_ns. */
int bound_links_add_up(pair_state *y, const bound_links *x);

#endif
