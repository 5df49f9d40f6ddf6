/* The parts of a long interval, from the smallest up.
 *
 * A search of a long interval lives by what is known of its parts (interval_links.c). Chains leave behind only the few
 * parts that they are made of, searched between the devices of their paths. Here all of them are asked: every interval
 * inside the long one that begins where something forks and ends where something joins, up to a size, in order of size,
 * between all pairs of devices, each with the links of all smaller ones. A step adds a few operators to what is known
 * already, so that nearly every one of these searches begins close to its optimum and is closed by a few dozen nodes.
 * Intervals that begin behind a fork or end before a join say nothing that those at the fork and at the join do not.
 *
 * The truth of it is that of links (docs/theory.md, Lemma 10). Parts of a batch are searched side by side and
 * see what was known before the batch, so that the number of threads does not matter.
 *
 * O(V^2 / 64) for each operator to list them; a part costs O(V + E) and its K^2 searches. */
#include "bound/intervals/interval_parts.h"

#include <stdlib.h>

#include "bound/intervals/interval_search.h"
#include "exact/exact.h"
#include "util/pool.h"
#include "util/util.h"

#define LEAST_OPS 2    /* smaller ones are longest paths */
#define PART_NODES 300 /* of the search of a part between two devices, at effort 1 */
#define BATCH 16       /* parts that are searched side by side, whatever the number of threads */

typedef struct part {
    int32_t entry, exit, n_ops;
    int64_t *lower_ns; /* [entry device * K + exit device] */
    int8_t *tries;
} part;

typedef struct parting {
    const moirai_problem *p;
    const decompose_intervals *all;
    const bound_interval_list *known;
    const bound_interval_task *job;
    part *list;
    size_t n, capacity;
    size_t done; /* parts before the batch at hand */
} parting;

/* ---- which parts ---- */

static int32_t readers_of(const moirai_problem *p, int32_t op)
{
    int32_t n = 0;
    for (int32_t a = p->op_out_off[op]; a < p->op_out_off[op + 1]; a++)
        n += p->tensor_edge_off[p->op_out[a] + 1] - p->tensor_edge_off[p->op_out[a]];
    return n;
}

static bool within(const parting *x, int32_t from, int32_t op, int32_t to)
{
    return (from == MOIRAI_NONE || op == from || decompose_intervals_precedes(x->all, from, op)) &&
           (to == MOIRAI_NONE || op == to || decompose_intervals_precedes(x->all, op, to));
}

/* All pairs of devices of it have been searched before. */
static bool searched(const parting *x, int32_t entry, int32_t exit)
{
    const bound_interval *v = bound_interval_find(x->known, entry, exit);
    int32_t K = x->p->n_devices, ks = entry == MOIRAI_NONE ? 1 : K, ls = exit == MOIRAI_NONE ? 1 : K;
    bool all = v != NULL;
    for (int32_t k = 0; k < ks && all; k++)
        for (int32_t l = 0; l < ls && all; l++)
            all = v->tries[k * K + l] > 0;
    return all;
}

static int by_size(const void *left, const void *right)
{
    const part *a = left, *b = right;
    if (a->n_ops != b->n_ops)
        return a->n_ops - b->n_ops;
    return a->entry != b->entry ? a->entry - b->entry : a->exit - b->exit;
}

/* Parts that begin at `entry`. */
static int list_from(parting *x, int32_t entry, const bound_part_task *task, const int32_t *end, int32_t n_ends)
{
    for (int32_t j = 0; j < n_ends; j++) {
        int32_t exit = end[j], n;
        if (entry == exit || (entry == task->entry && exit == task->exit))
            continue;
        if (entry != MOIRAI_NONE && exit != MOIRAI_NONE && !decompose_intervals_precedes(x->all, entry, exit))
            continue;
        n = decompose_intervals_between(x->all, entry, exit);
        if (n < LEAST_OPS || n > task->most_ops || searched(x, entry, exit))
            continue;
        if (util_grow(&x->list, &x->capacity, x->n + 1, sizeof *x->list))
            return MOIRAI_EFAIL;
        x->list[x->n++] = (part){.entry = entry, .exit = exit, .n_ops = n};
    }
    return 0;
}

/* From forks, and the interval's own entry, to joins, and its own exit. */
static int list_parts(parting *x, const bound_part_task *task)
{
    const moirai_problem *p = x->p;
    int32_t *end = util_alloc((size_t)p->n_ops + 1, sizeof *end), n_ends = 0;
    int rc = end ? 0 : MOIRAI_EFAIL;
    if (!rc && task->exit == MOIRAI_NONE)
        end[n_ends++] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        if (i != task->entry && within(x, task->entry, i, task->exit) &&
            (i == task->exit || p->op_in_off[i + 1] - p->op_in_off[i] > 1))
            end[n_ends++] = i;
    if (!rc && task->entry == MOIRAI_NONE)
        rc = list_from(x, MOIRAI_NONE, task, end, n_ends);
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        if (i != task->exit && within(x, task->entry, i, task->exit) && (i == task->entry || readers_of(p, i) > 1))
            rc = list_from(x, i, task, end, n_ends);
    if (!rc && x->n > 1)
        qsort(x->list, x->n, sizeof *x->list, by_size);
    free(end);
    return rc;
}

