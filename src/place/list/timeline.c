/* Busy times of one resource: a sorted array of blocks, touching blocks merged. List schedulers fill gaps and otherwise
 * append, so the array stays as short as there are gaps, and insertions are near its end. */
#include "place/list/timeline.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

/* Index of the first block that ends after `ns`. */
static size_t first_after(const place_timeline *t, int64_t ns)
{
    size_t low = 0, high = t->n;
    if (high > 0 && t->block[high - 1].finish_ns <= ns)
        return high;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->block[middle].finish_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t place_timeline_next(const place_timeline *t, int64_t from_ns, int64_t ns)
{
    int64_t at = from_ns;
    for (size_t j = first_after(t, from_ns); j < t->n && t->block[j].start_ns < at + ns; j++)
        at = t->block[j].finish_ns;
    return at;
}

int place_timeline_take(place_timeline *t, int64_t start_ns, int64_t ns)
{
    int64_t finish_ns = start_ns + ns;
    size_t j = first_after(t, start_ns);
    bool before = j > 0 && t->block[j - 1].finish_ns == start_ns;
    bool after = j < t->n && t->block[j].start_ns == finish_ns;
    if (before && after) {
        t->block[j - 1].finish_ns = t->block[j].finish_ns;
        memmove(t->block + j, t->block + j + 1, (t->n - j - 1) * sizeof *t->block);
        t->n--;
    } else if (before) {
        t->block[j - 1].finish_ns = finish_ns;
    } else if (after) {
        t->block[j].start_ns = start_ns;
    } else {
        if (util_grow(&t->block, &t->capacity, t->n + 1, sizeof *t->block))
            return MOIRAI_EFAIL;
        memmove(t->block + j + 1, t->block + j, (t->n - j) * sizeof *t->block);
        t->block[j] = (place_stretch){start_ns, finish_ns};
        t->n++;
    }
    return 0;
}

void place_timeline_clear(place_timeline *t)
{
    free(t->block);
    *t = (place_timeline){0};
}
