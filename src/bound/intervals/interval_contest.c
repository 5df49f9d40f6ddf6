/* Several chains of intervals compete.
 *
 * Which operators make a good chain shows when its intervals are raised (interval_chain.c). So: one attempt at each pair
 * of the path for all chains, all attempts for the best of the first half, then for those that promise or prove most; a
 * chain on whose path nothing is open is no finalist. What is found of an interval between two devices is shared by all
 * chains that have it. The best chain that these intervals make is raised like the others (interval_recombine.c).
 *
 * Whenever a chain has been raised, operators of the best chain of parts are taken away: longer intervals hold what floats
 * beside their parts and what jumps over their ends. Their searches begin where those of the parts have ended
 * (interval_links.c), and all that is inside is asked before (interval_parts.c). The first of them get one attempt at each
 * pair: what the longest intervals gain at once is more than what a second attempt at shorter ones does.
 *
 * A contest can be gone on with: each further round lets some new chains in, with noise of another seed, and raises
 * those that promise most by one more attempt at each pair. Nothing is searched twice. */
#include "bound/intervals/interval_chain.h"

#include <stdlib.h>

#include "bound/bounds.h"
#include "bound/intervals/interval_parts.h"
#include "bound/intervals/interval_recombine.h"
#include "util/util.h"

static const decompose_interval_taste tastes[] = {
    {30, 0.3, 0.5, 0, 1},   {44, 0.2, 0.5, 0, 1},   {30, 0.1, 0, 0.1, 1},   {36, 0.5, 1, 0.1, 2},
    {60, 0.3, 0.5, 0, 1},   {20, 0.3, 1, 0, 1},     {44, 0.3, 1, 0.1, 3},   {30, 0.3, 0.5, 0.2, 4},
    {26, 0.3, 0.5, 0.3, 5}, {34, 0.3, 0.5, 0.3, 6}, {28, 0.2, 0.3, 0.4, 7}, {30, 0.3, 0.5, 0.6, 8},
    {24, 0.3, 0.7, 0.3, 9},
};
#define N_TASTES ((int32_t)(sizeof tastes / sizeof *tastes))
#define FIRST_NOISY 6             /* from here on tastes have noise */
#define HEATS 2                   /* parts of the first round; the likeliest chain by then is raised all the way, */
#define FINALISTS 3               /* and of all that are not yet, until there are so many */
#define LATER_FINALISTS 4         /* of a further round, */
#define LATER_CHAINS 4            /* which lets in so many new chains */
#define MOST_CHAINS 60            /* then no more are let in */
#define PROMISE 0.25              /* of what is open on a chain's path counts when finalists are chosen */
#define CROSSINGS 3               /* chains made of parts of others, in a round */
#define MERGINGS 4                /* chains of longer intervals, whenever one has been raised */
#define QUICK_MERGINGS 2          /* of them get one attempt at each pair: the longest intervals come soon */
#define MERGED_TRIES 2            /* attempts at their pairs, */
#define MERGED_LESS 3             /* in later rounds so many fewer than at others */
#define PARTS_FROM 40             /* operators of an interval whose parts are asked for, */
#define PART_SIZES 16, 30, 44, 60 /* up to so many operators, before each attempt */
#define REPEATED_TASTES 2         /* chains beside that of the cuts, where layers repeat */

typedef struct contest_chain {
    bound_interval_chain *x;
    int64_t lower_ns;
    int32_t round; /* in which it was raised all the way, from 1 on; 0: not yet */
} contest_chain;

struct bound_contest {
    const moirai_problem *p;
    decompose_intervals *all; /* NULL: the problem is too large */
    contest_chain *chain;
    size_t capacity;
    int32_t n, entered; /* entered: tastes so far */
    int32_t rounds;
    bound_interval_list known; /* chains have many in common */
};

typedef bound_contest contest;

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
        if (!k && !(rc = bound_interval_add(&k, known, entry, exit, x->c->K)))
            k->merged = x->merged;
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

/* The earlier chain with the same operators; -1: none. */
static int32_t twin_of(const contest *c, const bound_interval_chain *x)
{
    for (int32_t i = 0; i < c->n; i++) {
        const decompose_cuts *s = c->chain[i].x->c->s, *t = x->c->s;
        bool same = s->n_cuts == t->n_cuts;
        for (int32_t j = 0; same && j < s->n_cuts; j++)
            same = end_of(c->chain[i].x, s->cut[j]) == end_of(x, t->cut[j]);
        if (same)
            return i;
    }
    return -1;
}

