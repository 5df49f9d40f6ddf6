/* Blocks in a row, between devices. Private. */
#ifndef MOIRAI_RELAX_CHAIN_H
#define MOIRAI_RELAX_CHAIN_H

#include "decompose/block.h"
#include "relax/relax.h"

#define RELAX_NEVER (INT64_MAX / 4)

/* A block between two devices; or between one and any: then `K` stands for the other. */
typedef struct relax_pair {
    int64_t path_ns, lower_ns;
    relax_choice choice; /* device NULL: not solved */
    int32_t level;       /* of what was tried; -1: an end alone that was not */
    bool fresh;          /* an end alone whose numbers were not tried on other devices */
    relax_proof proof;   /* where it proves more than the longest path, and is wanted */
} relax_pair;

typedef struct relax_chain {
    const moirai_problem *p;
    const relax_task *job;
    decompose_cuts *cuts;
    decompose_block **block; /* per class */
    relax_pair *pair;        /* [(class * (K + 1) + k) * (K + 1) + l] */
    int32_t K;
    int64_t *reach;  /* [block * K + device]: the least finish of the cut behind it */
    int32_t *before; /* [block * K + device]: the device of the cut before it */
    int32_t *path;   /* per cut */
    int32_t *due;    /* pairs to be solved now */
    int32_t n_due, level;
    util_memory memory; /* of the arrays */
} relax_chain;

/* A class of blocks with its ends on two devices. */
static inline relax_pair *relax_pair_at(const relax_chain *c, int32_t class_, int32_t k, int32_t l)
{
    return &c->pair[((int64_t)class_ * (c->K + 1) + k) * (c->K + 1) + l];
}

/* The least finish of each cut, and the path of the end; its length: of what is proven, or of the loads of choices. Blocks without an entry or
 * exit have it on device 0. */
int64_t relax_chain_path(relax_chain *c, bool loads);
/* The pair of a block on that path: its devices. */
void relax_chain_ends(const relax_chain *c, int32_t block, int32_t *k, int32_t *l);

/* ---- plans (chain_plans.c) ---- */

/* Devices of the path of least loads, or of the bound's. */
int relax_chain_choose(relax_choice *out, relax_chain *c, bool loads);

#endif
