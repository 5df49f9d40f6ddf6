/* What a pair costs at prices on bytes: least over its plans of length plus the price of its bytes, from below. */
#ifndef MOIRAI_PAIR_PRICED_H
#define MOIRAI_PAIR_PRICED_H

#include "pair/chain.h"

/* Where the solver of a case has ended. */
typedef struct pair_priced_end {
    bool solved;                     /* the master was solved for the prices on bytes at hand */
    double use[MOIRAI_MASK_DEVICES]; /* bytes on each device in the LP solution behind it */
    pricing_branch split;            /* where to divide the case */
} pair_priced_end;

/* Prices in time that were found for a case. */
typedef struct pair_priced_finding {
    pricing_duals prices; /* on a grid of the case's longest time or more; none: length and cheapest bytes alone */
    int64_t known, known_at[MOIRAI_MASK_DEVICES]; /* what they have proven, at which prices on bytes; 0: nothing */
    bool centre;                                  /* these are the prices on bytes that one comes back to */
    pair_priced_end end;                          /* at these, while others are looked at */
} pair_priced_finding;

/* A case of a pair as in cases.h, in which the block's time, too, lies in a known range. */
typedef struct pair_priced_case {
    int32_t sending;
    int32_t n_branches;
    pricing_branch *branch;    /* what the case was divided on, in that order */
    int64_t least_ns, most_ns; /* the block's time; most_ns INT64_MAX: no end, and no prices */
    int64_t value;             /* in units */
    bool valued; /* by `found` at the present prices on bytes; else `value` is no more than that (priced_case.c) */
    pair_priced_end end;
    pair_priced_finding found; /* in use */
    pair_priced_finding kept;  /* until its prices on bytes come back */
} pair_priced_case;

/* So many cases are solved at once, each by a solver with columns of its own: the outcome does not depend on the
 * threads. */
#define PAIR_PRICED_SOLVERS 4

typedef struct pair_priced_solver {
    pricing_pricer *pricer;
    pricing_master *master;
} pair_priced_solver;

typedef struct pair_priced {
    pair_state *pair;
    pair_priced_solver solver[PAIR_PRICED_SOLVERS];
    pair_priced_case *cases;
    int32_t n_cases;
    size_t case_capacity;
    int64_t stamp;                           /* 0: no values yet */
    int64_t byte_price[MOIRAI_MASK_DEVICES]; /* of `stamp` */
    int32_t buckets;                         /* that cases were last solved with */
    bool centre;                             /* these are the prices on bytes that one comes back to */
    bool solved;                             /* refined for the prices on bytes of `stamp` */
    int64_t value;                           /* the least over the cases */
    double use[MOIRAI_MASK_DEVICES];
} pair_priced;

typedef struct pair_priced_task {
    const int64_t *byte_price; /* per device, in units */
    int64_t stamp;             /* names the prices: changes when they do */
    bool centre; /* one comes back to these prices: what is found at them is kept when others are looked at */
    int32_t buckets, solves;
    int64_t ceiling; /* in units: what a plan of the pair costs, more need not be proven; 0: not known */
    int threads;     /* 0: one per core */
    util_stop stop;
} pair_priced_task;

void pair_priced_free(pair_priced *v);
/* At new prices, without a search: the prices in time found at earlier ones still hold. The value is that of the
 * weakest case; others get theirs as they are needed. */
void pair_priced_update(pair_priced *v, const pair_priced_task *job);
/* As above, with the values of all cases. */
void pair_priced_update_cases(pair_priced *v, const pair_priced_task *job);
/* The value at other prices than the present ones, by what is known of its cases; `use` gets the bytes behind it. Nothing
 * changes but working memory. */
int64_t pair_priced_value_at(pair_priced *v, const int64_t *byte_price, double *use);
/* Divide and solve cases, until they are worth the ceiling or the solves are used up: the weakest first. */
int pair_priced_refine(pair_priced *v, const pair_priced_task *job);
/* Every interior operator's bytes where they are cheapest, in units; `use` (may be NULL) gets the bytes. */
int64_t pair_priced_cheapest_bytes(const decompose_block *b, const int64_t *byte_price, double *use);
/* The value of one case by exact pricing, were `proven_ns` the least length of the pair. */
int64_t pair_priced_of_case(pair_priced *v, const pair_priced_case *c, const int64_t *byte_price, int64_t proven_ns);
/* Better prices for a case with an end, by one of the solvers: its master's LP solution is then where good plans are.
 */
int pair_priced_solve_case(pair_priced *v, int32_t solver, pair_priced_case *c, const pair_priced_task *job);

#endif
