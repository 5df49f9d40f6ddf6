/* A plan as values of the program's discrete columns: how a heuristic's plan starts the solver.
 *
 * The tight formulation admits one representative of plans that differ by interchangeable devices or operators only
 * (milp_cuts.c), so the plan is first moved there: `from[i]` is the operator whose place i takes, `to[k]` the new name
 * of device k. Continuous columns are left to the solver, which finds them by one linear program. O(V + E d + orders).
 */
#include "place/milp/milp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct image {
    const milp_program *g;
    const moirai_plan *plan;
    int32_t *from;                   /* operator -> operator of the plan */
    int32_t to[MOIRAI_MASK_DEVICES]; /* device of the plan -> device here */
    int64_t *start, *finish;         /* by node: operators, then flows; -1: no such transfer */
    int32_t *source, *target;        /* by node: devices here (operators: both the same) */
} image;

/* Twins in order of number start in order of time. */
static void order_twins(image *m)
{
    const milp_dag *d = m->g->d;
    for (int32_t i = 0; i < d->p->n_ops; i++)
        m->from[i] = i;
    for (bool changed = m->g->formulation == MOIRAI_FORMULATION_TIGHT; changed;) {
        changed = false;
        for (int32_t i = 0; i < d->p->n_ops; i++) {
            int32_t j = d->twin[i];
            if (j == MOIRAI_NONE || m->plan->op_start_ns[m->from[i]] <= m->plan->op_start_ns[m->from[j]])
                continue;
            int32_t kept = m->from[i];
            m->from[i] = m->from[j];
            m->from[j] = kept;
            changed = true;
        }
    }
}

static void name_devices(image *m)
{
    const moirai_problem *p = m->g->p;
    const milp_dag *d = m->g->d;
    int32_t K = p->n_devices;
    bool taken[MOIRAI_MASK_DEVICES] = {false};
    for (int32_t k = 0; k < K; k++)
        m->to[k] = MOIRAI_NONE;
    for (int32_t r = 0; r < p->n_ops + K; r++) {
        int32_t k = r < p->n_ops ? m->plan->op_device[m->from[p->topo[r]]] : r - p->n_ops; /* the unused at last */
        for (int32_t a = 0; a < K && m->to[k] == MOIRAI_NONE; a++)
            if (!taken[a] && d->device_class[a] == d->device_class[k]) {
                taken[a] = true;
                m->to[k] = a;
            }
    }
    for (int32_t k = 0; k < K && m->g->formulation == MOIRAI_FORMULATION_PAPER; k++)
        m->to[k] = k;
}

/* The tensor of the plan that stands for t: the same output of the operator that stands for its producer. */
static int32_t plan_tensor(const image *m, int32_t t)
{
    const moirai_problem *p = m->g->p;
    int32_t i = p->tensor_producer[t], at = p->op_out_off[i];
    while (p->op_out[at] != t)
        at++;
    return p->op_out[p->op_out_off[m->from[i]] + at - p->op_out_off[i]];
}

static void place_flow(image *m, int32_t q, int32_t tensor)
{
    const moirai_problem *p = m->g->p;
    const milp_flow *f = &m->g->d->flow[q];
    int32_t node = p->n_ops + q;
    m->start[node] = m->finish[node] = -1;
    for (int32_t n = 0; n < m->plan->n_transfers; n++) {
        const moirai_transfer *x = &m->plan->transfer[n];
        if (x->tensor != tensor || (f->reader != MOIRAI_NONE ? x->reader != m->from[f->reader] : m->to[x->to] != f->to))
            continue;
        m->start[node] = x->start_ns;
        m->finish[node] = x->finish_ns;
        m->source[node] = m->to[x->from];
        m->target[node] = m->to[x->to];
        return;
    }
}

static bool meet(const image *m, int32_t a, int32_t b)
{
    const moirai_problem *p = m->g->p;
    if (m->start[a] < 0 || m->start[b] < 0 || m->start[a] == m->finish[a] || m->start[b] == m->finish[b])
        return false;
    bool same_source = m->source[a] == m->source[b], same_target = m->target[a] == m->target[b];
    if (a < p->n_ops || p->congestion == MOIRAI_CONGESTION_CHANNEL)
        return same_source && same_target;
    return same_source || same_target;
}

static void write_values(const image *m, double *value)
{
    const milp_program *g = m->g;
    const moirai_problem *p = g->p;
    int64_t K = p->n_devices;
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t k = 0; k < K; k++)
            if (g->x[i * K + k] >= 0)
                value[g->x[i * K + k]] = m->source[i] == k;
    for (int32_t n = 0; n < g->n_orders; n++) {
        const struct milp_order *o = &g->order[n];
        value[o->col] = meet(m, o->a, o->b) && m->finish[o->a] <= m->start[o->b];
    }
    for (int32_t q = 0; g->formulation == MOIRAI_FORMULATION_PAPER && q < g->d->n_flows; q++) {
        int32_t node = p->n_ops + q;
        bool sent = m->start[node] >= 0;
        value[g->z[q]] = sent;
        for (int64_t u = 0; u < K * K; u++)
            if (g->u[q * K * K + u] >= 0)
                value[g->u[q * K * K + u]] = sent && u == m->source[node] * K + m->target[node];
    }
}

int milp_encode(double *value, const milp_program *g, const moirai_plan *plan)
{
    const moirai_problem *p = g->p;
    size_t nodes = (size_t)p->n_ops + (size_t)g->d->n_flows;
    image m = {.g = g, .plan = plan};
    m.from = util_alloc((size_t)p->n_ops, sizeof *m.from);
    m.start = util_alloc(nodes, sizeof *m.start);
    m.finish = util_alloc(nodes, sizeof *m.finish);
    m.source = util_alloc(nodes, sizeof *m.source);
    m.target = util_alloc(nodes, sizeof *m.target);
    int rc = m.from && m.start && m.finish && m.source && m.target ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        for (int32_t c = 0; c < g->m.n_cols; c++)
            value[c] = NAN;
        order_twins(&m);
        name_devices(&m);
        for (int32_t i = 0; i < p->n_ops; i++) {
            m.start[i] = plan->op_start_ns[m.from[i]];
            m.finish[i] = plan->op_finish_ns[m.from[i]];
            m.source[i] = m.target[i] = m.to[plan->op_device[m.from[i]]];
        }
        for (int32_t q = 0; q < g->d->n_flows; q++)
            place_flow(&m, q, plan_tensor(&m, g->d->flow[q].tensor));
        write_values(&m, value);
    }
    free(m.from);
    free(m.start);
    free(m.finish);
    free(m.source);
    free(m.target);
    return rc;
}
