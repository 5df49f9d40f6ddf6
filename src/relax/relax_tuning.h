/* The tuned numbers of the relaxation of a whole problem, by the file that uses them. The whole is worth what `bench_ablate`
 * loses without its switch `loads`; a part, what it loses without the switch that is named, and what docs/engine.md, Loads,
 * and docs/results.md say of it. Limits of arithmetic stay where they are used. */
#ifndef MOIRAI_RELAX_TUNING_H
#define MOIRAI_RELAX_TUNING_H

/* balance.c: assignments that balance loads; without them 44.8 % for 9.6 where memory binds */
#define RELAX_BALANCE_ALL_MOVES 400000 /* more: the next best device of an operator alone is tried */
#define RELAX_BALANCE_MOST_PASSES 12
#define RELAX_BALANCE_MOST_DEGREE 64 /* operators with more neighbours stay: they are hubs, or cost too much to try */
#define RELAX_BALANCE_HOT 3e-4       /* temperatures: squares of parts of the target */
#define RELAX_BALANCE_COLD 3e-7
#define RELAX_BALANCE_STRIDE 64
#define RELAX_BALANCE_TRIES 8    /* at an operator to exchange with */
#define RELAX_BALANCE_OVERFLOW 1 /* squares of the target for all of a device's bytes over again */

/* cases.c: hubs as cases, and how time is shared between cases, prices and choices */
#define RELAX_CASES_MOST_HUBS 8
#define RELAX_CASES_MANY_DEVICES 6                    /* more: prices begin at those of the load bound */
#define RELAX_CASES_HUB_SHARE 0.03                    /* of all transfers */
#define RELAX_CASES_MOST_ROWS 500                     /* of the master (lp/simplex.h): beyond, transfers are left out */
#define RELAX_CASES_MOST_MESSAGES (INT64_C(40) << 20) /* edges x devices */
#define RELAX_CASES_MOMENT_S 0.1                      /* for the evaluation of what was found, where the time is up */
#define RELAX_CASES_MOMENT_CELLS (INT64_C(1) << 21)   /* operators x devices: more take longer than that */
#define RELAX_CASES_STEPS 400                         /* of annealing a choice: per operator, */
#define RELAX_CASES_MOST_STEPS 800000                 /* and at most */
#define RELAX_CASES_CASES_PART 0.8                    /* of the time; the rest is for choices */
#define RELAX_CASES_PRICES_PART 0.7                   /* of a case's time */

/* chain.c: blocks in a row, switch `load-chain`; ends first: 29.1 % for 1.8 without on 16 devices, 66.3 for 0.4 on 6 */
#define RELAX_CHAIN_LEVELS 2
#define RELAX_CHAIN_LEAST_BLOCK 3 /* operators: smaller ones are known from their longest paths */
#define RELAX_CHAIN_FIRST_ROUNDS 24
#define RELAX_CHAIN_MOST_PAIRS 400000
#define RELAX_CHAIN_MOST_DEVICES 16
#define RELAX_CHAIN_MANY_DEVICES 3               /* more: ends alone come first */
#define RELAX_CHAIN_MOST_WORK (INT64_C(1) << 28) /* edges x devices^3: longest paths of all pairs */
#define RELAX_CHAIN_HOPE 0.9 /* of what is known: below it after the first level, loads do not decide */

/* paths.c: paths that are rows of their own, switch `shifts`; chains of 1,000 operators on 8 devices have 10.4 % without them, 2.9 with */
#define RELAX_PATHS_EACH_TIME 16
#define RELAX_PATHS_ROOM (INT64_C(1) << 18) /* operators of all paths */
#define RELAX_PATHS_WORTH 1.002             /* longer by less: not worth a row */
#define RELAX_PATHS_OWN 0.1                 /* of a path's time: less of its own, and it is nearly another one */

/* plans.c: orders that are simulated */
#define RELAX_PLANS_ORDERS 4

/* prices.c: cutting planes for prices on loads */
#define RELAX_PRICES_FIRST_SWEEPS 4 /* of messages, at the first prices */
#define RELAX_PRICES_SWEEPS 2       /* at each later ones */
#define RELAX_PRICES_CLOSE 3e-5     /* of the master's value: close enough */
#define RELAX_PRICES_TOWARDS 0.6    /* the next prices lie so far from the best towards the master's */
#define RELAX_PRICES_MOST_IDLE 14   /* rounds without a gain worth mentioning */
#define RELAX_PRICES_MANY_PRICES 20 /* more: a master of few columns knows little of them, */
#define RELAX_PRICES_MORE_IDLE 26   /* and there are so many rounds more, */
#define RELAX_PRICES_HALVINGS 6     /* each half as far as the one before, then again as far as at first */
#define RELAX_PRICES_WORTH 1e-4
#define RELAX_PRICES_EXACT_ROUNDS 4    /* for one with messages, where prices are found exactly */
#define RELAX_PRICES_EXACT_PART 0.7    /* of the time for prices where they are found exactly: then messages are sent */
#define RELAX_PRICES_LAST_SWEEPS 64    /* of messages, at prices that were found exactly, */
#define RELAX_PRICES_LAST_WORTH 1e-6   /* as long as one gains so much */
#define RELAX_PRICES_OVERFLOW_PRICE 64 /* what overstepping a device's memory by all of it costs, in lengths */

/* shifts.c: loads within stretches of time, switch `shifts` */
#define RELAX_SHIFTS_MOST_SHIFTS 20
#define RELAX_SHIFTS_TURNS 8     /* in which shifts and paths are added, */
#define RELAX_SHIFTS_EACH_TIME 4 /* so many shifts */
#define RELAX_SHIFTS_ENDS 14     /* of heads and of tails that are tried */
#define RELAX_SHIFTS_ROUNDS 400  /* of the game before shifts are added, */
#define RELAX_SHIFTS_LAST_ROUNDS 1200
#define RELAX_SHIFTS_MOST_WORK 1e9                 /* and at most so many products in each */
#define RELAX_SHIFTS_MOST_CELLS (INT64_C(1) << 18) /* operators x devices: 42 MB of parts */
#define RELAX_SHIFTS_WORTH 1.002                   /* overstepped by less: not worth a shift */
#define RELAX_SHIFTS_RAISED 1.01  /* what loads or paths alone prove: below, transfers are not asked within shifts */
#define RELAX_SHIFTS_IDLE 1e-3    /* of all prices */
#define RELAX_SHIFTS_MOMENT_S 0.1 /* for the evaluation, where the time is up */

#endif
