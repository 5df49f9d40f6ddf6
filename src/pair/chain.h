/* The chain of blocks: the pairs of every class, and the paths of devices through them. */
#ifndef MOIRAI_PAIR_CHAIN_H
#define MOIRAI_PAIR_CHAIN_H

#include "pair/pair.h"
#include "util/util.h"

typedef struct pair_chain {
    const moirai_problem *p;
    decompose_cuts *s;
    int32_t K;
    decompose_block **block; /* per class; NULL until a pair of it is opened */
    pair_state **pair; /* [(class * K + entry device) * K + exit device], device 0 where there is no cut; NULL: not
                        * opened. Opened when needed: most pairs of many devices never are */
    int32_t least[MOIRAI_MASK_DEVICES];  /* the least device that is equal to this one, where equals are joined */
    int32_t second[MOIRAI_MASK_DEVICES]; /* the next after it, at the least device alone */
    int32_t most_listed; /* receivers whose orders of arrival are listed from the start (congestion port); more are
                          * asked for as it matters */
    int64_t *floor_ns;   /* per class: no block of it takes less, whatever the devices; by longest paths */
    util_memory memory;  /* of the arrays */
} pair_chain;

/* No pair is opened yet. MOIRAI_ELIMIT where the pairs, or the steps of a walk over the cuts, are too many for this way
 * of solving: memory stays in proportion to operators x devices. */
int pair_chain_new(pair_chain **out, const moirai_problem *p);
/* The chain over chosen cuts alone (per operator; NULL: all). */
int pair_chain_over(pair_chain **out, const moirai_problem *p, const bool *chosen);
void pair_chain_free(pair_chain *c);
/* From here on pairs that differ by an exchange of equal devices are one; to be called before any is opened. */
void pair_chain_join_equals(pair_chain *c);
/* From here on they are not: what is known of a pair stays with its first two devices, others are to be opened anew. For
 * bounds that treat equal devices differently, such as prices on the bytes of each. */
void pair_chain_tell_apart(pair_chain *c);

static inline bool pair_chain_has_exit(const pair_chain *c, int32_t class_)
{
    return c->s->class_block[class_] < c->s->n_cuts;
}

/* Pairs that differ by an exchange of equal devices are one: this is its number. */
static inline int64_t pair_chain_index(const pair_chain *c, int32_t class_, int32_t a, int32_t b)
{
    int32_t x = c->least[a], y = c->least[b];
    if (a != b && x == y && pair_chain_has_exit(c, class_))
        y = c->second[x];
    return ((int64_t)class_ * c->K + x) * c->K + y;
}

/* Where the devices of a pair's plan are in a block of the class between a and b: device[k] for its device k (K
 * entries). */
void pair_chain_exchange(const pair_chain *c, int32_t class_, int32_t a, int32_t b, int32_t *device);

/* The pair of a block on the path of devices at the cuts. */
static inline int64_t pair_chain_on_path(const pair_chain *c, int32_t block, const int32_t *cut_device)
{
    int32_t a = block > 0 ? cut_device[block - 1] : 0, b = block < c->s->n_cuts ? cut_device[block] : 0;
    return pair_chain_index(c, c->s->block_class[block], a, b);
}

/* What is known of a pair; of one that was never opened: nothing, to be read only. */
static inline const pair_state *pair_chain_get(const pair_chain *c, int64_t index)
{
    static const pair_state nothing;
    return c->pair[index] ? c->pair[index] : &nothing;
}

static inline const pair_state *pair_chain_at(const pair_chain *c, int32_t class_, int32_t a, int32_t b)
{
    return pair_chain_get(c, pair_chain_index(c, class_, a, b));
}

static inline int64_t pair_chain_count(const pair_chain *c)
{
    return (int64_t)c->s->n_classes * c->K * c->K;
}

/* Those of them that are not joined to another one. */
int64_t pair_chain_distinct(const pair_chain *c);

/* The block of a class, made when first asked for; NULL: out of memory. Not for several callers at once. */
const decompose_block *pair_chain_block(pair_chain *c, int32_t class_);

/* Devices that a block's entry (exit) can have, as a mask; 1 (device 0, unused) where there is no cut. */
uint64_t pair_chain_entry_mask(const pair_chain *c, int32_t block);
uint64_t pair_chain_exit_mask(const pair_chain *c, int32_t block);

static inline bool pair_chain_may(const pair_chain *c, int32_t block, int32_t a, int32_t b)
{
    return (pair_chain_entry_mask(c, block) >> a & 1) && (pair_chain_exit_mask(c, block) >> b & 1);
}

/* Whether some block of the class can have its entry on a and its exit on b. O(blocks). */
bool pair_chain_possible(const pair_chain *c, int32_t class_, int32_t a, int32_t b);

/* The part of `length_ns` that the blocks of a class take by the best of their plans; 0 without plans. */
double pair_chain_share(const pair_chain *c, int32_t class_, int64_t length_ns);

typedef enum pair_chain_side { PAIR_CHAIN_LOWER, PAIR_CHAIN_CERTIFIED, PAIR_CHAIN_UPPER } pair_chain_side;

/* Least time over device paths by the pairs' lower bounds, by what a certificate can claim of them, or by their plans
 * (INT64_MAX where no path has plans). `cut_device` (n_cuts, may be NULL) gets the path. O(cuts * K^2). */
int64_t pair_chain_path(const pair_chain *c, pair_chain_side side, int32_t *cut_device);
/* The same while there is time; 0 or, of plans, INT64_MAX where `stop` comes first: nothing is known then, and cut_device is left as it was. */
int64_t pair_chain_path_within(const pair_chain *c, pair_chain_side side, int32_t *cut_device, const util_stop *stop);
/* The path by plans where every change of device costs switch_ns more: a stand-in for edges that jump over cuts, whose
 * transfers the recursion does not see. */
int64_t pair_chain_steady_path(const pair_chain *c, int64_t switch_ns, int32_t *cut_device);

#endif
