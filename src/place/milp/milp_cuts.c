/* Rows that no plan breaks and that the relaxation of the tight formulation does (none of them is in the paper).
 *
 * path:  S(j) >= sum over device pairs of u(e,a,b) (head(i,a) + time(i,a) + transfer), C(i) + tails <= T: longest paths
 *        that know devices.
 * load:  the operators with head >= h and tail >= t on device k run one after another between h and T - t:
 *        sum of time x <= T - h - t. The same for what a port sends or receives. (h, t) over the operators' own
 *        heads and tails; all pairs for small problems, else those of one operator.
 * devs:  of interchangeable devices, the next may be used by operator i only if the one before it was used by an
 *        operator earlier in topological order. Any plan can be relabelled to that; times do not change.
 * twin:  of interchangeable operators, the lower number starts no later.
 *
 * Both symmetry rows hold at once for some optimal plan: order the twins first (a permutation of operators), then
 * relabel the devices (no times change). O(V^2 K) rows at worst, pruned by size. */
#include "place/milp/milp.h"

#include <stdlib.h>

#define ALL_PAIRS_OPS 24 /* up to here, all (head, tail) pairs get a load row */

static void path_cuts(milp_program *g)
{
    const milp_dag *d = g->d;
    const moirai_problem *p = g->p;
    int64_t K = p->n_devices;
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t t = p->edge_tensor[e], i = p->tensor_producer[t];
        milp_term(&g->m, g->s[p->edge_reader[e]], 1);
        for (int32_t a = 0; a < K; a++)
            for (int32_t b = 0; b < K; b++)
                if (g->u[((int64_t)e * K + a) * K + b] >= 0)
                    milp_term(&g->m, g->u[((int64_t)e * K + a) * K + b],
                              -(double)(d->head[i * K + a] + milp_op_units(d, i, a) + milp_flow_units(d, t, a, b)));
        milp_row(&g->m, '>', 0, MILP_TIMES, "path_e%d", e);
    }
    for (int32_t i = 0; i < p->n_ops; i++) {
        milp_term(&g->m, 0, 1);
        milp_term(&g->m, g->c[i], -1);
        for (int32_t k = 0; k < K; k++)
            if (milp_allowed(d, i, k))
                milp_term(&g->m, g->x[i * K + k], -(double)d->tail[i * K + k]);
        milp_row(&g->m, '>', 0, MILP_TIMES, "path_%s", g->op_tag[i]);
    }
}

static void load_cut(milp_program *g, int32_t k, int64_t h, int64_t t)
{
    const milp_dag *d = g->d;
    int64_t K = g->p->n_devices, most = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < g->p->n_ops; i++)
        if (milp_allowed(d, i, k) && d->head[i * K + k] >= h && d->tail[i * K + k] >= t) {
            n++;
            most += milp_op_units(d, i, k);
        }
    /* Where none of them is on k, T >= h + t need not hold, but T >= its own lower bound does. */
    int64_t base = UTIL_MIN(h + t, (int64_t)g->m.col_lo[0]);
    if (n < 2 || most + base <= (int64_t)g->m.col_lo[0])
        return;
    milp_term(&g->m, 0, 1);
    for (int32_t i = 0; i < g->p->n_ops; i++)
        if (milp_allowed(d, i, k) && d->head[i * K + k] >= h && d->tail[i * K + k] >= t)
            milp_term(&g->m, g->x[i * K + k], -(double)milp_op_units(d, i, k));
    milp_row(&g->m, '>', (double)base, MILP_TIMES, "load_%s_%lld_%lld", g->device_tag[k], (long long)h, (long long)t);
}

static int compare64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int32_t distinct(int64_t *list, int32_t n)
{
    int32_t m = 0;
    qsort(list, (size_t)n, sizeof *list, compare64);
    for (int32_t i = 0; i < n; i++)
        if (m == 0 || list[m - 1] != list[i])
            list[m++] = list[i];
    return m;
}

