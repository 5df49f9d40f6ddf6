/* A tree of cases over the plans of a pair: what they cost at the least, length plus the price of their bytes. Where bytes are free that
 * is the pair's length. */
#ifndef MOIRAI_PAIR_CASES_H
#define MOIRAI_PAIR_CASES_H

#include "pricing/master.h"

struct pair_state;

/* Where the solver of a case has ended. */
typedef struct pair_case_end {
    bool solved;                     /* the master was solved for the prices on bytes at hand */
    double use[MOIRAI_MASK_DEVICES]; /* bytes on each device in the LP solution behind it */
    pricing_branch split;            /* where to divide the case */
} pair_case_end;

/* Plans that send the shared tensor so, keep to these ranges, and take between least_ns and most_ns. */
typedef struct pair_case {
    int32_t sending; /* number of the pair's sending */
    int32_t n_branches;
    pricing_branch *branch;    /* what the case was divided on, in that order */
    int64_t least_ns, most_ns; /* the block's time; most_ns INT64_MAX: no end, and no prices */
    int64_t value;             /* in units */
    bool valued; /* by `prices` at the present prices on bytes; else `value` is no more than that (case.c) */
    pricing_duals
        prices; /* in time, on a grid of the case's longest time or more; none: length and cheapest bytes alone */
    int64_t known, known_at[MOIRAI_MASK_DEVICES]; /* what they have proven, at which prices on bytes; 0: nothing */
    pair_case_end end;
} pair_case;

/* So many cases are solved at once, each by a solver with columns of its own: the outcome does not depend on the
 * threads. */
#define PAIR_SOLVERS 4

typedef struct pair_solver {
    pricing_pricer *pricer;
    pricing_master *master;
} pair_solver;

typedef struct pair_cases {
    struct pair_state *pair;
    pair_solver solver[PAIR_SOLVERS];
    pair_case *list;
    int32_t n;
    size_t capacity;
    int64_t stamp;                           /* 0: no values yet */
    int64_t byte_price[MOIRAI_MASK_DEVICES]; /* of `stamp` */
    int32_t buckets;                         /* that cases were last solved with */
    bool solved;                             /* refined for the prices on bytes of `stamp` */
    int64_t value;                           /* the least over the cases */
    double use[MOIRAI_MASK_DEVICES];
} pair_cases;

typedef struct pair_cases_task {
    const int64_t *byte_price; /* per device, in units */
    int64_t stamp;             /* names the prices: changes when they do */
    int32_t buckets, solves;
    int64_t ceiling; /* in units: what a plan of the pair costs, more need not be proven; 0: not known */
    int threads;     /* 0: one per core */
    util_stop stop;
} pair_cases_task;

void pair_cases_free(pair_cases *v);
/* One case per sending of the pair's first ones, where there is none yet. MOIRAI_ELIMIT: the block is too large for prices. */
int pair_cases_begin(pair_cases *v);
/* What pricing works with is given back; it is there again when it is needed. */
void pair_cases_rest(pair_cases *v);
/* At new prices, without a search: the prices in time found at earlier ones still hold. The value is that of the
 * weakest case; others get theirs as they are needed. */
void pair_cases_update(pair_cases *v, const pair_cases_task *job);
/* As above, with the values of all cases. */
void pair_cases_update_all(pair_cases *v, const pair_cases_task *job);
/* The value at other prices than the present ones, by what is known of its cases; `use` gets the bytes behind it. Nothing
 * changes but working memory. */
int64_t pair_cases_value_at(pair_cases *v, const int64_t *byte_price, double *use);
/* Divide and solve cases, until they are worth the ceiling or the solves are used up: the weakest first. */
int pair_cases_refine(pair_cases *v, const pair_cases_task *job);
/* Every interior operator's bytes where they are cheapest, in units; `use` (may be NULL) gets the bytes. */
int64_t pair_cheapest_bytes(const decompose_block *b, const int64_t *byte_price, double *use);
/* The value of one case by exact pricing. */
int64_t pair_case_value(pair_cases *v, const pair_case *c, const int64_t *byte_price);
#endif
