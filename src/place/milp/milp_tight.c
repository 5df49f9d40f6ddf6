/* The tight formulation: the paper's equations with what its big-M rows leave on the table.
 *
 * 4a  only along edges: successors of successors follow.
 * 4f  products of x are columns of their own, u(e,k',k'') = x(i,k') x(j,k'') with the diagonal, tied by row and column
 *     sums (the transportation form): at a fractional x this still pays for moving, where u >= x + x - 1 does not.
 *     z is gone: it was the off-diagonal sum. u may be continuous: it is integral where x is.
 * 4e  for a pair that can meet: two binaries d(i,j), d(j,i), "i before j on one device"; d(i,j) + d(j,i) >= x(i,k) +
 *     x(j,k) - 1 for each device, and S(j) >= C(i) - M (1 - d(i,j)) once. One big-M per order instead of one per order
 *     and device, and M is the window: latest finish of i less earliest start of j. An order that the windows rule
 *     out has no binary; a pair that fits in neither order may not share the device; a pair that the windows
 *     order anyway needs nothing.
 * 4g  the same for flows, with "uses port k" as a sum of u. Flows with the same producer (reader) share a port
 *     whenever both exist: one row instead of one per device.
 * Without congestion a flow leaves at once: no node for it, S(j) >= C(i) + its time.
 * Flow tensor: y(t,k',d) >= u(e,k',d) over the readers e says that t goes from k' to d.
 * An operator or transfer that takes no time holds nothing (model.md: empty spans overlap with none).
 * Rows: O(E K) + pairs * (K + 3). */
#include "place/milp/milp.h"

#include <stdio.h>
#include <stdlib.h>

static int32_t x_of(const milp_program *g, int32_t i, int32_t k)
{
    return g->x[(int64_t)i * g->p->n_devices + k];
}

static int32_t u_of(const milp_program *g, int32_t e, int32_t a, int32_t b)
{
    int64_t K = g->p->n_devices;
    return g->u[((int64_t)e * K + a) * K + b];
}

static bool edge_fits(const milp_program *g, int32_t e, int32_t a, int32_t b)
{
    const milp_dag *d = g->d;
    int64_t K = g->p->n_devices;
    int32_t t = g->p->edge_tensor[e], i = g->p->tensor_producer[t], j = g->p->edge_reader[e];
    if (!milp_allowed(d, i, a) || !milp_allowed(d, j, b))
        return false;
    if (a != b && g->p->op_group[i] != MOIRAI_NONE && g->p->op_group[i] == g->p->op_group[j])
        return false;
    return d->head[i * K + a] + milp_op_units(d, i, a) + milp_flow_units(d, t, a, b) + milp_op_units(d, j, b) +
               d->tail[j * K + b] <=
           d->upper;
}

static void edge_pairs(milp_program *g, int32_t e)
{
    int32_t K = g->p->n_devices, i = g->p->tensor_producer[g->p->edge_tensor[e]], j = g->p->edge_reader[e];
    for (int32_t a = 0; a < K; a++)
        for (int32_t b = 0; b < K; b++)
            g->u[((int64_t)e * K + a) * K + b] = edge_fits(g, e, a, b)
                                                     ? milp_col(&g->m, MILP_SHARE, 0, 1, "u_e%d.%s_%s_%s", e,
                                                                g->op_tag[j], g->device_tag[a], g->device_tag[b])
                                                     : -1;
    for (int32_t a = 0; a < K; a++) {
        if (x_of(g, i, a) < 0)
            continue;
        for (int32_t b = 0; b < K; b++)
            milp_term(&g->m, u_of(g, e, a, b), 1);
        milp_term(&g->m, x_of(g, i, a), -1);
        milp_row(&g->m, '=', 0, MILP_COUNT, "c4f1_e%d_%s", e, g->device_tag[a]);
    }
    for (int32_t b = 0; b < K; b++) {
        if (x_of(g, j, b) < 0)
            continue;
        for (int32_t a = 0; a < K; a++)
            milp_term(&g->m, u_of(g, e, a, b), 1);
        milp_term(&g->m, x_of(g, j, b), -1);
        milp_row(&g->m, '=', 0, MILP_COUNT, "c4f2_e%d_%s", e, g->device_tag[b]);
    }
}

/* S(j) - C(i) - time of the edge >= 0 */
static void edge_direct(milp_program *g, int32_t e)
{
    int32_t K = g->p->n_devices, t = g->p->edge_tensor[e];
    milp_term(&g->m, g->s[g->p->edge_reader[e]], 1);
    milp_term(&g->m, g->c[g->p->tensor_producer[t]], -1);
    for (int32_t a = 0; a < K; a++)
        for (int32_t b = 0; b < K; b++)
            milp_term(&g->m, u_of(g, e, a, b), -(double)milp_flow_units(g->d, t, a, b));
    milp_row(&g->m, '>', 0, MILP_TIMES, "c4a_e%d", e);
}

