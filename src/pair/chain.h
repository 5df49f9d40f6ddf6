/* The chain of blocks: what is known of each (class, entry device, exit device), and the paths through them. */
#ifndef MOIRAI_PAIR_CHAIN_H
#define MOIRAI_PAIR_CHAIN_H

#include "pair/anneal.h"

/* Prices on a grid: cells, then counts. */
typedef struct pricing_duals {
    pricing_grid grid;
    int64_t *price;   /* NULL: none */
    int32_t n_counts; /* that have prices: the first so many of the case */
} pricing_duals;

/* A copy of these prices (cells, then counts; NULL: none) in place of those in *to. MOIRAI_EFAIL: *to is as it was. */
int pricing_duals_set(pricing_duals *to, const moirai_problem *q, const pricing_grid *grid,
                            const int64_t *price, int32_t n_counts);

/* One case of a pair, and the proof that it takes at least proven_ns: prices on the grid of length proven_ns - 1. */
typedef struct pair_case {
    int32_t sending; /* number of the pair's sending */
    int32_t n_counts;
    pricing_branch *count;
    int64_t proven_ns;
    pricing_duals proof; /* none: by the longest path alone */
    bool seen;                 /* looked at on this level */
    int64_t estimate_ns;       /* what its prices should prove, by a look further up; INT64_MAX: all that is wanted */
    pricing_duals look;  /* the prices behind it */
    pricing_branch split;        /* where to branch: [0, least] and [most, all]; kind PRICING_NO_BRANCH: nowhere */
} pair_case;

/* Block class between two devices. */
typedef struct pair_state {
    bool open;              /* set up: cases and first bounds are there */
    bool exhausted;         /* lower_ns comes from the exhaustive search */
    int32_t level;          /* of refinement done */
    int64_t path_ns;        /* bound of the longest path, transfers included */
    int64_t lower_ns;       /* proven: the least over the cases */
    pair_plan plan; /* best known; plan.device NULL: none yet */
    int32_t n_sendings;
    pricing_sending *sending;
    pricing_master *master; /* NULL: not needed yet */
    int32_t n_cases;
    size_t case_capacity;
    pair_case *cases;
    decompose_block block; /* the class's block with a mask of its own, pinned to the two devices */
    int64_t first_ns;   /* length of the first plan: the best device alone */
    int64_t looks;      /* at cases so far */
} pair_state;

typedef struct pair_chain {
    const moirai_problem *p;
    decompose_cuts *s;
    int32_t K;
    decompose_block **block; /* per class */
    pair_state *pair;    /* [(class * K + entry device) * K + exit device]; index 0 where there is no cut */
} pair_chain;

void pair_cases_free(pair_case *cases, int32_t n);

int pair_chain_new(pair_chain **out, const moirai_problem *p);
void pair_chain_free(pair_chain *c);

static inline pair_state *pair_chain_at(const pair_chain *c, int32_t class_, int32_t a, int32_t b)
{
    return &c->pair[((int64_t)class_ * c->K + a) * c->K + b];
}

/* Devices that a block's entry (exit) can have, as a mask; 1 (device 0, unused) where there is no cut. */
uint64_t pair_chain_entry_mask(const pair_chain *c, int32_t block);
uint64_t pair_chain_exit_mask(const pair_chain *c, int32_t block);

/* Whether some block of the class can have its entry on a and its exit on b. O(blocks). */
bool pair_chain_possible(const pair_chain *c, int32_t class_, int32_t a, int32_t b);

/* The part of `length_ns` that the blocks of a class take by the best of their plans; 0 without plans. */
double pair_chain_share(const pair_chain *c, int32_t class_, int64_t length_ns);

/* What the leaves of a pair prove: its bound without the exhaustive search. Of a pair that was never opened (blocks of
 * one class may have cuts of different devices): 0. */
int64_t pair_certified_ns(const pair_state *x);

typedef enum pair_chain_side { PAIR_CHAIN_LOWER, PAIR_CHAIN_CERTIFIED, PAIR_CHAIN_UPPER } pair_chain_side;

/* Least time over device paths by the pairs' lower bounds, by what a certificate can claim of them, or by their plans
 * (INT64_MAX where no path has plans). `cut_device` (n_cuts, may be NULL) gets the path. O(cuts * K^2). */
int64_t pair_chain_path(const pair_chain *c, pair_chain_side side, int32_t *cut_device);
/* The path by plans where every change of device costs switch_ns more: a stand-in for edges that jump over cuts, whose
 * transfers the recursion does not see. */
int64_t pair_chain_steady_path(const pair_chain *c, int64_t switch_ns, int32_t *cut_device);

#endif
