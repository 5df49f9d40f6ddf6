/* One loop of simulated annealing, for every state that the library anneals. */
#ifndef MOIRAI_ANNEAL_ANNEAL_H
#define MOIRAI_ANNEAL_ANNEAL_H

#include "util/stop.h"

typedef struct anneal_task {
    double hot, cold; /* first and last temperature, above 0, in the unit of the value that falls */
    int64_t steps;
    int32_t stride; /* steps at one temperature; the stop is asked before each of them */
    util_rng *rng;  /* draws the thresholds; moves may draw from it as well */
    const util_stop *stop;
    void *data;                /* for the three below */
    void (*renew)(void *data); /* before each stride; or NULL */
    void (*move)(void *data);  /* changes the state at hand; or NULL where `judge` does it as well */
    /* Evaluates the changed state: it stays if it is worse than the state before by at most `above`, else the change is
     * undone. False: enough was found. */
    bool (*judge)(void *data, double above);
} anneal_task;

/* Until the steps are done, the stop is reached or `judge` has enough. */
void anneal_run(const anneal_task *job);

#endif
