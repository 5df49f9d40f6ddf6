/* A heap of numbers, the least on top, for orders that depend on the numbers alone. */
#ifndef MOIRAI_UTIL_HEAP_H
#define MOIRAI_UTIL_HEAP_H

#include <stdint.h>

/* One more than `size`, for which there is room. */
static inline void util_heap_push(int64_t *heap, int32_t size, int64_t value)
{
    int32_t i = size;
    for (; i > 0 && heap[(i - 1) / 2] > value; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = value;
}

/* Takes the least of `size` > 0, which is one less then. */
static inline int64_t util_heap_pop(int64_t *heap, int32_t size)
{
    int64_t least = heap[0], last = heap[--size];
    int32_t i = 0;
    for (int32_t below = 1; below < size; below = 2 * i + 1) {
        below += below + 1 < size && heap[below + 1] < heap[below];
        if (heap[below] >= last)
            break;
        heap[i] = heap[below];
        i = below;
    }
    heap[i] = last;
    return least;
}

#endif
