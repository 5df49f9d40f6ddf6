/* A binary heap, for the engine of earliest task first. */
#include "place/list/etf_queue.h"

#include <stdbool.h>

#include "util/util.h"

static bool before(place_entry a, place_entry b)
{
    return a.key != b.key ? a.key < b.key : a.rank < b.rank;
}

int place_queue_push(place_queue *q, place_entry x)
{
    if (util_grow(&q->heap, &q->capacity, q->n + 1, sizeof *q->heap))
        return MOIRAI_EFAIL;
    size_t at = q->n++;
    for (; at > 0 && before(x, q->heap[(at - 1) / 2]); at = (at - 1) / 2)
        q->heap[at] = q->heap[(at - 1) / 2];
    q->heap[at] = x;
    return 0;
}

void place_queue_replace(place_queue *q, place_entry x)
{
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < q->n; at = child) {
        if (child + 1 < q->n && before(q->heap[child + 1], q->heap[child]))
            child++;
        if (!before(q->heap[child], x))
            break;
        q->heap[at] = q->heap[child];
    }
    q->heap[at] = x;
}

void place_queue_pop(place_queue *q)
{
    q->n--;
    if (q->n > 0)
        place_queue_replace(q, q->heap[q->n]);
}