/* Of attempts at each pair those at long intervals are the slowest. */
static int32_t tries_of(const contest *c, int32_t i, int32_t tries)
{
    return c->chain[i].x->merged ? UTIL_MAX(tries - MERGED_LESS, UTIL_MIN(tries, MERGED_TRIES)) : tries;
}

/* The parts of what is long and open on the chain's path. */
static int ask_parts(contest *c, bound_interval_chain *x, int32_t most_ops, const bound_interval_task *job)
{
    const decompose_cuts *s = x->c->s;
    int rc = 0;
    pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->device);
    for (int32_t b = 0; b < s->n_blocks && !rc && !util_stopped(&job->stop); b++) {
        int64_t at = pair_chain_on_path(x->c, b, x->device);
        bound_part_task part = {end_of(x, decompose_entry(s, b)), end_of(x, decompose_exit(s, b)), most_ops};
        bound_interval *k = bound_interval_find(&c->known, part.entry, part.exit);
        if (x->tries[at] == INT8_MAX || s->block_size[b] <= PARTS_FROM || !k || k->parts_to >= most_ops)
            continue;
        k->parts_to = most_ops;
        rc = bound_interval_parts(&c->known, c->p, c->all, &part, job);
    }
    return rc ? rc : bound_interval_chain_add_up(x, job->threads);
}

/* A chain of long intervals: first what is known of their parts, and more of that before each further attempt. */
static int raise_merged(int64_t *lower_ns, contest *c, bound_interval_chain *x, const bound_interval_task *job)
{
    static const int32_t size[] = {PART_SIZES};
    bound_interval_task own = *job;
    int rc = 0;
    for (int32_t i = 0; i < job->tries && !rc && (i == 0 || !util_stopped(&job->stop)); i++) {
        own.tries = i + 1;
        rc = ask_parts(c, x, size[UTIL_MIN(i, (int32_t)(sizeof size / sizeof *size) - 1)], job);
        rc = rc ? rc : bound_interval_chain_raise(lower_ns, x, &own);
    }
    return rc;
}

static int raise_chain(contest *c, int32_t i, const bound_interval_task *task)
{
    bound_interval_chain *x = c->chain[i].x;
    bound_interval_task own = *task;
    const bound_interval_task *job = &own;
    int64_t lower = 0;
    own.tries = tries_of(c, i, task->tries);
    int rc = bound_interval_chain_open(x, job);
    rc = rc ? rc : bound_interval_chain_share(x, &c->known);
    x->known = &c->known;
    rc = rc ? rc : x->merged ? raise_merged(&lower, c, x, job) : bound_interval_chain_raise(&lower, x, job);
    c->chain[i].lower_ns = UTIL_MAX(c->chain[i].lower_ns, lower);
    return rc ? rc : bound_interval_chain_share(x, &c->known);
}

/* Layers that repeat are solved once; noise would make each of them another one. */
static bool repeats(const contest *c)
{
    return c->n > 0 && bound_interval_chain_repeats(c->chain[0].x);
}

/* Takes ownership of x. */
static int enter_chain(contest *c, bound_interval_chain *x, const bound_interval_task *job)
{
    int32_t twin = twin_of(c, x);
    int rc = twin >= 0 ? 0 : util_grow(&c->chain, &c->capacity, (size_t)c->n + 1, sizeof *c->chain);
    if (twin >= 0 || rc) {
        bool again = twin >= 0 && x->merged; /* its parts may be longer by now */
        bound_interval_chain_free(x);
        return rc ? MOIRAI_EFAIL : again ? raise_chain(c, twin, job) : 0;
    }
    c->chain[c->n] = (contest_chain){.x = x};
    return raise_chain(c, c->n++, job);
}

/* The parameters of a number; beyond the table those of one with noise, drawn anew. */
static decompose_interval_taste taste_of(int32_t i)
{
    if (i < N_TASTES)
        return tastes[i];
    decompose_interval_taste more = tastes[FIRST_NOISY + i % (N_TASTES - FIRST_NOISY)];
    more.seed = (uint64_t)i;
    return more;
}

/* The chain of all cuts where there is one, and a chain for each taste up to a number, with one attempt at each pair of
 * its path. */
