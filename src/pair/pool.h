/* A bound by one pool of all devices and a price per time, with every precedence: minimum cuts. */
#ifndef MOIRAI_PAIR_POOL_H
#define MOIRAI_PAIR_POOL_H

#include <moirai/problem.h>

#include "util/stop.h"

/* A multiplier >= 0 of "where the producer of `edge` starts in its step `step` or later, its reader starts accordingly"
 * (pool.c). */
typedef struct pair_pool_flow {
    int32_t edge, step;
    int64_t value;
} pair_pool_flow;

/* Excludes all plans of length_ns and less. */
typedef struct pair_pool_proof {
    int64_t length_ns, step_ns, bucket_ns;
    int32_t n_buckets;
    int64_t *weight; /* per device */
    int64_t *price;  /* per bucket */
    int32_t n_flows;
    pair_pool_flow *flow;
} pair_pool_proof;

void pair_pool_proof_free(pair_pool_proof *proof);

/* From the start of one operator to that of another that follows it, at least. */
typedef struct pair_pool_arc {
    int32_t from, to;
    int64_t ns;
} pair_pool_arc;

typedef struct pair_pool_task {
    int64_t proven_ns; /* a bound that is known */
    int64_t upper_ns;  /* no use in proving more */
    int32_t rounds;    /* of PAIR_POOL_SIDE lengths side by side */
    int32_t cuts;      /* at each length, at most */
    int32_t nodes;     /* of the network, about */
    int threads;
    util_stop stop;
    bool written; /* only what a proof can be written of counts */
    /* What is known of starts beyond longest paths; a proof holds within these windows. Flows of arcs are numbered behind
     * those of edges. */
    const int64_t *head, *tail; /* [op * K + device], or NULL */
    const pair_pool_arc *arc;   /* besides the edges */
    int32_t n_arcs;
} pair_pool_task;

#define PAIR_POOL_SIDE 4

/* *lower_ns: the makespan of every plan of `q` is at least this; at least proven_ns. Masks of q->op_devices count;
 * memory, groups and links are left out but for heads and tails. `proof` (or NULL) gets the proof where it has proven
 * more (proof->price is not NULL then); the caller frees it. */
int pair_pool(int64_t *lower_ns, const moirai_problem *q, const pair_pool_task *job, pair_pool_proof *proof);

#endif
