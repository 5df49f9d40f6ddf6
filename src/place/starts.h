/* The plans that every search begins with. */
#ifndef MOIRAI_PLACE_STARTS_H
#define MOIRAI_PLACE_STARTS_H

#include <moirai/placer.h>

#include "util/stop.h"

/* What the letters of place_starts stand for, for a placer's key. */
#define PLACE_STARTS_KEY \
    "S start, 1 single device, H heft, E m-etf, T m-topo, R random, " \
    "Q sequential, C chain, P m-sct, G getf"

/* Takes ownership of `plan`; a result other than 0 ends the starts. */
typedef int (*place_offer_fn)(void *data, moirai_plan *plan, char letter);

typedef struct place_starts_task {
    const moirai_problem *p;
    const moirai_place_options *o; /* its start, budget and seed; settings are not handed on */
    const util_stop *stop;         /* looked at anew before each: an offer may bring it forward */
    place_offer_fn offer;
    void *data;
    bool has_plan; /* there is one already: nothing has to be offered where the time is up */
    bool first;    /* one plan is enough, the first that there is */
    char why[512]; /* out: the message of a heuristic that found no plan that fits, or "" */
} place_starts_task;

/* Offers the user's start, mended where it does not fit, and then a plan of every quick heuristic that finds one, each
 * with its letter. Stops early once something was offered and the time is up. MOIRAI_EFAIL, or the result of an offer;
 * that nothing fits is no failure. */
int place_starts(place_starts_task *task);

#endif
