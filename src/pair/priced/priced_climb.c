/* Cases at prices on bytes, target by target.
 *
 * As in climb.c: no more is asked of a case than whether all of its plans cost at least a *target*, one value for all
 * cases. A master is left as soon as its prices prove that or its LP has room for less; a case with room is divided at
 * once: its range of lengths, then arrivals, the first receiver's first, then numbers. The halves begin with the prices
 * of their neighbours. Solving the weakest case to its end, again and again, comes to the same cases by a longer way, and
 * where many cases are about equal it goes round among them: a layer of gpt3-2.7B stays at 13.67 ms while its cases
 * become four times as many, where targets reach 14.74 in the same time.
 *
 * Values are not lost where a target fails, so the next one is simply half as far away. A case that nothing divides any
 * more is solved to its end: what it is worth is as far as the others have to climb.
 *
 * Each solver has its share of the cases, whatever the number of threads. */
#include "pair/priced/priced_climb.h"

#include <stdlib.h>
#include <string.h>

#include "pair/priced/priced_case.h"
#include "util/pool.h"
#include "util/util.h"

#define TARGETS 24
#define QUESTIONS 2      /* in the time of a solve to its end */
#define FIRST_STEP 0.125 /* of what is open */
#define LEAST_STEP 0.008 /* the same */
#define LEAST_RISE 2000  /* parts of the value */
#define LEAST_QUOTA 16   /* questions to one target, or half of what is left */

typedef struct climbing {
    pair_priced *v;
    const pair_priced_task *job;
    int64_t target;
    int32_t quota[PAIR_PRICED_SOLVERS]; /* questions that each has left */
    int64_t room[PAIR_PRICED_SOLVERS];  /* what a case that nothing divides is worth; INT64_MAX: none */
    /* cases that each has in hand: those that are done, and those that are not, in `list`, done first */
    pair_priced_case *list[PAIR_PRICED_SOLVERS];
    int32_t n_done[PAIR_PRICED_SOLVERS], n_list[PAIR_PRICED_SOLVERS];
    size_t capacity[PAIR_PRICED_SOLVERS];
} climbing;

static void set_aside(climbing *k, int32_t solver)
{
    pair_priced_case *list = k->list[solver], last = list[k->n_list[solver] - 1];
    int32_t done = k->n_done[solver]++;
    memmove(list + done + 1, list + done, sizeof *list * (size_t)(k->n_list[solver] - 1 - done));
    list[done] = last;
}

/* The last case in hand is divided in two; the lower half is looked at next. */
static int divide(climbing *k, int32_t solver)
{
    if (util_grow(&k->list[solver], &k->capacity[solver], (size_t)k->n_list[solver] + 1, sizeof(pair_priced_case)))
        return MOIRAI_EFAIL;
    pair_priced_case *c = &k->list[solver][k->n_list[solver] - 1], above;
    int rc = pair_priced_halves(k->v, c, &above, k->job->byte_price);
    if (rc)
        return rc;
    c[1] = c[0];
    c[0] = above;
    k->n_list[solver]++;
    return 0;
}

/* Put the target to the last case in hand: it is done, or divided, or leaves room. */
static int look(climbing *k, int32_t solver, bool begun)
{
    pair_priced_case *c = &k->list[solver][k->n_list[solver] - 1];
    int rc = 0;
    if (c->value < k->target) { /* else it is known from the division */
        rc = pair_priced_ask(k->v, solver, c, k->job, k->target, begun);
        k->quota[solver]--;
    }
    if (rc || (c->value < k->target && util_stopped(&k->job->stop)))
        return rc;
    if (c->value >= k->target)
        set_aside(k, solver);
    else if (c->end.split.on == PRICING_NO_BRANCH || c->n_branches >= PAIR_PRICED_QUESTIONS)
        k->room[solver] = c->value;
    else
        rc = divide(k, solver);
    return rc;
}

/* All that is below the target of this solver's share, as far as the questions go or until one leaves room. */
static int climb_share(void *data, int32_t solver)
{
    climbing *k = data;
    bool begun = false;
    int rc = 0;
    while (!rc && k->n_done[solver] < k->n_list[solver]) {
        if (k->quota[solver] <= 0 || k->room[solver] < INT64_MAX || util_stopped(&k->job->stop))
            break;
        rc = look(k, solver, begun);
        begun = true;
    }
    return rc;
}

