/* The tuned numbers of prices on bytes, by the file that uses them. The whole is worth what `bench_ablate` loses
 * without its switch `memory`; a part, what it loses without the switch that is named. */
#ifndef MOIRAI_BYTES_TUNING_H
#define MOIRAI_BYTES_TUNING_H

/* block_plans.c: the runs of a search for block plans */
#define BYTES_BLOCK_PLANS_TRIALS 5
#define BYTES_BLOCK_PLANS_SMALL_SHARE 0.02
#define BYTES_BLOCK_PLANS_FINALISTS 2

/* bytes_bound.c: rounds and steps of the search for prices */
#define BYTES_BOUND_SETTLE_ROUNDS 12
#define BYTES_BOUND_MOST_BYTES 268435456.0 /* of what is kept per pair, in a small problem */
#define BYTES_BOUND_FAR_BELOW 0.955        /* of the best plan: the bound's prices are not to be trusted yet */
#define BYTES_BOUND_LEAST_MOVE 0.002       /* of the same: prices of whole memories that differ by less are the same */
#define BYTES_BOUND_BACK 0.997             /* of the best bound: less, and the step was too far */
#define BYTES_BOUND_LEAST_STEP 0.03125     /* of the way to the LP solution's prices */
#define BYTES_BOUND_MEASURES 8             /* of the LP solution over paths, until it is made of what is known by now */
#define BYTES_BOUND_PATH_REFINEMENTS 20    /* how often the bound's path may move to unpriced pairs within one round */

/* bytes_plan.c: how hot polishing begins */
#define BYTES_PLAN_HOT 0.002   /* temperatures of polishing, of the path's time */
#define BYTES_PLAN_WARM 0.0005 /* where it goes on from the best path */

/* bytes_polish.c: annealing of a path */
#define BYTES_POLISH_STEPS 20000     /* at most; fewer where there are few blocks to change */
#define BYTES_POLISH_STEPS_BLOCK 500 /* for each of them */
#define BYTES_POLISH_STRIDE 64       /* of them at the same prices */
#define BYTES_POLISH_COLD 0.00001    /* last temperature, of the path's time */
#define BYTES_POLISH_WINDOW 24       /* blocks, at most */

/* bytes_refine.c: how solves are shared among the pairs of a round */
#define BYTES_REFINE_FIRST_BUCKETS 2 /* of pairs of which nothing is known */
#define BYTES_REFINE_FEW_BUCKETS 8   /* where there is little to gain */
#define BYTES_REFINE_MOST_PART 4     /* of the solves for each pair: to those on which most of the gap hangs */

#endif
