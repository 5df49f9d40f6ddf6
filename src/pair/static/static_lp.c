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
 * evaluation. Load rows are added where a solution violates them (static_loads.c); cases, in which more is known of
 * devices, heads and numbers, are in static_cases.c. */
#include "pair/static/static_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/static/static_tuning.h"
#include "util/util.h"

/* The entry's tensor whose way matters most: several read it, and its transfers hold the sender's port. */
static void choose_sent(pair_programme *x, int32_t entry)
{
    const moirai_problem *q = x->q;
    int64_t most = 0;
    x->number.sent = x->number.sender = MOIRAI_NONE;
    if (entry == MOIRAI_NONE || q->congestion != MOIRAI_CONGESTION_PORT ||
        q->op_in_off[entry] != q->op_in_off[entry + 1] || !q->op_devices[entry] ||
        (q->op_devices[entry] & (q->op_devices[entry] - 1)))
        return;
    int32_t a = __builtin_ctzll(q->op_devices[entry]);
    for (int32_t o = q->op_out_off[entry]; o < q->op_out_off[entry + 1]; o++) {
        int32_t t = q->op_out[o];
        int64_t ns = 0;
        for (int32_t k = 0; k < x->K; k++)
            ns += moirai_transfer_ns(q, t, a, k);
        if (x->edges.shared[t] && ns > most) {
            most = ns;
            x->number.sent = t;
            x->number.sender = a;
        }
    }
}

static int64_t shortest_to(const moirai_problem *q, int32_t t, int32_t z)
{
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < q->n_devices; k++)
        if (k != z)
            least = UTIL_MIN(least, moirai_transfer_ns(q, t, k, z));
    return least;
}

/* Results are what takes as long to the exit's device as the shortest that the exit reads. */
static void choose_results(pair_programme *x, int32_t exit)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    x->result.exit_device = MOIRAI_NONE;
    if (exit == MOIRAI_NONE || q->congestion != MOIRAI_CONGESTION_PORT || !pair_programme_is_pinned(q, exit) || K < 2)
        return;
    int32_t z = __builtin_ctzll(q->op_devices[exit]);
    int64_t least = INT64_MAX;
    for (int32_t j = q->op_in_off[exit]; j < q->op_in_off[exit + 1]; j++)
        least = UTIL_MIN(least, shortest_to(q, q->op_in[j], z));
    if (least == INT64_MAX || least <= 0)
        return;
    x->result.exit_device = z;
    x->result.return_ns = least;
    for (int32_t k = 0; k < K; k++)
        x->result.ns[k] = INT64_MAX;
    for (int32_t t = 0; t < q->n_tensors; t++) {
        x->result.is[t] = shortest_to(q, t, z) >= least;
        for (int32_t k = 0; k < K && x->result.is[t]; k++)
            x->result.ns[k] = UTIL_MIN(x->result.ns[k], moirai_transfer_ns(q, t, k, z));
    }
}

static int prepare(pair_programme *x, int32_t entry, int32_t exit)
{
    const moirai_problem *q = x->q;
    size_t n = (size_t)x->n, K = (size_t)x->K, E = (size_t)x->E, T = (size_t)q->n_tensors;
    size_t longest = 2 * n + 3 * E + 2 * T * K * K + E * K * K + 9;
    x->edges.from = util_alloc(E, sizeof *x->edges.from);
    x->edges.shared = util_alloc(T, sizeof *x->edges.shared);
    x->edges.way = util_alloc(E, sizeof *x->edges.way);
    x->at.cell = util_alloc(E * K * K, sizeof *x->at.cell);
    x->result.is = util_alloc(T, sizeof *x->result.is);
    x->result.ns = util_alloc(K, sizeof *x->result.ns);
    x->at.told = util_alloc(n, sizeof *x->at.told);
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
        !x->column.send || !x->line.place || !x->line.value || !x->edges.way || !x->at.cell || !x->at.told ||
        !x->result.is || !x->result.ns)
        return MOIRAI_EFAIL;
    memcpy(x->at.told, q->op_devices, n * sizeof *x->at.told);
    for (size_t i = 0; i < E * K * K; i++)
        x->column.edge[i] = -1;
    for (size_t i = 0; i < T * K * K; i++)
        x->column.send[i] = -1;
    for (int32_t e = 0; e < x->E; e++)
        x->edges.from[e] = q->tensor_producer[q->edge_tensor[e]];
    for (int32_t t = 0; t < q->n_tensors; t++)
        x->edges.shared[t] = q->flow == MOIRAI_FLOW_TENSOR && q->tensor_edge_off[t + 1] - q->tensor_edge_off[t] > 1;
    choose_sent(x, entry);
    choose_results(x, exit);
    int rc = pair_static_find_groups(x);
    if (rc)
        return rc;
    pair_windows_find(x);
    rc = pair_programme_build(x);
    x->at.fixed = util_alloc((size_t)x->column.n, sizeof *x->at.fixed);
    return rc ? rc : x->at.fixed ? pair_programme_fix(x) : MOIRAI_EFAIL;
}

