/* A heap of operators by a time, then by topological rank. Private. */
#ifndef MOIRAI_PLACE_LIST_ETF_QUEUE_H
#define MOIRAI_PLACE_LIST_ETF_QUEUE_H

#include <stddef.h>
#include <stdint.h>

typedef struct place_entry {
    int64_t key;
    int32_t rank;
} place_entry;

/* heap[0] is the least. Zero-initialise it; free(heap) at the end. */
typedef struct place_queue {
    place_entry *heap;
    size_t n, capacity;
} place_queue;

int place_queue_push(place_queue *q, place_entry x);     /* 0 or MOIRAI_EFAIL. O(log n) */
void place_queue_replace(place_queue *q, place_entry x); /* put x where the least was, and let it sink. O(log n) */
void place_queue_pop(place_queue *q);

#endif
