/* A chain of intervals, raised lazily.
 *
 * The chain's operators are cuts of what lies in its intervals (decompose/intervals.c), so the recursion over cuts
 * (pair/chain.c) bounds the whole: f(i+1, l) = min over k of f(i, k) + L(interval, k, l) + time. The first L are
 * longest paths. Only pairs on the path of devices that attains the minimum are worth raising, those on which most of
 * the gap hangs first: the exhaustive search with both ends pinned (interval_search.c), with more nodes each time, the
 * static programme (static_lp.c), prices in time (pair_refine.c). Fixing the devices at both ends of an interval is what makes this strong: prices over a whole graph
 * are satisfied by mixing "everything here" with "everything there". Several chains compete: one attempt at each pair
 * of the path for all of them, all attempts for the best of the first half, then for those that promise or prove most.
 * Where two chains meet in an operator, the beginning of the one and the end of the other are a chain too: a recursion
 * over all intervals that are known by then finds the best of these, and it is raised like the others. */
#include "bound/intervals/interval_chain.h"

#include <math.h>
#include <stdlib.h>

#include "bound/bounds.h"
#include "bound/intervals/interval_search.h"
#include "pair/static_lp.h"
#include "exact/exact.h"
#include "util/pool.h"
#include "util/util.h"

#define SEARCH_OPS 80     /* larger intervals are not searched */
#define SMALL_OPS 46      /* up to this size the search comes first */
#define LIST_OPS 110      /* between two neighbours of a chain, at most */
#define PRICES_EFFORT 0.3 /* of the effort goes into prices */
#define MOST_OPEN 20000   /* pairs that are opened at once */
#define CASES_AT_ONCE 16  /* of the static programme */
#define STATIC_CELLS 16e3 /* edges x devices^2: larger programmes are not solved, at effort 1; smaller ones at less */
#define CASES_WORTH 0.002 /* of the bound: cases that have raised it so far are gone on with */
#define SIDE_BY_SIDE 4    /* pairs that are raised at once, if there are so many worth it */
#define LIKELY_RISE 0.03  /* of a pair's bound */
#define REPEATS 3         /* blocks of a class, on average */
#define HEATS 2           /* parts of the contest; the likeliest chain by then is raised all the way, */
#define FINALISTS 3       /* and of all that are not yet, until there are so many */
#define PROMISE 0.25      /* of what is open on a chain's path counts when finalists are chosen */
#define PATIENCE 2        /* times as many nodes for them */

static const double nodes[] = {1500, 9000, 50000}; /* of the three searches, at effort 1 */

void bound_interval_chain_free(bound_interval_chain *x)
{
    if (!x)
        return;
    pair_chain_free(x->c);
    decompose_spine_free(x->spine);
    free(x->tries);
    free(x->device);
    free(x->pick);
    free(x);
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
    size_t pairs = (size_t)x->c->s->n_classes * (size_t)x->c->K * (size_t)x->c->K;
    x->tries = util_alloc(pairs, sizeof *x->tries);
    x->device = util_alloc((size_t)x->c->s->n_cuts, sizeof *x->device);
    x->pick = util_alloc(pairs, sizeof *x->pick);
    return x->tries && x->device && x->pick ? 0 : MOIRAI_EFAIL;
}

static int new_chain(bound_interval_chain **out, const moirai_problem *p, bool *mark)
{
    bound_interval_chain *x = util_alloc(1, sizeof *x);
    int rc = x ? build(x, p, mark) : MOIRAI_EFAIL;
    *out = rc ? NULL : x;
    if (rc)
        bound_interval_chain_free(x);
    return rc;
}

