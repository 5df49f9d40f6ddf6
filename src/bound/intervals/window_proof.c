/* Windows that can be certified.
 *
 * What chains know of their intervals comes mostly from the exhaustive search, which leaves nothing behind. So every
 * interval of which more is known than a longest path becomes a problem of its own, its ends the cuts, and each pair of
 * devices that was raised is searched once more for just that value, with a tree that is kept (pair_raise.c), or raised
 * by prices on loads. Heads and tails follow from what that proves (interval_windows.c), by the same recursion as the
 * verifier's (prove/prove_windows.c). Intervals are searched side by side; where time ends it, the others are left out. */
#include "bound/intervals/window_proof.h"

#include <stdlib.h>
#include <string.h>

#include "bound/bounds.h"
#include "pair/pair_refine.h"
#include "util/pool.h"
#include "util/util.h"

typedef struct proving {
    const moirai_problem *p;
    const bound_interval_list *known;
    const bound_window_task *job;
    bound_proven_interval *interval; /* as in known */
} proving;

static void clear_interval(bound_proven_interval *v)
{
    pair_chain_free(v->c);
    decompose_spine_free(v->spine);
    *v = (bound_proven_interval){0};
}

void bound_window_proof_clear(bound_window_proof *x)
{
    for (size_t i = 0; i < x->n; i++)
        clear_interval(&x->interval[i]);
    free(x->interval);
    *x = (bound_window_proof){0};
}

/* ---- an interval as a problem ---- */

/* Marks the operators that are not between the two ends. */
static void find_outside(const moirai_problem *p, const bound_interval *v, bool *after, bool *outside)
{
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        after[i] = v->entry == MOIRAI_NONE || i == v->entry;
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1] && !after[i]; j++)
            after[i] = after[p->tensor_producer[p->op_in[j]]];
    }
    for (int32_t z = p->n_ops - 1; z >= 0; z--) {
        int32_t i = p->topo[z];
        bool leads = v->exit == MOIRAI_NONE || i == v->exit;
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1] && !leads; o++)
            for (int32_t e = p->tensor_edge_off[p->op_out[o]]; e < p->tensor_edge_off[p->op_out[o] + 1]; e++)
                leads |= !outside[p->edge_reader[e]];
        outside[i] = !leads;
    }
    for (int32_t i = 0; i < p->n_ops; i++)
        outside[i] |= !after[i];
}

static int build(bound_proven_interval *out, const moirai_problem *p, const bound_interval *v)
{
    size_t n = (size_t)p->n_ops;
    bool *after = util_alloc(3 * n, sizeof *after), *outside = after + n, *chosen = outside + n;
    if (!after)
        return MOIRAI_EFAIL;
    find_outside(p, v, after, outside);
    int rc = decompose_spine_from(&out->spine, p, outside);
    for (int32_t i = 0; !rc && i < out->spine->problem->n_ops; i++)
        chosen[i] = out->spine->whole_op[i] == v->entry || out->spine->whole_op[i] == v->exit;
    rc = rc ? rc : pair_chain_over(&out->c, out->spine->problem, chosen);
    free(after);
    if (rc)
        return rc;
    pair_chain_join_equals(out->c);
    out->entry = v->entry;
    out->exit = v->exit;
    out->class_ = out->c->s->block_class[v->entry != MOIRAI_NONE];
    return 0;
}

/* ---- proofs ---- */

/* Its part of the numbers is the same whatever the others take. */
static int prove_pair(const proving *x, pair_state *y, int64_t known_ns)
{
    size_t left = x->job->most_tree / UTIL_MAX(x->known->n, 1);
    if (known_ns <= pair_certified_ns(y) || y->block.n_interior == 0 || util_stopped(&x->job->stop))
        return 0;
    y->lower_ns = known_ns;
    int rc = pair_prove_by_search(y, x->job->nodes, &left, x->job->stop);
    if (!rc && pair_certified_ns(y) < known_ns && !util_stopped(&x->job->stop))
        rc = pair_raise_loads(y, x->job->stop);
    return rc;
}

static int prove_interval(void *data, int32_t i)
{
    proving *x = data;
    const bound_interval *v = &x->known->list[i];
    bound_proven_interval *out = &x->interval[i];
    int32_t K = x->p->n_devices;
    if (util_stopped(&x->job->stop))
        return 0;
    int rc = build(out, x->p, v);
    for (int32_t a = 0; a < K && !rc; a++)
        for (int32_t z = 0; z < K && !rc; z++) {
            if (!pair_chain_possible(out->c, out->class_, a, z))
                continue;
            if (!pair_chain_at(out->c, out->class_, a, z)->open)
                rc = pair_open(out->c, out->class_, a, z);
            rc = rc ? rc
                    : prove_pair(x, out->c->pair[pair_chain_index(out->c, out->class_, a, z)], v->lower_ns[a * K + z]);
        }
    return rc;
}

static bool says_more(const bound_proven_interval *v, int32_t K)
{
    for (int32_t i = 0; v->c && i < K * K; i++)
        if (pair_certifies_more(pair_chain_at(v->c, v->class_, i / K, i % K)))
            return true;
    return false;
}

/* Keeps the intervals that say more than paths, and lists what they prove. */
static int keep(bound_window_proof *out, bound_interval_list *proven, proving *x)
{
    int32_t K = x->p->n_devices;
    int rc = 0;
    out->interval = util_alloc(x->known->n, sizeof *out->interval);
    if (!out->interval)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < x->known->n && !rc; i++) {
        bound_proven_interval *v = &x->interval[i];
        bound_interval *new_one;
        if (!says_more(v, K))
            continue;
        rc = bound_interval_add(&new_one, proven, v->entry, v->exit, K);
        for (int32_t j = 0; j < K * K && !rc; j++)
            new_one->lower_ns[j] = pair_certified_ns(pair_chain_at(v->c, v->class_, j / K, j % K));
        out->interval[out->n++] = *v;
        *v = (bound_proven_interval){0};
    }
    return rc;
}

int bound_window_prove(bound_window_proof *out, const moirai_problem *p, const bound_interval_list *known,
                       const bound_window_task *job)
{
    proving x = {.p = p, .known = known, .job = job, .interval = util_alloc(known->n, sizeof *x.interval)};
    bound_interval_list proven = {0};
    bound_windows w = {0};
    *out = (bound_window_proof){.p = p};
    int rc = x.interval ? util_pool_run(prove_interval, &x, (int32_t)known->n, job->threads) : MOIRAI_EFAIL;
    rc = rc ? rc : keep(out, &proven, &x);
    rc = rc ? rc : bound_windows_find(&w, p, &proven);
    out->lower_ns = w.lower_ns;
    bound_windows_clear(&w);
    for (size_t i = 0; x.interval && i < known->n; i++)
        clear_interval(&x.interval[i]);
    free(x.interval);
    bound_interval_list_clear(&proven);
    if (rc)
        bound_window_proof_clear(out);
    return rc;
}
