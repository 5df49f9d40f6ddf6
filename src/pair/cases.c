/* Length plus bytes: the least over a block's plans, by branch and bound over cases (docs/theory.md, Theorem 35): of sendings, arrivals,
 * numbers, and the range of the length. With one range from 0 on prices are a rate; narrow ranges see that devices wait for their first
 * input and that results must be back by the end. Cases are divided lazily: the weakest is solved, and if it stays the weakest, divided. */
#include <stdlib.h>
#include <string.h>

#include "branch/branch.h"
#include "pair/case.h"
#include "util/util.h"

#define END_OF_TIME (INT64_C(1) << 61) /* all times of a problem together are less */

void pair_cases_free(pair_cases *v)
{
    for (int32_t i = 0; i < v->n; i++)
        pair_case_free(&v->list[i]);
    free(v->list);
    for (int32_t i = 0; i < PAIR_SOLVERS; i++)
        pricing_master_free(v->solver[i].master);
    pair_cases_rest(v);
}

void pair_cases_rest(pair_cases *v)
{
    for (int32_t i = 0; i < PAIR_SOLVERS; i++) {
        pricing_pricer_free(v->solver[i].pricer);
        v->solver[i].pricer = NULL;
    }
}

int pair_cases_begin(pair_cases *v)
{
    int32_t n = v->pair->sending.n_first;
    int rc = pair_cases_open_solver(v, 0); /* others when there are cases for them */
    if (rc || v->n)
        return rc;
    if (util_grow(&v->list, &v->capacity, (size_t)n, sizeof *v->list))
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < n; i++)
        v->list[i] = (pair_case){.sending = i, .most_ns = INT64_MAX, .end.split = {.on = PRICING_NO_BRANCH}};
    v->n = n;
    v->stamp = 0; /* they have no values yet */
    return 0;
}

/* ---- at other prices on bytes ---- */

/* The weakest case that is not among the first n of `picked`; -1: none. */
static int32_t weakest_but(const pair_cases *v, const int32_t *picked, int32_t n)
{
    int32_t least = -1;
    for (int32_t i = 0; i < v->n; i++)
        if (!branch_is_picked(picked, n, i) && (least < 0 || v->list[i].value < v->list[least].value))
            least = i;
    return least;
}

static void take_least(pair_cases *v)
{
    const pair_case *c = &v->list[weakest_but(v, NULL, 0)];
    v->value = c->value;
    memcpy(v->use, c->end.use, sizeof v->use);
}

static pair_bytes_at bytes_at(const pair_cases *v, const int64_t *byte_price, double *use)
{
    const decompose_block *b = &v->pair->block;
    pair_bytes_at at = {.price = byte_price, .cheapest = pair_cheapest_bytes(b, byte_price, use)};
    for (int32_t i = b->first; i < b->first + b->n_interior; i++)
        at.total += b->problem.op_memory_bytes[i];
    return at;
}

/* The least of all cases, of which most need no pricing: they are worth more than that for certain. */
static void find_least(pair_cases *v)
{
    for (int32_t i = weakest_but(v, NULL, 0); !v->list[i].valued; i = weakest_but(v, NULL, 0))
        pair_case_revalue(v, &v->list[i]);
    take_least(v);
}

void pair_cases_update(pair_cases *v, const pair_cases_task *job)
{
    pair_state *x = v->pair;
    size_t bytes = sizeof *job->byte_price * (size_t)x->block.problem.n_devices;
    bool known = v->stamp > 0 && !memcmp(v->byte_price, job->byte_price, bytes);
    if (v->stamp == job->stamp)
        return;
    v->stamp = job->stamp;
    v->solved = x->block.n_interior == 0;
    if (known) /* values hold, and what was found about cases */
        return;
    memset(v->use, 0, sizeof v->use);
    pair_bytes_at at = bytes_at(v, job->byte_price, v->use);
    v->value = pricing_units(x->block.unit, pair_certified_ns(x)) + at.cheapest;
    for (int32_t i = 0; i < v->n; i++)
        pair_case_move(v, &v->list[i], &at);
    memcpy(v->byte_price, job->byte_price, bytes);
    if (v->n)
        find_least(v);
}

void pair_cases_update_all(pair_cases *v, const pair_cases_task *job)
{
    pair_cases_update(v, job);
    for (int32_t i = 0; i < v->n; i++) {
        if (!v->list[i].valued)
            pair_case_revalue(v, &v->list[i]);
    }
}

