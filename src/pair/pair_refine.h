/* Tightening what is known of one pair: better plans, better bounds. */
#ifndef MOIRAI_PAIR_PAIR_REFINE_H
#define MOIRAI_PAIR_PAIR_REFINE_H

#include "pair/chain.h"

#define PAIR_LEVELS 4

typedef struct pair_refine_task {
    int32_t level;    /* from 1 on; above PAIR_LEVELS as that, for more effort */
    int64_t need_ns;  /* no use in proving more than this */
    bool prices_only; /* they are raised even where something else has proven the pair: for a certificate */
    bool improve;     /* its plan is on the path, or may come to be: worth a longer search */
    double effort;    /* scales the evaluations of the search and the cases of the proof */
    bool few_trials;  /* half of the evaluations: there are many pairs to look at */
    uint64_t seed;
    int threads; /* for the cases of its bound; 0: one per core */
    util_stop stop;
} pair_refine_task;

/* First bounds and plans of n pairs, by index: longest path, every device alone. Those that are open already are passed
 * over; when the time is up, the rest stays closed. Not for several callers at once. */
int pair_chain_open(pair_chain *c, const int64_t *index, int32_t n, int threads, const util_stop *stop);
/* One of them. */
int pair_open(pair_chain *c, int32_t class_, int32_t a, int32_t b);
/* Every pair that some block can have. */
int pair_chain_open_all(pair_chain *c, int threads, const util_stop *stop);
/* One level up. Touches this pair alone, so that different pairs can be refined at the same time. */
int pair_refine(pair_state *x, const pair_refine_task *job);

#endif
