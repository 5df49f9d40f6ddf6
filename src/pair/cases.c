/* The bound of a pair: best-first branch and bound over cases (docs/engine.md, Blocks).
 *
 * A solve of a case puts the length that is wanted (that of the pair's plan, or what the chain needs) to the master. If
 * its prices exclude it, the case is closed. If not, the prices exclude a part of it; as prices per time hardly depend
 * on the length, that part estimates what they can prove, mostly within a few parts in a thousand. One solve per case is
 * all it takes. At the end the least estimate is put to every open case, beginning with the prices of its solve: that is
 * the proof, and it mostly costs one pricing. Where the estimate promised too much, a little less is tried. */
#include "pair/cases.h"

#include <stdlib.h>
#include <string.h>

#include "branch/branch.h"
#include "pair/pair_tuning.h"
#include "util/pool.h"
#include "util/util.h"

int pair_bound_solver(pair_bound_task *r, int32_t solver)
{
    pair_state *x = r->pair;
    int rc = r->pricer[solver] ? 0 : pricing_pricer_new(&r->pricer[solver], &x->block, PAIR_CASE_STEPS + 2);
    if (!rc && !x->master[solver])
        rc = pricing_master_new(&x->master[solver], &x->block, PAIR_CASE_STEPS);
    return rc;
}

void pair_bound_clear(pair_bound_task *r)
{
    for (int32_t i = 0; i < PAIR_SOLVERS; i++)
        pricing_pricer_free(r->pricer[i]);
}

int pair_cases_first(pair_state *x)
{
    if (util_grow(&x->cases, &x->case_capacity, (size_t)x->sending.n_first, sizeof *x->cases))
        return MOIRAI_EFAIL;
    x->n_cases = x->sending.n_first;
    for (int32_t i = 0; i < x->sending.n_first; i++)
        x->cases[i] = (pair_case){
            .sending = i, .proven_ns = x->path_ns, .estimate_ns = x->path_ns, .split = {.on = PRICING_NO_BRANCH}};
    return 0;
}

int32_t pair_cases_weakest(const pair_state *x)
{
    int32_t weakest = 0;
    for (int32_t i = 1; i < x->n_cases; i++)
        if (x->cases[i].proven_ns < x->cases[weakest].proven_ns)
            weakest = i;
    return weakest;
}

/* ---- solving ---- */

static bool is_sent(const pair_bound_task *r, const pair_case *c)
{
    return pricing_is_sent(&r->pair->sending.how[c->sending]);
}

static int32_t buckets_of(const pair_bound_task *r, const pair_case *c)
{
    return is_sent(r, c) ? r->sent_buckets : r->buckets;
}

/* A length is put to a master: from these prices on (NULL: those at which the solver has just stopped), until it is
 * near enough. */
static int put(pair_bound_task *r, int32_t solver, const pair_case *c, int64_t length_ns, double open,
               const pricing_duals *from, pricing_master_result *found)
{
    int rc = pair_bound_solver(r, solver);
    if (rc)
        return rc;
    pricing_master_task task = {
        .pricer = r->pricer[solver],
        .at = {.how = &r->pair->sending.how[c->sending], .n_branches = c->n_branches, .branch = c->branch},
        .form = PRICING_LENGTH_FORM,
        .length_ns = length_ns,
        .buckets = buckets_of(r, c),
        .max_rounds = r->rounds,
        .converge = true,
        .open = open,
        .start = from,
        .stop = r->stop};
    return pricing_master_solve(found, r->pair->master[solver], &task);
}

/* From the prices of the case's last solve on, as far as it takes to split the case next. */
static int solve(pair_bound_task *r, int32_t solver, const pair_case *c, int64_t length_ns,
                 pricing_master_result *found)
{
    return put(r, solver, c, length_ns, is_sent(r, c) ? r->open : 0, &c->duals, found);
}

/* A copy of the prices of the solver's last master in place of those in *to. */
static int store(pair_bound_task *r, int32_t solver, const pair_case *c, const pricing_master_result *found,
                 pricing_duals *to)
{
    return pricing_duals_set(
        to, &r->pair->block.problem,
        &(pricing_duals){*pricing_master_grid(r->pair->master[solver]), (int64_t *)found->price, c->n_branches});
}

