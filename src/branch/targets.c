/* Cases, target by target.
 *
 * Best-first search solves each case to its end, on the way to those that are narrow enough. But no more than one
 * question has to be answered of each of them: is all of it at this target? So one value is put to all cases. A solver
 * leaves a case as soon as that is known; a case with room below the target is divided at once, and its parts, which begin
 * with what the solver has at hand, are asked next. Each solver has its share of the cases as a stack, on which those that
 * are done lie below the others. */
#include "branch/branch.h"

#include <stdlib.h>
#include <string.h>

#include "util/pool.h"

/* The share of a solver: cases that are done first, then those that are not. */
typedef struct share {
    branch_list list;
    int32_t n_done, questions;
    int64_t stuck_at; /* INT64_MAX: nothing is */
} share;

typedef struct attempt {
    const branch_target_task *job;
    share share[BRANCH_SOLVERS];
} attempt;

static char *at(const attempt *x, const branch_list *list, int32_t i)
{
    return (char *)list->cases + (size_t)i * x->job->case_size;
}

static int append(const attempt *x, branch_list *list, const void *c)
{
    if (util_grow(&list->cases, &list->capacity, (size_t)list->n + 1, x->job->case_size))
        return MOIRAI_EFAIL;
    memcpy(at(x, list, list->n++), c, x->job->case_size);
    return 0;
}

static void exchange(const attempt *x, branch_list *list, int32_t i, int32_t j)
{
    char *a = at(x, list, i), *b = at(x, list, j);
    for (size_t k = 0; k < x->job->case_size; k++) {
        char c = a[k];
        a[k] = b[k];
        b[k] = c;
    }
}

/* The last case of the stack goes to those that are done; the others stay in their order. */
static void set_aside(const attempt *x, share *s)
{
    for (int32_t i = s->list.n - 1; i > s->n_done; i--)
        exchange(x, &s->list, i, i - 1);
    s->n_done++;
}

/* The last case becomes two; the one that is asked first is on top. */
static int divide(const attempt *x, share *s)
{
    branch_list *list = &s->list;
    if (util_grow(&list->cases, &list->capacity, (size_t)list->n + 1, x->job->case_size))
        return MOIRAI_EFAIL;
    int rc = x->job->divide(x->job->data, at(x, list, list->n - 1), at(x, list, list->n));
    if (rc)
        return rc;
    exchange(x, list, list->n - 1, list->n);
    list->n++;
    return 0;
}

static int ask_last(const attempt *x, int32_t solver, share *s, bool begun)
{
    branch_answer answer = {BRANCH_LEFT, true, INT64_MAX};
    int rc = x->job->ask(x->job->data, solver, at(x, &s->list, s->list.n - 1), begun, &answer);
    s->questions -= answer.asked;
    if (rc)
        return rc;
    if (answer.verdict == BRANCH_REACHED)
        set_aside(x, s);
    else if (answer.verdict == BRANCH_STUCK)
        s->stuck_at = UTIL_MIN(s->stuck_at, answer.stuck_at);
    return answer.verdict == BRANCH_DIVIDE ? divide(x, s) : 0;
}

/* As far as the questions go, or until a case is stuck: then the target is out of reach. */
static int work(void *data, int32_t solver)
{
    attempt *x = data;
    share *s = &x->share[solver];
    int rc = 0;
    for (bool begun = false; !rc && s->n_done < s->list.n; begun = true) {
        if (s->questions <= 0 || s->stuck_at < INT64_MAX || util_stopped(x->job->stop))
            break;
        rc = ask_last(x, solver, s, begun);
    }
    return rc;
}

/* Cases below the target to the solvers; the others stay. */
static int share_out(attempt *x, branch_list *list)
{
    const branch_target_task *job = x->job;
    int32_t kept = 0, below = 0, rank = 0;
    int rc = 0;
    for (int32_t i = 0; i < list->n; i++)
        below += !job->reached(at(x, list, i), job->target);
    for (int32_t i = 0; i < list->n; i++) {
        char *c = at(x, list, i);
        bool given = !rc && !job->reached(c, job->target);
        if (given)
            rc = append(x, &x->share[job->solver_of(job->data, c, i, rank++, below)].list, c);
        if (!given || rc)
            memmove(at(x, list, kept++), c, job->case_size);
    }
    list->n = kept;
    return rc;
}

static int gather(attempt *x, branch_list *list)
{
    int rc = 0;
    for (int32_t s = 0; s < x->job->solvers; s++) {
        branch_list *from = &x->share[s].list;
        for (int32_t i = 0; i < from->n; i++) {
            rc = rc ? rc : append(x, list, at(x, from, i));
            if (rc)
                x->job->clear(at(x, from, i));
        }
        free(from->cases);
    }
    return rc;
}

int branch_attempt(branch_target_result *out, branch_list *list, const branch_target_task *job)
{
    attempt x = {.job = job};
    *out = (branch_target_result){.stuck_at = INT64_MAX};
    for (int32_t i = 0; i < job->solvers; i++) {
        x.share[i].questions = job->questions;
        x.share[i].stuck_at = INT64_MAX;
    }
    int rc = share_out(&x, list);
    rc = rc ? rc : util_pool_run(work, &x, job->solvers, job->threads);
    out->reached = !rc;
    for (int32_t i = 0; i < job->solvers; i++) {
        const share *s = &x.share[i];
        out->asked += job->questions - s->questions;
        out->reached = out->reached && s->n_done == s->list.n;
        out->stuck_at = UTIL_MIN(out->stuck_at, s->stuck_at);
    }
    int gathered = gather(&x, list);
    return rc ? rc : gathered;
}