/* The column that says "flow q goes from a to b, and takes time": -1 if it never does. */
static int32_t uses(const milp_program *g, int32_t q, int32_t a, int32_t b)
{
    const milp_flow *f = &g->d->flow[q];
    if (a == b || moirai_transfer_ns(g->p, f->tensor, a, b) == 0)
        return -1;
    if (f->reader != MOIRAI_NONE)
        return u_of(g, f->number, a, b);
    return b == f->to ? g->y[(int64_t)q * g->p->n_devices + a] : -1;
}

/* Flow tensor: the sends of (tensor, device); a lone reader's u is the send itself. */
static void tensor_sends(milp_program *g, int32_t q)
{
    const moirai_problem *p = g->p;
    const milp_flow *f = &g->d->flow[q];
    int32_t K = p->n_devices, first = p->tensor_edge_off[f->tensor], last = p->tensor_edge_off[f->tensor + 1];
    for (int32_t a = 0; a < K; a++) {
        int32_t *y = &g->y[(int64_t)q * K + a];
        *y = -1;
        bool used = false;
        for (int32_t e = first; e < last && a != f->to; e++)
            used = used || u_of(g, e, a, f->to) >= 0;
        if (!used)
            continue;
        if (last - first == 1) {
            *y = u_of(g, first, a, f->to);
            continue;
        }
        *y = milp_col(&g->m, MILP_SHARE, 0, 1, "y_%s_%s", g->flow_tag[q], g->device_tag[a]);
        for (int32_t e = first; e < last; e++) {
            if (u_of(g, e, a, f->to) < 0)
                continue;
            milp_term(&g->m, *y, 1);
            milp_term(&g->m, u_of(g, e, a, f->to), -1);
            milp_row(&g->m, '>', 0, MILP_COUNT, "c4f3_%s_%s_e%d", g->flow_tag[q], g->device_tag[a], e);
        }
    }
}

static void flow_rows_reader(milp_program *g, int32_t q, int32_t e)
{
    const milp_flow *f = &g->d->flow[q];
    int32_t j = g->p->edge_reader[e];
    milp_model *m = &g->m;
    if (f->reader != MOIRAI_NONE) {
        milp_term(m, g->s[j], 1);
        milp_term(m, g->fc[q], -1);
        milp_row(m, '>', 0, MILP_TIMES, "c4a_%s_%s", g->flow_tag[q], g->op_tag[j]);
        return;
    }
    double M = m->col_hi[g->fc[q]] - m->col_lo[g->s[j]];
    bool used = false;
    for (int32_t a = 0; a < g->p->n_devices; a++)
        used = used || (a != f->to && u_of(g, e, a, f->to) >= 0);
    if (!used || M <= 0)
        return;
    milp_term(m, g->s[j], 1);
    milp_term(m, g->fc[q], -1);
    for (int32_t a = 0; a < g->p->n_devices; a++)
        if (a != f->to)
            milp_term(m, u_of(g, e, a, f->to), -M);
    milp_row(m, '>', -M, MILP_TIMES, "c4a_%s_%s", g->flow_tag[q], g->op_tag[j]);
}

static void flow_node(milp_program *g, int32_t q)
{
    const moirai_problem *p = g->p;
    const milp_dag *d = g->d;
    const milp_flow *f = &d->flow[q];
    int32_t K = p->n_devices;
    g->fs[q] = g->fc[q] = -1;
    if (f->reader == MOIRAI_NONE)
        tensor_sends(g, q);
    bool takes_time = p->memory == MOIRAI_MEMORY_PEAK; /* when it arrives matters even if it takes none */
    for (int32_t a = 0; a < K; a++)
        for (int32_t b = 0; b < K; b++)
            takes_time = takes_time || uses(g, q, a, b) >= 0;
    if (!takes_time)
        return;
    int64_t latest = 0;
    for (int32_t e = p->tensor_edge_off[f->tensor]; e < p->tensor_edge_off[f->tensor + 1]; e++)
        if (f->reader == MOIRAI_NONE || f->number == e)
            latest = UTIL_MAX(latest, d->last_start[p->edge_reader[e]]);
    double lo = (double)d->first_finish[f->producer], hi = (double)latest;
    g->fs[q] = milp_col(&g->m, MILP_TIME, lo, hi, "S_%s", g->flow_tag[q]);
    g->fc[q] = milp_col(&g->m, MILP_TIME, lo, hi, "C_%s", g->flow_tag[q]);
    milp_term(&g->m, g->fc[q], 1);
    milp_term(&g->m, g->fs[q], -1);
    for (int32_t a = 0; a < K; a++)
        for (int32_t b = 0; b < K; b++)
            milp_term(&g->m, uses(g, q, a, b), -(double)milp_flow_units(d, f->tensor, a, b));
    milp_row(&g->m, '=', 0, MILP_TIMES, "c4f4_%s", g->flow_tag[q]);
    milp_term(&g->m, g->fs[q], 1);
    milp_term(&g->m, g->c[f->producer], -1);
    milp_row(&g->m, '>', 0, MILP_TIMES, "c4a_%s_%s", g->op_tag[f->producer], g->flow_tag[q]);
    for (int32_t e = p->tensor_edge_off[f->tensor]; e < p->tensor_edge_off[f->tensor + 1]; e++)
        if (f->reader == MOIRAI_NONE || f->number == e)
            flow_rows_reader(g, q, e);
}

