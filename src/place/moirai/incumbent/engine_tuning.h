/* The tuned numbers of the engine, by the file that uses them; which step has which share of time is the table of
 * schedule.c. What a step is worth is what `bench_ablate` loses without its switch, where one is named, and what
 * docs/results.md says of it. */
#ifndef MOIRAI_PLACE_MOIRAI_ENGINE_TUNING_H
#define MOIRAI_PLACE_MOIRAI_ENGINE_TUNING_H

/* certify.c: what is proven again for a certificate; no gap depends on it */
#define CERTIFY_MOST_TREE ((size_t)2000000) /* numbers of search trees in a certificate: some 8 MB */
#define CERTIFY_CHAIN_NODES 20000.0         /* of the tree of a pair, at effort 1 */
#define CERTIFY_TREE_NODES 200000.0         /* of the tree of a whole problem */
#define CERTIFY_INTERVAL_LEVELS 2           /* of prices for a certificate: intervals are many */
#define CERTIFY_MOMENT_S 0.1                /* to find out what a chain proves, where the time is up */
#define CERTIFY_PLAIN_KEPT \
    20 /* times what plain bounds take, for less than which nothing more is begun: heads and tails of a million operators on 64 devices take 11 */
#define CERTIFY_PATHS_KEPT 3 /* times what a path along the chain takes, kept of the time */

/* moirai.c: what is kept of the time */
#define MOIRAI_CERTIFY_SHARE 0.15 /* of the time, where the proof is wanted as well */
#define MOIRAI_AFTER_KEPT \
    0.4 /* of what the search leaves for the plan's check (INCUMBENT_RESERVE), as does the proof; freeing it is in there */

/* schedule.c: conditions of its table */
#define SCHEDULE_SMALL_GAP 0.025    /* what is left is more likely the plan's */
#define SCHEDULE_WIDE 0.3           /* of the operators in large components: blocks are weak */
#define SCHEDULE_LARGE_COMPONENT 36 /* operators */
#define SCHEDULE_LITTLE_FLOATS 0.14 /* of the work floats beside a spine: encoder-decoders; cells leave more out */
#define SCHEDULE_MOST_AGAIN 12

/* step_blocks.c: switch `blocks` */
#define STEP_BLOCKS_FEW_BATCHES 2 /* where levels are limited */

/* step_exact.c: switch `exact` */
#define STEP_EXACT_NODES 2000000.0 /* at effort 1 */

/* step_interval_plans.c: switch `interval-plans` */
#define STEP_INTERVAL_PLANS_NEAR 0.06 /* longer plans than the best by more are left alone */
#define STEP_INTERVAL_PLANS_HEAT 0.3  /* of a long round's */
#define STEP_INTERVAL_PLANS_EVALUATIONS 30000.0
#define STEP_INTERVAL_PLANS_EVALUATIONS_OP 150.0

/* step_intervals.c: switch `intervals` */
#define STEP_INTERVALS_CHAINS 14 /* at effort 1 */
#define STEP_INTERVALS_LITTLE_EFFORT 0.2
#define STEP_INTERVALS_LITTLE_TRIES 2

/* step_loads.c: switches `loads`, `load-chain` */
#define STEP_LOADS_FIRST_ROUNDS 24
#define STEP_LOADS_SIDE_ROUNDS 200
#define STEP_LOADS_SIDE_SHARE 0.5
#define STEP_LOADS_FIRST_CASES 3 /* times the devices */
#define STEP_LOADS_HOPE 0.85     /* of the known bound: below, the second step is left out */
#define STEP_LOADS_CASES 240.0   /* at effort 1 */
#define STEP_LOADS_ROUNDS 90.0
#define STEP_LOADS_FIRST_WORK 4e8 /* rounds x cells of messages */
#define STEP_LOADS_WORK 4e9       /* at effort 1 */
#define STEP_LOADS_SWEEPS 3
#define STEP_LOADS_LEAST_ROUNDS 4
#define STEP_LOADS_MOST_CELLS (INT64_C(1) << 24) /* operators x devices, and edges x devices^2 */
#define STEP_LOADS_BLOCK_CASES 40.0

/* step_whole.c: switch `whole`; one long hot round for five: 18.30 to 18.08 ms */
#define STEP_WHOLE_MOST_OPS 100000     /* beyond, setting up a state takes longer than there is time to change it */
#define STEP_WHOLE_EVALUATIONS 30000.0 /* of the first round, per chain, */
#define STEP_WHOLE_EVALUATIONS_OP 60.0 /* or so many per operator if that is more */
#define STEP_WHOLE_LONG_OP 1700.0      /* of a long round, per operator */
#define STEP_WHOLE_STEPS 8e8           /* a round puts down at most about so many operators */
#define STEP_WHOLE_RIVAL_OP 150.0      /* evaluations per operator: fewer are no evidence (moirai_plan_origin) */
#define STEP_WHOLE_SHORT_ROUNDS 2
#define STEP_WHOLE_LEAST_HOT 0.7 /* of a long round's evaluations: where there is time for less, none is hot */
#define STEP_WHOLE_IN_TIME 0.6   /* of the time that is left is planned for a hot round */
#define STEP_WHOLE_WORTH_A_ROUND 0.0002
#define STEP_WHOLE_MOST_IDLE 3 /* rounds in a row that gain nothing */

