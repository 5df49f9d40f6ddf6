/* The tuned numbers of prices in time, by the file that uses them. The whole is worth what `bench_ablate` loses without
 * its switches `pair-prices` and `interval-prices`. */
#ifndef MOIRAI_PRICING_TUNING_H
#define MOIRAI_PRICING_TUNING_H

/* master.c: boundaries where a send is under way: a layer of gpt3-1.3B by 8 buckets: 12.69 without, 13.11 with */
/* parts of the length: ports that a send holds in any case for less get no bucket of their own */
#define PRICING_MASTER_LEAST_HOLD 64

/* master_columns.c: columns that stay in the LP */
#define PRICING_MASTER_COLUMNS_KEEP_ALL 80 /* columns: the LP takes most of the time, and it grows with them */
#define PRICING_MASTER_COLUMNS_IDLE_SOLVES 2

/* master_lp.c: costs of what no schedule does, in the LP alone: no bound depends on them */
#define PRICING_MASTER_LP_OVERTIME 4.0 /* priced form: what more of all resources costs, in T */
#define PRICING_MASTER_LP_ELASTIC 64.0 /* what missing a number by one costs in the master: many times theta */

/* pricer.c: limits of time and memory */
#define PRICING_PRICER_MOST_STEPS 4e8        /* of one pricing, or of a spanning tree: about half a second */
#define PRICING_PRICER_MOST_CELLS 16777216.0 /* of a table: 128 MB */

#endif