/* The chain of all cuts; *out is NULL where blocks between them are too large for intervals. */
static int new_chain_of_cuts(bound_interval_chain **out, const moirai_problem *p)
{
    decompose_cuts *s;
    *out = NULL;
    int rc = decompose_cuts_new(&s, p);
    if (rc)
        return rc;
    bool *mark = util_alloc(3 * (size_t)p->n_ops, sizeof *mark), small = mark && s->n_cuts > 0;
    for (int32_t b = 0; b < s->n_blocks && small; b++)
        small = s->block_size[b] <= LIST_OPS;
    for (int32_t i = 0; i < s->n_cuts && small; i++)
        mark[s->cut[i]] = true;
    rc = mark ? 0 : MOIRAI_EFAIL;
    if (!rc && small)
        rc = new_chain(out, p, mark);
    free(mark);
    decompose_cuts_free(s);
    return rc;
}

int bound_interval_chain_new(bound_interval_chain **out, const moirai_problem *p, const decompose_intervals *all,
                             const decompose_interval_taste *taste)
{
    *out = NULL;
    bool *mark = util_alloc(3 * (size_t)p->n_ops, sizeof *mark);
    int rc = mark ? decompose_intervals_choose(all, taste, mark, mark + p->n_ops) : MOIRAI_EFAIL;
    rc = rc ? rc : new_chain(out, p, mark);
    free(mark);
    return rc;
}

/* ---- raising ---- */

typedef struct raising {
    bound_interval_chain *x;
    const bound_interval_task *job;
    int64_t lower_ns;
    int64_t *need_ns; /* per pick: no use in proving more */
    int64_t *times;   /* per pair: how often the path uses it */
} raising;

/* What is tried at a pair, one after the other: search with more and more nodes, the static programme, prices. */
typedef enum attempt { SEARCH_1, SEARCH_2, SEARCH_3, STATIC, CASES, PRICES, NOTHING } attempt;

/* Layers that repeat are worth a programme for each pair before any search. */
static attempt attempt_of(const pair_state *y, int32_t tries, bool prices_only, bool copies)
{
    static const attempt small[] = {SEARCH_1, SEARCH_2, STATIC, PRICES, SEARCH_3, PRICES},
                         large[] = {SEARCH_1, STATIC, CASES, PRICES, SEARCH_2, SEARCH_3, PRICES},
                         copy[] = {STATIC, CASES, SEARCH_1, PRICES, SEARCH_2, SEARCH_3, PRICES};
    if (prices_only)
        return y->level < PAIR_LEVELS ? PRICES : NOTHING;
    bool few = y->block.n_interior <= SMALL_OPS;
    if (tries >= (int32_t)(few ? sizeof small / sizeof *small : sizeof large / sizeof *large))
        return NOTHING;
    return few ? small[tries] : copies ? copy[tries] : large[tries];
}

static int64_t nodes_of(attempt what, const bound_interval_task *job)
{
    return (int64_t)(nodes[what] * (job->patient ? PATIENCE : 1) * fmin(job->effort, 1e6)) + 1;
}

static bool affordable(const pair_state *y, const bound_interval_task *job)
{
    const moirai_problem *q = &y->block.problem;
    return (double)q->n_edges * q->n_devices * q->n_devices <= STATIC_CELLS * fmin(job->effort, 1);
}

static int raise_by_prices(bound_interval_chain *x, int32_t pair, int64_t need_ns, const bound_interval_task *job)
{
    int32_t K = x->c->K, level = x->c->pair[pair]->level + 1;
    if (level > PAIR_LEVELS)
        return 0;
    pair_refine_task task = {.class_ = pair / (K * K),
                             .entry_device = pair / K % K,
                             .exit_device = pair % K,
                             .level = level,
                             .need_ns = need_ns,
                             .prices_only = true,
                             .effort = PRICES_EFFORT * job->effort,
                             .seed = job->seed,
                             .stop = job->stop};
    return pair_refine(x->c, &task);
}