/* ---- searching them ---- */

/* The chain of a part's two ends; its block is between them. */
static int chain_of(bound_interval_chain **out, const parting *x, const part *v)
{
    size_t n = (size_t)x->p->n_ops;
    bool *mark = util_alloc(3 * n, sizeof *mark);
    *out = NULL;
    if (!mark)
        return MOIRAI_EFAIL;
    if (v->entry != MOIRAI_NONE)
        mark[v->entry] = true;
    if (v->exit != MOIRAI_NONE)
        mark[v->exit] = true;
    decompose_intervals_outside(x->all, v->entry, v->exit, mark + n);
    int rc = bound_interval_chain_over(out, x->p, mark);
    free(mark);
    return rc;
}

static int search_pair(const parting *x, pair_chain *c, int64_t at, int64_t known_ns, const bound_links *links)
{
    if (!c->pair[at])
        return 0;
    pair_state *y = c->pair[at];
    y->lower_ns = UTIL_MAX(y->lower_ns, known_ns);
    int64_t nodes = (int64_t)(PART_NODES * UTIL_MIN(x->job->effort, 1e6)) + 1;
    return bound_interval_search(y, INT64_MAX, nodes, links, &x->job->stop);
}

/* All pairs of the block. Equal devices make equal pairs, each of which is searched once. */
static int search_pairs(const parting *x, part *v, bound_interval_chain *chain, int32_t class_)
{
    pair_chain *c = chain->c;
    const bound_interval *known = bound_interval_find(x->known, v->entry, v->exit);
    int32_t K = c->K;
    bound_links links;
    int rc = bound_links_find(&links, chain, class_, x->known);
    for (int32_t i = 0; i < K * K && !rc && !util_stopped(&x->job->stop); i++) {
        int64_t at = pair_chain_index(c, class_, i / K, i % K), own = (int64_t)class_ * K * K + i;
        if (at == own)
            rc = search_pair(x, c, at, known ? known->lower_ns[i] : 0, &links);
    }
    bound_links_clear(&links);
    for (int32_t i = 0; i < K * K && !rc; i++) {
        const pair_state *y = pair_chain_at(c, class_, i / K, i % K);
        v->lower_ns[i] = y->lower_ns;
        v->tries[i] = y->plan.device && y->lower_ns >= y->plan.length_ns ? INT8_MAX : 1;
    }
    return rc;
}

static int search_part(void *data, int32_t i)
{
    const parting *x = data;
    part *v = &x->list[x->done + (size_t)i];
    size_t pairs = (size_t)x->p->n_devices * (size_t)x->p->n_devices;
    bound_interval_chain *chain = NULL;
    if (util_stopped(&x->job->stop))
        return 0;
    int rc = chain_of(&chain, x, v);
    int32_t class_ = rc ? 0 : chain->c->s->block_class[v->entry == MOIRAI_NONE ? 0 : 1];
    rc = rc ? rc : pair_chain_open_class(chain->c, class_, 1, &x->job->stop);
    if (!rc && !util_stopped(&x->job->stop)) { /* all pairs are open */
        v->lower_ns = util_alloc(pairs, sizeof *v->lower_ns);
        v->tries = util_alloc(pairs, sizeof *v->tries);
        rc = v->lower_ns && v->tries ? search_pairs(x, v, chain, class_) : MOIRAI_EFAIL;
    }
    bound_interval_chain_free(chain);
    return rc;
}

/* What a part has proven goes into the list of what is known. */
static int keep(bound_interval_list *known, const part *v, int32_t n_devices)
{
    bound_interval *k = bound_interval_find(known, v->entry, v->exit);
    if (!v->tries)
        return 0;
    if (!k) {
        if (bound_interval_add(&k, known, v->entry, v->exit, n_devices))
            return MOIRAI_EFAIL;
        k->merged = k->part = true;
    }
    for (int32_t i = 0; i < n_devices * n_devices; i++) {
        k->lower_ns[i] = UTIL_MAX(k->lower_ns[i], v->lower_ns[i]);
        k->tries[i] = (int8_t)UTIL_MAX(k->tries[i], v->tries[i]);
    }
    return 0;
}

int bound_interval_parts(bound_interval_list *known, const moirai_problem *p, const decompose_intervals *all,
                         const bound_part_task *task, const bound_interval_task *job)
{
    parting x = {.p = p, .all = all, .known = known, .job = job};
    int rc = list_parts(&x, task);
    for (; x.done < x.n && !rc && !util_stopped(&job->stop); x.done += BATCH) {
        int32_t now = (int32_t)UTIL_MIN(x.n - x.done, (size_t)BATCH);
        rc = util_pool_run(search_part, &x, now, job->threads);
        for (int32_t i = 0; i < now && !rc; i++)
            rc = keep(known, &x.list[x.done + (size_t)i], p->n_devices);
    }
    for (size_t i = 0; i < x.n; i++) {
        free(x.list[i].lower_ns);
        free(x.list[i].tries);
    }
    free(x.list);
    return rc;
}
