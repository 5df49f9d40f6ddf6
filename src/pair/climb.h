/* Cases of a pair, target by target: what raises its bound from the second level on. */
#ifndef MOIRAI_PAIR_CLIMB_H
#define MOIRAI_PAIR_CLIMB_H

#include "pair/cases.h"

/* Raises the cases of r->pair, of which from_ns is known, as far as they lead and the solves go, up to the ceiling. A
 * question to a case counts as a part of a solve. */
int pair_climb(pair_bound_task *r, int64_t from_ns, int64_t ceiling_ns);

#endif
