/* Branch and bound over the cases of a pair: what raises its bound. */
#ifndef MOIRAI_PAIR_CASES_H
#define MOIRAI_PAIR_CASES_H

#include "pair/chain.h"

#define PAIR_CASE_STEPS 512
#define PAIR_MAX_SPLITS 60 /* of one case */

typedef struct pair_bound_task {
    pair_state *pair;
    pricing_pricer *pricer[PAIR_SOLVERS]; /* made when first needed; to be cleared */
    int64_t need_ns;                      /* no use in proving more than this */
    int32_t buckets, rounds, solves;
    int32_t sent_buckets; /* of cases in which some device receives the shared tensor */
    double open;     /* there, of what an LP leaves open: so much need not be found, since the case is split next */
    int32_t solvers; /* cases that are solved side by side, at most PAIR_SOLVERS */
    int threads;     /* for these; 0: one per core */
    util_stop stop;
} pair_bound_task;

/* A pricer, and the pair's master, for one of the solvers. Different solvers can be made at the same time. */
int pair_bound_solver(pair_bound_task *r, int32_t solver);
void pair_bound_clear(pair_bound_task *r);

/* One case per sending of the first ones. */
int pair_cases_first(pair_state *x);
/* The number of a sending among the pair's, where it is added if need be. */
int pair_sending(int32_t *number, pair_state *x, const pricing_sending *how);
/* Devices other than the entry's on which some reader of the block's shared tensor may run, as a mask. */
uint64_t pair_may_receive(const pair_state *x);
/* Refines the cases as far as the solves go: on from where they are, or anew from the sendings where `sent_buckets` are
 * others than before; what was proven before is kept unless it is surpassed. */
int pair_cases_solve(pair_bound_task *r);
/* The case of least proven length. */
int32_t pair_cases_weakest(const pair_state *x);
/* Where a case is best split after its master was solved: a number or an arrival, least and most being the two sides'
 * ends. */
pricing_branch pair_cases_branch_on(const pair_state *x, int32_t sending, const pricing_master *m,
                                    const int64_t *price);
/* The same, but for who receives the shared tensor, which is asked first. */
pricing_branch pair_case_choose_split(const pair_state *x, const pair_case *c, const pricing_master *m,
                                      const int64_t *price);
/* Cases in place of case `index`, as its `split` says; the first of them has its number. */
int pair_case_split(pair_state *x, int32_t index);
/* A split behind n branches: up to split.least in the list at *below, which grows; from split.most on in a new list. */
int pair_cases_branch(pricing_branch **below, pricing_branch **above, int32_t n, const decompose_block *b,
                      pricing_branch split);
void pair_case_free(pair_case *c);
/* The cases as far as they are a proof: no duals. To be freed also where it fails. */
int pair_cases_copy_proofs(pair_leaves *out, const pair_state *x);
/* The part of each resource in the prices of the master's last solve, over all time; sums to 1. */
void pair_cases_weights(const pair_state *x, const pricing_master *m, const int64_t *price, double *weight);

#endif
