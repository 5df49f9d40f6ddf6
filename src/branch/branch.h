/* Branch and bound over cases, whatever a case is, best first.
 *
 * A case is a part of all plans; cases together leave none out, and the least that is proven of them is the bound. A case
 * that is not proven far enough is divided. Who has the cases says what it is to ask one of them, to divide it, and what
 * it is worth. Cases are solved side by side by a fixed number of solvers, each with working memory of its own: the
 * outcome does not depend on the number of threads. */
#ifndef MOIRAI_BRANCH_BRANCH_H
#define MOIRAI_BRANCH_BRANCH_H

#include "util/stop.h"

#define BRANCH_SOLVERS 4 /* at most */

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
