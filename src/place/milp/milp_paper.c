/* The paper's formulation, as printed: equations (4) to (8).
 *
 * 4a over all successors, direct and indirect, of the augmented DAG. 4e (equation 6) with one binary per pair of
 * operators without precedence and two rows per device. 4f (equation 7) with z and u. 4g (equation 8) with one binary
 * per pair of flows without precedence and, per device, two rows for sending and two for receiving. The three large
 * numbers are one: the horizon, which is the makespan of the best known plan.
 *
 * What the paper does not have and how it is added:
 *  - flow tensor: a flow is (tensor, device); z >= x(j,d) - x(i,d) for each reader j; C(q) <= S(j) holds where j is on
 * d;
 *  - congestion channel: 4g per ordered pair of devices, on u; congestion none: no 4g;
 *  - an operator or flow that takes no time holds no device or port (model.md): such rows are left out, and where a
 * flow is free on some of a port's channels only, the row tells them apart by u. Rows: O(V^2 K + E^2 K). */
#include "place/milp/milp.h"

#include <stdlib.h>

static int32_t x_of(const milp_program *g, int32_t i, int32_t k)
{
    return g->x[(int64_t)i * g->p->n_devices + k];
}

static int32_t u_of(const milp_program *g, int32_t q, int32_t a, int32_t b)
{
    int64_t K = g->p->n_devices;
    return g->u[((int64_t)q * K + a) * K + b];
}

static void flow_columns(milp_program *g, int32_t q)
{
    const milp_flow *f = &g->d->flow[q];
    int32_t K = g->p->n_devices;
    double upper = (double)g->d->upper;
    g->z[q] = milp_col(&g->m, MILP_BINARY, 0, 1, "z_%s", g->flow_tag[q]);
    g->fs[q] = milp_col(&g->m, MILP_TIME, 0, upper, "S_%s", g->flow_tag[q]);
    g->fc[q] = milp_col(&g->m, MILP_TIME, 0, upper, "C_%s", g->flow_tag[q]);
    for (int32_t a = 0; a < K; a++)
        for (int32_t b = 0; b < K; b++) {
            bool here = a != b && x_of(g, f->producer, a) >= 0 &&
                        (f->reader != MOIRAI_NONE ? x_of(g, f->reader, b) >= 0 : b == f->to);
            g->u[((int64_t)q * K + a) * K + b] = here ? milp_col(&g->m, MILP_BINARY, 0, 1, "u_%s_%s_%s", g->flow_tag[q],
                                                                 g->device_tag[a], g->device_tag[b])
                                                      : -1;
        }
}

/* z_q says whether the ends differ. */
static void indicator_edge(milp_program *g, int32_t q)
{
    const milp_flow *f = &g->d->flow[q];
    milp_model *m = &g->m;
    for (int32_t k = 0; k < g->p->n_devices; k++) {
        int32_t i = x_of(g, f->producer, k), j = x_of(g, f->reader, k);
        const char *flow = g->flow_tag[q], *device = g->device_tag[k];
        milp_term(m, g->z[q], 1);
        milp_term(m, i, 1);
        milp_term(m, j, 1);
        milp_row(m, '<', 2, MILP_COUNT, "c4f1_%s_%s", flow, device);
        milp_term(m, g->z[q], 1);
        milp_term(m, i, -1);
        milp_term(m, j, 1);
        milp_row(m, '>', 0, MILP_COUNT, "c4f2_%s_%s", flow, device);
        milp_term(m, g->z[q], 1);
        milp_term(m, j, -1);
        milp_term(m, i, 1);
        milp_row(m, '>', 0, MILP_COUNT, "c4f3_%s_%s", flow, device);
    }
}

