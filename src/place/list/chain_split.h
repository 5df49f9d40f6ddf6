/* The best split of the topological order into pieces on different devices. Private. */
#ifndef MOIRAI_PLACE_LIST_CHAIN_SPLIT_H
#define MOIRAI_PLACE_LIST_CHAIN_SPLIT_H

#include <moirai/problem.h>

#include "util/stop.h"

typedef struct place_split_task {
    const int32_t *order; /* NULL: the devices in any order; else only pieces on devices in this order, any left out */
    util_stop stop;
    bool static_memory; /* count the operators' bytes alone, also in mode peak */
} place_split_task;

typedef struct place_split {
    int64_t cost_ns; /* the objective: all running one by one, what crosses forwarded from piece to piece */
    int32_t n_pieces;
    int32_t *end; /* rank behind the piece's last operator */
    int32_t *device;
} place_split;

/* How many states the search has per rank with any order, INT64_MAX where there are too many devices for that; with a
 * fixed order it has one per device. */
int64_t place_split_states(int32_t n_devices);
/* MOIRAI_EINFEASIBLE where no split fits the memory, MOIRAI_ELIMIT where the time is up. O(V (states * K + K^2) + E
 * K^2). */
int place_split_find(place_split *out, const moirai_problem *p, const place_split_task *task);
void place_split_clear(place_split *s);

#endif
