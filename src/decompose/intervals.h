/* Interval chains: any operators that come one after the other, and what happens between them. */
#ifndef MOIRAI_DECOMPOSE_INTERVALS_H
#define MOIRAI_DECOMPOSE_INTERVALS_H

#include <moirai/problem.h>

/* Who precedes whom, and the intervals of at most so many operators. */
typedef struct decompose_intervals decompose_intervals;

#define DECOMPOSE_INTERVALS_OPS 3000 /* larger problems are refused: *out stays NULL */

/* All pairs of comparable operators with at most `most_ops` operators between them. O(V^2 (V / 64 + K)). */
int decompose_intervals_new(decompose_intervals **out, const moirai_problem *p, int32_t most_ops);
void decompose_intervals_free(decompose_intervals *x);

typedef struct decompose_interval_rule {
    int32_t most_ops; /* between two neighbours of the chain */
    double both;      /* what the lesser of path and work adds to the greater one in an interval's worth */
    double jump;      /* what an edge that jumps over a chain's operator takes away, of its transfer */
    double noise;     /* worths are drawn from this part around their value */
    uint64_t seed;
} decompose_interval_rule;

/* The chain of greatest worth. `on_chain` and `floating` (per operator) get its operators, and those that lie in no
 * interval of it. O(intervals). */
int decompose_intervals_choose(const decompose_intervals *x, const decompose_interval_rule *rule, bool *on_chain,
                               bool *floating);

#endif
