/* The chain of blocks: what is known of each (class, entry device, exit device), and the paths through them. */
#ifndef MOIRAI_CHAIN_H
#define MOIRAI_CHAIN_H

#include "place/moirai/search.h"

/* Prices on a grid: cells, then counts. */
typedef struct moirai_proof_prices {
    moirai_grid grid;
    int64_t *price;   /* NULL: none */
    int32_t n_counts; /* that have prices: the first so many of the case */
} moirai_proof_prices;

/* A copy of these prices (cells, then counts; NULL: none) in place of those in *to. MOIRAI_EFAIL: *to is as it was. */
int moirai_proof_prices_set(moirai_proof_prices *to, const moirai_problem *q, const moirai_grid *grid,
                            const int64_t *price, int32_t n_counts);

/* One case of a pair, and the proof that it takes at least proven_ns: prices on the grid of length proven_ns - 1. */
typedef struct moirai_case {
    int32_t sending; /* number of the pair's sending */
    int32_t n_counts;
    moirai_count *count;
    int64_t proven_ns;
    moirai_proof_prices proof; /* none: by the longest path alone */
    bool seen;                 /* looked at on this level */
    int64_t estimate_ns;       /* what its prices should prove, by a look further up; INT64_MAX: all that is wanted */
    moirai_proof_prices look;  /* the prices behind it */
    moirai_count split;        /* where to branch: [0, least] and [most, all]; kind MOIRAI_NO_COUNT: nowhere */
} moirai_case;

/* Block class between two devices. */
typedef struct moirai_pair {
    bool open;              /* set up: cases and first bounds are there */
    bool exhausted;         /* lower_ns comes from the exhaustive search */
    int32_t level;          /* of refinement done */
    int64_t path_ns;        /* bound of the longest path, transfers included */
    int64_t lower_ns;       /* proven: the least over the cases */
    moirai_block_plan plan; /* best known; plan.device NULL: none yet */
    int32_t n_sendings;
    moirai_sending *sending;
    moirai_master *master; /* NULL: not needed yet */
    int32_t n_cases;
    size_t case_capacity;
    moirai_case *cases;
    moirai_block block; /* the class's block with a mask of its own, pinned to the two devices */
    int64_t first_ns;   /* length of the first plan: the best device alone */
    int64_t looks;      /* at cases so far */
} moirai_pair;

typedef struct moirai_chain {
    const moirai_problem *p;
    moirai_structure *s;
    int32_t K;
    moirai_block **block; /* per class */
    moirai_pair *pair;    /* [(class * K + entry device) * K + exit device]; index 0 where there is no cut */
} moirai_chain;

void moirai_cases_free(moirai_case *cases, int32_t n);

int moirai_chain_new(moirai_chain **out, const moirai_problem *p);
void moirai_chain_free(moirai_chain *c);

static inline moirai_pair *moirai_chain_pair(const moirai_chain *c, int32_t class_, int32_t a, int32_t b)
{
    return &c->pair[((int64_t)class_ * c->K + a) * c->K + b];
}

/* Devices that a block's entry (exit) can have, as a mask; 1 (device 0, unused) where there is no cut. */
uint64_t moirai_chain_entry_mask(const moirai_chain *c, int32_t block);
uint64_t moirai_chain_exit_mask(const moirai_chain *c, int32_t block);

/* Whether some block of the class can have its entry on a and its exit on b. O(blocks). */
bool moirai_chain_possible(const moirai_chain *c, int32_t class_, int32_t a, int32_t b);

/* The part of `length_ns` that the blocks of a class take by the best of their plans; 0 without plans. */
double moirai_chain_share(const moirai_chain *c, int32_t class_, int64_t length_ns);

/* What the leaves of a pair prove: its bound without the exhaustive search. Of a pair that was never opened (blocks of
 * one class may have cuts of different devices): 0. */
int64_t moirai_pair_certified_ns(const moirai_pair *x);

typedef enum moirai_chain_side { MOIRAI_CHAIN_LOWER, MOIRAI_CHAIN_CERTIFIED, MOIRAI_CHAIN_UPPER } moirai_chain_side;

/* Least time over device paths by the pairs' lower bounds, by what a certificate can claim of them, or by their plans
 * (INT64_MAX where no path has plans). `cut_device` (n_cuts, may be NULL) gets the path. O(cuts * K^2). */
int64_t moirai_chain_path(const moirai_chain *c, moirai_chain_side side, int32_t *cut_device);
/* The path by plans where every change of device costs switch_ns more: a stand-in for edges that jump over cuts, whose
 * transfers the recursion does not see. */
int64_t moirai_chain_steady_path(const moirai_chain *c, int64_t switch_ns, int32_t *cut_device);

#endif