/* Some more cases; the next attempt is the same one as long as they help. */
static int raise_by_cases(bound_interval_chain *x, int32_t pair, int64_t need_ns, const bound_interval_task *job)
{
    pair_state *y = x->c->pair[pair];
    double before = (double)y->lower_ns;
    int rc = pair_raise_cases(y, need_ns, CASES_AT_ONCE, job->stop);
    if ((double)y->lower_ns > (1 + CASES_WORTH) * before && y->lower_ns < need_ns)
        x->tries[pair]--;
    return rc;
}

static int raise_one(void *data, int32_t i)
{
    raising *r = data;
    bound_interval_chain *x = r->x;
    int32_t pair = x->pick[i], tries = x->tries[pair]++;
    pair_state *y = x->c->pair[pair];
    bool copies = x->c->s->n_blocks >= REPEATS * x->c->s->n_classes;
    attempt what = attempt_of(y, tries, r->job->prices_only, copies);
    bool closed = what == NOTHING, fits = y->block.n_interior <= SEARCH_OPS && exact_fits(&y->block.problem, NULL);
    int rc = 0;
    if (util_stopped(&r->job->stop))
        return 0;
    if (what <= SEARCH_3 && fits)
        rc = bound_interval_search(&closed, y, r->need_ns[i], nodes_of(what, r->job), &r->job->stop);
    else if (what == STATIC && affordable(y, r->job))
        rc = pair_raise_static(y, r->job->stop);
    else if (what == CASES && affordable(y, r->job))
        rc = raise_by_cases(x, pair, r->need_ns[i], r->job);
    else if (what == PRICES)
        rc = raise_by_prices(x, pair, r->need_ns[i], r->job);
    if (closed || y->lower_ns >= y->plan.length_ns)
        x->tries[pair] = INT8_MAX;
    return rc;
}

/* Pairs of the path, those on which most of the gap may hang first; up to `most` in all. */
static void pick_from_path(raising *r, int32_t most_picks)
{
    bound_interval_chain *x = r->x;
    const decompose_cuts *s = x->c->s;
    int32_t K = x->c->K;
    for (int32_t i = 0; i < s->n_classes * K * K; i++)
        r->times[i] = 0;
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int32_t a = i > 0 ? x->device[i - 1] : 0, b = i < s->n_cuts ? x->device[i] : 0;
        r->times[(s->block_class[i] * K + a) * K + b]++;
    }
    for (int32_t i = 0; i < x->n_picks; i++)
        r->times[x->pick[i]] = 0; /* once is enough */
    for (; x->n_picks < most_picks; x->n_picks++) {
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
        int64_t room = r->job->goal_ns == INT64_MAX ? INT64_MAX / 4 : UTIL_MAX(r->job->goal_ns - r->lower_ns, 1);
        r->need_ns[x->n_picks] = pair_chain_get(x->c, best)->lower_ns + room;
        x->pick[x->n_picks] = best;
        r->times[best] = 0;
    }
}

/* Pairs of the path; where they are few, those of the path that there would be, were they raised: layers that are
 * copies have one pair on the path, and cores would wait for it. */
static void choose(raising *r)
{
    bound_interval_chain *x = r->x;
    int64_t before[BOUND_INTERVAL_BATCH];
    int32_t seen = 0;
    x->n_picks = 0;
    pick_from_path(r, BOUND_INTERVAL_BATCH);
    while (x->n_picks > seen && x->n_picks < SIDE_BY_SIDE) {
        for (; seen < x->n_picks; seen++) {
            pair_state *y = x->c->pair[x->pick[seen]];
            before[seen] = y->lower_ns;
            y->lower_ns += (int64_t)(LIKELY_RISE * (double)y->lower_ns);
        }
        pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->device);
        pick_from_path(r, SIDE_BY_SIDE);
    }
    for (int32_t i = 0; i < seen; i++)
        x->c->pair[x->pick[i]]->lower_ns = before[i];
}

