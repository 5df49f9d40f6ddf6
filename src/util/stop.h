/* When to stop: the user's interrupt or the time limit. */
#ifndef MOIRAI_UTIL_STOP_H
#define MOIRAI_UTIL_STOP_H

#include "util/util.h"

typedef struct util_stop {
    const volatile int *interrupt; /* or NULL */
    double deadline;               /* of util_seconds; 0: none */
} util_stop;

static inline bool util_stopped(const util_stop *s)
{
    return (s->interrupt && *s->interrupt) || (s->deadline > 0 && util_seconds() > s->deadline);
}

#endif