/* Cases below the target, those of one sending to one solver where there are several sendings; false: memory ran out. */
static bool share_out(climbing *k)
{
    pair_priced *v = k->v;
    int32_t n = 0;
    bool done = true;
    for (int32_t i = 0; i < v->n_cases; i++) {
        pair_priced_case *c = &v->cases[i];
        int32_t solver = (v->pair->n_sendings < PAIR_PRICED_SOLVERS ? i : c->sending) % PAIR_PRICED_SOLVERS;
        bool below = c->value < k->target && done;
        if (below && c->most_ns == INT64_MAX) /* without an end there is nothing to ask */
            k->room[solver] = UTIL_MIN(k->room[solver], c->value);
        below = below && c->most_ns != INT64_MAX;
        if (below)
            done = !util_grow(&k->list[solver], &k->capacity[solver], (size_t)k->n_list[solver] + 1, sizeof *c);
        if (below && done)
            k->list[solver][k->n_list[solver]++] = *c;
        else
            v->cases[n++] = *c;
    }
    v->n_cases = n;
    return done;
}

/* All cases back into the pair. */
static int gather(climbing *k)
{
    pair_priced *v = k->v;
    int rc = 0;
    for (int32_t s = 0; s < PAIR_PRICED_SOLVERS; s++)
        for (int32_t i = 0; i < k->n_list[s]; i++) {
            if (!rc && util_grow(&v->cases, &v->case_capacity, (size_t)v->n_cases + 1, sizeof *v->cases))
                rc = MOIRAI_EFAIL;
            if (rc)
                pair_priced_case_free(&k->list[s][i]);
            else
                v->cases[v->n_cases++] = k->list[s][i];
        }
    return rc;
}

/* Put a target to all cases. *reached: it is proven; else *room: what cases that nothing divides are worth, INT64_MAX:
 * the questions were too few to tell. *left is lowered by those used. */
static int attempt(pair_priced *v, const pair_priced_task *job, int64_t target, int32_t *left, bool *reached,
                   int64_t *room)
{
    climbing k = {.v = v, .job = job, .target = target};
    int32_t quota = (UTIL_MAX(*left / 2, UTIL_MIN(*left, LEAST_QUOTA)) + 1) / PAIR_PRICED_SOLVERS;
    for (int32_t i = 0; i < PAIR_PRICED_SOLVERS; i++) {
        k.quota[i] = quota;
        k.room[i] = INT64_MAX;
    }
    int rc = share_out(&k) ? util_pool_run(climb_share, &k, PAIR_PRICED_SOLVERS, job->threads) : MOIRAI_EFAIL;
    *reached = !rc;
    *room = INT64_MAX;
    for (int32_t i = 0; i < PAIR_PRICED_SOLVERS; i++) {
        *left -= quota - k.quota[i];
        *reached = *reached && k.n_done[i] == k.n_list[i] && k.room[i] == INT64_MAX;
        *room = UTIL_MIN(*room, k.room[i]);
    }
    int gathered = gather(&k);
    for (int32_t i = 0; i < PAIR_PRICED_SOLVERS; i++)
        free(k.list[i]);
    return rc ? rc : gathered;
}

int pair_priced_climb(pair_priced *v, const pair_priced_task *job, bool *stuck)
{
    int32_t left = QUESTIONS * job->solves;
    int64_t most = job->ceiling;
    double step = FIRST_STEP;
    int rc = 0;
    *stuck = false;
    for (int32_t i = 0; i < TARGETS && left > 1 && step >= LEAST_STEP && !rc && !util_stopped(&job->stop); i++) {
        int64_t low = v->cases[pair_priced_weakest(v)].value, room;
        int64_t rise = UTIL_MAX((int64_t)((double)(job->ceiling - low) * step), low / LEAST_RISE + 1);
        *stuck = low >= most && most < job->ceiling;
        if (low >= most)
            break;
        bool reached;
        rc = attempt(v, job, UTIL_MIN(low + rise, most), &left, &reached, &room);
        most = UTIL_MIN(most, room);
        if (!reached)
            step /= 2;
    }
    return rc;
}
