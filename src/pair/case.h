/* One case of a pair, for cases.c: what it is worth and where it is divided (case.c), its parts (cases_split.c). */
#ifndef MOIRAI_PAIR_CASE_H
#define MOIRAI_PAIR_CASE_H

#include "pair/pair.h"

#define PAIR_CASE_QUESTIONS 40 /* to one case, at most */

/* Prices on bytes, and what they make of a block. */
typedef struct pair_bytes_at {
    const int64_t *price;
    int64_t total;    /* bytes of all interior operators */
    int64_t cheapest; /* these where they are cheapest, in units */
} pair_bytes_at;

/* Pricer and master of a solver, where they are not there yet. */
int pair_cases_open_solver(pair_cases *v, int32_t i);
void pair_case_free(pair_case *c);
/* The prices, NULL where all bytes are free: equal devices are equal then. */
const int64_t *pair_paid_bytes(const decompose_block *b, const int64_t *byte_price);
/* No plan of the case is shorter. Of lengths from one less than what is proven on: prices that prove as much exclude that one, as a
 * certificate has it. */
int64_t pair_case_least_ns(const pair_cases *v, const pair_case *c);
/* What a length of so much is worth, with all bytes where they are cheapest. */
int64_t pair_length_value(const pair_cases *v, int64_t length_ns, const int64_t *byte_price);
/* What a case is worth at prices on bytes at the least, without a pricing, by what is known at others. */
int64_t pair_case_floor(const pair_cases *v, const pair_case *c, const pair_bytes_at *at);
/* To new prices on bytes. */
void pair_case_move(const pair_cases *v, pair_case *c, const pair_bytes_at *at);
/* Its value at the present prices on bytes, by pricing. */
void pair_case_revalue(pair_cases *v, pair_case *c);
/* Better prices for a case with an end, by one of the solvers, and where it is divided next. */
int pair_case_solve(pair_cases *v, int32_t solver, pair_case *c, const pair_cases_task *job);
/* The LP solution of a case with an end, which is where good plans are: *n schedules, to be freed, and the part of each resource in its
 * prices. */
int pair_case_solution(pricing_chosen_column **column, int32_t *n, double *weight, pair_cases *v, int32_t solver,
                       const pair_case *c, const pair_cases_task *job);

/* ---- cases_split.c ---- */
/* Cases in place of case `index`, as its `split` says, which begin with its prices; the first of them has its number. */
int pair_case_split(pair_cases *v, int32_t index);
/* A split behind n branches: up to split.least in the list at *below, which grows; from split.most on in a new list. */
int pair_case_branch(pricing_branch **below, pricing_branch **above, int32_t n, const decompose_block *b,
                     pricing_branch split);

#endif
