/* The tuned numbers of static programmes, by the file that uses them. What cases are worth is what `bench_ablate` loses
 * without its switch `static-cases`: a layer of 8 experts has 1.397 without them, 1.528 by 17, 1.582 by 257. */
#ifndef MOIRAI_PAIR_STATIC_TUNING_H
#define MOIRAI_PAIR_STATIC_TUNING_H

/* static_branch.c: pseudo-costs: a layer of 8 experts, 161 cases: 1.0472 without, 1.0555 with */
#define STATIC_BRANCH_FRACTION 1e-4 /* of a number that counts as whole */
/* of the bound: shorter transfers are not worth telling apart who gets them first */
#define STATIC_BRANCH_SEND_WORTH 0.02
#define STATIC_BRANCH_PRIOR 0.1       /* of an operator's time: the rise that a number is believed to give */
#define STATIC_BRANCH_LEAST_PART 0.05 /* of a number that a side forbids: rises are not divided by less */

/* static_build.c: what is left out of the programme */
#define STATIC_BUILD_LIGHT 0.004 /* of what is proven: transfers that are no longer have no columns */

/* static_case.c: groups whose numbers are divided */
#define STATIC_CASE_GROUPS 8 /* at most, those with most work */

/* static_cases.c: when cases go on */
#define STATIC_CASES_TRIAL_CASES 40 /* that must have raised the bound */
#define STATIC_CASES_WORTH 1.002    /* to this, for more of them */
#define STATIC_CASES_ENOUGH 0.015   /* of the weakest case's bound: what is so much stronger need not be settled now */
#define STATIC_CASES_AHEAD 0.02     /* of what is proven: how much longer plans are spoken of */
#define STATIC_CASES_LEAST_AHEAD 0.01
#define STATIC_CASES_VIOLATED 3e-3 /* of a case's length: what load rows may leave open */

/* static_loads.c: the same layer: 1.322 by 25 rows, 1.397 by those that solutions violate */
#define STATIC_LOADS_ROWS_AT_ONCE 2 /* of a resource */
#define STATIC_LOADS_MOST_ROWS 600

/* static_lp.c: of the length: what load rows of a round may leave open */
#define STATIC_LP_VIOLATED 1e-3

/* static_solve.c */
#define STATIC_SOLVE_MOST_CUTS 14 /* rounds of load rows for one case */
#define STATIC_SOLVE_REFUTING 1e5 /* programme's units: multipliers of a case without plans */

#endif