/* batch.c: switch `blocks`: which pairs are refined next */
#define BLOCKS_BATCH_OFTEN 4 /* parts of a class on the paths: what a pair needs for a plan of its own */
#define BLOCKS_BATCH_MINOR 8 /* parts of the widest pair: what is below can wait */

/* blocks.c: switch `blocks` */
#define BLOCKS_MANY_CLASSES 6 /* of blocks: the first levels of all their pairs take long */

/* compose.c: switch `blocks` */
#define BLOCKS_COMPOSE_NEARLY 1.02 /* of the best plan: a path of plans may be so long to be of interest */

/* layers.c: switch `layers` */
#define BLOCKS_LAYERS_COPIES 3            /* of a class, at least: then layers repeat */
#define BLOCKS_LAYERS_LEAST_OPS 24        /* of a block: smaller ones are annealed once */
#define BLOCKS_LAYERS_MOST_PAIRS 1024     /* of all classes */
#define BLOCKS_LAYERS_FIRST_TRIALS 8000.0 /* of each chain at each pair, at effort 1 */
#define BLOCKS_LAYERS_FIRST_IN_ALL 2e5    /* at all pairs */
#define BLOCKS_LAYERS_TRIALS 30000.0      /* in the first round */
#define BLOCKS_LAYERS_ROUNDS 24
#define BLOCKS_LAYERS_IDLE_ROUNDS 12 /* that gain nothing end it */
#define BLOCKS_LAYERS_RUNS 12        /* side by side */
#define BLOCKS_LAYERS_ELSEWHERE 3    /* rounds from one look at other pairs to the next */
#define BLOCKS_LAYERS_WORTH_A_ROUND 0.0002
#define BLOCKS_LAYERS_COLD 10.0 /* times the last temperature of the whole: few operators, and none of them short */

/* open.c: switch `blocks`: pairs that the path meets first, 14.6 % to 1.6 (Inception-v4, 6 s) */
#define BLOCKS_OPEN_OPEN_ALL_FEW 8192  /* pairs that are opened at once, on few devices */
#define BLOCKS_OPEN_OPEN_ALL_MANY 1024 /* and on many */
#define BLOCKS_OPEN_PATH_ROUNDS 200    /* in which the bound's path may meet unknown pairs, at effort 1 */
#define BLOCKS_OPEN_SMALL_SHARE 0.15   /* of the largest: classes with less of the makespan get less work at first */

/* within_memory.c: switch `memory` */
#define BLOCKS_WITHIN_MEMORY_MEMORY_ROUNDS 12
#define BLOCKS_WITHIN_MEMORY_EVALUATIONS 4000  /* of a search for a block plan */
#define BLOCKS_WITHIN_MEMORY_WORTH_MORE 0.0005 /* of the makespan: what such a search should find */

/* floats.c: switch `spine` */
#define INCUMBENT_FLOATS_ROUNDS 6

/* incumbent.c: time that is kept, plans that are worth a try */
#define INCUMBENT_MOST_PASSES 40
#define INCUMBENT_WORTH_A_TRY 0.0005
#define INCUMBENT_RESERVE 8     /* composing the last plan and its check, in times of the first check */
#define INCUMBENT_LATE 0.4      /* of the time */
#define INCUMBENT_NEAR_BEST 0.1 /* plans of a spine that are so near to its best are of use */

/* more than 64 devices: switch `devices` */
#define MANY_PLAIN_KEPT 4     /* times what plain bounds take, for less than which prices are not found again */
#define MANY_MOST_BYTES 256e6 /* of a state of the whole problem; there are four */

/* whole_anneal.c: switch `whole` */
#define WHOLE_ANNEAL_HOT 0.008    /* first temperature, of the makespan */
#define WHOLE_ANNEAL_COLD 0.00003 /* last one */

/* the same: moves */
#define WHOLE_MOVES_DRAWS 6        /* for an operator on a critical path */
#define WHOLE_MOVES_PARTNERS 12    /* draws of one to exchange devices with */
#define WHOLE_MOVES_EXCHANGES 25   /* of a hundred moves, where there are any */
#define WHOLE_MOVES_STRETCH 24     /* operators that change their device at once, at most */
#define WHOLE_MOVES_MANY_DEVICES 6 /* more: of two that are drawn the quicker is taken */
#define WHOLE_MOVES_STRIDE 64      /* trials at one temperature */

/* whole_sim.c: switch `whole`: limits of its own time */
#define WHOLE_SIM_STALE 6 /* accepted states until lateness is found anew */

#endif
