/* When to stop: the user's interrupt or the time limit. */
#ifndef MOIRAI_STOP_H
#define MOIRAI_STOP_H

#include "util/util.h"

typedef struct moirai_stop {
    const volatile int *interrupt; /* or NULL */
    double deadline;               /* of moirai_seconds; 0: none */
} moirai_stop;

static inline bool moirai_stopped(const moirai_stop *s)
{
    return (s->interrupt && *s->interrupt) || (s->deadline > 0 && moirai_seconds() > s->deadline);
}

#endif
