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

prove_held prove_held_by_transfer(const prove_pricing *w, int32_t from, int32_t to)
{
    if (w->b->p->congestion == PROVE_PORT)
        return (prove_held){{w->K + from, 2 * w->K + to}};
    if (w->b->p->congestion == PROVE_CHANNEL)
        return (prove_held){{w->K + from * w->K + to, -1}};
    return (prove_held){{-1, -1}};
}

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

static int64_t op_ns(const prove_pricing *w, int32_t i, int32_t k)
{
    return w->b->p->time[(int64_t)w->b->op[i] * w->K + k];
}

/* What the edge's transfer pays, in w->line; nothing on one device. */
static prove_wide *edge_line(const prove_pricing *w, const prove_edge *e, int32_t from, int32_t to)
{
    int32_t share = w->b->p->by_edge ? 1 : e->readers;
    if (from == to)
        memset(w->line, 0, (size_t)w->N * sizeof *w->line);
    else
        prove_task_line(w, prove_held_by_transfer(w, from, to), e->ns[from * w->K + to], share, w->line);
    return w->line;
}

/* ---- one component ---- */

static bool allowed(const prove_pricing *w, int32_t i, int32_t k)
{
    return w->b->p->may[w->b->op[i]] >> k & 1;
}

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
static void add_entry(const prove_pricing *w, const prove_edge *e, int32_t k, prove_wide *value)
{
    bool shared = w->leaf->fixed && prove_is_shared(w->b, (int32_t)(e - w->b->edge));
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

/* The exit waits for a tensor of the operator. */
static void add_exit(const prove_pricing *w, const prove_edge *e, int32_t k, prove_wide *value)
{
    if (k == w->z)
        return;
    sweep(w, w->best, edge_line(w, e, k, w->z), op_ns(w, e->from, k) / w->step, false);
    add_all(w, value, w->best);
}

/* What the operator pays on k at any time: counts and bytes. */
static prove_wide flat_cost(const prove_pricing *w, int32_t kind, int32_t place, int32_t op, int32_t k)
{
    prove_wide sum = w->leaf->byte_price ? (prove_wide)w->leaf->byte_price[k] * w->b->p->bytes[op] : 0;
    for (int32_t x = 0; x < w->leaf->n_branches; x++) {
        const prove_branch *c = &w->leaf->branch[x];
        if (c->kind == kind && c->op == place && c->device == k)
            sum += w->leaf->branch_price[x];
    }
    return sum;
}

static void own_costs(const prove_pricing *w, int32_t kind)
{
    const prove_block *b = w->b;
    int32_t c = b->kind_component[kind], begin = b->component_off[c], n = b->component_off[c + 1] - begin;
    for (int32_t x = 0; x < n; x++)
        for (int32_t k = 0; k < w->K; k++) {
            int32_t i = b->component_op[begin + x];
            prove_wide *value = w->value + ((int64_t)x * w->K + k) * w->N, more = flat_cost(w, kind, x, b->op[i], k);
            if (allowed(w, i, k))
                prove_task_line(w, (prove_held){{k, -1}}, op_ns(w, i, k), 1, value);
            for (int32_t g = 0; g < w->N; g++) {
                value[g] = allowed(w, i, k) ? value[g] : PROVE_TOO_LATE;
                add(&value[g], more);
            }
        }
    for (int32_t e = 0; e < b->n_edges; e++) {
        const prove_edge *f = &b->edge[e];
        bool in = f->from == b->entry && f->to != b->exit && b->component[f->to] == c;
        bool out = f->to == b->exit && f->from != b->entry && b->component[f->from] == c;
        if (!in && !out)
            continue;
        int32_t i = in ? f->to : f->from, x = 0;
        while (b->component_op[begin + x] != i)
            x++;
        for (int32_t k = 0; k < w->K; k++)
            if (allowed(w, i, k)) {
                prove_wide *value = w->value + ((int64_t)x * w->K + k) * w->N;
                in ? add_entry(w, f, k, value) : add_exit(w, f, k, value);
            }
    }
}

/* What the child pays at least, by its parent's device and step, into message; `writes`: the child is the one that writes. */
static void pass_up(prove_pricing *w, const prove_edge *e, const prove_wide *child, bool writes)
{
    for (int32_t l = 0; l < w->K; l++) {
        if (!allowed(w, writes ? e->from : e->to, l))
            continue;
        /* best[u]: the child is done by step u, or starts there or later */
        sweep(w, w->best, child + (int64_t)l * w->N, writes ? op_ns(w, e->from, l) / w->step : 0, writes);
        for (int32_t k = 0; k < w->K; k++) {
            if (!allowed(w, writes ? e->to : e->from, k))
                continue;
            int32_t from = writes ? l : k, to = writes ? k : l;
            int64_t wait = e->ns[from * w->K + to] / w->step;
            prove_wide *sent = edge_line(w, e, from, to);
            int64_t later = writes ? 0 : wait;
            for (int64_t u = 0; u < w->N; u++)
                add(&sent[u], u + later < w->N ? w->best[u + later] : PROVE_TOO_LATE);
            sweep(w, w->spare, sent, writes ? wait : op_ns(w, e->from, k) / w->step, writes);
            for (int64_t g = 0; g < w->N; g++)
                w->message[(int64_t)k * w->N + g] = UTIL_MIN(w->message[(int64_t)k * w->N + g], w->spare[g]);
        }
    }
}

/* Root the kind's tree at place 0: order, parents and the edges to them. The tree is known to span. */
static void root_tree(prove_pricing *w, int32_t kind)
{
    const prove_block *b = w->b;
    int32_t c = b->kind_component[kind], begin = b->component_off[c], n = b->component_off[c + 1] - begin, done = 1;
    for (int32_t x = 0; x < n; x++)
        w->tree.edge[x] = -1;
    w->tree.order[0] = 0;
    w->tree.above[0] = -1;
    for (int32_t y = 0; y < done; y++)
        for (int32_t t = b->tree_off[kind]; t < b->tree_off[kind + 1]; t++) {
            const prove_edge *e = &b->edge[b->tree_edge[t]];
            int32_t mine = b->component_op[begin + w->tree.order[y]];
            int32_t other = e->from == mine ? e->to : e->to == mine ? e->from : -1;
            if (other < 0 || w->tree.edge[w->tree.order[y]] == b->tree_edge[t])
                continue;
            int32_t x = b->place[other];
            w->tree.above[x] = w->tree.order[y];
            w->tree.edge[x] = b->tree_edge[t];
            w->tree.order[done++] = x;
        }
}

int prove_cheapest_component(prove_wide *least, prove_pricing *w, int32_t kind)
{
    const prove_block *b = w->b;
    int32_t c = b->kind_component[kind], begin = b->component_off[c], n = b->component_off[c + 1] - begin;
    int64_t cells = (int64_t)w->K * w->N;
    int rc = 0;
    own_costs(w, kind);
    root_tree(w, kind);
    for (int32_t y = n - 1; y > 0 && !rc; y--) {
        rc = prove_go_on(b->p);
        int32_t x = w->tree.order[y];
        const prove_edge *e = &b->edge[w->tree.edge[x]];
        for (int64_t s = 0; s < cells; s++)
            w->message[s] = PROVE_TOO_LATE;
        pass_up(w, e, w->value + x * cells, e->from == b->component_op[begin + x]);
        for (int64_t s = 0; s < cells; s++)
            add(&w->value[w->tree.above[x] * cells + s], w->message[s]);
    }
    *least = PROVE_TOO_LATE;
    for (int64_t s = 0; s < cells; s++)
        *least = UTIL_MIN(*least, w->value[s]);
    return rc;
}
