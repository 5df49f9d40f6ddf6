/* When to stop, the user's interrupt or the time limit, and what to leave out: one value that searches carry down. */
#ifndef MOIRAI_UTIL_STOP_H
#define MOIRAI_UTIL_STOP_H

#include <moirai/budget.h>

#include "util/methods.h"
#include "util/util.h"

typedef struct util_stop {
    const moirai_interrupt *interrupt; /* or NULL */
    double deadline;                   /* of util_seconds; 0: none */
    util_method_set off;               /* methods that are switched off */
} util_stop;

/* Of a budget whose time runs from now on. */
util_stop util_stop_of(const moirai_budget *budget);
/* Seconds until the deadline, never negative; HUGE_VAL where there is none. */
double util_stop_left_s(const util_stop *stop);
/* The same stop with the deadline no later than `seconds` from now. */
util_stop util_stop_within(const util_stop *stop, double seconds);
/* This part of the time that is left; as it is where there is no end. */
util_stop util_stop_part(const util_stop *stop, double part);
/* The same stop with at least `seconds` left, also after the deadline or an interrupt: for what ends a piece of work that would be lost
 * otherwise. */
util_stop util_stop_at_least(const util_stop *stop, double seconds);
/* The budget for a part of the work: what is left of the time, and no progress. A budget without time left gets a
 * moment, since 0 would mean no limit. */
moirai_budget util_stop_rest(const util_stop *stop, const moirai_budget *budget);

static inline bool util_stopped(const util_stop *stop)
{
    return moirai_interrupt_raised(stop->interrupt) || (stop->deadline > 0 && util_seconds() > stop->deadline);
}

/* Whether a method is switched off. */
static inline bool util_off(const util_stop *stop, util_method m)
{
    return stop->off >> m & 1;
}

/* From now on whoever waits for a pipe, to read or to write it (util_file_read, util_file_write), gives up once this is raised (NULL: no longer). One
 * for all threads: it is that of a command, whose signals it stands for. */
void util_file_obey(const moirai_interrupt *interrupt);

#endif