/* Put a length to the case; it is closed if that is all that is wanted. */
static int solve_case(pair_bound_task *r, int32_t solver, pair_case *c, int64_t length_ns, int64_t ceiling)
{
    pricing_master_result found;
    int rc = solve(r, solver, c, length_ns - 1, &found);
    pricing_branch split =
        rc || found.proven ? c->split : pair_case_choose_split(r->pair, c, r->pair->master[solver], found.price);
    if (!rc && !found.proven && is_sent(r, c) && r->open > 0 && split.on != PRICING_ARRIVAL) {
        rc = put(r, solver, c, length_ns - 1, 0, NULL, &found);
        split = rc || found.proven ? split : pair_case_choose_split(r->pair, c, r->pair->master[solver], found.price);
    }
    if (rc)
        return rc;
    c->seen = !found.proven; /* else where to split it is not known */
    c->buckets = buckets_of(r, c);
    c->split = split;
    if (found.proven) {
        c->estimate_ns = length_ns < ceiling ? length_ns : INT64_MAX;
        c->proven_ns = length_ns;
        return store(r, solver, c, &found, &c->proof);
    }
    int64_t estimate = (int64_t)((double)length_ns * found.proven_part);
    if (estimate < c->estimate_ns && c->duals.price)
        return 0; /* older prices are better: a solve that was cut short */
    c->estimate_ns = UTIL_MAX(estimate, c->estimate_ns);
    return store(r, solver, c, &found, &c->duals);
}

/* The case of least estimate that is not among the first n of `picked`; -1: none. */
static int32_t least_estimate_but(const pair_state *x, const int32_t *picked, int32_t n)
{
    int32_t least = -1;
    for (int32_t i = 0; i < x->n_cases; i++)
        if (!branch_is_picked(picked, n, i) && (least < 0 || x->cases[i].estimate_ns < x->cases[least].estimate_ns))
            least = i;
    return least;
}

typedef struct searching {
    pair_bound_task *r;
    int64_t length_ns, ceiling;
} searching;

static int32_t weakest_of(void *data, const int32_t *picked, int32_t n)
{
    return least_estimate_but(((searching *)data)->r->pair, picked, n);
}

/* Closed where the least of all is worth the length or stuck: its LP solution is whole. */
static branch_state state_of(void *data, int32_t index)
{
    const searching *k = data;
    const pair_case *c = &k->r->pair->cases[index];
    if (c->estimate_ns >= k->length_ns)
        return BRANCH_CLOSED;
    if (!c->seen)
        return BRANCH_UNSOLVED;
    return c->split.on == PRICING_NO_BRANCH || c->n_branches >= PAIR_MAX_SPLITS ? BRANCH_CLOSED : BRANCH_SOLVED;
}

static int divide(void *data, int32_t index)
{
    return pair_case_split(((searching *)data)->r->pair, index);
}

static int solve_one(void *data, int32_t solver, int32_t index)
{
    const searching *k = data;
    return solve_case(k->r, solver, &k->r->pair->cases[index], k->length_ns, k->ceiling);
}

/* Solves and splits until `last` solves are done or there is nothing left to gain. */
static int branch(pair_bound_task *r, int64_t length_ns, int64_t ceiling, int64_t last)
{
    pair_state *x = r->pair;
    searching k = {.r = r, .length_ns = length_ns, .ceiling = ceiling};
    int64_t solves;
    int rc = branch_best_first(&solves, &(branch_best_task){.data = &k,
                                                            .solvers = r->solvers,
                                                            .solves = last - x->solves,
                                                            .threads = r->threads,
                                                            .stop = &r->stop,
                                                            .weakest = weakest_of,
                                                            .state = state_of,
                                                            .divide = divide,
                                                            .solve = solve_one});
    x->solves += solves;
    return rc;
}

/* ---- proving ---- */

/* Prove a length from the prices of the last solve on. Where the estimate promised too much it is lowered, the case open
 * again, and *missed raised. */
static int prove(pair_bound_task *r, int32_t solver, pair_case *c, int64_t length, int64_t *missed)
{
    pricing_master_result found;
    if (length < c->proven_ns)
        return 0;
    int rc = solve(r, solver, c, length, &found);
    if (rc)
        return rc;
    if (found.proven) {
        c->proven_ns = length + 1;
        return store(r, solver, c, &found, &c->proof);
    }
    ++*missed;
    c->seen = true;
    c->buckets = buckets_of(r, c);
    c->estimate_ns = UTIL_MAX((int64_t)((double)length * UTIL_MIN(found.proven_part, 0.999)), c->proven_ns);
    c->split = pair_case_choose_split(r->pair, c, r->pair->master[solver], found.price);
    return store(r, solver, c, &found, &c->duals);
}

typedef struct proving {
    pair_bound_task *r;
    int64_t length_ns, missed[PAIR_SOLVERS];
} proving;

/* Each solver has the same cases on any number of threads, and so the same columns. */
static int prove_some(void *data, int32_t solver)
{
    proving *k = data;
    pair_state *x = k->r->pair;
    int rc = 0;
    for (int32_t i = solver; i < x->n_cases && !rc; i += k->r->solvers)
        rc = prove(k->r, solver, &x->cases[i], k->length_ns, &k->missed[solver]);
    return rc;
}

