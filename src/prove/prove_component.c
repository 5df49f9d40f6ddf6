/* What one component of a block pays at least at the prices of a leaf.
 *
 * Dynamic programming over the spanning tree that the certificate gives: state (device, step of the start). Steps:
 * start(j) >= start(i) + d implies step(j) >= step(i) + floor(d / step_ns). The cost of a task is the least over all
 * whole starts within its step; it is linear there but for one kink, where the task's end passes a step's boundary.
 * Transfers that m readers may share count for 1/m each, rounded down. */
#include "prove/prove_price.h"

#include <string.h>

#include "util/util.h"

/* ---- costs of tasks ---- */

/* Least cost by step, PROVE_TOO_LATE where it would end after T: at the step's beginning, at the latest start within it, or where the
 * task's end passes a step's boundary. */
void prove_task_line(const prove_pricing *w, prove_held h, int64_t ns, int32_t share, prove_wide *line)
{
    int64_t steps = ns / w->step, rest = ns % w->step;
    for (int32_t g = 0; g < w->N; g++) {
        int64_t room = UTIL_MIN(w->length - ns - g * w->step, w->step - 1); /* the latest start within the step */
        int64_t near = UTIL_MIN(room, w->step - rest), over = g + steps, slope = 0, beyond = 0;
        prove_wide cost = 0;
        line[g] = PROVE_TOO_LATE;
        if (room < 0)
            continue;
        for (int32_t y = 0; y < 2 && h.r[y] >= 0; y++) {
            const int64_t *rate = w->rate + (int64_t)h.r[y] * w->N;
            const prove_wide *sum = w->sum + (int64_t)h.r[y] * w->N;
            cost += sum[over] + (prove_wide)rest * rate[over] - sum[g];
            slope += rate[over] - rate[g];
            beyond += near < room ? rate[over + 1] - rate[g] : 0;
        }
        prove_wide turn = (prove_wide)slope * near, end = turn + (prove_wide)beyond * (room - near);
        cost += UTIL_MIN(0, UTIL_MIN(turn, end));
        line[g] = share > 1 ? cost / share : cost;
    }
}

/* What the edge's transfer pays, in w->line; nothing on one device. */
static prove_wide *edge_line(const prove_pricing *w, const prove_edge *e, int32_t from, int32_t to)
{
    int32_t share = w->b->p->by_edge ? 1 : e->readers;
    if (from == to)
        memset(w->line, 0, (size_t)w->N * sizeof *w->line);
    else
        prove_task_line(w, prove_held_by(w->b->p, from, to), e->ns[from * w->K + to], share, w->line);
    return w->line;
}

/* ---- one component ---- */

static void add(prove_wide *value, prove_wide more)
{
    *value = *value >= PROVE_TOO_LATE || more >= PROVE_TOO_LATE ? PROVE_TOO_LATE : *value + more;
}

/* out[g]: the least of in[x] with x + shift <= g or, backwards, with x >= g + shift. */
static void sweep(const prove_pricing *w, prove_wide *out, const prove_wide *in, int64_t shift, bool forwards)
{
    prove_wide least = PROVE_TOO_LATE;
    int64_t step = forwards ? 1 : -1, g = forwards ? 0 : w->N - 1;
    for (int64_t y = 0; y < w->N; y++, g += step) {
        if (y >= shift)
            least = UTIL_MIN(least, in[g - step * shift]);
        out[g] = least;
    }
}

static void add_all(const prove_pricing *w, prove_wide *value, const prove_wide *more)
{
    for (int32_t g = 0; g < w->N; g++)
        add(&value[g], more[g]);
}

/* The operator waits for a tensor of the entry. */
static void add_entry(const prove_pricing *w, const prove_edge *e, bool shared, int32_t k, prove_wide *value)
{
    if (shared && !w->later[k]) {
        int64_t from = w->arrival[k] < 0 ? w->N : w->arrival[k] / w->step;
        for (int32_t g = 0; g < w->N && g < from; g++)
            value[g] = PROVE_TOO_LATE;
        return;
    }
    int64_t ns = e->ns[w->a * w->K + k];
    prove_wide *cost = edge_line(w, e, w->a, k);
    int64_t first =
        shared ? (w->arrival[k] - ns) / w->step : 0; /* the send's first step: all listed ones come before */
    for (int32_t g = 0; g < w->N && g < first; g++)
        cost[g] = PROVE_TOO_LATE;
    sweep(w, w->best, cost, ns / w->step, true);
    add_all(w, value, w->best);
}

/* The exit waits for a tensor of the operator, which takes `ns`. */
static void add_exit(const prove_pricing *w, const prove_edge *e, int64_t ns, int32_t k, prove_wide *value)
{
    if (k == w->z)
        return;
    sweep(w, w->best, edge_line(w, e, k, w->z), ns / w->step, false);
    add_all(w, value, w->best);
}

