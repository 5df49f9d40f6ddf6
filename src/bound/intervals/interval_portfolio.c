/* Several chains of intervals compete: one attempt at each pair of the path for all chains, all attempts for the best of the first half,
 * then for those that prove most; a chain on whose path nothing is open is no finalist. What is found of an interval between
 * two devices is shared by all chains that have it. Each further round lets some new chains in, with noise of another seed, and raises
 * those that prove most by one more attempt at each pair. Nothing is searched twice.
 *
 * Once nothing is open on the best chain's path, its bound is all that intervals of such a size have to say: what happens beside the chain
 * is in none of them. Then the same rules choose chains of intervals twice as large (networks of several resolutions: what follows on one
 * output of a module is one branch of the next, and only what follows and precedes two modules has all branches of one). */
#include "bound/intervals/interval_chain.h"

#include <stdlib.h>

#include "bound/bound_tuning.h"
#include "bound/bounds.h"
#include "util/util.h"

static const decompose_interval_rule rules[] = {
    {30, 0.3, 0.5, 0, 1},   {44, 0.2, 0.5, 0, 1},   {30, 0.1, 0, 0.1, 1},   {36, 0.5, 1, 0.1, 2},
    {60, 0.3, 0.5, 0, 1},   {20, 0.3, 1, 0, 1},     {44, 0.3, 1, 0.1, 3},   {30, 0.3, 0.5, 0.2, 4},
    {26, 0.3, 0.5, 0.3, 5}, {34, 0.3, 0.5, 0.3, 6}, {28, 0.2, 0.3, 0.4, 7}, {30, 0.3, 0.5, 0.6, 8},
    {24, 0.3, 0.7, 0.3, 9},
};
#define N_RULES ((int32_t)(sizeof rules / sizeof *rules))

/* Whether there is a chain with the same operators. */
static bool has_twin(const bound_portfolio *c, const bound_interval_chain *x)
{
    for (int32_t i = 0; i < c->n; i++) {
        const decompose_cuts *s = c->chain[i].x->c->s, *t = x->c->s;
        bool same = s->n_cuts == t->n_cuts;
        for (int32_t j = 0; same && j < s->n_cuts; j++)
            same = bound_interval_end(c->chain[i].x, s->cut[j]) == bound_interval_end(x, t->cut[j]);
        if (same)
            return true;
    }
    return false;
}

static int raise_chain(bound_portfolio *c, int32_t i, const bound_interval_task *job)
{
    bound_interval_chain *x = c->chain[i].x;
    int64_t lower = 0;
    int rc = bound_interval_chain_open(x, job);
    rc = rc ? rc : bound_interval_chain_share(x, &c->known);
    rc = rc ? rc : bound_interval_chain_raise(&lower, x, job);
    c->chain[i].lower_ns = UTIL_MAX(c->chain[i].lower_ns, lower);
    return rc ? rc : bound_interval_chain_share(x, &c->known);
}

/* Takes ownership of x. */
static int enter_chain(bound_portfolio *c, bound_interval_chain *x, const bound_interval_task *job)
{
    bool known = has_twin(c, x);
    int rc = known ? 0 : util_grow(&c->chain, &c->capacity, (size_t)c->n + 1, sizeof *c->chain);
    if (known || rc) {
        bound_interval_chain_free(x);
        return rc ? MOIRAI_EFAIL : 0;
    }
    c->chain[c->n] = (bound_portfolio_chain){.x = x};
    return raise_chain(c, c->n++, job);
}

/* The parameters of a number; beyond the table those of one with noise, drawn anew. */
static decompose_interval_rule rule_of(const bound_portfolio *c, int32_t i)
{
    bool listed = i < N_RULES;
    int32_t noisy = BOUND_PORTFOLIO_FIRST_NOISY + i % (N_RULES - BOUND_PORTFOLIO_FIRST_NOISY);
    decompose_interval_rule rule = rules[listed ? i : noisy];
    rule.most_ops <<= c->coarser;
    rule.seed = listed ? rule.seed : (uint64_t)i;
    return rule;
}

/* The chain of all cuts where there is one, and a chain for each rule up to a number, with one attempt at each pair of
 * its path. */
static int enter_chains(bound_portfolio *c, int32_t to, const bound_interval_task *job)
{
    bound_interval_task first = *job;
    bound_interval_chain *x = NULL;
    first.tries = 1;
    int rc = c->entered == 0 && c->n == 0 ? bound_interval_chain_of_cuts(&x, c->p) : 0;
    if (!rc && x)
        rc = enter_chain(c, x, &first);
    for (; c->entered < to && c->n < BOUND_PORTFOLIO_MOST_CHAINS && !rc && (c->n == 0 || !util_stopped(&job->stop));
         c->entered++) {
        decompose_interval_rule rule = rule_of(c, c->entered);
        rc = bound_interval_chain_new(&x, c->p, c->all, &rule);
        rc = rc ? rc : enter_chain(c, x, &first);
    }
    return rc;
}

static int32_t best_of(const bound_portfolio *c)
{
    int32_t best = -1;
    for (int32_t i = 0; i < c->n; i++)
        if (best < 0 || c->chain[i].lower_ns > c->chain[best].lower_ns)
            best = i;
    return best;
}

