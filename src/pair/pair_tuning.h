/* The tuned numbers of pairs, by the file that uses them; those of a level are in the table of pair_refine.c. What a
 * mechanism is worth is what `bench_ablate` loses without its switch, where one is named, and what docs/results.md says
 * of it. */
#ifndef MOIRAI_PAIR_TUNING_H
#define MOIRAI_PAIR_TUNING_H

/* anneal.c: temperatures and draws of the annealing of a pair's plan */
#define PAIR_ANNEAL_DRAWS 50
#define PAIR_ANNEAL_GUIDE 2.0 /* how much priced work counts in the energy, against the length */
#define PAIR_ANNEAL_HOT 0.006 /* temperatures, as parts of the length */
#define PAIR_ANNEAL_COLD 0.00003

/* anneal_moves.c */
#define PAIR_ANNEAL_MOVES_DRAWS 5 /* of moves until one changes something */

/* case.c: grids and rounds of a case */
#define PAIR_CASE_STEPS 256
#define PAIR_CASE_ROUNDS 40
#define PAIR_CASE_SENT_BUCKETS 8
#define PAIR_CASE_MOST_BUCKETS 28 /* of cases that nothing divides */
/* of what the LP leaves open: less is not worth more rounds, since the case is divided next */
#define PAIR_CASE_OPEN 0.05

#define PAIR_CASE_NEAR 200 /* parts of the length: plans from LP solutions may take one of them more */

/* cases_split.c */
#define PAIR_CASE_NARROW 0.02  /* ranges are not divided below this */
#define PAIR_CASE_NARROWEST 64 /* parts of the length: an arrival's range below that is not halved again */
#define PAIR_CASE_MOST_NUMBERS \
    10 /* asked of one case: each raises its bound a little, and there are twice as many cases */

/* chain.c: limits of memory and time */
#define PAIR_CHAIN_MOST_PAIRS 2e6 /* of a small problem: 16 MB of pointers */
#define PAIR_CHAIN_MOST_LISTED 4  /* 65 orders of arrival */
#define PAIR_CHAIN_MOST_STEPS 4e8 /* of one walk over the cuts: about a second */

/* improve.c: switch `lp-plans`, and the runs of the annealing */
#define PAIR_IMPROVE_RESTARTS 6
/* of the runs that go on from the pair's plan: these do without the LP solution's columns */
#define PAIR_IMPROVE_PLAIN 2
#define PAIR_IMPROVE_AFRESH 3 /* from this one on runs forget the plan at hand */
#define PAIR_IMPROVE_FINALISTS 2
#define PAIR_IMPROVE_NEAR 1.03 /* times the shortest trial: longer ones are no finalists */
#define PAIR_IMPROVE_MOST_TRIALS 12

/* pair_open.c: limits of what is listed */
#define PAIR_OPEN_MOST_SETS 6         /* of devices whose sets are listed, where no port makes an order */
#define PAIR_OPEN_MOST_PATH_STEPS 1e8 /* of one longest path with all devices: a quarter of a second */

/* pair_raise.c: prices on loads, switch `pair-loads`; twice the rounds prove nothing more of a layer of experts */
#define PAIR_RAISE_LOADS_CASES 4
#define PAIR_RAISE_LOADS_ROUNDS 24
/* of what lies between the certified and the proven bound, where the latter takes too long */
#define PAIR_RAISE_BISECTIONS 4

#endif