static void load_cuts(milp_program *g)
{
    const milp_dag *d = g->d;
    int64_t K = g->p->n_devices;
    int64_t *h = util_alloc((size_t)g->p->n_ops + 1, sizeof *h), *t = util_alloc((size_t)g->p->n_ops + 1, sizeof *t);
    for (int32_t k = 0; h && t && k < K; k++) {
        int32_t n = 1;
        h[0] = t[0] = 0;
        for (int32_t i = 0; i < g->p->n_ops; i++)
            if (milp_allowed(d, i, k) && milp_op_units(d, i, k) > 0) {
                h[n] = d->head[i * K + k];
                t[n++] = d->tail[i * K + k];
            }
        int32_t nh = distinct(h, n), nt = distinct(t, n);
        bool all = g->p->n_ops <= ALL_PAIRS_OPS;
        /* Beyond small problems about sixty thresholds each way keep the rows few. */
        int32_t step_h = all ? 1 : UTIL_MAX(1, nh / 60), step_t = all ? 1 : UTIL_MAX(1, nt / 60);
        for (int32_t a = 0; a < nh; a += step_h)
            for (int32_t b = 0; b < nt; b += all || a == 0 ? step_t : nt)
                load_cut(g, k, h[a], t[b]);
    }
    if (!h || !t)
        g->m.failed = MOIRAI_EFAIL;
    free(h);
    free(t);
}

static int32_t send_column(const milp_program *g, int32_t q, int32_t a, int32_t b)
{
    const milp_flow *f = &g->d->flow[q];
    int64_t K = g->p->n_devices;
    if (a == b || g->fs[q] < 0)
        return -1;
    if (f->reader != MOIRAI_NONE)
        return g->u[((int64_t)f->number * K + a) * K + b];
    return f->to == b ? g->y[(int64_t)q * K + a] : -1;
}

/* What a port carries fits between the earliest producer and the latest reader. Inactive flows count nothing, and a
 * port that carries nothing breaks no row: the ends are those of flows that some plan has there, h + t <= T always. */
static void port_cut(milp_program *g, int32_t k, bool send)
{
    const milp_dag *d = g->d;
    int32_t n = 0;
    int64_t h = INT64_MAX, late = 0;
    for (int32_t q = 0; q < d->n_flows; q++)
        for (int32_t o = 0; o < g->p->n_devices; o++) {
            int32_t col = send ? send_column(g, q, k, o) : send_column(g, q, o, k);
            if (col < 0)
                continue;
            n++;
            h = UTIL_MIN(h, (int64_t)g->m.col_lo[g->fs[q]]);
            late = UTIL_MAX(late, (int64_t)g->m.col_hi[g->fc[q]]);
            milp_term(&g->m, col, -(double)milp_flow_units(d, d->flow[q].tensor, send ? k : o, send ? o : k));
        }
    if (n == 0)
        return;
    milp_term(&g->m, 0, 1);
    milp_row(&g->m, '>', (double)(h + (d->upper - late)), MILP_TIMES, "load_%s_%s", g->device_tag[k],
             send ? "send" : "receive");
}

static void device_symmetry(milp_program *g)
{
    const moirai_problem *p = g->p;
    int64_t K = p->n_devices;
    for (int32_t k = 0; k < K; k++) {
        int32_t before = MOIRAI_NONE;
        for (int32_t a = 0; a < k; a++)
            if (g->d->device_class[a] == g->d->device_class[k])
                before = a;
        if (before == MOIRAI_NONE)
            continue;
        for (int32_t r = 0; r < p->n_ops; r++) {
            int32_t i = p->topo[r];
            if (g->x[i * K + k] < 0)
                continue;
            for (int32_t s = 0; s < r; s++)
                milp_term(&g->m, g->x[p->topo[s] * K + before], 1);
            milp_term(&g->m, g->x[i * K + k], -1);
            milp_row(&g->m, '>', 0, MILP_COUNT, "devs_%s_%s", g->op_tag[i], g->device_tag[k]);
        }
    }
}

void milp_build_cuts(milp_program *g)
{
    path_cuts(g);
    load_cuts(g);
    for (int32_t k = 0; g->p->congestion == MOIRAI_CONGESTION_PORT && k < g->p->n_devices; k++) {
        port_cut(g, k, true);
        port_cut(g, k, false);
    }
    device_symmetry(g);
    for (int32_t i = 0; i < g->p->n_ops; i++)
        if (g->d->twin[i] != MOIRAI_NONE) {
            milp_term(&g->m, g->s[g->d->twin[i]], 1);
            milp_term(&g->m, g->s[i], -1);
            milp_row(&g->m, '>', 0, MILP_TIMES, "twin_%s", g->op_tag[i]);
        }
}
