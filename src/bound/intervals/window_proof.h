/* Windows from intervals, with a proof behind every interval. */
#ifndef MOIRAI_BOUND_INTERVALS_WINDOW_PROOF_H
#define MOIRAI_BOUND_INTERVALS_WINDOW_PROOF_H

#include "bound/certificate.h"
#include "bound/intervals/interval_windows.h"

typedef struct bound_window_task {
    int64_t nodes;    /* of a search tree */
    size_t most_tree; /* numbers of all search trees together */
    int threads;
    util_stop stop;
} bound_window_task;

/* Searches what is known of the intervals once more, such that it can be proven, and finds what their windows prove.
 * What has no proof by the time of the stop counts as a longest path. */
int bound_window_prove(bound_window_proof *out, const moirai_problem *p, const bound_interval_list *known,
                       const bound_window_task *job);
void bound_window_proof_clear(bound_window_proof *x);

#endif
