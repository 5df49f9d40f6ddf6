/* What is proven of a class of blocks wherever its ends are. */
#ifndef MOIRAI_PAIR_FLOORS_H
#define MOIRAI_PAIR_FLOORS_H

#include "pair/chain.h"

/* Raises raised_ns of the classes, and lower_ns of their open pairs, by one static programme for each class, largest
 * classes first. *useful: it raises them by enough; it ends where that is not so of the first ones. Pairs that are not
 * open do not count. */
int pair_floors_raise(bool *useful, pair_chain *c, int threads, const util_stop *stop);

#endif
