/* Best-first branch and bound: the bound is that of the weakest case, so that is what is worked on. */
#include "branch/branch.h"
#include "util/pool.h"

typedef struct round {
    const branch_best_task *job;
    int32_t picked[BRANCH_SOLVERS], n;
} round;

static int solve_picked(void *data, int32_t i)
{
    round *x = data;
    return x->job->solve(x->job->data, i, x->picked[i]);
}

/* The weakest cases, divided as long as they are solved: none where the weakest of all is closed. */
static int pick(round *x, int64_t most)
{
    const branch_best_task *job = x->job;
    int rc = 0;
    for (x->n = 0; !rc && x->n < UTIL_MIN(most, job->solvers);) {
        int32_t index = job->weakest(job->data, x->picked, x->n);
        branch_state state = index < 0 ? BRANCH_CLOSED : job->state(job->data, index);
        if (state == BRANCH_CLOSED)
            break;
        if (state == BRANCH_UNSOLVED)
            x->picked[x->n++] = index;
        else
            rc = job->divide(job->data, index);
    }
    return rc;
}

int branch_best_first(int64_t *solves, const branch_best_task *job)
{
    round x = {.job = job};
    int rc = 0;
    for (*solves = 0; !rc && *solves < job->solves && !util_stopped(job->stop); *solves += x.n) {
        rc = pick(&x, job->solves - *solves);
        if (rc || !x.n)
            break;
        rc = util_pool_run(solve_picked, &x, x.n, job->threads);
        for (int32_t i = 0; i < x.n && !rc && job->solved; i++)
            rc = job->solved(job->data, x.picked[i]);
    }
    return rc;
}
