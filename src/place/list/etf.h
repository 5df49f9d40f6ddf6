/* Earliest task first, with the rules that m-SCT and GETF add to it. Private. */
#ifndef MOIRAI_PLACE_LIST_ETF_H
#define MOIRAI_PLACE_LIST_ETF_H

#include <moirai/placer.h>

#include "util/stop.h"

typedef struct place_etf_rules {
    /* Devices that `op` may try at a stage, 0, 1, ..., those of the next only once all before are full; 0: no more, and
     * it goes where it finishes first although there is no room. NULL: one stage with all devices that can run it. With
     * up to MOIRAI_MASK_DEVICES devices. */
    uint64_t (*devices)(void *data, int32_t op, int32_t stage);
    void *data;
    util_stop stop;
    const int32_t *favourite; /* operator -> its favourite child, or MOIRAI_NONE; NULL: none has one */
} place_etf_rules;

/* What is left of a budget for the schedule after a programme that was solved before: the user's stop, less an
 * interrupt that has ended the programme already, since the plan is what is kept. */
util_stop place_etf_rest(util_stop stop);
/* The part of the time that such a programme may take: three quarters. */
util_stop place_etf_first(const util_stop *stop);

/* A simulated plan that fits the memory, MOIRAI_EINFEASIBLE, or MOIRAI_ELIMIT where the time was up before all were
 * placed. */
int place_etf(moirai_plan **out, const moirai_problem *p, const place_etf_rules *rules);

#endif
