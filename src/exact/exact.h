/* The own exact search: branch and bound over devices and orders, in whole nanoseconds (docs/theory.md, 7).
 *
 * Alone it is the placer `exact`; as a call it serves whoever has a small problem, or a block of a larger one, and
 * wants the best plan, or the proof that none beats a given makespan. Private to the library. */
#ifndef MOIRAI_EXACT_EXACT_H
#define MOIRAI_EXACT_EXACT_H

#include <moirai/schedule.h>

#include "util/stop.h"

typedef struct exact_options {
    int64_t below_ns; /* only makespans below this are wanted; MOIRAI_UNKNOWN (-1): any */
    int64_t
        proven_ns; /* no makespan is below this: targets do not climb, below_ns is put to the test at once; 0: not known */
    int64_t node_limit;       /* 0: none. Nodes do not depend on time: the same limit gives the same answer */
    const moirai_plan *start; /* a correct plan to beat, returned if nothing is better; or NULL */
    util_stop stop;           /* all 0: none */
    /* Refute below_ns by rules that a certificate can repeat, and write the tree down: heads and tails along edges, one
     * machine at a time; no symmetry, no groups, no memory (docs/certificate.md, "Searches"). At most so many
     * numbers; 0: search as ever. Wants below_ns and proven_ns. */
    size_t most_tree;
    moirai_progress_fn progress; /* or NULL */
    void *progress_data;
} exact_options;

typedef struct exact_result {
    bool found;             /* a plan below below_ns, or the start */
    bool complete;          /* the search ended: found => optimal; not found => no plan is below below_ns */
    int64_t makespan_ns;    /* of the plan; MOIRAI_UNKNOWN if not found */
    int64_t lower_bound_ns; /* proven, also when stopped; at most below_ns (INT64_MAX: proven that no plan exists) */
    int64_t nodes;
    moirai_plan *plan; /* devices and times; what devices need is not filled in. NULL if not found */
    size_t n_tree;     /* 0: no tree. Nodes in preorder, as a certificate has them */
    int32_t *tree;
} exact_result;

/* Numbers of a tree: a node that the rules close; a node that puts two tasks in order, both named behind it. Any other
 * number is an operator, whose devices follow in order, one subtree for each that the problem allows. */
#define EXACT_TREE_CLOSED (-1)
#define EXACT_TREE_ORDER (-2)

void exact_options_init(exact_options *o);
/* False where the problem is beyond this search's tables (`why` gets one line). Such a problem is refused by
 * exact_solve with MOIRAI_ELIMIT. */
bool exact_fits(const moirai_problem *p, const char **why);
/* 0, also when stopped early or nothing was found; MOIRAI_ELIMIT if it does not fit; MOIRAI_EFAIL. */
int exact_solve(const moirai_problem *p, const exact_options *o, exact_result *r);
void exact_result_clear(exact_result *r);
/* The result's plan, complete, which is the caller's from now on (placer not set; lower_bound_ns is the result's).
 * MOIRAI_EUSAGE if nothing was found. */
int exact_plan(moirai_plan **out, const moirai_problem *p, exact_result *r);

#endif
