/* Small problems by brute force: what no bound of the period may be above. */
#ifndef MOIRAI_TEST_RATE_BRUTE_H
#define MOIRAI_TEST_RATE_BRUTE_H

#include <moirai/moirai.h>

typedef struct rate_brute_counts {
    int64_t problems, assignments, mixtures, streams;
    int64_t raised; /* bounds that transfers or bytes raise above plain loads */
    int64_t met;    /* by the least period of a stream */
} rate_brute_counts;

/* All assignments of a problem of a few operators: their largest loads, which no schedule undercuts with however many requests in flight; mixtures of two; and streams of 1 to 5 requests in flight (by
 * the seed), of all assignments with all orders of the operators where that is at most `most_streams`, else of so many drawn at random. `most_assignments`: problems with more are left out.
 * False, and why, if one is below the bound. */
bool rate_brute_check(const moirai_problem *p, uint64_t seed, int64_t most_assignments, int64_t most_streams,
                      rate_brute_counts *counts, char why[256]);

#endif