int64_t pair_cases_value_at(pair_cases *v, const int64_t *byte_price, double *use)
{
    const pair_state *x = v->pair;
    memset(use, 0, sizeof v->use);
    pair_bytes_at at = bytes_at(v, byte_price, use);
    if (!v->n)
        return pricing_units(x->block.unit, pair_certified_ns(x)) + at.cheapest;
    int64_t least = INT64_MAX;
    for (int32_t i = 0, n = v->n, weakest = weakest_but(v, NULL, 0); i < n; i++) {
        const pair_case *c = &v->list[(weakest + i) % n]; /* which may be the weakest there, too */
        int64_t floor = pair_case_floor(v, c, &at), value = floor < least ? pair_case_value(v, c, byte_price) : floor;
        if (value >= least)
            continue;
        least = value;
        memcpy(use, c->end.use, sizeof v->use);
    }
    return least;
}

/* A range that ends where the length alone is worth the ceiling, and what is beyond. */
static int open_range(pair_cases *v, int32_t index, int64_t ceiling)
{
    pair_case *c = &v->list[index];
    int64_t least = pair_case_least_ns(v, c), bytes = pair_cheapest_bytes(&v->pair->block, v->byte_price, NULL);
    int64_t end = UTIL_MIN(UTIL_MAX((ceiling - bytes) / v->pair->block.unit, least + least / 16), END_OF_TIME - 1);
    c->end.split = (pricing_branch){.on = PRICING_LENGTH, .least = end, .most = end + 1};
    int rc = pair_case_split(v, index);
    if (!rc)
        pair_case_revalue(v, &v->list[v->n - 1]);
    return rc;
}

/* Ranges for all cases that may need one. */
static int open_ranges(pair_cases *v, int64_t ceiling)
{
    int rc = 0;
    for (int32_t i = 0, n = v->n; i < n && !rc; i++)
        if (v->list[i].most_ns == INT64_MAX && v->list[i].value < ceiling &&
            v->list[i].n_branches < PAIR_CASE_QUESTIONS)
            rc = open_range(v, i, ceiling);
    return rc;
}

typedef struct searching {
    pair_cases *v;
    const pair_cases_task *job;
    int64_t ceiling;
} searching;

static int32_t weakest_of(void *data, const int32_t *picked, int32_t n)
{
    return weakest_but(((searching *)data)->v, picked, n);
}

/* Closed where the weakest of all is worth the ceiling or can't be divided. */
static branch_state state_of(void *data, int32_t index)
{
    const searching *x = data;
    const pair_case *c = &x->v->list[index];
    if (c->value >= x->ceiling || c->most_ns == INT64_MAX)
        return BRANCH_CLOSED;
    if (!c->end.solved)
        return BRANCH_UNSOLVED;
    return c->end.split.on == PRICING_NO_BRANCH || c->n_branches >= PAIR_CASE_QUESTIONS ? BRANCH_CLOSED : BRANCH_SOLVED;
}

static int divide_one(void *data, int32_t index)
{
    return pair_case_split(((searching *)data)->v, index);
}

static int solve_one(void *data, int32_t solver, int32_t index)
{
    const searching *x = data;
    return pair_case_solve(x->v, solver, &x->v->list[index], x->job);
}

static int best_first(pair_cases *v, const pair_cases_task *job, int64_t ceiling)
{
    searching x = {.v = v, .job = job, .ceiling = ceiling};
    int64_t solves;
    return branch_best_first(&solves, &(branch_best_task){.data = &x,
                                                          .solvers = PAIR_SOLVERS,
                                                          .solves = job->solves,
                                                          .threads = job->threads,
                                                          .stop = &job->stop,
                                                          .weakest = weakest_of,
                                                          .state = state_of,
                                                          .divide = divide_one,
                                                          .solve = solve_one});
}

/* Finer buckets may show more of a case. */
static void set_buckets(pair_cases *v, int32_t buckets)
{
    for (int32_t i = 0; i < v->n && v->buckets != buckets; i++)
        v->list[i].end.solved = false;
    v->buckets = buckets;
}

int pair_cases_refine(pair_cases *v, const pair_cases_task *job)
{
    int64_t ceiling = job->ceiling ? job->ceiling : INT64_MAX;
    int rc = pair_cases_begin(v);
    if (!rc)
        pair_cases_update_all(v, job);
    if (!rc && v->pair->lower_ns > DECOMPOSE_MOST_LENGTH / v->pair->block.unit) { /* nobody goes that way */
        v->solved = true;
        return 0;
    }
    set_buckets(v, job->buckets);
    rc = rc ? rc : open_ranges(v, ceiling);
    rc = rc ? rc : best_first(v, job, ceiling);
    if (!rc)
        take_least(v);
    v->solved = true;
    return rc;
}