int pair_static_new(pair_static **out, const moirai_problem *q, const pair_static_task *job)
{
    *out = NULL;
    if (!pricing_lp_available() || q->n_ops == 0 || job->proven_ns >= job->upper_ns ||
        pair_static_cells(q) > PAIR_STATIC_CELLS)
        return 0;
    pair_static *s = util_alloc(1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    s->x = (pair_programme){.q = q,
                            .n = q->n_ops,
                            .K = q->n_devices,
                            .E = q->n_edges,
                            .proven_ns = job->proven_ns,
                            .upper_ns = job->upper_ns,
                            .unit_ns = fmax((double)job->upper_ns / 1000, 1)};
    s->most_ns = job->upper_ns;
    s->rounds = UTIL_MAX(1, UTIL_MIN(job->rounds, PAIR_STATIC_ROUNDS));
    int rc = prepare(&s->x, job->entry, job->exit);
    if (rc)
        pair_static_free(s);
    else
        *out = s;
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* times too far apart for the solver */
}

void pair_static_free(pair_static *s)
{
    if (!s)
        return;
    pair_programme *x = &s->x;
    void *all[] = {x->edges.from,  x->row.share_of, x->edges.shared,    x->at.mask,          x->at.head,
                   x->at.tail,     x->at.send,      x->at.arrive,       x->at.first,         x->at.last,
                   x->at.least,    x->at.most,      x->number.group_of, x->number.group_off, x->number.group_op,
                   x->loads.load,  x->loads.off,    x->loads.task,      x->column.op,        x->column.edge,
                   x->column.send, x->found.dual,   x->found.real_dual, x->found.row_value,  x->found.column_value,
                   x->line.place,  x->line.value,   x->edges.way,       x->at.cell,          x->at.fixed,
                   x->at.told,     x->result.is,    x->result.ns};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    pricing_lp_free(x->lp);
    pair_static_search_clear(&s->search);
    free(s);
}

void pair_static_proof_free(pair_static_proof *proof, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        free(proof[i].load);
        free(proof[i].dual);
    }
}

/* The multipliers at hand, without rows that have none. */
static int keep_proof(pair_static_proof *out, pair_programme *x, int64_t bound_ns)
{
    pair_static_case c = {.parent = MOIRAI_NONE};
    int rc = pair_static_pack(&c, x, false);
    *out = (pair_static_proof){.upper_ns = x->upper_ns,
                               .bound_ns = bound_ns,
                               .n_loads = c.n_loads,
                               .load = c.load,
                               .n_duals = c.n_duals,
                               .dual = c.dual};
    return rc;
}

int pair_static_rounds(int64_t *lower_ns, pair_static *s, const util_stop *stop, pair_static_proof *proof,
                       int32_t *n_proofs)
{
    pair_programme *x = &s->x;
    int rc = 0;
    x->found.violated = STATIC_LP_VIOLATED;
    for (; s->rounds > 0 && !rc && !pair_windows_empty(x) && !util_stopped(stop); s->rounds--) {
        rc = pair_programme_solve(x, x->upper_ns, stop);
        int64_t bound = rc ? 0 : pair_programme_evaluate(x);
        bool much = bound > x->proven_ns + x->proven_ns / 500;
        if (!rc && proof && bound > x->proven_ns && !(rc = keep_proof(&proof[*n_proofs], x, bound)))
            ++*n_proofs;
        x->proven_ns = UTIL_MAX(x->proven_ns, bound);
        if (!rc && !much)
            s->rounds = 1; /* the last */
    }
    *lower_ns = x->proven_ns;
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

int pair_static_lp(int64_t *lower_ns, const moirai_problem *q, const pair_static_task *job, int32_t cases)
{
    pair_static *s;
    *lower_ns = job->proven_ns;
    int rc = pair_static_new(&s, q, job);
    if (rc || !s)
        return rc;
    rc = pair_static_rounds(lower_ns, s, &job->stop, NULL, NULL);
    if (!rc && cases > 0)
        rc = pair_static_divide(lower_ns, s, cases, job->upper_ns, &job->stop);
    pair_static_free(s);
    return rc;
}
