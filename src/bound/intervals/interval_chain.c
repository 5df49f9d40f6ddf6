/* A chain of intervals, raised lazily (docs/theory.md, Lemma 9): its operators are cuts of what lies in its intervals, so that the
 * recursion over cuts (pair/chain.c) bounds the whole.
 *
 * Only pairs on the path of devices that attains the minimum are worth raising, those on which most of the gap hangs first: prices on
 * loads (pair_raise.c), which take some milliseconds, then the exhaustive search with both ends pinned (interval_search.c), with more
 * nodes each time; a search that has raised its pair by a little ends, since the path may lie elsewhere by then, and leaves the pair its
 * turn. Which chains are raised how far is decided in interval_portfolio.c. */
#include "bound/intervals/interval_chain.h"

#include <math.h>
#include <stdlib.h>

#include "bound/bound_tuning.h"
#include "bound/bounds.h"
#include "pair/improve.h"
#include "exact/exact.h"
#include "util/pool.h"
#include "util/util.h"

static const double nodes[] = {1500, 9000, 50000}; /* of the three searches, at effort 1 */

void bound_interval_chain_free(bound_interval_chain *x)
{
    if (!x)
        return;
    pair_chain_free(x->c);
    decompose_spine_free(x->spine);
    util_release(&x->memory);
    free(x);
}

int32_t bound_interval_end(const bound_interval_chain *x, int32_t op)
{
    return op == MOIRAI_NONE ? MOIRAI_NONE : x->spine->whole_op[op];
}

/* ---- what is known of intervals ---- */

static bound_interval *find_interval(const bound_interval_list *x, int32_t entry, int32_t exit)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->list[i].entry == entry && x->list[i].exit == exit)
            return &x->list[i];
    return NULL;
}

/* A new one of which nothing is known. */
static int add_interval(bound_interval **out, bound_interval_list *x, int32_t entry, int32_t exit, int32_t n_devices)
{
    size_t pairs = (size_t)n_devices * (size_t)n_devices;
    bound_interval new_one = {.entry = entry,
                              .exit = exit,
                              .lower_ns = util_alloc(pairs, sizeof(int64_t)),
                              .tries = util_alloc(pairs, sizeof(int8_t))};
    if (!new_one.lower_ns || !new_one.tries || util_grow(&x->list, &x->capacity, x->n + 1, sizeof *x->list)) {
        free(new_one.lower_ns);
        free(new_one.tries);
        return MOIRAI_EFAIL;
    }
    x->list[x->n] = new_one;
    *out = &x->list[x->n++];
    return 0;
}

void bound_interval_list_clear(bound_interval_list *x)
{
    for (size_t i = 0; i < x->n; i++) {
        free(x->list[i].lower_ns);
        free(x->list[i].tries);
    }
    free(x->list);
    *x = (bound_interval_list){0};
}

int bound_interval_chain_share(bound_interval_chain *x, bound_interval_list *known)
{
    const decompose_cuts *s = x->c->s;
    int32_t pairs = x->c->K * x->c->K;
    int rc = 0;
    for (int32_t b = 0; b < s->n_blocks && !rc; b++) {
        int32_t entry = bound_interval_end(x, decompose_entry(s, b)),
                exit = bound_interval_end(x, decompose_exit(s, b));
        bound_interval *k = find_interval(known, entry, exit);
        rc = k ? 0 : add_interval(&k, known, entry, exit, x->c->K);
        for (int32_t i = 0; i < pairs && !rc; i++) {
            int64_t at = pair_chain_index(x->c, s->block_class[b], i / x->c->K, i % x->c->K);
            pair_state *y = x->c->pair[at];
            if (!y)
                continue;
            k->lower_ns[i] = UTIL_MAX(k->lower_ns[i], y->lower_ns);
            k->tries[i] = (int8_t)UTIL_MAX(k->tries[i], x->tries[at]);
            y->exhausted |= k->lower_ns[i] > y->lower_ns;
            y->lower_ns = k->lower_ns[i];
            x->tries[at] = k->tries[i];
        }
    }
    return rc;
}

/* The chain of the marked operators; `mark` has room for 3 per operator, the first third is the chain. */
static int build(bound_interval_chain *x, const moirai_problem *p, bool *mark)
{
    const bool *on_chain = mark;
    bool *floating = mark + p->n_ops, *chosen = floating + p->n_ops;
    int rc = decompose_spine_from(&x->spine, p, floating);
    for (int32_t i = 0; !rc && i < x->spine->problem->n_ops; i++)
        chosen[i] = on_chain[x->spine->whole_op[i]];
    rc = rc ? rc : pair_chain_over(&x->c, x->spine->problem, chosen);
    if (rc)
        return rc;
    pair_chain_join_equals(x->c);
    size_t pairs = (size_t)x->c->s->n_classes * (size_t)x->c->K * (size_t)x->c->K;
    UTIL_TAKE(&x->memory, x->tries, pairs);
    UTIL_TAKE(&x->memory, x->device, (size_t)x->c->s->n_cuts);
    UTIL_TAKE(&x->memory, x->pick, pairs);
    return util_taken_all(&x->memory);
}

