/* Between the files of false_bound.h. */
#ifndef MOIRAI_TEST_FALSE_BOUND_PARTS_H
#define MOIRAI_TEST_FALSE_BOUND_PARTS_H

#include "exact/exact.h"
#include "pair/chain.h"
#include "support/false_bound.h"

#define FALSE_BOUND_NODES 300000 /* of an exhaustive search */

/* Writes the line into `why` (256 bytes); returns false. */
bool false_bound_fail(char *why, const char *format, ...);

/* No schedule that exists is excluded by a pair of the chain, at any level of refinement and by any case. */
bool false_bound_pairs(pair_chain *c, uint64_t seed, false_bound_counts *counts, char *why);

/* No rule of the verifier's search closes a node that has this plan in it: any of its devices and orders. */
bool false_bound_plan_survives(const moirai_problem *p, const moirai_plan *plan, uint64_t seed, char *why);

#endif
