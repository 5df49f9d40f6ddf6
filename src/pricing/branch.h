/* Cases: how the shared tensor is sent, and what the branch and bound has divided on. */
#ifndef MOIRAI_PRICING_BRANCH_H
#define MOIRAI_PRICING_BRANCH_H

#include <string.h>

#include <moirai/problem.h>

/* How the block's shared entry tensor (flow tensor) is sent around: one case of a disjunction. */
typedef struct pricing_sending {
    bool fixed;         /* false: nothing is assumed, `receiver` is not used */
    bool open;          /* these are the first; others may receive it later */
    int8_t n_receivers; /* the devices that receive it, in the order of arrival */
    int8_t receiver[MOIRAI_MASK_DEVICES];
} pricing_sending;

static inline bool pricing_same_sending(const pricing_sending *a, const pricing_sending *b)
{
    return a->fixed == b->fixed && a->open == b->open && a->n_receivers == b->n_receivers &&
           !memcmp(a->receiver, b->receiver, (size_t)a->n_receivers);
}

/* Some device receives it: what prices leave open there is when, a matter of branches, not of buckets. */
static inline bool pricing_is_sent(const pricing_sending *how)
{
    return how->fixed && how->n_receivers > 0;
}

/* What a case of the branch and bound was divided on. */
typedef enum pricing_branch_on {
    PRICING_NO_BRANCH, /* nothing left to divide on */
    PRICING_NUMBER,    /* how many components of `kind` have their operator `op` (number within it) on `device` */
    PRICING_ARRIVAL,   /* when the shared entry tensor has arrived on `device` */
    PRICING_LENGTH,    /* how long the block takes (pair/priced/priced.h) */
    PRICING_RECEIVER   /* who is the next to receive the shared tensor, or nobody: a part for each */
} pricing_branch_on;

/* It lies between least and most. */
typedef struct pricing_branch {
    pricing_branch_on on;
    int32_t kind, op, device;
    int64_t least, most;
} pricing_branch;

/* A case: plans that send the shared tensor so, and keep to these ranges. */
typedef struct pricing_case {
    const pricing_sending *how;
    int32_t n_branches;
    const pricing_branch *branch;
} pricing_case;

#endif