static void add_flows(milp_program *g)
{
    for (int32_t e = 0; e < g->p->n_edges; e++) {
        edge_pairs(g, e);
        edge_direct(g, e);
    }
    if (g->p->congestion == MOIRAI_CONGESTION_NONE && g->p->memory != MOIRAI_MEMORY_PEAK)
        return;
    for (int32_t q = 0; q < g->d->n_flows; q++)
        flow_node(g, q);
}

/* Node a ends before node b starts where its binary says so. */
static void order_row(milp_program *g, const char *equation, int32_t order, int32_t a_finish, int32_t b_start)
{
    double M = g->m.col_hi[a_finish] - g->m.col_lo[b_start];
    milp_term(&g->m, b_start, 1);
    milp_term(&g->m, a_finish, -1);
    milp_term(&g->m, order, -M);
    milp_row(&g->m, '>', -M, MILP_TIMES, "c%s_%s", equation, g->m.dry ? "" : milp_col_name(&g->m, order) + 2);
}

static void op_pair(milp_program *g, int32_t i, int32_t j)
{
    const milp_dag *d = g->d;
    int64_t K = g->p->n_devices;
    uint64_t forward = 0, backward = 0, shared = 0;
    for (int32_t k = 0; k < K; k++) {
        if (x_of(g, i, k) < 0 || x_of(g, j, k) < 0 || moirai_op_ns(g->p, i, k) == 0 || moirai_op_ns(g->p, j, k) == 0)
            continue;
        int64_t both = milp_op_units(d, i, k) + milp_op_units(d, j, k);
        shared |= UINT64_C(1) << k;
        if (d->head[i * K + k] + both + d->tail[j * K + k] <= d->upper)
            forward |= UINT64_C(1) << k;
        if (d->head[j * K + k] + both + d->tail[i * K + k] <= d->upper)
            backward |= UINT64_C(1) << k;
    }
    if (!shared || d->last_finish[i] <= d->first_start[j] || d->last_finish[j] <= d->first_start[i])
        return;
    int32_t ij = forward ? milp_order_col(g, i, j) : -1, ji = backward ? milp_order_col(g, j, i) : -1;
    if (ij >= 0)
        order_row(g, "4e", ij, g->c[i], g->s[j]);
    if (ji >= 0)
        order_row(g, "4e", ji, g->c[j], g->s[i]);
    for (int32_t k = 0; k < K; k++) {
        if (!(shared >> k & 1))
            continue;
        milp_term(&g->m, x_of(g, i, k), 1);
        milp_term(&g->m, x_of(g, j, k), 1);
        milp_term(&g->m, forward >> k & 1 ? ij : -1, -1);
        milp_term(&g->m, backward >> k & 1 ? ji : -1, -1);
        milp_row(&g->m, '<', 1, MILP_COUNT, "c4e_%s_%s_%s", g->op_tag[i], g->op_tag[j], g->device_tag[k]);
    }
    milp_term(&g->m, ij, 1);
    milp_term(&g->m, ji, 1);
    milp_row(&g->m, '<', 1, MILP_COUNT, "c4e_%s_%s_one", g->op_tag[i], g->op_tag[j]);
}

static int64_t least_time(const milp_program *g, int32_t q)
{
    int64_t least = INT64_MAX;
    for (int32_t a = 0; a < g->p->n_devices; a++)
        for (int32_t b = 0; b < g->p->n_devices; b++)
            if (uses(g, q, a, b) >= 0)
                least = UTIL_MIN(least, milp_flow_units(g->d, g->d->flow[q].tensor, a, b));
    return least;
}

/* Terms of "flow q uses (from, to)", either of which may be MOIRAI_NONE for any. False if it never does. */
static bool use_terms(milp_program *g, int32_t q, int32_t from, int32_t to, bool add)
{
    bool any = false;
    for (int32_t a = 0; a < g->p->n_devices; a++)
        for (int32_t b = 0; b < g->p->n_devices; b++)
            if ((from == MOIRAI_NONE || a == from) && (to == MOIRAI_NONE || b == to) && uses(g, q, a, b) >= 0) {
                any = true;
                if (!add)
                    return true;
                milp_term(&g->m, uses(g, q, a, b), 1);
            }
    return any;
}