/* What the operator at `place` pays on k at any time: counts and bytes. */
static prove_wide flat_cost(const prove_pricing *w, int32_t kind, int32_t place, int64_t bytes, int32_t k)
{
    prove_wide sum = w->leaf->byte_price ? (prove_wide)w->leaf->byte_price[k] * bytes : 0;
    for (int32_t x = 0; x < w->leaf->n_branches; x++) {
        const prove_branch *c = &w->leaf->branch[x];
        if (c->kind == kind && c->op == place && c->device == k)
            sum += w->leaf->branch_price[x];
    }
    return sum;
}

/* By the step of the start of an operator between the cuts of a component, on k. */
static prove_wide *value_of(const prove_pricing *w, const prove_block *one, int32_t i, int32_t k)
{
    return w->value + ((int64_t)(i - prove_first(one)) * w->K + k) * w->N;
}

/* What each operator pays by itself, and for what it has from the entry and for the exit. */
static void own_costs(const prove_pricing *w, int32_t kind)
{
    const prove_block *one = &w->b->kind[kind].one;
    int32_t first = prove_first(one);
    for (int32_t i = first; i < first + prove_interior(one); i++)
        for (int32_t k = 0; k < w->K; k++) {
            prove_wide *value = value_of(w, one, i, k),
                       more = flat_cost(w, kind, i - first, one->p->bytes[one->op[i]], k);
            bool may = one->p->may[one->op[i]] >> k & 1;
            if (may)
                prove_task_line(w, (prove_held){{k, -1}}, prove_op_ns(one, i, k), 1, value);
            for (int32_t g = 0; g < w->N; g++)
                value[g] = may && value[g] < PROVE_TOO_LATE ? value[g] + more : PROVE_TOO_LATE;
        }
    for (int32_t e = 0; e < one->n_edges; e++) {
        const prove_edge *f = &one->edge[e];
        bool in = f->from == one->entry, out = f->to == one->exit;
        for (int32_t k = 0; k < w->K && in != out; k++)
            if (one->p->may[one->op[in ? f->to : f->from]] >> k & 1) {
                if (in)
                    add_entry(w, f, w->leaf->fixed && prove_is_shared(one, e), k, value_of(w, one, f->to, k));
                else
                    add_exit(w, f, prove_op_ns(one, f->from, k), k, value_of(w, one, f->from, k));
            }
    }
}

/* What the child pays at least, by its parent's device and step, into message; `writes`: the child is the one that writes. */
static void pass_up(prove_pricing *w, const prove_block *one, const prove_edge *e, bool writes)
{
    int32_t child = writes ? e->from : e->to, parent = writes ? e->to : e->from;
    for (int32_t l = 0; l < w->K; l++) {
        if (!(one->p->may[one->op[child]] >> l & 1))
            continue;
        /* best[u]: the child is done by step u, or starts there or later */
        sweep(w, w->best, value_of(w, one, child, l), writes ? prove_op_ns(one, child, l) / w->step : 0, writes);
        for (int32_t k = 0; k < w->K; k++) {
            if (!(one->p->may[one->op[parent]] >> k & 1))
                continue;
            int32_t from = writes ? l : k, to = writes ? k : l;
            int64_t wait = e->ns[from * w->K + to] / w->step, later = writes ? 0 : wait;
            prove_wide *sent = edge_line(w, e, from, to), *message = w->message + (int64_t)k * w->N;
            for (int64_t u = 0; u < w->N; u++)
                add(&sent[u], u + later < w->N ? w->best[u + later] : PROVE_TOO_LATE);
            sweep(w, w->spare, sent, writes ? wait : prove_op_ns(one, parent, k) / w->step, writes);
            for (int64_t g = 0; g < w->N; g++)
                message[g] = UTIL_MIN(message[g], w->spare[g]);
        }
    }
}

int prove_cheapest_component(prove_wide *least, prove_pricing *w, int32_t kind)
{
    const prove_kind *x = &w->b->kind[kind];
    int32_t first = prove_first(&x->one);
    int64_t cells = (int64_t)w->K * w->N;
    int rc = 0;
    own_costs(w, kind);
    for (int32_t y = prove_interior(&x->one) - 1; y > 0 && !rc; y--) {
        rc = prove_go_on(w->b->p);
        int32_t place = x->order[y];
        const prove_edge *e = &x->one.edge[x->edge[place]];
        for (int64_t s = 0; s < cells; s++)
            w->message[s] = PROVE_TOO_LATE;
        pass_up(w, &x->one, e, e->from == first + place);
        for (int64_t s = 0; s < cells; s++)
            add(&w->value[x->above[place] * cells + s], w->message[s]);
    }
    *least = PROVE_TOO_LATE;
    for (int64_t s = 0; s < cells; s++)
        *least = UTIL_MIN(*least, w->value[s]);
    return rc;
}
