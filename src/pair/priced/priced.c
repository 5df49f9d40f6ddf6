/* Length plus bytes: the least over a block's plans, bounded by cases as the length alone is in cases.c; here the range of
 * the length is one more thing to divide on (docs/theory.md, Theorem 35). With one range from 0 on prices are a rate; narrow
 * ranges see that devices wait for their first input and that results must be back by the end. Cases are divided lazily
 * (priced_case.c): the weakest is solved, and if it stays the weakest, divided. */
#include "pair/priced/priced.h"

#include <stdlib.h>
#include <string.h>

#include "branch/branch.h"
#include "pair/cases.h"
#include "pair/priced/priced_case.h"
#include "pair/priced/priced_tuning.h"
#include "util/util.h"

#define END_OF_TIME (INT64_C(1) << 61) /* all times of a problem together are less */

static void free_cases(pair_priced *v)
{
    for (int32_t i = 0; i < v->n_cases; i++)
        pair_priced_case_free(&v->cases[i]);
    free(v->cases);
}

void pair_priced_free(pair_priced *v)
{
    free_cases(v);
    for (int32_t i = 0; i < PAIR_PRICED_SOLVERS; i++) {
        pricing_master_free(v->solver[i].master);
        pricing_pricer_free(v->solver[i].pricer);
    }
}

static int open_priced(pair_priced *v)
{
    pair_state *x = v->pair;
    size_t n = (size_t)x->sending.n_first;
    if (util_grow(&v->cases, &v->case_capacity, n, sizeof *v->cases))
        return MOIRAI_EFAIL;
    int rc = pair_priced_open_solver(v, 0); /* others when there are cases for them */
    for (size_t i = 0; i < n && !rc; i++)
        v->cases[i] =
            (pair_priced_case){.sending = (int32_t)i, .most_ns = INT64_MAX, .end.split = {.on = PRICING_NO_BRANCH}};
    v->n_cases = rc ? 0 : (int32_t)n;
    return rc;
}

/* ---- at other prices on bytes ---- */

/* The weakest case that is not among the first n of `picked`; -1: none. */
static int32_t weakest_but(const pair_priced *v, const int32_t *picked, int32_t n)
{
    int32_t least = -1;
    for (int32_t i = 0; i < v->n_cases; i++)
        if (!branch_is_picked(picked, n, i) && (least < 0 || v->cases[i].value < v->cases[least].value))
            least = i;
    return least;
}

static void take_least(pair_priced *v)
{
    const pair_priced_case *c = &v->cases[weakest_but(v, NULL, 0)];
    v->value = c->value;
    memcpy(v->use, c->end.use, sizeof v->use);
}

static pair_priced_bytes bytes_at(const pair_priced *v, const int64_t *byte_price, double *use)
{
    const decompose_block *b = &v->pair->block;
    pair_priced_bytes at = {.price = byte_price, .cheapest = pair_priced_cheapest_bytes(b, byte_price, use)};
    for (int32_t i = b->first; i < b->first + b->n_interior; i++)
        at.total += b->problem.op_memory_bytes[i];
    return at;
}

/* The least of all cases, of which most need no pricing: they are worth more than that for certain. */
static void find_least(pair_priced *v)
{
    for (int32_t i = weakest_but(v, NULL, 0); !v->cases[i].valued; i = weakest_but(v, NULL, 0))
        pair_priced_value_case(v, &v->cases[i]);
    take_least(v);
}

void pair_priced_update(pair_priced *v, const pair_priced_task *job)
{
    pair_state *x = v->pair;
    size_t bytes = sizeof *job->byte_price * (size_t)x->block.problem.n_devices;
    bool known = v->stamp > 0 && !memcmp(v->byte_price, job->byte_price, bytes);
    if (v->stamp == job->stamp)
        return;
    v->stamp = job->stamp;
    v->centre = job->centre;
    v->solved = x->block.n_interior == 0;
    if (known) /* values hold, and what was found about cases */
        return;
    memset(v->use, 0, sizeof v->use);
    pair_priced_bytes at = bytes_at(v, job->byte_price, v->use);
    v->value = pricing_units(x->block.unit, x->lower_ns) + at.cheapest;
    for (int32_t i = 0; i < v->n_cases; i++)
        pair_priced_move_case(v, &v->cases[i], &at);
    memcpy(v->byte_price, job->byte_price, bytes);
    if (v->n_cases)
        find_least(v);
}