/* Whether something is open on the chain's path that will be tried. */
static bool is_open(const bound_interval_chain *x, int32_t tries)
{
    for (int32_t b = 0; b < x->c->s->n_blocks; b++) {
        int64_t at = pair_chain_on_path(x->c, b, x->device);
        const pair_state *y = pair_chain_get(x->c, at);
        if (y->plan.device && x->tries[at] < tries && y->lower_ns > 0 && y->plan.length_ns > y->lower_ns)
            return true;
    }
    return false;
}

/* The chain that proves most, of those that have not yet been raised in this round and where something is
 * left to try; -1: none. */
static int32_t likeliest(const bound_portfolio *c, int32_t tries)
{
    int32_t best = -1;
    for (int32_t i = 0; i < c->n; i++)
        if (c->chain[i].round < c->rounds && is_open(c->chain[i].x, tries) &&
            (best < 0 || c->chain[i].lower_ns > c->chain[best].lower_ns))
            best = i;
    return best;
}

/* ---- rounds ---- */

static int raise_finalist(bound_portfolio *c, const bound_interval_task *job)
{
    int32_t i = util_stopped(&job->stop) ? -1 : likeliest(c, job->tries);
    if (i < 0)
        return 0;
    c->chain[i].round = c->rounds;
    return raise_chain(c, i, job);
}

static int raise_round(bound_portfolio *c, const bound_interval_task *job)
{
    bound_interval_task patient = *job;
    int32_t rules_now = job->chains > 0 ? UTIL_MIN(N_RULES, job->chains) : N_RULES;
    bool first = c->entered<rules_now, full = c->n> 0 && !first;
    int32_t finalists = first ? BOUND_PORTFOLIO_FINALISTS : BOUND_PORTFOLIO_LATER_FINALISTS;
    int rc = 0;
    patient.patient = true;
    patient.tries = job->tries + 1;
    c->rounds++;
    for (int32_t stage = 0; c->all && stage < finalists && !rc; stage++) {
        if (first && stage < BOUND_PORTFOLIO_STAGES)
            rc = enter_chains(c, (stage + 1) * rules_now / BOUND_PORTFOLIO_STAGES, job);
        else if (full && stage == 0)
            rc = enter_chains(c, c->entered + BOUND_PORTFOLIO_LATER_CHAINS, job);
        rc = rc ? rc : raise_finalist(c, &patient);
    }
    return rc;
}

static int list_intervals(bound_portfolio *c)
{
    decompose_intervals_free(c->all);
    c->all = NULL;
    return decompose_intervals_new(&c->all, c->p, BOUND_INTERVAL_OPS << c->coarser);
}

/* Whether all rules have had their turn and longer searches would not raise the best chain, which is neither at the goal nor far from
 * what is known: there loads decide. */
static bool is_spent(const bound_portfolio *c, const bound_interval_task *job)
{
    int32_t best = best_of(c);
    bool may = c->coarser < BOUND_PORTFOLIO_COARSER && c->p->n_ops <= BOUND_PORTFOLIO_COARSER_OPS &&
               !util_stopped(&job->stop) && !util_off(&job->stop, UTIL_METHOD_AGAIN);
    if (!may || c->entered < N_RULES || best < 0 || is_open(c->chain[best].x, INT8_MAX))
        return false;
    int64_t lower = c->chain[best].lower_ns;
    return lower < job->goal_ns && (double)lower >= BOUND_PORTFOLIO_HOPE * (double)job->known_ns;
}

int bound_portfolio_raise(int64_t *lower_ns, bound_portfolio *c, const bound_interval_task *job)
{
    int rc = raise_round(c, job);
    while (!rc && is_spent(c, job)) {
        c->coarser++;
        c->entered = 0;
        rc = list_intervals(c);
        rc = rc ? rc : raise_round(c, job);
    }
    int32_t best = best_of(c);
    *lower_ns = rc || best < 0 ? 0 : c->chain[best].lower_ns;
    return rc;
}

int bound_portfolio_new(bound_portfolio **out, const moirai_problem *p)
{
    bound_portfolio *c = util_alloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return MOIRAI_EFAIL;
    c->p = p;
    int rc = list_intervals(c);
    if (rc)
        bound_portfolio_free(c);
    else
        *out = c;
    return rc;
}

void bound_portfolio_free(bound_portfolio *c)
{
    if (!c)
        return;
    for (int32_t i = 0; i < c->n; i++)
        bound_interval_chain_free(c->chain[i].x);
    free(c->chain);
    bound_interval_list_clear(&c->known);
    decompose_intervals_free(c->all);
    free(c);
}

bound_interval_chain *bound_portfolio_best(const bound_portfolio *c)
{
    int32_t best = best_of(c);
    return best < 0 ? NULL : c->chain[best].x;
}

/* One round of a portfolio, without a goal. */
static int find_intervals(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    bound_interval_task job = {.goal_ns = INT64_MAX,
                               .tries = 4,
                               .effort = budget->effort,
                               .threads = budget->threads,
                               .seed = budget->seed,
                               .stop = util_stop_of(budget)};
    bound_portfolio *c;
    *lower_ns = MOIRAI_UNKNOWN;
    if (p->n_devices > MOIRAI_MASK_DEVICES)
        return 0;
    int rc = bound_portfolio_new(&c, p);
    rc = rc ? rc : bound_portfolio_raise(lower_ns, c, &job);
    bound_portfolio_free(c);
    return rc;
}

const moirai_bound bound_interval_chains = {
    .name = "intervals", .summary = "chains of intervals, searched between two devices", .find = find_intervals};