static void indicator_tensor(milp_program *g, int32_t q)
{
    const moirai_problem *p = g->p;
    const milp_flow *f = &g->d->flow[q];
    milp_model *m = &g->m;
    milp_term(m, g->z[q], 1);
    milp_term(m, x_of(g, f->producer, f->to), 1);
    milp_row(m, '<', 1, MILP_COUNT, "c4f1_%s", g->flow_tag[q]);
    for (int32_t e = p->tensor_edge_off[f->tensor]; e < p->tensor_edge_off[f->tensor + 1]; e++) {
        milp_term(m, g->z[q], 1);
        milp_term(m, x_of(g, p->edge_reader[e], f->to), -1);
        milp_term(m, x_of(g, f->producer, f->to), 1);
        milp_row(m, '>', 0, MILP_COUNT, "c4f2_%s_%s", g->flow_tag[q], g->op_tag[p->edge_reader[e]]);
    }
    for (int32_t e = p->tensor_edge_off[f->tensor]; e < p->tensor_edge_off[f->tensor + 1]; e++)
        milp_term(m, x_of(g, p->edge_reader[e], f->to), 1);
    milp_term(m, g->z[q], -1);
    milp_row(m, '>', 0, MILP_COUNT, "c4f3_%s", g->flow_tag[q]);
}

static void channel_rows(milp_program *g, int32_t q)
{
    const milp_flow *f = &g->d->flow[q];
    milp_model *m = &g->m;
    int32_t K = g->p->n_devices;
    for (int32_t a = 0; a < K; a++)
        for (int32_t b = 0; b < K; b++)
            milp_term(m, u_of(g, q, a, b), 1);
    milp_term(m, g->z[q], -1);
    milp_row(m, '=', 0, MILP_COUNT, "c4f4_%s", g->flow_tag[q]);
    for (int32_t a = 0; a < K; a++)
        for (int32_t b = 0; b < K; b++) {
            if (u_of(g, q, a, b) < 0)
                continue;
            milp_term(m, u_of(g, q, a, b), 1);
            milp_term(m, x_of(g, f->producer, a), -1);
            milp_term(m, f->reader != MOIRAI_NONE ? x_of(g, f->reader, b) : g->z[q], -1);
            milp_row(m, '>', -1, MILP_COUNT, "c4f5_%s_%s_%s", g->flow_tag[q], g->device_tag[a], g->device_tag[b]);
        }
    milp_term(m, g->fc[q], 1);
    milp_term(m, g->fs[q], -1);
    for (int32_t a = 0; a < K; a++)
        for (int32_t b = 0; b < K; b++)
            milp_term(m, u_of(g, q, a, b), -(double)milp_flow_units(g->d, f->tensor, a, b));
    milp_row(m, '=', 0, MILP_TIMES, "c4f6_%s", g->flow_tag[q]);
}

static void after(milp_program *g, int32_t first_finish, int32_t second_start, const char *first, const char *second)
{
    milp_term(&g->m, second_start, 1);
    milp_term(&g->m, first_finish, -1);
    milp_row(&g->m, '>', 0, MILP_TIMES, "c4a_%s_%s", first, second);
}

static bool is_or_before(const milp_dag *d, int32_t i, int32_t j)
{
    return i == j || milp_op_before(d, i, j);
}

/* Flow q before operators and flows; flow tensor: before its readers on the device, whatever follows them follows. */
static void flow_precedence(milp_program *g, int32_t q)
{
    const moirai_problem *p = g->p;
    const milp_dag *d = g->d;
    const milp_flow *f = &d->flow[q];
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (is_or_before(d, i, f->producer))
            after(g, g->c[i], g->fs[q], g->op_tag[i], g->flow_tag[q]);
        if (f->reader != MOIRAI_NONE && is_or_before(d, f->reader, i))
            after(g, g->fc[q], g->s[i], g->flow_tag[q], g->op_tag[i]);
    }
    for (int32_t r = 0; f->reader != MOIRAI_NONE && r < d->n_flows; r++)
        if (r != q && milp_flow_before(d, q, r))
            after(g, g->fc[q], g->fs[r], g->flow_tag[q], g->flow_tag[r]);
    for (int32_t e = p->tensor_edge_off[f->tensor]; f->reader == MOIRAI_NONE && e < p->tensor_edge_off[f->tensor + 1];
         e++) {
        int32_t j = p->edge_reader[e];
        if (x_of(g, j, f->to) < 0)
            continue;
        milp_term(&g->m, g->s[j], 1);
        milp_term(&g->m, g->fc[q], -1);
        milp_term(&g->m, x_of(g, j, f->to), -(double)d->upper);
        milp_row(&g->m, '>', -(double)d->upper, MILP_TIMES, "c4a_%s_%s", g->flow_tag[q], g->op_tag[j]);
    }
}