static void meet_row(milp_program *g, int32_t q, int32_t r, int32_t qr, int32_t rq, int32_t from, int32_t to)
{
    if (!use_terms(g, q, from, to, false) || !use_terms(g, r, from, to, false))
        return;
    use_terms(g, q, from, to, true);
    use_terms(g, r, from, to, true);
    milp_term(&g->m, qr, -1);
    milp_term(&g->m, rq, -1);
    milp_row(&g->m, '<', 1, MILP_COUNT, "c4g_%s_%s_%s_%s", g->flow_tag[q], g->flow_tag[r],
             from == MOIRAI_NONE ? "any" : g->device_tag[from], to == MOIRAI_NONE ? "any" : g->device_tag[to]);
}

static void meet_rows(milp_program *g, int32_t q, int32_t r, int32_t qr, int32_t rq)
{
    const milp_flow *a = &g->d->flow[q], *b = &g->d->flow[r];
    int32_t K = g->p->n_devices;
    if (g->p->congestion == MOIRAI_CONGESTION_CHANNEL) {
        for (int32_t from = 0; from < K; from++)
            for (int32_t to = 0; to < K; to++)
                if (from != to)
                    meet_row(g, q, r, qr, rq, from, to);
        return;
    }
    bool same_reader = a->reader != MOIRAI_NONE ? a->reader == b->reader : a->to == b->to;
    if (a->producer == b->producer || same_reader) {
        meet_row(g, q, r, qr, rq, MOIRAI_NONE, MOIRAI_NONE);
        return;
    }
    for (int32_t k = 0; k < K; k++) {
        meet_row(g, q, r, qr, rq, k, MOIRAI_NONE);
        meet_row(g, q, r, qr, rq, MOIRAI_NONE, k);
    }
}

/* Whether the two flows can ever want the same port or channel. */
static bool can_meet(milp_program *g, int32_t q, int32_t r)
{
    int32_t K = g->p->n_devices;
    bool channel = g->p->congestion == MOIRAI_CONGESTION_CHANNEL;
    for (int32_t k = 0; k < K; k++) {
        if (!channel && ((use_terms(g, q, k, MOIRAI_NONE, false) && use_terms(g, r, k, MOIRAI_NONE, false)) ||
                         (use_terms(g, q, MOIRAI_NONE, k, false) && use_terms(g, r, MOIRAI_NONE, k, false))))
            return true;
        for (int32_t b = 0; channel && b < K; b++)
            if (uses(g, q, k, b) >= 0 && uses(g, r, k, b) >= 0)
                return true;
    }
    return false;
}

static void flow_pair(milp_program *g, int32_t q, int32_t r)
{
    milp_model *m = &g->m;
    if (milp_flow_before(g->d, q, r) || milp_flow_before(g->d, r, q) || m->col_hi[g->fc[q]] <= m->col_lo[g->fs[r]] ||
        m->col_hi[g->fc[r]] <= m->col_lo[g->fs[q]] || !can_meet(g, q, r))
        return;
    double both = (double)(least_time(g, q) + least_time(g, r));
    int32_t n = g->p->n_ops, qr = -1, rq = -1;
    if (m->col_lo[g->fs[q]] + both <= m->col_hi[g->fc[r]])
        qr = milp_order_col(g, n + q, n + r);
    if (m->col_lo[g->fs[r]] + both <= m->col_hi[g->fc[q]])
        rq = milp_order_col(g, n + r, n + q);
    if (qr >= 0)
        order_row(g, "4g", qr, g->fc[q], g->fs[r]);
    if (rq >= 0)
        order_row(g, "4g", rq, g->fc[r], g->fs[q]);
    meet_rows(g, q, r, qr, rq);
    milp_term(m, qr, 1);
    milp_term(m, rq, 1);
    milp_row(m, '<', 1, MILP_COUNT, "c4g_%s_%s_one", g->flow_tag[q], g->flow_tag[r]);
}

void milp_build_tight(milp_program *g)
{
    add_flows(g);
    for (int32_t i = 0; i < g->p->n_ops && !g->m.failed; i++)
        for (int32_t j = i + 1; j < g->p->n_ops; j++)
            if (!milp_op_before(g->d, i, j) && !milp_op_before(g->d, j, i))
                op_pair(g, i, j);
    if (g->p->congestion == MOIRAI_CONGESTION_NONE)
        return;
    for (int32_t q = 0; q < g->d->n_flows && !g->m.failed; q++)
        for (int32_t r = q + 1; r < g->d->n_flows && g->fs[q] >= 0; r++)
            if (g->fs[r] >= 0)
                flow_pair(g, q, r);
}
