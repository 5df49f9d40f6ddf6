/* Busy times of one resource, with room in between. Private. */
#ifndef MOIRAI_TIMELINE_H
#define MOIRAI_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

/* Blocks in order of time; blocks that touch are one, so that a long busy stretch costs nothing to pass. */
typedef struct moirai_stretch {
    int64_t start_ns, finish_ns;
} moirai_stretch;

typedef struct moirai_timeline {
    moirai_stretch *block;
    size_t n, capacity;
} moirai_timeline;

/* The first moment >= from_ns at which the resource is free for ns > 0. O(log n + blocks passed). */
int64_t moirai_timeline_next(const moirai_timeline *t, int64_t from_ns, int64_t ns);
/* Take [start, start + ns), which must be free. 0 or MOIRAI_EFAIL. O(log n) near the end. */
int moirai_timeline_take(moirai_timeline *t, int64_t start_ns, int64_t ns);
void moirai_timeline_clear(moirai_timeline *t);

#endif
