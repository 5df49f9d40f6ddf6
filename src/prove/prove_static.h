/* A static proof on its way through the verifier: prove_static.c reads it and knows where and when operators can be,
 * prove_static_sum.c adds up. */
#ifndef MOIRAI_PROVE_STATIC_H
#define MOIRAI_PROVE_STATIC_H

#include "prove/prove_read.h"

#define PROVE_NEVER (INT64_MAX / 4) /* later than all paths of a problem, and a few of these still fit */

typedef struct prove_judge {
    const prove_block *b;
    int32_t K, a, z;
    int64_t proven_ns, upper_ns;
    int64_t *dual;          /* out, in, share, path, end, load */
    int64_t n_loads, *load; /* kind, which, head, tail */
    /* where and when, for plans of at most upper_ns */
    uint64_t *mask;
    int64_t *head, *tail; /* [local * K + device] */
} prove_judge;

static inline bool prove_may(const prove_judge *x, int32_t i, int32_t k)
{
    return x->mask[i] >> k & 1;
}
/* Whether the ends of edge e can be on k and l, by the windows. */
bool prove_may_cross(const prove_judge *x, int32_t e, int32_t k, int32_t l);

/* No sum of the verdict can leave 128 bits. */
bool prove_static_fits(const prove_judge *x);
/* What the multipliers prove, which fit; at most upper_ns. */
int64_t prove_static_sum(const prove_judge *x);

#endif
