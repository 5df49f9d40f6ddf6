/* Prices on loads: a case of them. Private. */
#ifndef MOIRAI_PROVE_PROVE_LOADS_H
#define MOIRAI_PROVE_PROVE_LOADS_H

#include <yyjson.h>

#include "prove/prove_read.h"
#include "util/util.h"

typedef struct prove_court {
    const prove_block *b;
    int32_t K;
    bool rate, bytes;      /* of a period; some case has prices on bytes */
    uint64_t *may;         /* devices that are left to each operator in this case */
    uint64_t *read;        /* first edge of a packet -> devices on which some reader of it is, in this case */
    int64_t *head, *tail;  /* [local * K + device] */
    int64_t *first, *last; /* per resource: the least head and tail of what it may get */
    int64_t *price, *byte_price;
    int64_t *from, *to;       /* [edge * K + device] */
    int64_t path;             /* the longest of this case; 0 of a period */
    prove_wide *cost;         /* [local * K + device] */
    prove_wide total, prices; /* of this case: of what is less than T times the sum of prices, and that */
    moirai_proof *proof;      /* counts leaves */
    util_memory memory;
} prove_court;

/* How many resources have prices. */
static inline int32_t prove_loads_resources(const prove_block *b)
{
    return b->p->holds_devices ? b->p->K : prove_resources(b->p);
}

/* What a case without cases proves, by its longest path and its prices. */
int prove_loads_leaf(int64_t *ns, prove_court *x, yyjson_val *object);

#endif