/* All pairs at once where they are few; otherwise those of the path whenever it has changed. */
static int open_pairs(bound_interval_chain *x, const bound_interval_task *job)
{
    if (pair_chain_count(x->c) <= MOST_OPEN)
        return pair_chain_open_all(x->c, job->threads, &job->stop);
    const decompose_cuts *s = x->c->s;
    int64_t *index = util_alloc((size_t)s->n_blocks, sizeof *index);
    int32_t n = 0;
    if (!index)
        return MOIRAI_EFAIL;
    pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->device);
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int64_t at =
            pair_chain_index(x->c, s->block_class[i], i > 0 ? x->device[i - 1] : 0, i < s->n_cuts ? x->device[i] : 0);
        bool twice = x->c->pair[at] != NULL;
        for (int32_t j = 0; j < n && !twice; j++)
            twice = index[j] == at;
        if (!twice)
            index[n++] = at;
    }
    int rc = pair_chain_open(x->c, index, n, job->threads, &job->stop);
    free(index);
    return rc;
}

int bound_interval_chain_raise(int64_t *lower_ns, bound_interval_chain *x, const bound_interval_task *job)
{
    size_t pairs = (size_t)x->c->s->n_classes * (size_t)x->c->K * (size_t)x->c->K;
    int64_t need[BOUND_INTERVAL_BATCH];
    raising r = {.x = x, .job = job, .need_ns = need};
    r.times = util_alloc(pairs, sizeof *r.times);
    int rc = r.times ? 0 : MOIRAI_EFAIL;
    *lower_ns = 0;
    rc = rc ? rc : open_pairs(x, job);
    while (!rc) {
        r.lower_ns = pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->device);
        *lower_ns = r.lower_ns == INT64_MAX ? 0 : r.lower_ns;
        if (*lower_ns >= job->goal_ns || r.lower_ns == INT64_MAX || util_stopped(&job->stop))
            break;
        choose(&r);
        if (!x->n_picks)
            break;
        rc = util_pool_run(raise_one, &r, x->n_picks, job->threads);
        x->searches += x->n_picks;
        if (!rc && pair_chain_count(x->c) > MOST_OPEN)
            rc = open_pairs(x, job);
    }
    free(r.times);
    return rc;
}

/* ---- several chains ---- */

static const decompose_interval_taste tastes[] = {
    {30, 0.3, 0.5, 0, 1},   {44, 0.2, 0.5, 0, 1},   {30, 0.1, 0, 0.1, 1},   {36, 0.5, 1, 0.1, 2},
    {60, 0.3, 0.5, 0, 1},   {20, 0.3, 1, 0, 1},     {44, 0.3, 1, 0.1, 3},   {30, 0.3, 0.5, 0.2, 4},
    {26, 0.3, 0.5, 0.3, 5}, {34, 0.3, 0.5, 0.3, 6}, {28, 0.2, 0.3, 0.4, 7}, {30, 0.3, 0.5, 0.6, 8},
    {24, 0.3, 0.7, 0.3, 9}, {110, 0.3, 0.5, 0, 1},
};
#define N_TASTES ((int32_t)(sizeof tastes / sizeof *tastes))
#define CROSSINGS 3       /* chains made of parts of others */
#define REPEATED_TASTES 2 /* chains beside that of the cuts, where layers repeat */
#define N_CHAINS (1 + N_TASTES + CROSSINGS)

typedef struct contest {
    bound_interval_chain *chain[N_CHAINS];
    int64_t lower_ns[N_CHAINS];
    int32_t n;
    bound_interval_list known; /* chains have many in common */
} contest;

static int32_t end_of(const bound_interval_chain *x, int32_t op)
{
    return op == MOIRAI_NONE ? MOIRAI_NONE : x->spine->whole_op[op];
}

