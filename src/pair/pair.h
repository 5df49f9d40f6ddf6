/* A pair: a class of blocks between an entry device and an exit device, its best plan and its bound. */
#ifndef MOIRAI_PAIR_PAIR_H
#define MOIRAI_PAIR_PAIR_H

#include <moirai/schedule.h>

#include "pricing/master.h"
#include "relax/relax.h"

/* ---- plans ---- */

/* A plan of a block: devices and the order of tasks, in local numbers. */
typedef struct pair_plan {
    int64_t length_ns;  /* from the finish of the entry to the start of the exit */
    int64_t cost;       /* length in units plus memory cost */
    int32_t *device;    /* per local operator */
    moirai_task *order; /* sorted by start */
    int64_t n_order;
} pair_plan;

void pair_plan_free(pair_plan *plan);
/* Copies devices (of n_ops operators) and order; length and cost are the caller's. */
int pair_plan_set(pair_plan *plan, int32_t n_ops, const int32_t *device, const moirai_task *order, int64_t n_order);
/* The same with length and cost; nothing where there is no plan yet. */
int pair_plan_copy(pair_plan *to, const pair_plan *from, int32_t n_ops);

/* ---- bounds ---- */

/* One case of a pair, and the proof that it takes at least proven_ns: prices on the grid of length proven_ns - 1. */
typedef struct pair_case {
    int32_t sending; /* number of the pair's sending */
    int32_t n_branches;
    pricing_branch *branch;
    int64_t proven_ns;
    pricing_duals proof;  /* none: by the longest path alone */
    bool seen;            /* solved, and to be split where `split` says */
    int32_t buckets;      /* by then */
    int64_t estimate_ns;  /* what its prices should prove, by a solve further up; INT64_MAX: all that is wanted */
    pricing_duals duals;  /* the prices behind it */
    pricing_branch split; /* where to branch: [0, least] and [most, all]; PRICING_NO_BRANCH: nowhere */
} pair_case;

/* A search tree that excludes all plans of length_ns and less, by rules that a verifier repeats (exact/exact.h). */
typedef struct pair_search_proof {
    int64_t length_ns;
    size_t n_tree; /* 0: none */
    int32_t *tree;
} pair_search_proof;

/* So many cases are solved at once, each by a master with columns of its own: the outcome does not depend on the
 * threads. */
#define PAIR_SOLVERS 4

/* Ways to send the tensor that the block's components share. */
typedef struct pair_sendings {
    int32_t n;
    int32_t n_first; /* of them: they leave no plan out, and the cases begin with them */
    pricing_sending *how;
} pair_sendings;

/* What prices on loads have proven. */
typedef struct pair_loads {
    relax_proof proof; /* no leaves: none */
    bool tried;
} pair_loads;

/* Cases that leave no plan out. */
typedef struct pair_leaves {
    int32_t n;
    pair_case *cases;
} pair_leaves;

/* Block class between two devices. */
typedef struct pair_state {
    bool open;             /* set up: cases and first bounds are there */
    bool exhausted;        /* lower_ns comes from the exhaustive search */
    int32_t level;         /* of refinement done */
    int64_t path_ns;       /* bound of the longest path, transfers included */
    int64_t lower_ns;      /* proven: the least over the cases */
    pair_plan plan;        /* best known; plan.device NULL: none yet */
    decompose_block block; /* the class's block with a mask of its own, pinned to the two devices */
    pair_sendings sending;
    pricing_master *master[PAIR_SOLVERS]; /* NULL: not needed yet */
    int32_t n_cases;
    size_t case_capacity;
    pair_case *cases;
    pair_leaves kept; /* earlier cases, where they prove more than those that they were divided into; none: n is 0 */
    int64_t solves;   /* at cases so far */
    int32_t sent_buckets; /* of cases in which the shared tensor is sent, since they were begun; 0: no search yet */
    pair_loads loads;
    pair_search_proof search;
} pair_state;

/* A schedule of the block in place of the plan at hand where it is shorter; it stays the caller's. */
int pair_take_plan(pair_state *x, const moirai_plan *plan);
void pair_cases_free(pair_case *cases, int32_t n);

/* What the leaves of a pair prove: its bound without the exhaustive search. Of a pair that was never opened (blocks of
 * one class may have cuts of different devices): 0. */
int64_t pair_certified_ns(const pair_state *x);
/* The cases that prove most with their prices, and what that is; at least the longest path. */
pair_leaves pair_leaves_best(const pair_state *x);
int64_t pair_leaves_ns(const pair_state *x);
/* Whether that is more than a longest path, which a verifier finds alone. */
bool pair_certifies_more(const pair_state *x);
/* Raises lower_ns by prices on loads (relax/relax.h) where they have not been tried; what they prove can be certified.
 * O(rounds * (V K + E K^2)) of the block. */
int pair_raise_loads(pair_state *x, util_stop stop);
/* Searches what is proven of the pair once more, in a way that leaves a proof behind: at most so many nodes and numbers.
 * Where that does not suffice, lengths in between are tried. *left is lowered by the numbers that were kept. */
int pair_prove_by_search(pair_state *x, int64_t nodes, size_t *left, util_stop stop);

#endif