/* The least estimate, put to all cases; less and less where it does not hold. `known_ns` is proven already. */
static int prove_all(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    pair_state *x = r->pair;
    int rc = 0;
    for (int32_t attempt = 0; attempt < PAIR_CASES_ATTEMPTS && !rc && !util_stopped(&r->stop); attempt++) {
        int64_t least = x->cases[least_estimate_but(x, NULL, 0)].estimate_ns, target = UTIL_MIN(least, ceiling);
        if (target <= known_ns || x->cases[pair_cases_weakest(x)].proven_ns >= target - target / 1000)
            break;
        proving k = {.r = r, .length_ns = target - target / 4000 - 1};
        rc = util_pool_run(prove_some, &k, r->solvers, r->threads);
        for (int32_t i = 0; i < r->solvers; i++)
            x->solves += k.missed[i];
    }
    return rc;
}

/* Estimates are better from near by: later solves are halfway between what is proven and what is wanted. Where solves end
 * early, cases that have been seen are split where their LP solution says, but for those that it left whole. */
static int branch_and_prove(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    static const double share[] = {0.4, 0.6, 0.8, 1};
    pair_state *x = r->pair;
    int64_t begun = x->solves, length_ns = ceiling;
    int rc = 0;
    for (size_t i = 0; i < sizeof share / sizeof *share && !rc; i++) {
        for (int32_t j = 0; j < x->n_cases; j++)
            x->cases[j].seen = x->cases[j].seen && r->open > 0 && x->cases[j].split.on != PRICING_NO_BRANCH;
        rc = branch(r, length_ns, ceiling, begun + (int64_t)(r->solves * share[i]));
        rc = rc ? rc : prove_all(r, ceiling, known_ns);
        int64_t proven = UTIL_MAX(x->cases[pair_cases_weakest(x)].proven_ns, known_ns);
        length_ns = proven + (ceiling - proven + 1) / 2;
    }
    return rc;
}

/* The search goes on where it was: what was enough then may not be now, and finer buckets may show more of a case. */
static int go_on(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    pair_state *x = r->pair;
    for (int32_t i = 0; i < x->n_cases; i++) {
        pair_case *c = &x->cases[i];
        c->seen = c->seen && c->estimate_ns != INT64_MAX && c->buckets == buckets_of(r, c);
        if (c->estimate_ns == INT64_MAX)
            c->estimate_ns = c->proven_ns;
    }
    return branch_and_prove(r, ceiling, known_ns);
}

/* Cases anew from the sendings, which are kept if they prove as much as the old ones. */
static int begin_anew(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    pair_state *x = r->pair, old = *x;
    x->cases = NULL;
    x->n_cases = 0;
    x->case_capacity = 0;
    x->sent_buckets = r->sent_buckets;
    int rc = pair_cases_first(x);
    rc = rc ? rc : branch_and_prove(r, ceiling, known_ns);
    bool better = !rc && x->cases[pair_cases_weakest(x)].proven_ns >= known_ns;
    pair_leaves left = better ? (pair_leaves){old.n_cases, old.cases} : (pair_leaves){x->n_cases, x->cases};
    if (!better) {
        x->cases = old.cases;
        x->n_cases = old.n_cases;
        x->case_capacity = old.case_capacity;
        x->sent_buckets = old.sent_buckets;
    }
    pair_cases_free(left.cases, left.n);
    return rc;
}

static bool some_open(const pair_state *x)
{
    for (int32_t i = 0; i < x->n_cases; i++)
        if (x->sending.how[x->cases[i].sending].open)
            return true;
    return false;
}

/* Parts of a case that is divided by receivers begin without its proof (cases_split.c), and may never prove as much: then
 * the cases as they were are kept beside them, for certificates. */
static int go_on_and_keep(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    pair_state *x = r->pair;
    pair_leaves before = {0};
    int rc = known_ns > x->path_ns && some_open(x) ? pair_cases_copy_proofs(&before, x) : 0;
    rc = rc ? rc : go_on(r, ceiling, known_ns);
    if (!rc && before.n > 0 && pair_leaves_ns(x) < known_ns) {
        pair_leaves older = x->kept;
        x->kept = before;
        before = older;
    }
    pair_cases_free(before.cases, before.n);
    return rc;
}

int pair_cases_solve(pair_bound_task *r)
{
    pair_state *x = r->pair;
    int64_t known_ns = x->cases[pair_cases_weakest(x)].proven_ns, ceiling = UTIL_MIN(r->need_ns, x->plan.length_ns);
    int rc = (x->sent_buckets == r->sent_buckets ? go_on_and_keep : begin_anew)(r, ceiling, known_ns);
    x->lower_ns = UTIL_MAX(x->lower_ns, x->cases[pair_cases_weakest(x)].proven_ns);
    return rc;
}

void pair_cases_free(pair_case *cases, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        pair_case_free(&cases[i]);
    free(cases);
}
