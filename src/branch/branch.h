/* Branch and bound over cases, whatever a case is: two ways to spend solves on them.
 *
 * A case is a part of all plans; cases together leave none out, and the least that is proven of them is the bound. A case
 * that is not proven far enough is divided. Who has the cases says what it is to ask one of them, to divide it, and what
 * it is worth. Cases are solved side by side by a fixed number of solvers, each with working memory of its own: the
 * outcome does not depend on the number of threads. */
#ifndef MOIRAI_BRANCH_BRANCH_H
#define MOIRAI_BRANCH_BRANCH_H

#include "util/stop.h"

#define BRANCH_SOLVERS 4 /* at most */

/* ---- target by target (targets.c) ---- */

typedef enum branch_verdict {
    BRANCH_LEFT,    /* nothing was found out, since the time is over */
    BRANCH_REACHED, /* all of its plans are at the target or above */
    BRANCH_DIVIDE,  /* there is room below the target: divide it */
    BRANCH_STUCK    /* there is, and nothing divides it */
} branch_verdict;

typedef struct branch_answer {
    branch_verdict verdict;
    bool asked;       /* it took a question; else it was known */
    int64_t stuck_at; /* of BRANCH_STUCK: about what it is worth */
} branch_answer;

/* Cases in an array that can grow by util_grow. */
typedef struct branch_list {
    void *cases;
    int32_t n;
    size_t capacity;
} branch_list;

typedef struct branch_target_task {
    void *data;       /* for the functions */
    size_t case_size; /* bytes of a case */
    int64_t target;
    int32_t solvers;
    int32_t questions; /* of each solver, at most */
    int threads;       /* 0: one per core */
    const util_stop *stop;
    /* Whether the case is known to be at this target. */
    bool (*reached)(const void *c, int64_t target);
    /* The solver of a case: number `index` of all, and number `rank` of the `below` that are below the target. */
    int32_t (*solver_of)(void *data, const void *c, int32_t index, int32_t rank, int32_t below);
    /* Puts the target to the case; `begun`: the solver's last question was of this attempt as well. */
    int (*ask)(void *data, int32_t solver, void *c, bool begun, branch_answer *out);
    /* *c becomes the part that is asked first, *d the rest. On failure *c is as it was, and *d nothing. */
    int (*divide)(void *data, void *c, void *d);
    void (*clear)(void *c);
} branch_target_task;

typedef struct branch_target_result {
    bool reached; /* all cases are at the target */
    int64_t
        stuck_at;  /* the least of the cases that nothing divides, about; INT64_MAX: none, the questions were too few */
    int64_t asked; /* questions */
} branch_target_result;

/* Puts the target to all cases of the list that are below it, dividing them as it goes. The list has all cases
 * afterwards, also on failure, but for those that memory did not suffice for (MOIRAI_EFAIL). */
int branch_attempt(branch_target_result *out, branch_list *list, const branch_target_task *job);

/* ---- best first (best_first.c) ---- */

typedef enum branch_state {
    BRANCH_CLOSED,   /* worth what is wanted, or nothing to be done about it */
    BRANCH_UNSOLVED, /* to be solved next */
    BRANCH_SOLVED    /* to be divided next */
} branch_state;

typedef struct branch_best_task {
    void *data; /* for the functions */
    int32_t solvers;
    int64_t solves; /* at most */
    int threads;    /* 0: one per core */
    const util_stop *stop;
    /* The weakest case that is not among the first n of `picked`; -1: none. */
    int32_t (*weakest)(void *data, const int32_t *picked, int32_t n);
    branch_state (*state)(void *data, int32_t index);
    /* Cases in place of case `index`, the first of which has its number. */
    int (*divide)(void *data, int32_t index);
    int (*solve)(void *data, int32_t solver, int32_t index);
    int (*solved)(void *data, int32_t index); /* one after the other, when all of a round are; or NULL */
} branch_best_task;

/* Solves the weakest cases, as many side by side as there are solvers, and divides those that stay the weakest, until the
 * weakest of all is closed or the solves are used up. *solves: how many were. */
int branch_best_first(int64_t *solves, const branch_best_task *job);

/* Whether case i is among the first n that were picked. */
static inline bool branch_is_picked(const int32_t *picked, int32_t n, int32_t i)
{
    for (int32_t j = 0; j < n; j++)
        if (picked[j] == i)
            return true;
    return false;
}

#endif
