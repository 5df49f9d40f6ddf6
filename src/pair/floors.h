/* What is proven of a class of blocks wherever its ends are. */
#ifndef MOIRAI_PAIR_FLOORS_H
#define MOIRAI_PAIR_FLOORS_H

#include "pair/chain.h"

#define PAIR_PROGRAMME_OPS 16 /* of a block: smaller ones are closed by the search */
#define PAIR_PROGRAMME_CELLS 12000
#define PAIR_PROGRAMME_WORTH 0.1 /* of what lies between bound and plan: programmes that close less are not worth it */

/* Whether a static programme of this block takes less time than its first prices. */
bool pair_programme_fits(const decompose_block *b);
/* The same of a pair's block, and none was tried. */
bool pair_wants_programme(const pair_state *x);
/* And the one with free ends. */
bool pair_floors_fit(const decompose_block *b);

/* What the programme with free ends proves of every pair of a class; at least what is known. Some of its pairs are open:
 * no use in proving more than their best plan. */
int pair_floors_class(int64_t *lower_ns, const pair_chain *c, int32_t class_, const util_stop *stop);
/* Raises raised_ns of the classes, and lower_ns of their open pairs, by one static programme for each class, those
 * with most to gain first. *useful: they are worth it; it ends where the first ones are not. Pairs that are not open do
 * not count. */
int pair_floors_raise(bool *useful, pair_chain *c, int threads, const util_stop *stop);

#endif
