/* The static bound: one linear programme for a block of parallel work.
 *
 * Prices in time (pricing/) see a component through a spanning tree; a mixture of experts is one component, and most of
 * its edges are outside any tree. Here time is left out but for starts, heads and tails, and all edges are kept. For a
 * plan of length T let y(i, k) = 1 if operator i is on k, w(e, a, b) = 1 if the ends of edge e are on a and b, z(t, a,
 * b) = 1 if tensor t is sent from a to b, and s(i) the start of i. Then
 *
 *   sum over b of w(e, a, b) = y(i, a),  sum over a of w(e, a, b) = y(j, b)        for e from i to j
 *   z(t, a, b) >= w(e, a, b)                                                       for the edges e of t (flow tensor)
 *   s(j) >= s(i) + sum t(i, k) y(i, k) + sum x(e, a, b) w(e, a, b)                 for e from i to j
 *   T >= s(i) + sum t(i, k) y(i, k)                                                for every i
 *   T >= h + q + sum over i with head(i, k) >= h, tail(i, k) >= q of t(i, k) y(i, k)   for device k, h + q <= proven
 *
 * and the last row for ports (channels) with x z in place of t y. Tasks of a resource that come no sooner than h and
 * are followed by q at least fit between h and T - q; where there are none the row says T >= h + q, hence the guard.
 * Without it the bound would be false. The programme's optimum is a bound, in floating point; what proves is this:
 *
 * **Any multipliers are valid.** With multipliers u >= 0 on inequalities and any on equalities, the Lagrangian
 * T + sum u (right - left) is at most T at every plan. It is a sum of independent parts: for each operator a least over
 * k, for each edge a least over (a, b), for each z in [0, 1], for each start in its window [head, upper - tail], for T
 * in [proven, upper]. So the duals are rounded to whole numbers, and the sum of the least parts, in whole numbers,
 * bounds every plan no longer than `upper`; longer ones need no bound. O(edges K^2 + rows (V K + tensors K^2)) for the
 * evaluation. Load rows are added where a solution violates them (static_loads.c). */
#include "pair/static/static_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/static/static_tuning.h"
#include "util/util.h"

static int prepare(pair_programme *x)
{
    const moirai_problem *q = x->q;
    size_t n = (size_t)x->n, K = (size_t)x->K, E = (size_t)x->E, T = (size_t)q->n_tensors;
    size_t longest = 2 * n + 3 * E + 2 * T * K * K + E * K * K + 9;
    x->edges.from = util_alloc(E, sizeof *x->edges.from);
    x->edges.shared = util_alloc(T, sizeof *x->edges.shared);
    x->edges.way = util_alloc(E, sizeof *x->edges.way);
    x->at.cell = util_alloc(E * K * K, sizeof *x->at.cell);
    x->at.mask = util_alloc(n, sizeof *x->at.mask);
    x->at.head = util_alloc(n * K, sizeof *x->at.head);
    x->at.tail = util_alloc(n * K, sizeof *x->at.tail);
    x->at.send = util_alloc(T * K, sizeof *x->at.send);
    x->at.arrive = util_alloc(T * K, sizeof *x->at.arrive);
    x->at.first = util_alloc(n, sizeof *x->at.first);
    x->at.last = util_alloc(n, sizeof *x->at.last);
    x->row.share_of = util_alloc(E * K * K, sizeof *x->row.share_of);
    x->column.op = util_alloc(n * K, sizeof *x->column.op);
    x->column.edge = util_alloc(E * K * K, sizeof *x->column.edge);
    x->column.send = util_alloc(T * K * K, sizeof *x->column.send);
    x->line.place = util_alloc(longest, sizeof *x->line.place);
    x->line.value = util_alloc(longest, sizeof *x->line.value);
    if (!x->edges.from || !x->edges.shared || !x->at.mask || !x->at.head || !x->at.tail || !x->at.send ||
        !x->at.arrive || !x->at.first || !x->at.last || !x->row.share_of || !x->column.op || !x->column.edge ||
        !x->column.send || !x->line.place || !x->line.value || !x->edges.way || !x->at.cell)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < E * K * K; i++)
        x->column.edge[i] = -1;
    for (size_t i = 0; i < T * K * K; i++)
        x->column.send[i] = -1;
    for (int32_t e = 0; e < x->E; e++)
        x->edges.from[e] = q->tensor_producer[q->edge_tensor[e]];
    for (int32_t t = 0; t < q->n_tensors; t++)
        x->edges.shared[t] = q->flow == MOIRAI_FLOW_TENSOR && q->tensor_edge_off[t + 1] - q->tensor_edge_off[t] > 1;
    pair_windows_find(x);
    return pair_programme_build(x);
}

