/* The pool inside: pool.c tries lengths, pool_trial.c excludes one, pool_prices.c knows its labels and what they cost. */
#ifndef MOIRAI_PAIR_POOL_STATE_H
#define MOIRAI_PAIR_POOL_STATE_H

#include "pair/pool.h"
#include "pair/pool_cut.h"
#include "pair/pool_input.h"

#define PAIR_POOL_BUCKETS 128 /* of time, one price each */

/* Starts of the operators, in steps. */
typedef struct pair_pool_labels {
    int64_t *offset; /* per operator: earliest start */
    int32_t *n;      /* per operator: how many */
    int32_t *late;   /* per arc: how many labels its end may be behind its beginning */
    int32_t *off;    /* per operator: its first label */
    int64_t *cost;   /* per label; -1: no device can start then */
} pair_pool_labels;

/* Per bucket. */
typedef struct pair_pool_prices {
    double *shape;         /* the price, up to a factor */
    int64_t *price, *paid; /* price; integral up to its beginning */
    double *use, *mean;    /* by the cheapest labels of this round, of the latest rounds */
} pair_pool_prices;

typedef struct pair_pool_network {
    int32_t *arc;          /* per label: the arc that costs it; MOIRAI_NONE: constant */
    int32_t *edge_arc_off; /* per arc of the problem: its first unlimited one in the network, for step edge_step */
    int32_t *edge_step;
    pair_cut cut;
} pair_pool_network;

/* A length that is put to the pool. */
typedef struct pair_pool_trial {
    const moirai_problem *q;
    const pair_pool_task *job;
    const int64_t *head, *tail, *weight;
    int32_t n, K, E; /* E: arcs, the problem's edges first */
    const pair_pool_arcs *arcs;
    int64_t length_ns, step_ns, bucket_ns;
    pair_pool_labels label;
    pair_pool_prices sale;
    pair_pool_network net;
    bool impossible; /* no window is left: excluded by heads and tails alone */
    bool excluded;
    pair_pool_proof proof;
    util_memory memory;
} pair_pool_trial;

/* ceil(a / b) for b > 0. */
static inline int64_t pair_pool_up(int64_t a, int64_t b)
{
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/* ---- pool_prices.c ---- */

/* Earliest starts and latest, over all devices. */
void pair_pool_find_windows(pair_pool_trial *x);
/* How late arcs may be, and how many labels that leaves. */
void pair_pool_find_lateness(pair_pool_trial *x);
/* The shape as whole prices, as large as the sums allow, and what labels cost at them. */
void pair_pool_set_prices(pair_pool_trial *x);
/* What all devices together can sell at the prices. */
int64_t pair_pool_capacity(const pair_pool_trial *x);
/* The next shape: prices rise where the cheapest labels of the latest rounds, in the mean, use more of a bucket than
 * there is. The mean damps: cheapest labels jump. */
void pair_pool_update_shape(pair_pool_trial *x, int32_t round);

/* ---- pool_trial.c ---- */

/* The label of operator i in the cut at hand. */
int32_t pair_pool_cheapest_label(const pair_pool_trial *x, int32_t i);
/* Tries the length of trial `which` (a util_job_fn): `excluded` and `proof` are set where prices exclude it. */
int pair_pool_try(void *trials, int32_t which);
void pair_pool_trial_clear(pair_pool_trial *x);

#endif
