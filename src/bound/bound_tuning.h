/* The tuned numbers of bounds, by the file that uses them. Those of bounds that the engine runs are worth what `bench_ablate`
 * loses without the switch that is named; the others serve `moirai bound` alone. */
#ifndef MOIRAI_BOUND_TUNING_H
#define MOIRAI_BOUND_TUNING_H

/* bound_exact.c: the bound `search`, of `moirai bound` alone */
#define BOUND_EXACT_MOST_OPS 48
#define BOUND_EXACT_NODES 2000000.0 /* at effort 1 */

/* bound_loads.c: the bounds `loads` and `shifts`, of `moirai bound` alone */
#define BOUND_LOADS_CASES 200
#define BOUND_LOADS_ROUNDS 80.0

/* interval_chain.c: chains of intervals, switch `intervals` */
#define BOUND_INTERVALS_SEARCH_OPS 250  /* larger intervals are not searched */
#define BOUND_INTERVALS_LARGE_OPS 64    /* from this size on searches get fewer nodes */
#define BOUND_INTERVALS_SMALL_OPS 46    /* up to this size the search comes first */
#define BOUND_INTERVALS_MOST_OPEN 20000 /* pairs that are opened at once */
#define BOUND_INTERVALS_RISE 32         /* a pair's bound by this part of its plan, then the path is looked at again */
#define BOUND_INTERVALS_FEW_DEVICES 4.0 /* more: searches get fewer nodes */
#define BOUND_INTERVALS_REPEATS 3       /* blocks of a class, on average: they are copies of a few */
#define BOUND_INTERVALS_PLAN_OPS 34     /* smaller intervals are mostly closed at once */
#define BOUND_INTERVALS_PLAN_NEAR 0.02  /* above a pair's bound: its plan is near enough */
#define BOUND_INTERVALS_PLAN_EVALUATIONS 4000
#define BOUND_INTERVALS_PATIENCE 2 /* times as many nodes where there is time for them */

/* interval_portfolio.c: chains that compete, switch `intervals` */
#define BOUND_PORTFOLIO_FIRST_NOISY 6 /* from here on rules have noise */
#define BOUND_PORTFOLIO_STAGES 2      /* parts of the first round; the likeliest chain by then is raised all the way, */
#define BOUND_PORTFOLIO_FINALISTS 3   /* and of all that are not yet, until there are so many */
#define BOUND_PORTFOLIO_LATER_FINALISTS 4 /* of a further round, */
#define BOUND_PORTFOLIO_LATER_CHAINS 4    /* which lets in so many new chains */
#define BOUND_PORTFOLIO_MOST_CHAINS 60    /* then no more are let in */
#define BOUND_PORTFOLIO_COARSER 2         /* times that intervals become twice as large, switch `again` as well, */
#define BOUND_PORTFOLIO_COARSER_OPS 1000  /* in problems up to this size: listing them takes long, */
#define BOUND_PORTFOLIO_HOPE 0.9          /* where chains prove so much of what is known */

/* interval_search.c: targets of the search of an interval, switch `intervals` */
#define BOUND_SEARCH_PARTS 2    /* of the nodes that are left go into one target */
#define BOUND_SEARCH_LEAST 200  /* nodes */
#define BOUND_SEARCH_FIRST 12   /* the first step is this part of what is proven, */
#define BOUND_SEARCH_FINEST 400 /* the last ones this */
#define BOUND_SEARCH_SHRINK 3

#endif