static void op_pair(milp_program *g, int32_t i, int32_t j)
{
    double M = (double)g->d->upper;
    milp_model *m = &g->m;
    int32_t order = -1;
    for (int32_t k = 0; k < g->p->n_devices; k++) {
        if (x_of(g, i, k) < 0 || x_of(g, j, k) < 0 || moirai_op_ns(g->p, i, k) == 0 || moirai_op_ns(g->p, j, k) == 0)
            continue;
        if (order < 0)
            order = milp_order_col(g, i, j);
        for (int32_t side = 0; side < 2; side++) {
            milp_term(m, g->s[side ? j : i], 1);
            milp_term(m, g->c[side ? i : j], -1);
            milp_term(m, order, side ? -M : M);
            milp_constant(m, side ? M : 0);
            milp_term(m, x_of(g, i, k), -M);
            milp_term(m, x_of(g, j, k), -M);
            milp_constant(m, 2 * M);
            milp_row(m, '>', 0, MILP_TIMES, "c4e_%s_%s_%s_%d", g->op_tag[i], g->op_tag[j], g->device_tag[k], side + 1);
        }
    }
}

/* Whether flow q takes time on the channels of port k: 0 never, 1 on some, 2 on all. */
static int port_times(const milp_program *g, int32_t q, int32_t k, bool send)
{
    int32_t some = 0, all = 0;
    for (int32_t o = 0; o < g->p->n_devices; o++) {
        int32_t a = send ? k : o, b = send ? o : k;
        if (u_of(g, q, a, b) < 0)
            continue;
        all++;
        some += moirai_transfer_ns(g->p, g->d->flow[q].tensor, a, b) > 0;
    }
    return some == 0 ? 0 : some < all ? 1 : 2;
}

/* M^r times "flow q uses port k": the paper's x(a,k) - x(b,k), or u where that does not tell. Returns what the row's
 * constant needs: the paper's 1 per flow. */
static void port_terms(milp_program *g, int32_t q, int32_t k, bool send, double M)
{
    const milp_flow *f = &g->d->flow[q];
    milp_model *m = &g->m;
    milp_constant(m, M);
    if (port_times(g, q, k, send) == 1) {
        for (int32_t o = 0; o < g->p->n_devices; o++) {
            int32_t a = send ? k : o, b = send ? o : k;
            if (u_of(g, q, a, b) >= 0 && moirai_transfer_ns(g->p, f->tensor, a, b) > 0)
                milp_term(m, u_of(g, q, a, b), -M);
        }
        return;
    }
    if (f->reader == MOIRAI_NONE) {
        /* z already says that it leaves its producer's device for `to`. */
        if (send)
            milp_term(m, x_of(g, f->producer, k), -M);
        else
            milp_constant(m, -M);
        return;
    }
    milp_term(m, x_of(g, f->producer, k), send ? -M : M);
    milp_term(m, x_of(g, f->reader, k), send ? M : -M);
}

