/* A static proof on its way through the verifier: prove_static.c reads it and goes by cases, prove_static_windows.c
 * knows where and when operators can be, prove_static_sum.c adds up. */
#ifndef MOIRAI_PROVE_STATIC_H
#define MOIRAI_PROVE_STATIC_H

#include "prove/prove_read.h"

#define PROVE_NEVER (INT64_MAX / 4) /* later than all paths of a problem, and a few of these still fit */

/* Devices in an order: these first; nobody else if it is closed. */
typedef struct prove_order {
    bool closed;
    int32_t n, device[PROVE_MAX_DEVICES];
} prove_order;

typedef struct prove_judge {
    const prove_block *b;
    int32_t K, a, z;
    int64_t proven_ns, upper_ns;
    int64_t *dual;               /* out, in, share, path, end, load */
    int64_t n_loads, *load;      /* kind, which, head, tail */
    int32_t n_groups, *group_of; /* per operator: the group in which it is counted, or PROVE_NONE */
    int32_t n_counted;           /* groups, and the readers of `sent` */
    int64_t *size;               /* per group */
    int32_t sent;                /* output of the entry whose receivers are told apart; PROVE_NONE: none */
    int64_t return_ns; /* what takes as long from everywhere to the exit's device is a result; 0: nothing is */
    bool *result;      /* per edge: its tensor is one; NULL: none is */
    int64_t shortest[PROVE_MAX_DEVICES]; /* the shortest result's time from each device */
    /* the case at hand, as it is told */
    prove_order to, back;
    uint64_t *told;        /* per operator: devices */
    int64_t *least, *most; /* [group * K + device] how many of the group are there */
    /* what follows from it, for plans of at most upper_ns */
    uint64_t *mask;
    int64_t *low, *high;  /* [group * K + device] */
    int64_t *head, *tail; /* [local * K + device] */
} prove_judge;

/* Whether edge e carries the tensor whose receivers are told apart. */
bool prove_static_sent(const prove_judge *x, int32_t e);
/* Whether edge e carries a result, if it goes to the exit's device from elsewhere. */
static inline bool prove_static_result(const prove_judge *x, int32_t e)
{
    return x->result && x->result[e];
}
/* Which edges do, by return_ns. */
int prove_find_results(prove_judge *x);

/* Devices, heads, tails and numbers of the case at hand; false: it has no plans of at most upper_ns. What it says counts
 * only while there is time (prove_go_on). */
bool prove_static_windows(prove_judge *x);
static inline bool prove_may(const prove_judge *x, int32_t i, int32_t k)
{
    return x->mask[i] >> k & 1;
}
/* Whether the ends of edge e can be on k and l, by the windows. */
bool prove_may_cross(const prove_judge *x, int32_t e, int32_t k, int32_t l);

/* No sum of the verdict can leave 128 bits. */
bool prove_static_fits(const prove_judge *x);
/* What the multipliers prove of the case at hand, which fit; at most upper_ns. */
int64_t prove_static_sum(const prove_judge *x);

#endif