int bound_interval_chain_share(bound_interval_chain *x, bound_interval_list *known)
{
    const decompose_cuts *s = x->c->s;
    int32_t pairs = x->c->K * x->c->K;
    int rc = 0;
    for (int32_t b = 0; b < s->n_blocks && !rc; b++) {
        int32_t entry = end_of(x, decompose_entry(s, b)), exit = end_of(x, decompose_exit(s, b));
        bound_interval *k = bound_interval_find(known, entry, exit);
        if (!k)
            rc = bound_interval_add(&k, known, entry, exit, x->c->K);
        for (int32_t i = 0; i < pairs && !rc; i++) {
            int32_t at = s->block_class[b] * pairs + i;
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

/* Whether an earlier chain has the same operators. */
static bool is_twin(const contest *c, const bound_interval_chain *x)
{
    for (int32_t i = 0; i < c->n; i++) {
        const decompose_cuts *s = c->chain[i]->c->s, *t = x->c->s;
        bool same = s->n_cuts == t->n_cuts;
        for (int32_t j = 0; same && j < s->n_cuts; j++)
            same = end_of(c->chain[i], s->cut[j]) == end_of(x, t->cut[j]);
        if (same)
            return true;
    }
    return false;
}

static void contest_clear(contest *c, const bound_interval_chain *but)
{
    for (int32_t i = 0; i < c->n; i++)
        if (c->chain[i] != but)
            bound_interval_chain_free(c->chain[i]);
    bound_interval_list_clear(&c->known);
}

static int raise_chain(contest *c, int32_t i, const bound_interval_task *job)
{
    int64_t lower = 0;
    int rc = open_pairs(c->chain[i], job);
    rc = rc ? rc : bound_interval_chain_share(c->chain[i], &c->known);
    rc = rc ? rc : bound_interval_chain_raise(&lower, c->chain[i], job);
    c->lower_ns[i] = UTIL_MAX(c->lower_ns[i], lower);
    return rc ? rc : bound_interval_chain_share(c->chain[i], &c->known);
}

/* Layers that repeat are solved once; noise would make each of them another one. */
static bool repeats(const contest *c)
{
    return c->n > 0 && c->chain[0]->c->s->n_blocks >= REPEATS * c->chain[0]->c->s->n_classes;
}

static int enter_chain(contest *c, bound_interval_chain *x, const bound_interval_task *job)
{
    if (is_twin(c, x)) {
        bound_interval_chain_free(x);
        return 0;
    }
    c->chain[c->n] = x;
    return raise_chain(c, c->n++, job);
}

/* The chain of all cuts where there is one, and a chain for each taste of a range, with one attempt at each pair of its
 * path. */
static int enter_chains(contest *c, const moirai_problem *p, const decompose_intervals *all, int32_t from, int32_t to,
                        const bound_interval_task *job)
{
    bound_interval_task first = *job;
    bound_interval_chain *x = NULL;
    int32_t most = job->chains > 0 ? UTIL_MIN(to, job->chains) : to;
    first.tries = 1;
    int rc = from == 0 ? new_chain_of_cuts(&x, p) : 0;
    if (!rc && x)
        rc = enter_chain(c, x, &first);
    if (repeats(c)) /* cuts are near each other: what coarser chains see besides is little */
        most = UTIL_MIN(most, REPEATED_TASTES);
    for (int32_t i = from; i < most && !rc && (c->n == 0 || !util_stopped(&job->stop)); i++) {
        if (tastes[i].noise > 0 && repeats(c))
            continue;
        rc = bound_interval_chain_new(&x, p, all, &tastes[i]);
        rc = rc ? rc : enter_chain(c, x, &first);
    }
    return rc;
}

static int32_t best_of(const contest *c)
{
    int32_t best = -1;
    for (int32_t i = 0; i < c->n; i++)
        if (best < 0 || c->lower_ns[i] > c->lower_ns[best])
            best = i;
    return best;
}

/* What a chain proves, and a part of what is still open on its path. The plans of its pairs are hardly searched for. */
static double promise(const contest *c, int32_t i)
{
    const bound_interval_chain *x = c->chain[i];
    const decompose_cuts *s = x->c->s;
    double open_ns = 0;
    for (int32_t b = 0; b < s->n_blocks; b++) {
        int64_t at =
            pair_chain_index(x->c, s->block_class[b], b > 0 ? x->device[b - 1] : 0, b < s->n_cuts ? x->device[b] : 0);
        const pair_state *y = pair_chain_get(x->c, at);
        if (y->plan.device && x->tries[at] < INT8_MAX)
            open_ns += (double)UTIL_MIN(UTIL_MAX(y->plan.length_ns - y->lower_ns, 0), y->lower_ns / 3);
    }
    return (double)c->lower_ns[i] + PROMISE * open_ns;
}

/* The chain that proves or promises most, of those that are not done; -1: none. */
static int32_t likeliest(const contest *c, const bool *done, bool promises)
{
    int32_t best = -1;
    double most = 0;
    for (int32_t i = 0; i < c->n; i++) {
        double worth = promises ? promise(c, i) : (double)c->lower_ns[i];
        if (!done[i] && (best < 0 || worth > most)) {
            best = i;
            most = worth;
        }
    }
    return best;
}

/* ---- a chain of the best parts of all chains ---- */

/* What the intervals known by now prove: the finish of an operator on each device, and the interval before it on the
 * chain that proves it. */
typedef struct crossing {
    const moirai_problem *p;
    const contest *c;
    int64_t *finish; /* [op * K + device] */
    int64_t *worth;  /* per operator: the least over devices; -1: on no chain */
    int32_t *before; /* per operator: the chain's operator before; MOIRAI_NONE: the beginning */
} crossing;

/* The finish of the end of interval `v` on every device, and the least of them; -1: its beginning is on no chain. */
static int64_t go_on(const crossing *x, const bound_interval *v, int64_t *finish)
{
    const moirai_problem *p = x->p;
    int32_t K = p->n_devices;
    int64_t least = INT64_MAX;
    if (v->entry != MOIRAI_NONE && x->worth[v->entry] < 0)
        return -1;
    for (int32_t l = 0; l < (v->exit == MOIRAI_NONE ? 1 : K); l++) {
        int64_t soonest = INT64_MAX;
        if (v->exit != MOIRAI_NONE && !(p->op_devices[v->exit] >> l & 1))
            continue;
        for (int32_t k = 0; k < (v->entry == MOIRAI_NONE ? 1 : K); k++)
            if (v->entry == MOIRAI_NONE)
                soonest = v->lower_ns[l];
            else if (p->op_devices[v->entry] >> k & 1)
                soonest = UTIL_MIN(soonest, x->finish[(int64_t)v->entry * K + k] + v->lower_ns[k * K + l]);
        finish[l] = soonest + (v->exit == MOIRAI_NONE ? 0 : moirai_op_ns(p, v->exit, l));
        least = UTIL_MIN(least, finish[l]);
    }
    return least;
}

/* Of all intervals that end at `op` (MOIRAI_NONE: the end) the one that proves most. */
static int64_t best_before(crossing *x, int32_t op, int64_t *finish, int32_t *before)
{
    int64_t best = -1, trial[MOIRAI_MAX_DEVICES];
    for (size_t i = 0; i < x->c->known.n; i++) {
        const bound_interval *v = &x->c->known.list[i];
        int64_t worth = v->exit == op ? go_on(x, v, trial) : -1;
        if (worth > best) {
            best = worth;
            *before = v->entry;
            for (int32_t k = 0; k < x->p->n_devices && op != MOIRAI_NONE; k++)
                finish[k] = trial[k];
        }
    }
    return best;
}

/* mark: the operators of the chain that the intervals known by now make best; what it proves. */
static int64_t find_crossing(crossing *x, bool *mark)
{
    const moirai_problem *p = x->p;
    int32_t last = MOIRAI_NONE;
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        mark[i] = false;
        x->worth[i] = best_before(x, i, &x->finish[(int64_t)i * p->n_devices], &x->before[i]);
    }
    int64_t worth = best_before(x, MOIRAI_NONE, NULL, &last);
    for (; worth >= 0 && last != MOIRAI_NONE; last = x->before[last])
        mark[last] = true;
    return worth;
}

static int cross_chains(contest *c, const moirai_problem *p, const decompose_intervals *all,
                        const bound_interval_task *job)
{
    size_t n = (size_t)p->n_ops;
    crossing x = {.p = p, .c = c};
    bound_interval_chain *chain = NULL;
    bool *mark = util_alloc(3 * n, sizeof *mark);
    x.finish = util_alloc(n * (size_t)p->n_devices, sizeof *x.finish);
    x.worth = util_alloc(n, sizeof *x.worth);
    x.before = util_alloc(n, sizeof *x.before);
    int rc = mark && x.finish && x.worth && x.before ? 0 : MOIRAI_EFAIL;
    if (!rc && find_crossing(&x, mark) > c->lower_ns[best_of(c)]) {
        decompose_intervals_floating(all, mark, mark + n);
        rc = new_chain(&chain, p, mark);
    }
    if (chain) {
        c->chain[c->n] = chain;
        rc = raise_chain(c, c->n++, job);
    }
    free(mark);
    free(x.finish);
    free(x.worth);
    free(x.before);
    return rc;
}

/* All that is known of intervals, as heads and tails of the whole. */
static int find_windows(bound_windows *out, int64_t *lower_ns, const contest *c, const moirai_problem *p)
{
    bound_windows w;
    int rc = bound_windows_find(&w, p, &c->known);
    if (rc)
        return rc;
    *lower_ns = UTIL_MAX(*lower_ns, w.lower_ns);
    if (out)
        *out = w;
    else
        bound_windows_clear(&w);
    return 0;
}

int bound_intervals(int64_t *lower_ns, bound_interval_chain **best, bound_windows *windows, const moirai_problem *p,
                    const bound_interval_task *job)
{
    decompose_intervals *all;
    contest c = {.n = 0};
    bool done[N_CHAINS] = {false};
    bound_interval_task patient = *job;
    patient.patient = true;
    patient.tries = job->tries + 1;
    *lower_ns = 0;
    if (windows)
        *windows = (bound_windows){0};
    int rc = decompose_intervals_new(&all, p, LIST_OPS);
    for (int32_t heat = 0; all && heat < FINALISTS && !rc; heat++) {
        if (heat < HEATS)
            rc = enter_chains(&c, p, all, heat * N_TASTES / HEATS, (heat + 1) * N_TASTES / HEATS, job);
        int32_t x = rc || util_stopped(&job->stop) ? -1 : likeliest(&c, done, heat % 2 == 1);
        if (x >= 0) {
            rc = raise_chain(&c, x, &patient);
            done[x] = true;
        }
    }
    for (int32_t i = 0; i < CROSSINGS && !rc && c.n > 0 && !util_stopped(&job->stop); i++)
        rc = cross_chains(&c, p, all, &patient);
    int32_t first = rc ? -1 : best_of(&c);
    if (first >= 0) {
        *lower_ns = c.lower_ns[first];
        rc = find_windows(windows, lower_ns, &c, p);
    }
    if (best)
        *best = first >= 0 && !rc ? c.chain[first] : NULL;
    contest_clear(&c, best ? *best : NULL);
    decompose_intervals_free(all);
    return rc;
}

static int find_intervals(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    bound_interval_task job = {.goal_ns = INT64_MAX,
                               .tries = 4,
                               .effort = budget->effort,
                               .threads = budget->threads,
                               .seed = budget->seed,
                               .stop = util_stop_of(budget)};
    return bound_intervals(lower_ns, NULL, NULL, p, &job);
}

const moirai_bound bound_interval_chains = {
    .name = "intervals", .summary = "chains of intervals, searched between two devices", .find = find_intervals};