/* Starts the two rows of a pair on one port; the caller adds the port's terms. */
static void flow_row(milp_program *g, int32_t q, int32_t r, int32_t order, int32_t side)
{
    double M = (double)g->d->upper;
    milp_model *m = &g->m;
    milp_term(m, g->fs[side ? r : q], 1);
    milp_term(m, g->fc[side ? q : r], -1);
    milp_term(m, order, side ? -M : M);
    milp_constant(m, side ? M : 0);
    milp_term(m, g->z[q], -M);
    milp_term(m, g->z[r], -M);
    milp_constant(m, 2 * M);
}

static void pair_on_ports(milp_program *g, int32_t q, int32_t r)
{
    int32_t order = -1;
    for (int32_t k = 0; k < g->p->n_devices; k++)
        for (int32_t end = 0; end < 2; end++) {
            if (!port_times(g, q, k, end == 0) || !port_times(g, r, k, end == 0))
                continue;
            if (order < 0)
                order = milp_order_col(g, g->p->n_ops + q, g->p->n_ops + r);
            for (int32_t side = 0; side < 2; side++) {
                flow_row(g, q, r, order, side);
                port_terms(g, q, k, end == 0, (double)g->d->upper);
                port_terms(g, r, k, end == 0, (double)g->d->upper);
                milp_row(&g->m, '>', 0, MILP_TIMES, "c4g_%s_%s_%s_%d", g->flow_tag[q], g->flow_tag[r], g->device_tag[k],
                         2 * end + side + 1);
            }
        }
}

static void pair_on_channels(milp_program *g, int32_t q, int32_t r)
{
    double M = (double)g->d->upper;
    int32_t order = -1;
    for (int32_t a = 0; a < g->p->n_devices; a++)
        for (int32_t b = 0; b < g->p->n_devices; b++) {
            if (u_of(g, q, a, b) < 0 || u_of(g, r, a, b) < 0 ||
                moirai_transfer_ns(g->p, g->d->flow[q].tensor, a, b) == 0 ||
                moirai_transfer_ns(g->p, g->d->flow[r].tensor, a, b) == 0)
                continue;
            if (order < 0)
                order = milp_order_col(g, g->p->n_ops + q, g->p->n_ops + r);
            for (int32_t side = 0; side < 2; side++) {
                flow_row(g, q, r, order, side);
                milp_term(&g->m, u_of(g, q, a, b), -M);
                milp_term(&g->m, u_of(g, r, a, b), -M);
                milp_constant(&g->m, 2 * M);
                milp_row(&g->m, '>', 0, MILP_TIMES, "c4g_%s_%s_%s_%s_%d", g->flow_tag[q], g->flow_tag[r],
                         g->device_tag[a], g->device_tag[b], side + 1);
            }
        }
}

void milp_build_paper(milp_program *g)
{
    const milp_dag *d = g->d;
    for (int32_t q = 0; q < d->n_flows; q++)
        flow_columns(g, q);
    for (int32_t q = 0; q < d->n_flows && !g->m.failed; q++) {
        if (g->p->flow == MOIRAI_FLOW_EDGE)
            indicator_edge(g, q);
        else
            indicator_tensor(g, q);
        channel_rows(g, q);
        flow_precedence(g, q);
    }
    for (int32_t i = 0; i < g->p->n_ops && !g->m.failed; i++)
        for (int32_t j = 0; j < g->p->n_ops; j++) {
            if (milp_op_before(d, i, j))
                after(g, g->c[i], g->s[j], g->op_tag[i], g->op_tag[j]);
            else if (i < j && !milp_op_before(d, j, i))
                op_pair(g, i, j);
        }
    if (g->p->congestion == MOIRAI_CONGESTION_NONE)
        return;
    for (int32_t q = 0; q < d->n_flows && !g->m.failed; q++)
        for (int32_t r = q + 1; r < d->n_flows; r++) {
            if (milp_flow_before(d, q, r) || milp_flow_before(d, r, q))
                continue;
            if (g->p->congestion == MOIRAI_CONGESTION_PORT)
                pair_on_ports(g, q, r);
            else
                pair_on_channels(g, q, r);
        }
}