static int chain_over(bound_interval_chain **out, const moirai_problem *p, bool *mark)
{
    bound_interval_chain *x = util_alloc(1, sizeof *x);
    int rc = x ? build(x, p, mark) : MOIRAI_EFAIL;
    *out = rc ? NULL : x;
    if (rc)
        bound_interval_chain_free(x);
    return rc;
}

int bound_interval_chain_of_cuts(bound_interval_chain **out, const moirai_problem *p)
{
    decompose_cuts *s;
    *out = NULL;
    int rc = decompose_cuts_new(&s, p);
    if (rc)
        return rc;
    bool *mark = util_alloc(3 * (size_t)p->n_ops, sizeof *mark), small = mark && s->n_cuts > 0;
    for (int32_t b = 0; b < s->n_blocks && small; b++)
        small = s->block_size[b] <= BOUND_INTERVAL_OPS;
    for (int32_t i = 0; i < s->n_cuts && small; i++)
        mark[s->cut[i]] = true;
    rc = mark ? 0 : MOIRAI_EFAIL;
    if (!rc && small)
        rc = chain_over(out, p, mark);
    free(mark);
    decompose_cuts_free(s);
    return rc;
}

int bound_interval_chain_new(bound_interval_chain **out, const moirai_problem *p, const decompose_intervals *all,
                             const decompose_interval_rule *rule)
{
    *out = NULL;
    bool *mark = util_alloc(3 * (size_t)p->n_ops, sizeof *mark);
    int rc = mark ? decompose_intervals_choose(all, rule, mark, mark + p->n_ops) : MOIRAI_EFAIL;
    rc = rc ? rc : chain_over(out, p, mark);
    free(mark);
    return rc;
}

/* ---- raising ---- */

typedef struct raising {
    bound_interval_chain *x;
    const bound_interval_task *job;
    int64_t lower_ns;
    int64_t need_ns[BOUND_INTERVAL_BATCH]; /* per pick: no use in proving more */
    int64_t *times;                        /* per pair: how often the path uses it */
} raising;

/* What is tried at a pair, one after the other, behind prices on loads: search with more and more nodes. WAIT: others
 * come first, since what follows takes many nodes; it has its turn in later rounds, which allow more tries. */
typedef enum attempt { SEARCH_1, SEARCH_2, SEARCH_3, WAIT } attempt;

static attempt attempt_of(const pair_state *y, int32_t tries)
{
    static const attempt small[] = {SEARCH_1, SEARCH_2, WAIT, WAIT, SEARCH_3, WAIT},
                         large[] = {SEARCH_1, WAIT, WAIT, WAIT, SEARCH_2, SEARCH_3, WAIT};
    bool few = y->block.n_interior <= BOUND_INTERVALS_SMALL_OPS;
    if (tries >= (int32_t)(few ? sizeof small / sizeof *small : sizeof large / sizeof *large))
        return SEARCH_3; /* with more nodes each time, by the effort */
    return (few ? small : large)[tries];
}

/* A node of a large interval takes longer, and a long search of it is less likely to gain anything. Where devices are many there are many pairs. */
static int64_t nodes_of(attempt what, const pair_state *y, const bound_interval_task *job)
{
    double n = nodes[what] * (job->patient ? BOUND_INTERVALS_PATIENCE : 1) * fmin(job->effort, 1e6),
           K = y->block.problem.n_devices, many = fmax(1, K / BOUND_INTERVALS_FEW_DEVICES),
           small = fmin(1, (double)BOUND_INTERVALS_LARGE_OPS / y->block.n_interior);
    return (int64_t)(n / (many * many) * (what == SEARCH_1 ? small : small * small)) + 1;
}

/* The search. Where it has been tried before and the pair's plan may be far from the best, a few steps of annealing come
 * first: targets that a plan meets are not refuted, and to find that out takes the search long. */
static int search_one(bound_interval_chain *x, int32_t pair, int64_t need_ns, int64_t most, const util_stop *stop)
{
    pair_state *y = x->c->pair[pair];
    bool again = x->tries[pair] > 2 && y->block.n_interior > BOUND_INTERVALS_PLAN_OPS,
         far = (double)y->plan.length_ns > (1 + BOUND_INTERVALS_PLAN_NEAR) * (double)y->lower_ns;
    int rc = again && far ? pair_improve_plan(y, BOUND_INTERVALS_PLAN_EVALUATIONS, 1, *stop) : 0;
    return rc ? rc : bound_interval_search(y, need_ns, most, stop);
}

