/* What is known of intervals, and the heads and tails that follow from it. */
#ifndef MOIRAI_BOUND_INTERVALS_INTERVAL_WINDOWS_H
#define MOIRAI_BOUND_INTERVALS_INTERVAL_WINDOWS_H

#include <moirai/problem.h>

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
    int64_t lower_ns; /* what they prove of the whole */
} bound_windows;

/* O(V (E/V K^2 + intervals) + intervals K^2). */
int bound_windows_find(bound_windows *out, const moirai_problem *p, const bound_interval_list *known);
void bound_windows_clear(bound_windows *w);

#endif
