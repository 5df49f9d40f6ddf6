/* The bound of a chain of intervals. */
#ifndef MOIRAI_BOUND_INTERVALS_INTERVAL_CHAIN_H
#define MOIRAI_BOUND_INTERVALS_INTERVAL_CHAIN_H

#include "decompose/intervals.h"
#include "decompose/spine.h"
#include "pair/pair_refine.h"

#define BOUND_INTERVAL_OPS 110 /* between two neighbours of a chain, at most; twice and four times as many later */
#define BOUND_INTERVAL_BATCH 8 /* pairs that are searched side by side, whatever the number of threads */

/* The time from the finish of `entry` to the start of `exit`, at least, for all pairs of devices. */
typedef struct bound_interval {
    int32_t entry, exit; /* operators; MOIRAI_NONE: the beginning, the end (device 0 stands for it) */
    int64_t *lower_ns;   /* [entry device * K + exit device] */
    int8_t *tries;
} bound_interval;

/* What is known of intervals; all 0 to begin with. */
typedef struct bound_interval_list {
    bound_interval *list;
    size_t n, capacity;
} bound_interval_list;

void bound_interval_list_clear(bound_interval_list *x);

typedef struct bound_interval_chain {
    decompose_spine *spine; /* what is in some interval */
    pair_chain *c;          /* over the chain's operators; its pairs are the intervals between two devices */
    int8_t *tries;          /* per pair */
    int32_t *device, *pick, n_picks;
    util_memory memory; /* of the arrays */
} bound_interval_chain;

int bound_interval_chain_new(bound_interval_chain **out, const moirai_problem *p, const decompose_intervals *x,
                             const decompose_interval_rule *rule);
/* The chain of all cuts; *out is NULL where blocks between them are too large for intervals. */
int bound_interval_chain_of_cuts(bound_interval_chain **out, const moirai_problem *p);
void bound_interval_chain_free(bound_interval_chain *x);

typedef struct bound_interval_task {
    int64_t goal_ns;  /* no use in proving more; INT64_MAX: no goal */
    int64_t known_ns; /* proven otherwise, too: chains that come nowhere near it are not worth larger intervals */
    int32_t chains;   /* that are tried, the likeliest first; 0: all */
    int32_t tries;    /* at each pair, each with more nodes */
    double effort;    /* scales the nodes */
    bool patient;     /* several times as many nodes */
    int threads;
    uint64_t seed;
    util_stop stop;
} bound_interval_task;

/* Opens the pairs and raises those on the bound's path, until the goal is reached or nothing is left to try. *lower_ns
 * holds at any time. */
int bound_interval_chain_raise(int64_t *lower_ns, bound_interval_chain *x, const bound_interval_task *job);

/* Opens the pairs: all of them, or those of the path where they are many. */
int bound_interval_chain_open(bound_interval_chain *x, const bound_interval_task *job);

/* ---- interval_search.c ---- */
/* Raises y->lower_ns up to need_ns or the length of the pair's plan within so many nodes, and keeps plans that are found
 * on the way. */
int bound_interval_search(pair_state *y, int64_t need_ns, int64_t nodes, const util_stop *stop);

/* ---- interval_portfolio.c ---- */
/* An operator of the chain in numbers of the whole problem; MOIRAI_NONE stays that. */
int32_t bound_interval_end(const bound_interval_chain *x, int32_t op);
/* Gives a chain what others have found, and takes what it has found. O(blocks * (intervals known + K^2)). */
int bound_interval_chain_share(bound_interval_chain *x, bound_interval_list *known);

typedef struct bound_portfolio_chain {
    bound_interval_chain *x;
    int64_t lower_ns;
    int32_t round; /* in which it was raised all the way, from 1 on; 0: not yet */
} bound_portfolio_chain;

/* Chains that compete, in the order in which they were let in, and all that they have found; the problem must outlive it. */
typedef struct bound_portfolio {
    const moirai_problem *p;
    decompose_intervals *all; /* NULL: the problem is too large */
    bound_portfolio_chain *chain;
    size_t capacity;
    int32_t n, entered; /* entered: rules so far, of this size */
    int32_t coarser;    /* intervals are so often twice as large as the rules say */
    int32_t rounds;
    bound_interval_list known; /* of intervals by now: chains have many in common */
} bound_portfolio;
int bound_portfolio_new(bound_portfolio **out, const moirai_problem *p);
void bound_portfolio_free(bound_portfolio *c);
/* A round: *lower_ns is the best bound so far. Every call goes on where the last one has ended; tries and effort should
 * grow from one to the next. */
int bound_portfolio_raise(int64_t *lower_ns, bound_portfolio *c, const bound_interval_task *job);
/* The chain that proves most; NULL where there is none. It stays the portfolio's. */
bound_interval_chain *bound_portfolio_best(const bound_portfolio *c);

#endif