static void clear(pair_programme *x)
{
    void *all[] = {x->edges.from,      x->row.share_of,    x->edges.shared,       x->at.mask,     x->at.head,
                   x->at.tail,         x->at.send,         x->at.arrive,          x->at.first,    x->at.last,
                   x->loads.load,      x->column.op,       x->column.edge,        x->column.send, x->found.dual,
                   x->found.real_dual, x->found.row_value, x->found.column_value, x->line.place,  x->line.value,
                   x->edges.way,       x->at.cell};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    pricing_lp_free(x->lp);
}

void pair_static_proof_free(pair_static_proof *proof, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        free(proof[i].load);
        free(proof[i].dual);
    }
}

/* Places of a certificate for the rows of a programme: all devices of all edges have one for sharing. */
static int64_t places(const pair_programme *x)
{
    return (int64_t)x->E * x->K * (2 + x->K) + x->E + x->n;
}

static void copy_duals(const pair_programme *x, int64_t *dual)
{
    int64_t both = (int64_t)2 * x->E * x->K, share = (int64_t)x->E * x->K * x->K;
    memcpy(dual, x->found.dual + x->row.out, sizeof *dual * (size_t)both);
    for (int64_t c = 0; c < share; c++)
        if (x->row.share_of[c] >= 0)
            dual[both + c] = x->found.dual[x->row.share_of[c]];
    memcpy(dual + both + share, x->found.dual + x->row.path, sizeof *dual * (size_t)(x->E + x->n));
}

/* The multipliers at hand as a certificate has them: load rows without any are left out. */
static int keep_proof(pair_static_proof *out, const pair_programme *x, int64_t bound_ns)
{
    const int64_t *price = x->found.dual + x->row.load;
    int64_t n = places(x);
    *out = (pair_static_proof){.upper_ns = x->upper_ns,
                               .bound_ns = bound_ns,
                               .dual = util_alloc((size_t)n + (size_t)x->loads.n, sizeof *out->dual),
                               .load = util_alloc((size_t)x->loads.n, sizeof *out->load)};
    if (!out->dual || !out->load) {
        pair_static_proof_free(out, 1);
        return MOIRAI_EFAIL;
    }
    copy_duals(x, out->dual);
    for (int32_t r = 0; r < x->loads.n; r++)
        if (price[r] > 0) {
            out->load[out->n_loads++] = x->loads.load[r];
            out->dual[n++] = price[r];
        }
    out->n_duals = n;
    return 0;
}

/* Each round begins with what the one before has proven. */
static int prove(pair_programme *x, const util_stop *stop, pair_static_proof *proof, int32_t *n_proofs)
{
    int rc = 0;
    for (int32_t i = 0; i < PAIR_STATIC_ROUNDS && !rc && !pair_windows_empty(x) && !util_stopped(stop); i++) {
        rc = pair_programme_solve(x, stop);
        int64_t bound = rc ? 0 : pair_programme_evaluate(x);
        bool much = bound > x->proven_ns + x->proven_ns / 500;
        if (!rc && proof && bound > x->proven_ns && !(rc = keep_proof(&proof[*n_proofs], x, bound)))
            ++*n_proofs;
        x->proven_ns = UTIL_MAX(x->proven_ns, bound);
        if (!rc && !much)
            break;
    }
    return rc;
}

int pair_static_lp(int64_t *lower_ns, const moirai_problem *q, const pair_static_task *job, pair_static_proof *proof,
                   int32_t *n_proofs)
{
    *lower_ns = job->proven_ns;
    if (!pricing_lp_available() || q->n_ops == 0 || job->proven_ns >= job->upper_ns ||
        pair_static_cells(q) > PAIR_STATIC_CELLS)
        return 0;
    pair_programme x = {.q = q,
                        .n = q->n_ops,
                        .K = q->n_devices,
                        .E = q->n_edges,
                        .proven_ns = job->proven_ns,
                        .upper_ns = job->upper_ns,
                        .unit_ns = fmax((double)job->upper_ns / 1000, 1)};
    int rc = prepare(&x);
    rc = rc ? rc : prove(&x, &job->stop, proof, n_proofs);
    *lower_ns = x.proven_ns;
    clear(&x);
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* times too far apart for the solver */
}
