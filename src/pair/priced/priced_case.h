/* One case of a pair at prices on bytes, for priced.c. */
#ifndef MOIRAI_PAIR_PRICED_CASE_H
#define MOIRAI_PAIR_PRICED_CASE_H

#include "pair/priced/priced.h"

#define PAIR_PRICED_QUESTIONS 40 /* to one case, at most */

/* Prices on bytes, and what they make of a block. */
typedef struct pair_priced_bytes {
    const int64_t *price;
    int64_t total;    /* bytes of all interior operators */
    int64_t cheapest; /* these where they are cheapest, in units */
} pair_priced_bytes;

/* Pricer and master of a solver, where they are not there yet (priced.c). */
int pair_priced_open_solver(pair_priced *v, int32_t i);
void pair_priced_case_free(pair_priced_case *c);
/* What a case is worth at prices on bytes at the least, without a pricing, by one of its findings. */
int64_t pair_priced_floor(const pair_priced *v, const pair_priced_case *c, const pair_priced_finding *by,
                          const pair_priced_bytes *at);
/* To new prices on bytes, with the finding that promises more there. */
void pair_priced_move_case(const pair_priced *v, pair_priced_case *c, const pair_priced_bytes *at);
/* Its value at the present prices on bytes, by pricing. */
void pair_priced_value_case(pair_priced *v, pair_priced_case *c);
/* A copy of these prices comes into use: they prove `value` of the case at the present prices on bytes. */
int pair_priced_take_prices(const pair_priced *v, pair_priced_case *c, const pricing_duals *prices, int64_t value);
/* Divide a case where its `split` says: *c becomes the lower half, *d the upper one; both begin with its prices. */
int pair_priced_halves(const pair_priced *v, pair_priced_case *c, pair_priced_case *d, const int64_t *byte_price);
#endif
