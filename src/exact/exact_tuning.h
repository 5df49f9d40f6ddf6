/* The tuned numbers of the exhaustive search, by the file that uses them. What a mechanism is worth is what
 * `bench_ablate` loses without its switch, where one is named, and what docs/results.md says of it. */
#ifndef MOIRAI_EXACT_TUNING_H
#define MOIRAI_EXACT_TUNING_H

/* exact_branch.c: slack in the choice of an operator; without it long intervals take 1.2 to 5 times the nodes */
#define EXACT_BRANCH_NO_SLACK 0.01 /* of the target: slacks below that are the same */

/* exact_memory.c: devices up to which every set of them is asked whether what must be there fits, not all together
 * alone */
#define EXACT_MEMORY_FEW_DEVICES 5

/* exact_mirror.c: switch `mirrors`; limits of its own time, nothing depends on them where graphs are small. Worth 11
 * points of gap on gpt3-tiny (10 s, inter-server, coarsened), whose heads are equal. */
#define EXACT_MIRROR_MOST_OPS 160
#define EXACT_MIRROR_MOST_MIRRORS 256

/* exact_propagate.c: rounds of propagation in a node, until it is divided in any case */
#define EXACT_PROPAGATE_ROUNDS 12

/* exact_setup.c: limits of memory and depth */
#define EXACT_SETUP_MOST_OPS 512
#define EXACT_SETUP_MOST_SLOTS 16384
#define EXACT_SETUP_MOST_STACK_BYTES ((size_t)512 << 20)
#define EXACT_SETUP_MOST_DEPTH 4000 /* the search is recursive */

/* exact_solve.c: targets that climb: the stem of pnasnet5large, 41 operators, by 1,500 nodes: 1.27 without, 1.57
 * with */
/* the first target lies this part of the gap, or of the bound, above the root's bound */
#define EXACT_SOLVE_FIRST_STEP 16

#endif
