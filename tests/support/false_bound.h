/* Is any bound false? What must hold of every proof about a problem. */
#ifndef MOIRAI_TEST_FALSE_BOUND_H
#define MOIRAI_TEST_FALSE_BOUND_H

#include <moirai/moirai.h>

#include "support/attack.h"
#include "support/false_bound_loads.h"

typedef struct false_bound_counts {
    bool quick;         /* without the registry and prices on bytes, which take most of the time */
    int32_t pair_every; /* refine one pair in so many at all levels; 0: all */
    int64_t problems, optimal, pairs, schedules, certificates, tampered, mutations;
    int64_t interval_chains;
    int64_t spines;        /* chains without some operators, certified for the whole */
    int64_t memory;        /* problems where prices on bytes raised the bound */
    int64_t pair_loads;    /* certificates of intervals with prices on loads */
    int64_t block_loads;   /* wholes as one block that they raise */
    int64_t searches;      /* certificates with search trees, of intervals and of the whole, */
    int64_t nodes;         /* and how many nodes the verifier walked there */
    attack_counts attacks; /* on those and on certificates with a part about bytes */
    false_bound_loads_counts loads;
    int64_t tight; /* certificates whose bound is the optimum */
    double gap;    /* sum of (optimum - certified) / optimum over problems with known optimum */
} false_bound_counts;

/* The least makespan by the exhaustive search, -1 where it does not come to an end or there is no plan. */
int64_t false_bound_optimum(const moirai_problem *p);

/* Everything below for one problem; false, with a line in `why` (256 bytes), if something is wrong.
 *  - no bound of the registry and no chain bound at any level is above the optimum, where the exhaustive search finds
 * it;
 *  - no schedule that exists is excluded by any prices that the master finds, on any grid, neither by the pricing nor
 * by the verifier;
 *  - no rule of the verifier's search closes a node of the best plan, whatever is fixed of its devices and orders;
 *  - a search tree of the whole is accepted for what it excludes, and never for a length that a plan has;
 *  - the certificate is accepted and proves just what it claims; tampered ones are rejected;
 *  - chains of intervals drawn at random prove no more, nor do their certificates; the best plan lies within the heads
 * and tails that follow from them; certificates of these, changed or not, prove no more, and just what they claim;
 *  - a certificate that leaves operators out proves no more than the optimum with them;
 *  - nor does one by prices on loads, changed or not, of one request or of the time between many. */
bool false_bound_check(const moirai_problem *p, uint64_t seed, false_bound_counts *counts, char *why);

#endif
