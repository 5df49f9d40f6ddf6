/* Busy times of one resource, with room in between. Private. */
#ifndef MOIRAI_PLACE_LIST_TIMELINE_H
#define MOIRAI_PLACE_LIST_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

/* Blocks in order of time; blocks that touch are one, so that a long busy stretch costs nothing to pass. */
typedef struct place_stretch {
    int64_t start_ns, finish_ns;
} place_stretch;

typedef struct place_timeline {
    place_stretch *block;
    size_t n, capacity;
} place_timeline;

/* The first moment >= from_ns at which the resource is free for ns > 0. O(log n + blocks passed). */
int64_t place_timeline_next(const place_timeline *t, int64_t from_ns, int64_t ns);
/* Take [start, start + ns), which must be free. 0 or MOIRAI_EFAIL. O(log n) near the end. */
int place_timeline_take(place_timeline *t, int64_t start_ns, int64_t ns);
void place_timeline_clear(place_timeline *t);

#endif
