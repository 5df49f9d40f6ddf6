/* Targets for cases at prices on bytes (branch/targets.c).
 *
 * As in climb.c: no more is asked of a case than whether all of its plans cost at least a *target*. A master is left as soon as its prices prove that or its LP has room for less; a case with room is divided at
 * once: its range of lengths, then arrivals, the first receiver's first, then numbers. The halves begin with the prices
 * of their neighbours. Solving the weakest case to its end, again and again, comes to the same cases by a longer way, and
 * where many cases are about equal it goes round among them: a layer of gpt3-2.7B stays at 13.67 ms while its cases
 * become four times as many, where targets reach 14.74 in the same time.
 *
 * Values are not lost where a target fails, so the next one is simply half as far away. A case that nothing divides any
 * more is solved to its end: what it is worth is as far as the others have to climb. */
#include "pair/priced/priced_climb.h"

#include "branch/branch.h"
#include "pair/priced/priced_case.h"
#include "pair/priced/priced_tuning.h"
#include "util/util.h"

_Static_assert(PAIR_PRICED_SOLVERS <= BRANCH_SOLVERS, "each solver has a share");

typedef struct climbing {
    pair_priced *v;
    const pair_priced_task *job;
    int64_t target;
} climbing;

static bool is_reached(const void *c, int64_t target)
{
    return ((const pair_priced_case *)c)->value >= target;
}

/* Those of one sending to one solver, where there are several sendings. */
static int32_t solver_of(void *data, const void *c, int32_t index, int32_t rank, int32_t below)
{
    const climbing *k = data;
    (void)rank, (void)below;
    bool few = k->v->pair->sending.n < PAIR_PRICED_SOLVERS;
    return (few ? index : ((const pair_priced_case *)c)->sending) % PAIR_PRICED_SOLVERS;
}

static int ask(void *data, int32_t solver, void *case_, bool begun, branch_answer *out)
{
    const climbing *k = data;
    pair_priced_case *c = case_;
    bool endless = c->most_ns == INT64_MAX;        /* then there is nothing to ask */
    out->asked = c->value < k->target && !endless; /* else it is known from the division */
    int rc = out->asked ? pair_priced_ask(k->v, solver, c, k->job, k->target, begun) : 0;
    if (rc || (c->value < k->target && util_stopped(&k->job->stop)))
        return rc;
    if (c->value >= k->target) {
        out->verdict = BRANCH_REACHED;
    } else if (endless || c->end.split.on == PRICING_NO_BRANCH || c->n_branches >= PAIR_PRICED_QUESTIONS) {
        out->verdict = BRANCH_STUCK;
        out->stuck_at = c->value;
    } else {
        out->verdict = BRANCH_DIVIDE;
    }
    return 0;
}

/* The lower half is asked first. */
static int divide(void *data, void *c, void *d)
{
    const climbing *k = data;
    return pair_priced_halves(k->v, c, d, k->job->byte_price);
}

static void clear(void *c)
{
    pair_priced_case_free(c);
}

/* Put a target to all cases, by half of the questions that are left. */
static int attempt(branch_target_result *out, pair_priced *v, const pair_priced_task *job, int64_t target, int32_t left)
{
    climbing k = {.v = v, .job = job, .target = target};
    branch_list list = {v->cases, v->n_cases, v->case_capacity};
    int32_t questions = (UTIL_MAX(left / 2, UTIL_MIN(left, PRICED_CLIMB_LEAST_QUOTA)) + 1) / PAIR_PRICED_SOLVERS;
    int rc = branch_attempt(out, &list,
                            &(branch_target_task){.data = &k,
                                                  .case_size = sizeof(pair_priced_case),
                                                  .target = target,
                                                  .solvers = PAIR_PRICED_SOLVERS,
                                                  .questions = questions,
                                                  .threads = job->threads,
                                                  .stop = &job->stop,
                                                  .reached = is_reached,
                                                  .solver_of = solver_of,
                                                  .ask = ask,
                                                  .divide = divide,
                                                  .clear = clear});
    v->cases = list.cases;
    v->n_cases = list.n;
    v->case_capacity = list.capacity;
    return rc;
}

int pair_priced_climb(pair_priced *v, const pair_priced_task *job, bool *stuck)
{
    int32_t left = PRICED_CLIMB_QUESTIONS * job->solves;
    int64_t most = job->ceiling;
    double step = PRICED_CLIMB_FIRST_STEP;
    int rc = 0;
    *stuck = false;
    for (int32_t i = 0;
         i < PRICED_CLIMB_TARGETS && left > 1 && step >= PRICED_CLIMB_LEAST_STEP && !rc && !util_stopped(&job->stop);
         i++) {
        int64_t low = v->cases[pair_priced_weakest(v)].value;
        int64_t rise = UTIL_MAX((int64_t)((double)(job->ceiling - low) * step), low / PRICED_CLIMB_LEAST_RISE + 1);
        *stuck = low >= most && most < job->ceiling;
        if (low >= most)
            break;
        branch_target_result found;
        rc = attempt(&found, v, job, UTIL_MIN(low + rise, most), left);
        left -= (int32_t)found.asked;
        most = UTIL_MIN(most, found.stuck_at);
        if (!found.reached)
            step /= 2;
    }
    return rc;
}
