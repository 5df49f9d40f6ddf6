/* What is proven of a class of blocks wherever its ends are. */
#ifndef MOIRAI_PAIR_FLOORS_H
#define MOIRAI_PAIR_FLOORS_H

#include "pair/chain.h"

/* Raises raised_ns of the classes, and lower_ns of their open pairs, by one static programme for each class, largest
 * classes first; ends early where the first ones show that it is of no use. The pairs are open. */
int pair_floors_raise(pair_chain *c, int threads, const util_stop *stop);

#endif
