/* Earliest task first, with the rules that m-SCT and GETF add to it. Private. */
#ifndef MOIRAI_PLACE_LIST_ETF_H
#define MOIRAI_PLACE_LIST_ETF_H

#include <moirai/placer.h>

typedef struct place_etf_rules {
    /* Devices that `op` may try at a stage, 0, 1, ..., those of the next only once all before are full; 0: no more, and it goes
     * where it finishes first although there is no room. NULL: one stage with all devices that can run it. */
    uint64_t (*devices)(void *data, int32_t op, int32_t stage);
    void *data;
    const int32_t *favourite; /* operator -> its favourite child, or MOIRAI_NONE; NULL: none has one */
} place_etf_rules;

/* A simulated plan that fits the memory, or MOIRAI_EINFEASIBLE. */
int place_etf(moirai_plan **out, const moirai_problem *p, const place_etf_rules *rules);

#endif
