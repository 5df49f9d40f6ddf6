/* Several chains of intervals compete.
 *
 * Which operators make a good chain shows when its intervals are raised (interval_chain.c). So: one attempt at each pair
 * of the path for all chains, all attempts for the best of the first half, then for those that promise or prove most.
 * What is found of an interval between two devices is shared by all chains that have it. Where two chains meet in an
 * operator, the beginning of the one and the end of the other are a chain too: a recursion over all intervals that are
 * known by then finds the best of these, and it is raised like the others. */
#include "bound/intervals/interval_chain.h"

#include <stdlib.h>

#include "bound/bounds.h"
#include "util/util.h"

static const decompose_interval_taste tastes[] = {
    {30, 0.3, 0.5, 0, 1},   {44, 0.2, 0.5, 0, 1},   {30, 0.1, 0, 0.1, 1},   {36, 0.5, 1, 0.1, 2},
    {60, 0.3, 0.5, 0, 1},   {20, 0.3, 1, 0, 1},     {44, 0.3, 1, 0.1, 3},   {30, 0.3, 0.5, 0.2, 4},
    {26, 0.3, 0.5, 0.3, 5}, {34, 0.3, 0.5, 0.3, 6}, {28, 0.2, 0.3, 0.4, 7}, {30, 0.3, 0.5, 0.6, 8},
    {24, 0.3, 0.7, 0.3, 9}, {110, 0.3, 0.5, 0, 1},
};
#define N_TASTES ((int32_t)(sizeof tastes / sizeof *tastes))
#define HEATS 2           /* parts of the contest; the likeliest chain by then is raised all the way, */
#define FINALISTS 3       /* and of all that are not yet, until there are so many */
#define PROMISE 0.25      /* of what is open on a chain's path counts when finalists are chosen */
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
    int rc = bound_interval_chain_open(c->chain[i], job);
    rc = rc ? rc : bound_interval_chain_share(c->chain[i], &c->known);
    rc = rc ? rc : bound_interval_chain_raise(&lower, c->chain[i], job);
    c->lower_ns[i] = UTIL_MAX(c->lower_ns[i], lower);
    return rc ? rc : bound_interval_chain_share(c->chain[i], &c->known);
}

/* Layers that repeat are solved once; noise would make each of them another one. */
static bool repeats(const contest *c)
{
    return c->n > 0 && bound_interval_chain_repeats(c->chain[0]);
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
    int rc = from == 0 ? bound_interval_chain_of_cuts(&x, p) : 0;
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
        int64_t at = pair_chain_on_path(x->c, b, x->device);
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
        rc = bound_interval_chain_over(&chain, p, mark);
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
    int rc = decompose_intervals_new(&all, p, BOUND_INTERVAL_OPS);
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
    bound_interval_task job = bound_interval_task_of(budget);
    return bound_intervals(lower_ns, NULL, NULL, p, &job);
}

const moirai_bound bound_interval_chains = {
    .name = "intervals", .summary = "chains of intervals, searched between two devices", .find = find_intervals};
