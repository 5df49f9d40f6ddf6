/* Arrivals of a shared tensor, target by target: what raises a pair whose tensor is sent. */
#ifndef MOIRAI_PAIR_CLIMB_H
#define MOIRAI_PAIR_CLIMB_H

#include "pair/cases.h"

/* Raises the cases of r->pair in which somebody receives the tensor, of which from_ns is known, as far as arrivals lead
 * and the solves go, up to the ceiling. */
int pair_climb(pair_bound_task *r, int64_t from_ns, int64_t ceiling_ns);

#endif
