/* Blocks in a row, between devices. Private. */
#ifndef MOIRAI_RELAX_CHAIN_H
#define MOIRAI_RELAX_CHAIN_H

#include "decompose/block.h"
#include "relax/relax.h"

#define RELAX_NEVER (INT64_MAX / 4)
#define RELAX_CHAIN_DEVICES 16

/* What is proven of a block with an end on each device, whatever device the other end is on. */
typedef struct relax_end {
    relax_leaf leaf[RELAX_CHAIN_DEVICES]; /* what is proven, 0: nothing yet; and the numbers, where they are wanted */
    uint32_t solved;                      /* a bit per device: by numbers of its own */
} relax_end;

typedef struct relax_pair {
    int64_t path_ns, lower_ns;
    relax_choice choice; /* device NULL: not solved */
    int32_t level;
    relax_proof proof; /* where it proves more than the longest path, and is wanted */
} relax_pair;

typedef struct relax_chain {
    const moirai_problem *p;
    const relax_task *job;
    decompose_cuts *cuts;
    decompose_block **block; /* per class */
    relax_pair *pair;        /* [(class * K + k) * K + l] */
    relax_end *end;          /* [class * 2], exit [class * 2 + 1] */
    relax_end *found;        /* of each that is solved now */
    int32_t K;
    int64_t *reach;  /* [cut * K + device]: the least finish */
    int32_t *before; /* [cut * K + device]: the device of the cut before */
    int32_t *path;   /* per cut */
    int32_t *due;    /* pairs to be solved now, or ends: ((class * 2) + is it the exit?) * K + device */
    int32_t n_due, level;
    util_memory memory; /* of the arrays */
} relax_chain;

/* A class of blocks with its ends on two devices. */
static inline relax_pair *relax_pair_at(const relax_chain *c, int32_t class_, int32_t k, int32_t l)
{
    return &c->pair[((int64_t)class_ * c->K + k) * c->K + l];
}

/* The least finish of each cut, and the path of the end; its length: of what is proven, or of the loads of choices. Blocks without an entry or
 * exit have it on device 0. */
int64_t relax_chain_path(relax_chain *c, bool loads);
/* The pair of a block on that path. */
int32_t relax_chain_pair(const relax_chain *c, int32_t block);

/* ---- ends (ends.c) ---- */

/* The end on its device by the relaxation, and on all others by the same numbers with two devices exchanged. The answer is
 * to be cleared in every case. */
int relax_end_solve(relax_end *out, const moirai_problem *p, relax_fixed end, const relax_task *job);
/* The stronger of both for each device; `from` is left empty. */
void relax_end_take(relax_end *to, relax_end *from);
void relax_end_clear(relax_end *x);

/* ---- plans (chain_plans.c) ---- */

/* Devices of the path of least loads, or of the bound's. */
int relax_chain_choose(relax_choice *out, relax_chain *c, bool loads);

/* The proofs leave the chain (chain_row.c). */
int relax_chain_keep(relax_row *row, relax_chain *c);

#endif
