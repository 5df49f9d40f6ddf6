/* Branch and bound over the cases of a pair: what raises its bound. */
#ifndef MOIRAI_CASES_H
#define MOIRAI_CASES_H

#include "place/moirai/chain.h"

#define MOIRAI_CASE_STEPS 512

typedef struct moirai_raise {
    moirai_pair *pair;
    moirai_pricer *pricer;  /* of the pair's block, for MOIRAI_CASE_STEPS */
    int32_t entry_device, exit_device;
    int64_t need_ns;        /* no use in proving more than this */
    int32_t buckets, rounds, looks;
    moirai_stop stop;
} moirai_raise;

/* One case per sending. */
int moirai_cases_first(moirai_pair *x);
/* Cases anew from the sendings, refined as far as the looks go; what was proven before is kept unless it is
 * surpassed. */
int moirai_cases_raise(moirai_raise *r);
/* The case of least proven length. */
int32_t moirai_cases_weakest(const moirai_pair *x);
/* The pair's master, made when first needed; NULL: out of memory. */
moirai_master *moirai_cases_master(moirai_raise *r);
/* Where a case is best split after its master was solved: a count or an arrival, least and most being the two sides'
 * ends. */
moirai_count moirai_cases_split(const moirai_pair *x, int32_t sending, const moirai_master *m, const int64_t *price);
/* What the two cases of a split assume: up to split.least, or from split.most on. */
void moirai_cases_sides(const moirai_block *b, moirai_count split, moirai_count *below, moirai_count *above);
/* The part of each resource in the prices of the master's last solve, over all time; sums to 1. */
void moirai_cases_weights(const moirai_pair *x, const moirai_master *m, const int64_t *price, double *weight);

#endif
