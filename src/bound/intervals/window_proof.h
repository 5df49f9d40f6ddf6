/* Windows from intervals, with a proof behind every interval. */
#ifndef MOIRAI_BOUND_INTERVALS_WINDOW_PROOF_H
#define MOIRAI_BOUND_INTERVALS_WINDOW_PROOF_H

#include "bound/intervals/interval_windows.h"
#include "decompose/spine.h"
#include "pair/chain.h"

/* An interval as a problem of its own, between its ends as cuts. */
typedef struct bound_proven_interval {
    int32_t entry, exit;    /* operators of the whole; MOIRAI_NONE: the beginning, the end */
    decompose_spine *spine; /* the operators between them */
    pair_chain *c;
    int32_t class_; /* of the interval in its chain */
} bound_proven_interval;

typedef struct bound_window_proof {
    const moirai_problem *p;
    bound_proven_interval *interval; /* those that prove more than longest paths do */
    size_t n;
    pair_pool_proof pool; /* within the windows of these; price NULL: none */
    int64_t lower_ns;     /* all of it together */
} bound_window_proof;

typedef struct bound_window_task {
    int64_t nodes;            /* of a search tree */
    size_t most_tree;         /* numbers of all search trees together */
    const pair_pool_task *pool; /* NULL: without the pool */
    int threads;
    util_stop stop;
} bound_window_task;

/* Searches what is known of the intervals once more, such that it can be proven, and finds what their windows and the
 * pool within them prove. What has no proof by the time of the stop counts as a longest path. */
int bound_window_prove(bound_window_proof *out, const moirai_problem *p, const bound_interval_list *known,
                       const bound_window_task *job);
void bound_window_proof_clear(bound_window_proof *x);

#endif
