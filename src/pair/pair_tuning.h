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

/* cases.c: attempts to bring the weakest cases to the least estimate, best first */
#define PAIR_CASES_ATTEMPTS 6

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

/* pair_refine.c: switch `pair-prices` */
#define PAIR_REFINE_OPEN 0.3 /* where cases are split on arrivals again and again: twice the solves in the same time */

#endif