static int enter_chains(contest *c, int32_t to, const bound_interval_task *job)
{
    bound_interval_task first = *job;
    bound_interval_chain *x = NULL;
    first.tries = 1;
    int rc = c->entered == 0 && c->n == 0 ? bound_interval_chain_of_cuts(&x, c->p) : 0;
    if (!rc && x)
        rc = enter_chain(c, x, &first);
    if (repeats(c)) /* cuts are near each other: what coarser chains see besides is little */
        to = UTIL_MIN(to, REPEATED_TASTES);
    for (; c->entered < to && c->n < MOST_CHAINS && !rc && (c->n == 0 || !util_stopped(&job->stop)); c->entered++) {
        decompose_interval_taste taste = taste_of(c->entered);
        if (taste.noise > 0 && repeats(c))
            continue;
        rc = bound_interval_chain_new(&x, c->p, c->all, &taste);
        rc = rc ? rc : enter_chain(c, x, &first);
    }
    return rc;
}

static int32_t best_of(const contest *c)
{
    int32_t best = -1;
    for (int32_t i = 0; i < c->n; i++)
        if (best < 0 || c->chain[i].lower_ns > c->chain[best].lower_ns)
            best = i;
    return best;
}

/* What is open on a chain's path and will be tried. The plans of its pairs are hardly searched for. */
static double open_on(const contest *c, int32_t i, int32_t tries)
{
    const bound_interval_chain *x = c->chain[i].x;
    const decompose_cuts *s = x->c->s;
    double open_ns = 0;
    for (int32_t b = 0; b < s->n_blocks; b++) {
        int64_t at = pair_chain_on_path(x->c, b, x->device);
        const pair_state *y = pair_chain_get(x->c, at);
        if (y->plan.device && x->tries[at] < tries)
            open_ns += (double)UTIL_MIN(UTIL_MAX(y->plan.length_ns - y->lower_ns, 0), y->lower_ns / 3);
    }
    return open_ns;
}

/* The chain that proves or promises most, of those that have not yet been raised in this round and where something is
 * left to try; -1: none. */
static int32_t likeliest(const contest *c, int32_t tries, bool promises)
{
    int32_t best = -1;
    double most = 0;
    for (int32_t i = 0; i < c->n; i++) {
        double open_ns = c->chain[i].round < c->rounds ? open_on(c, i, tries_of(c, i, tries)) : 0;
        double worth = (double)c->chain[i].lower_ns + (promises ? PROMISE * open_ns : 0);
        if (open_ns > 0 && (best < 0 || worth > most)) {
            best = i;
            most = worth;
        }
    }
    return best;
}

/* ---- chains made of others ---- */

static int cross_chains(contest *c, const bound_interval_task *job)
{
    size_t n = (size_t)c->p->n_ops;
    bound_interval_chain *chain = NULL;
    bool *mark = util_alloc(3 * n, sizeof *mark);
    int64_t worth = 0;
    int rc = mark ? bound_interval_best_parts(&worth, mark, c->p, &c->known) : MOIRAI_EFAIL;
    if (!rc && worth > c->chain[best_of(c)].lower_ns) {
        decompose_intervals_floating(c->all, mark, mark + n);
        rc = bound_interval_chain_over(&chain, c->p, mark);
    }
    if (chain)
        rc = enter_chain(c, chain, job);
    free(mark);
    return rc;
}

/* A chain of longer intervals, made of those of the best chain of parts. Their searches begin where those of the parts
 * have ended. */
static int merge_chains(contest *c, int32_t first, const bound_interval_task *job)
{
    size_t n = (size_t)c->p->n_ops;
    bound_interval_chain *chain = NULL;
    if (repeats(c))
        return 0; /* cases of one layer say more */
    bool *mark = util_alloc(3 * n, sizeof *mark);
    int64_t worth = 0;
    int rc = mark ? bound_interval_best_parts(&worth, mark, c->p, &c->known) : MOIRAI_EFAIL;
    if (!rc && worth >= 0 && bound_interval_merge(mark, c->p, c->all, first)) {
        decompose_intervals_floating(c->all, mark, mark + n);
        rc = bound_interval_chain_over(&chain, c->p, mark);
    }
    free(mark);
    if (!chain)
        return rc;
    chain->merged = true;
    return enter_chain(c, chain, job);
}

