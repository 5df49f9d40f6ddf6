/* The tuned numbers of static programmes, by the file that uses them. */
#ifndef MOIRAI_PAIR_STATIC_TUNING_H
#define MOIRAI_PAIR_STATIC_TUNING_H

/* static_build.c: what is left out of the programme */
#define STATIC_BUILD_LIGHT 0.004 /* of what is proven: transfers that are no longer have no columns */

/* static_loads.c: a layer of 8 experts: 1.322 by 25 rows, 1.397 by those that solutions violate */
#define STATIC_LOADS_ROWS_AT_ONCE 2 /* of a resource */
#define STATIC_LOADS_MOST_ROWS 600
#define STATIC_LOADS_VIOLATED 1e-3 /* of the length: what they may leave open */

/* static_solve.c */
#define STATIC_SOLVE_MOST_CUTS 14 /* rounds of load rows */
#define STATIC_SOLVE_REFUTING 1e5 /* programme's units: multipliers where there are no plans */

#endif
