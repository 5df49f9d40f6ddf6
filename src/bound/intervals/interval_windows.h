/* What is known of intervals, and the heads and tails that follow from it. */
#ifndef MOIRAI_BOUND_INTERVALS_INTERVAL_WINDOWS_H
#define MOIRAI_BOUND_INTERVALS_INTERVAL_WINDOWS_H

#include <moirai/problem.h>

#include "pair/pool.h"

/* The time from the finish of `entry` to the start of `exit`, at least, for all pairs of devices. */
typedef struct bound_interval {
    int32_t entry, exit; /* operators; MOIRAI_NONE: the beginning, the end (device 0 stands for it) */
    int64_t *lower_ns;   /* [entry device * K + exit device] */
    int8_t *tries;
} bound_interval;

typedef struct bound_interval_list {
    bound_interval *list;
    size_t n, capacity;
} bound_interval_list;

bound_interval *bound_interval_find(const bound_interval_list *x, int32_t entry, int32_t exit);
/* A new one of which nothing is known; *out is valid until the next call. */
int bound_interval_add(bound_interval **out, bound_interval_list *x, int32_t entry, int32_t exit, int32_t n_devices);
void bound_interval_list_clear(bound_interval_list *x);

/* Heads and tails [op * K + device] at least as long as the longest paths. */
typedef struct bound_windows {
    int64_t *head, *tail;
    int64_t lower_ns;   /* what they prove of the whole */
    pair_pool_arc *arc; /* between operators that intervals keep further apart than paths do */
    int32_t n_arcs;
} bound_windows;

/* O(V (E/V K^2 + intervals) + intervals K^2). */
int bound_windows_find(bound_windows *out, const moirai_problem *p, const bound_interval_list *known);
void bound_windows_clear(bound_windows *w);
/* The pool of all devices within these windows and with these arcs; job without them. `proof` (or NULL) as of pair_pool;
 * with one, only what can be written down counts. */
int bound_windows_pool(int64_t *lower_ns, const bound_windows *w, const moirai_problem *p, const pair_pool_task *job,
                       pair_pool_proof *proof);

#endif