/* ---- rounds ---- */

static int raise_finalist(contest *c, bool promises, const bound_interval_task *job)
{
    int32_t i = util_stopped(&job->stop) ? -1 : likeliest(c, job->tries, promises);
    if (i < 0)
        return 0;
    c->chain[i].round = c->rounds;
    return raise_chain(c, i, job);
}

int bound_contest_raise(int64_t *lower_ns, bound_contest *c, const bound_interval_task *job)
{
    bound_interval_task patient = *job, quick;
    int32_t tastes_now = job->chains > 0 ? UTIL_MIN(N_TASTES, job->chains) : N_TASTES;
    bool first = c->entered<tastes_now, full = c->n> 0 && !first;
    int32_t finalists = first ? FINALISTS : LATER_FINALISTS;
    int rc = 0;
    patient.patient = true;
    patient.tries = job->tries + 1;
    quick = patient;
    quick.tries = 1;
    c->rounds++;
    for (int32_t heat = 0; c->all && heat < finalists && !rc; heat++) {
        if (first && heat < HEATS)
            rc = enter_chains(c, (heat + 1) * tastes_now / HEATS, job);
        else if (full && heat == 0)
            rc = enter_chains(c, c->entered + LATER_CHAINS, job);
        for (int32_t i = 0; i < MERGINGS && !rc && !util_stopped(&job->stop); i++) {
            if (i == (first ? 0 : QUICK_MERGINGS))
                rc = raise_finalist(c, heat % 2 == 1, &patient);
            rc = rc ? rc : merge_chains(c, i % 2, i < QUICK_MERGINGS ? &quick : &patient);
        }
    }
    for (int32_t i = 0; i < CROSSINGS && !rc && c->n > 0 && !util_stopped(&job->stop); i++)
        rc = cross_chains(c, &patient);
    int32_t best = best_of(c);
    *lower_ns = rc || best < 0 ? 0 : c->chain[best].lower_ns;
    return rc;
}

int bound_contest_new(bound_contest **out, const moirai_problem *p)
{
    contest *c = util_alloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return MOIRAI_EFAIL;
    c->p = p;
    int rc = decompose_intervals_new(&c->all, p, BOUND_INTERVAL_OPS);
    if (rc)
        bound_contest_free(c);
    else
        *out = c;
    return rc;
}

void bound_contest_free(bound_contest *c)
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

bound_interval_chain *bound_contest_best(const bound_contest *c)
{
    int32_t best = best_of(c);
    return best < 0 ? NULL : c->chain[best].x;
}

bound_interval_chain *bound_contest_best_of_short(const bound_contest *c)
{
    int32_t best = -1;
    for (int32_t i = 0; i < c->n; i++)
        if (!c->chain[i].x->merged && (best < 0 || c->chain[i].lower_ns > c->chain[best].lower_ns))
            best = i;
    return best < 0 ? NULL : c->chain[best].x;
}

int32_t bound_contest_count(const bound_contest *c)
{
    return c->n;
}

const bound_interval_chain *bound_contest_chain(const bound_contest *c, int32_t i)
{
    return c->chain[i].x;
}

const bound_interval_list *bound_contest_known(const bound_contest *c)
{
    return &c->known;
}

int bound_contest_windows(bound_windows *out, const bound_contest *c)
{
    *out = (bound_windows){0};
    return c->n > 0 ? bound_windows_find(out, c->p, &c->known) : 0;
}

int bound_intervals(int64_t *lower_ns, bound_windows *windows, const moirai_problem *p, const bound_interval_task *job)
{
    bound_contest *c;
    bound_windows w = {0};
    int rc = bound_contest_new(&c, p);
    rc = rc ? rc : bound_contest_raise(lower_ns, c, job);
    rc = rc ? rc : bound_contest_windows(&w, c);
    if (!rc)
        *lower_ns = UTIL_MAX(*lower_ns, w.lower_ns);
    if (windows)
        *windows = w;
    else
        bound_windows_clear(&w);
    bound_contest_free(c);
    return rc;
}

static int find_intervals(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    bound_interval_task job = bound_interval_task_of(budget);
    return bound_intervals(lower_ns, NULL, p, &job);
}

const moirai_bound bound_interval_chains = {
    .name = "intervals", .summary = "chains of intervals, searched between two devices", .find = find_intervals};