static int raise_one(void *data, int32_t i)
{
    raising *r = data;
    bound_interval_chain *x = r->x;
    int32_t pair = x->pick[i], tries = x->tries[pair]++;
    pair_state *y = x->c->pair[pair];
    attempt what = attempt_of(y, tries);
    bool fits = y->block.n_interior <= BOUND_INTERVALS_SEARCH_OPS && exact_fits(&y->block.problem, NULL);
    if (util_stopped(&r->job->stop))
        return 0;
    int rc = pair_raise_loads(y, r->job->stop);
    int64_t need_ns = r->need_ns[i];
    if (x->c->s->n_blocks <
        BOUND_INTERVALS_REPEATS * x->c->s->n_classes) /* a copy's rise is that of all: no use to look elsewhere */
        need_ns = UTIL_MIN(need_ns, y->lower_ns + y->plan.length_ns / BOUND_INTERVALS_RISE + 1);
    if (!rc && what <= SEARCH_3 && fits) {
        rc = search_one(x, pair, need_ns, nodes_of(what, y, r->job), &r->job->stop);
        x->tries[pair] -= y->lower_ns >= need_ns; /* the same again, if it is still on the path */
    }
    if (y->lower_ns >= y->plan.length_ns)
        x->tries[pair] = INT8_MAX;
    return rc;
}

/* Pairs of the path, those on which most of the gap may hang first. */
static void choose(raising *r)
{
    bound_interval_chain *x = r->x;
    const decompose_cuts *s = x->c->s;
    int32_t K = x->c->K;
    for (int32_t i = 0; i < s->n_classes * K * K; i++)
        r->times[i] = 0;
    for (int32_t i = 0; i < s->n_blocks; i++)
        r->times[pair_chain_on_path(x->c, i, x->device)]++;
    for (x->n_picks = 0; x->n_picks < BOUND_INTERVAL_BATCH; x->n_picks++) {
        int32_t best = -1;
        double most = 0;
        for (int32_t i = 0; i < s->n_classes * K * K; i++) {
            const pair_state *y = pair_chain_get(x->c, i);
            int64_t open_ns = y->open && y->plan.device ? y->plan.length_ns - y->lower_ns : 0;
            double hangs = (double)r->times[i] * (double)open_ns / (1 + 3 * x->tries[i]);
            if (x->tries[i] < r->job->tries && y->block.n_interior > 0 && hangs > most) {
                most = hangs;
                best = i;
            }
        }
        if (best < 0)
            return;
        int64_t open_ns = r->job->goal_ns == INT64_MAX ? INT64_MAX / 4 : UTIL_MAX(r->job->goal_ns - r->lower_ns, 1);
        r->need_ns[x->n_picks] = pair_chain_get(x->c, best)->lower_ns + open_ns;
        x->pick[x->n_picks] = best;
        r->times[best] = 0;
    }
}

/* Adds a pair to a list of n unless it is there; returns how many there are now. */
static int32_t list_once(int64_t *list, int32_t n, int64_t at)
{
    for (int32_t i = 0; i < n; i++)
        if (list[i] == at)
            return n;
    list[n] = at;
    return n + 1;
}

/* All pairs at once where they are few; otherwise those of the path whenever it has changed. */
int bound_interval_chain_open(bound_interval_chain *x, const bound_interval_task *job)
{
    if (pair_chain_distinct(x->c) <= BOUND_INTERVALS_MOST_OPEN)
        return pair_chain_open_all(x->c, job->threads, &job->stop);
    const decompose_cuts *s = x->c->s;
    int64_t *index = util_alloc((size_t)s->n_blocks, sizeof *index);
    int32_t n = 0;
    if (!index)
        return MOIRAI_EFAIL;
    pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->device);
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int64_t at = pair_chain_on_path(x->c, i, x->device);
        if (!x->c->pair[at])
            n = list_once(index, n, at);
    }
    int rc = pair_chain_open(x->c, index, n, job->threads, &job->stop);
    free(index);
    return rc;
}

int bound_interval_chain_raise(int64_t *lower_ns, bound_interval_chain *x, const bound_interval_task *job)
{
    size_t pairs = (size_t)x->c->s->n_classes * (size_t)x->c->K * (size_t)x->c->K;
    raising r = {.x = x, .job = job, .times = util_alloc(pairs, sizeof *r.times)};
    int rc = r.times ? 0 : MOIRAI_EFAIL;
    *lower_ns = 0;
    rc = rc ? rc : bound_interval_chain_open(x, job);
    while (!rc) {
        r.lower_ns = pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->device);
        *lower_ns = r.lower_ns == INT64_MAX ? 0 : r.lower_ns;
        if (*lower_ns >= job->goal_ns || r.lower_ns == INT64_MAX || util_stopped(&job->stop))
            break;
        choose(&r);
        if (!x->n_picks)
            break;
        rc = util_pool_run(raise_one, &r, x->n_picks, job->threads);
        if (!rc && pair_chain_distinct(x->c) > BOUND_INTERVALS_MOST_OPEN)
            rc = bound_interval_chain_open(x, job);
    }
    free(r.times);
    return rc;
}
