/* The tuned numbers of pairs at prices on bytes, by the file that uses them. */
#ifndef MOIRAI_PAIR_PRICED_TUNING_H
#define MOIRAI_PAIR_PRICED_TUNING_H

/* priced.c: grids */
#define PRICED_PRICED_STEPS 256

/* priced_case.c: grids and rounds of a case */
#define PRICED_CASE_ROUNDS 40
#define PRICED_CASE_NARROW 0.02 /* ranges are not divided below this */
#define PRICED_CASE_SENT_BUCKETS 8
#define PRICED_CASE_MOST_BUCKETS 28 /* of cases that nothing divides */
#define PRICED_CASE_NARROWEST 64    /* parts of the length: an arrival's range below that is not halved again */
/* asked of one case: each raises its bound a little, and there are twice as many cases */
#define PRICED_CASE_MOST_NUMBERS 10
/* of what the LP leaves open: less is not worth more rounds, since the case is divided next */
#define PRICED_CASE_OPEN 0.05

#endif
