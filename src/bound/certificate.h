/* The proof behind a bound, for `moirai prove`. */
#ifndef MOIRAI_BOUND_CERTIFICATE_H
#define MOIRAI_BOUND_CERTIFICATE_H

#include "bytes/bytes.h"
#include "decompose/spine.h"
#include "pair/chain.h"
#include "util/json.h"

typedef struct bound_certify_task {
    int64_t goal_ns;  /* the plan's bound: no need for more */
    int32_t levels;   /* of prices, up to PAIR_LEVELS; 0: none */
    double nodes;     /* of the tree of a pair, at effort 1 */
    size_t most_tree; /* numbers of all search trees together */
    double effort;
    int threads;
    uint64_t seed;
    util_stop stop;
} bound_certify_task;

/* Searches again, or raises by prices, what was proven otherwise, where the certified bound hangs on it, until the goal is reached or the
 * levels are used up. Opens pairs as needed. */
int bound_certify(pair_chain *c, const bound_certify_task *job);

/* What a certificate is made from. */
typedef struct bound_certificate {
    const pair_chain *c;
    bytes_prices *memory;         /* settled, or NULL */
    const decompose_spine *spine; /* the chain is that of its problem; NULL: of the whole */
    int64_t lower_bound_ns;       /* of the plan, whoever proved it */
    int64_t chain_ns;             /* what the chain proves, where that was found before; 0: found anew */
    int64_t certified_ns;         /* out: what the certificate claims */
} bound_certificate;

/* Writes format moirai-certificate, version 1. */
int bound_certificate_write(bound_certificate *from, const char *path);
/* The same as text; free() it. NULL if memory runs out. */
char *bound_certificate_text(bound_certificate *from, size_t *length);

#endif