void pair_priced_update_cases(pair_priced *v, const pair_priced_task *job)
{
    pair_priced_update(v, job);
    for (int32_t i = 0; i < v->n_cases; i++) {
        pair_priced_case *c = &v->cases[i];
        if (!c->valued)
            pair_priced_value_case(v, c);
        if (v->centre) { /* what proves most here is what to come back to */
            c->found.centre = true;
            c->kept.centre = false;
        }
    }
}

/* The case with the finding in use that promises more at other prices on bytes. */
static pair_priced_case case_at(const pair_priced *v, const pair_priced_case *c, const pair_priced_bytes *at,
                                int64_t *floor)
{
    pair_priced_case x = *c;
    int64_t found = pair_priced_floor(v, c, &c->found, at), kept = pair_priced_floor(v, c, &c->kept, at);
    if (kept > found)
        x.found = c->kept;
    *floor = UTIL_MAX(found, kept);
    return x;
}

int64_t pair_priced_value_at(pair_priced *v, const int64_t *byte_price, double *use)
{
    const pair_state *x = v->pair;
    memset(use, 0, sizeof v->use);
    pair_priced_bytes at = bytes_at(v, byte_price, use);
    if (!v->n_cases)
        return pricing_units(x->block.unit, x->lower_ns) + at.cheapest;
    int64_t least = INT64_MAX;
    for (int32_t i = 0, n = v->n_cases, weakest = weakest_but(v, NULL, 0); i < n; i++) {
        int64_t floor, value;
        pair_priced_case c =
            case_at(v, &v->cases[(weakest + i) % n], &at, &floor); /* which may be the weakest there, too */
        if (floor >= least || (value = pair_priced_of_case(v, &c, byte_price, x->lower_ns)) >= least)
            continue;
        least = value;
        memcpy(use, c.end.use, sizeof v->use);
    }
    return least;
}

/* Two cases in place of one. */
static int divide(pair_priced *v, int32_t index, const int64_t *byte_price)
{
    if (util_grow(&v->cases, &v->case_capacity, (size_t)v->n_cases + 1, sizeof *v->cases))
        return MOIRAI_EFAIL;
    int rc = pair_priced_halves(v, &v->cases[index], &v->cases[v->n_cases], byte_price);
    v->n_cases += !rc;
    return rc;
}

/* Prices are valid for every case: those of one, without its branches, for all that nobody has solved yet. One pricing
 * each, where a search takes dozens; sendings that differ little from the solved one are settled by it. */
static int share_prices(pair_priced *v, int32_t index, int64_t ceiling)
{
    int rc = 0;
    const pricing_duals *prices = &v->cases[index].found.prices;
    for (int32_t i = 0; i < v->n_cases && !rc && prices->price; i++) {
        pair_priced_case *c = &v->cases[i], tried = *c;
        if (c->end.solved || c->value >= UTIL_MIN(ceiling, v->cases[index].value) ||
            c->most_ns > prices->grid.length_ns)
            continue;
        tried.found.prices = *prices;
        tried.found.prices.n_branches = 0;
        int64_t value = pair_priced_of_case(v, &tried, v->byte_price, v->pair->lower_ns);
        if (value > c->value)
            rc = pair_priced_take_prices(v, c, &tried.found.prices, value);
    }
    return rc;
}

