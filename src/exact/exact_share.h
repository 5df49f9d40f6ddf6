/* Inside the share bound (exact_share*.c): prices, scaled times, and the tree of open units. */
#ifndef MOIRAI_EXACT_EXACT_SHARE_H
#define MOIRAI_EXACT_EXACT_SHARE_H

#include "exact/exact_search.h"

/* Resources that have a price: devices, then send and receive ports, or channels [from * K + to]. */
typedef struct exact_share {
    int shift; /* times are divided by 2^shift, rounded down, so that all sums stay within int64 */
    int32_t n_prices;
    int64_t *op_ns;           /* [unit * K + device], scaled, summed over the unit */
    int64_t *table_ns;        /* per class as in the problem, scaled */
    int32_t n_pairs;          /* pairs of units that tensors pass between */
    int32_t *pair_a, *pair_b; /* a < b */
    int32_t *edge_pair;       /* per edge; -1 inside a unit */
    int32_t *pair_order;      /* heavy pairs first: they should be in the tree */

    /* Of one node. */
    int32_t *edge_parts;                   /* 0: not counted; else its length is divided by this (flow tensor) */
    uint64_t *tensor_there;                /* flow tensor: devices where the tensor is for sure wanted */
    int64_t *ends;                         /* per resource: idle at both ends, scaled */
    int32_t *parent, *parent_pair, *order; /* the forest; order: parents first */
    int32_t n_order;
    int32_t *find;            /* union-find */
    int32_t *link_off, *link; /* tree neighbours (pairs), CSR over units */

    /* Of one evaluation. */
    int64_t *unary;     /* [unit * K + device] */
    int64_t *cost;      /* [(pair * K + device of a) * K + device of b] */
    int64_t *up, *down; /* [unit * K + device of the parent], [unit * K + own device] */
    int32_t *pick;      /* device per unit in the cheapest placement */
    double *load;       /* per resource */
} exact_share;

/* exact_share_tree.c: least price of all placements that the node allows (`ends` included); fills up, pick. */
int64_t exact_share_least(exact_search *s, const exact_state *st);
/* After that: down[unit][device] becomes the least price with the unit on that device (without `ends`). */
void exact_share_marginals(exact_search *s, const exact_state *st);
/* What each resource carries in the placement `pick`. */
void exact_share_loads(exact_search *s, const exact_state *st);
void exact_share_prepare(exact_search *s, const exact_state *st);

static inline int32_t exact_price_of(const exact_search *s, const exact_state *st, int32_t a, int32_t b)
{
    if (s->p->congestion == MOIRAI_CONGESTION_CHANNEL)
        return st->price[s->K + a * s->K + b];
    return st->price[s->K + a] + st->price[2 * s->K + b];
}

#endif
