/* The prices of one leaf on their way through the verifier: prove_price.c is about the leaf, prove_component.c about what one
 * task and one component pay. */
#ifndef MOIRAI_PROVE_PRICE_H
#define MOIRAI_PROVE_PRICE_H

#include "prove/prove.h"
#include "util/util.h"

typedef __int128 prove_wide; /* what is paid */

#define PROVE_TOO_LATE ((prove_wide)1 << 125) /* cost of what does not fit into the length */

typedef struct prove_pricing {
    const prove_block *b;
    const prove_leaf *leaf;
    int32_t a, z, K, N; /* entry device, exit device, devices, steps */
    int64_t step, length;
    int64_t arrival[PROVE_MASK_DEVICES]; /* of the shared tensor: no sooner; -1: never */
    int64_t arrived[PROVE_MASK_DEVICES]; /* and no later */
    bool later[PROVE_MASK_DEVICES];      /* it may come here after all receivers that are listed */
    int64_t *rate;                       /* [resource * N + g]: price in step g */
    prove_wide *sum;                     /* [resource * N + g]: price from 0 to the beginning of step g */
    prove_wide *value;                   /* [place * K * N + k * N + g] */
    prove_wide *message;                 /* [k * N + g] */
    prove_wide *line, *best, *spare;     /* by step: what a transfer pays, and the like */
    util_memory memory;
} prove_pricing;

/* The least cost of a task of `ns` by the step of its start, of which `share` readers pay one each; PROVE_TOO_LATE where
 * it would end after the length. */
void prove_task_line(const prove_pricing *w, prove_held h, int64_t ns, int32_t share, prove_wide *line);
/* What a component of the kind pays at least. */
int prove_cheapest_component(prove_wide *least, prove_pricing *w, int32_t kind);

#endif