/* A range that ends where the length alone is worth the ceiling, and what is beyond. */
static int open_range(pair_priced *v, int32_t index, const pair_priced_task *job, int64_t ceiling)
{
    pair_priced_case *c = &v->cases[index];
    int64_t least = UTIL_MAX(c->least_ns, v->pair->lower_ns),
            bytes = pair_priced_cheapest_bytes(&v->pair->block, job->byte_price, NULL);
    int64_t end = UTIL_MIN(UTIL_MAX((ceiling - bytes) / v->pair->block.unit, least + least / 16), END_OF_TIME - 1);
    c->end.split = (pricing_branch){.on = PRICING_LENGTH, .least = end, .most = end + 1};
    int rc = divide(v, index, job->byte_price);
    if (!rc)
        pair_priced_value_case(v, &v->cases[v->n_cases - 1]);
    return rc;
}

/* Ranges for all cases that may need one. */
static int open_ranges(pair_priced *v, const pair_priced_task *job, int64_t ceiling)
{
    int rc = 0;
    for (int32_t i = 0, n = v->n_cases; i < n && !rc; i++)
        if (v->cases[i].most_ns == INT64_MAX && v->cases[i].value < ceiling &&
            v->cases[i].n_branches < PAIR_PRICED_QUESTIONS)
            rc = open_range(v, i, job, ceiling);
    return rc;
}

/* Solvers and first cases, where this is the first time; values at these prices on bytes. */
static int begin(pair_priced *v, const pair_priced_task *job)
{
    int rc = 0;
    if (!v->solver[0].master) {
        rc = open_priced(v);
        v->stamp = 0;
    }
    if (!rc)
        pair_priced_update(v, job);
    return rc;
}

typedef struct searching {
    pair_priced *v;
    const pair_priced_task *job;
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
    const pair_priced_case *c = &x->v->cases[index];
    if (c->value >= x->ceiling || c->most_ns == INT64_MAX)
        return BRANCH_CLOSED;
    if (!c->end.solved)
        return BRANCH_UNSOLVED;
    return c->end.split.on == PRICING_NO_BRANCH || c->n_branches >= PAIR_PRICED_QUESTIONS ? BRANCH_CLOSED
                                                                                          : BRANCH_SOLVED;
}

static int divide_one(void *data, int32_t index)
{
    const searching *x = data;
    return divide(x->v, index, x->job->byte_price);
}

static int solve_one(void *data, int32_t solver, int32_t index)
{
    const searching *x = data;
    return pair_priced_solve_case(x->v, solver, &x->v->cases[index], x->job);
}

static int share_found(void *data, int32_t index)
{
    const searching *x = data;
    return share_prices(x->v, index, x->ceiling);
}

static int best_first(pair_priced *v, const pair_priced_task *job, int64_t ceiling)
{
    searching x = {.v = v, .job = job, .ceiling = ceiling};
    int64_t solves;
    return branch_best_first(&solves, &(branch_best_task){.data = &x,
                                                          .solvers = PAIR_PRICED_SOLVERS,
                                                          .solves = job->solves,
                                                          .threads = job->threads,
                                                          .stop = &job->stop,
                                                          .weakest = weakest_of,
                                                          .state = state_of,
                                                          .divide = divide_one,
                                                          .solve = solve_one,
                                                          .solved = share_found});
}

/* Finer buckets may show more of a case. */
static void set_buckets(pair_priced *v, int32_t buckets)
{
    for (int32_t i = 0; i < v->n_cases && v->buckets != buckets; i++)
        v->cases[i].end.solved = v->cases[i].found.end.solved = v->cases[i].kept.end.solved = false;
    v->buckets = buckets;
}

int pair_priced_refine(pair_priced *v, const pair_priced_task *job)
{
    int64_t ceiling = job->ceiling ? job->ceiling : INT64_MAX;
    int rc = begin(v, job);
    if (!rc)
        pair_priced_update_cases(v, job);
    if (!rc && v->pair->lower_ns > DECOMPOSE_MOST_LENGTH / v->pair->block.unit) { /* nobody goes that way */
        v->solved = true;
        return 0;
    }
    set_buckets(v, job->buckets);
    rc = rc ? rc : open_ranges(v, job, ceiling);
    rc = rc ? rc : best_first(v, job, ceiling);
    if (!rc)
        take_least(v);
    v->solved = true;
    return rc;
}
