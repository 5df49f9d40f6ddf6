/* Do the prices of a leaf exclude its length? (docs/certificate.md, "Prices".)
 *
 * Each component alone pays at least what its cheapest relaxed schedule costs: dynamic programming over the spanning tree that the
 * certificate gives, state (device, step of the start). If the components' least costs together exceed what all resources are worth,
 * and what prices on counts are at the most, the length is impossible. Whole numbers throughout: prices are at most 2^50, all times
 * together below 2^61, so that no sum of what tasks pay, and of what thousands of channels are worth, reaches 2^124. */
#include <string.h>

#include "prove/prove.h"
#include "util/util.h"

#define MAX_CELLS (INT64_C(1) << 27) /* numbers of one leaf's tables: 2 GiB, more than any search makes */
#define FAR_NS (INT64_MAX / 4)       /* later than any leaf: sums of two stay within int64 */

typedef __int128 wide; /* what is paid */

typedef struct pricing {
    const prove_block *b;
    const prove_leaf *leaf;
    int32_t a, z, K, N; /* entry device, exit device, devices, steps */
    int64_t step, length;
    int64_t arrival[PROVE_MASK_DEVICES]; /* of the shared tensor: no sooner; -1: never */
    int64_t arrived[PROVE_MASK_DEVICES]; /* and no later */
    bool later[PROVE_MASK_DEVICES];      /* it may come here after all receivers that are listed */
    int64_t *rate;                       /* [resource * N + g]: price in step g */
    wide *sum;                           /* [resource * N + g]: price from 0 to the beginning of step g */
    wide *value;                         /* [place * K * N + k * N + g] */
    wide *message;                       /* [k * N + g] */
    wide *line, *best, *spare;           /* by step: what a transfer pays, and the like */
    util_memory memory;
} pricing;

/* ---- costs of tasks ---- */

/* The least cost of a task of `ns` by the step of its start, of which `share` readers pay one each; PROVE_TOO_LATE where it would end after
 * T. It is that at the step's beginning, at the latest start within it, or where the task's end passes a step's boundary: linear in between. */
static void task_line(const pricing *w, prove_held h, int64_t ns, int32_t share, wide *line)
{
    int64_t steps = ns / w->step, rest = ns % w->step;
    for (int32_t g = 0; g < w->N; g++) {
        int64_t room = UTIL_MIN(w->length - ns - g * w->step, w->step - 1); /* the latest start within the step */
        int64_t near = UTIL_MIN(room, w->step - rest), over = g + steps, slope = 0, beyond = 0;
        wide cost = 0;
        line[g] = PROVE_TOO_LATE;
        if (room < 0)
            continue;
        for (int32_t y = 0; y < 2 && h.r[y] >= 0; y++) {
            const int64_t *rate = w->rate + (int64_t)h.r[y] * w->N;
            const wide *sum = w->sum + (int64_t)h.r[y] * w->N;
            cost += sum[over] + (wide)rest * rate[over] - sum[g];
            slope += rate[over] - rate[g];
            beyond += near < room ? rate[over + 1] - rate[g] : 0;
        }
        wide turn = (wide)slope * near, end = turn + (wide)beyond * (room - near);
        cost += UTIL_MIN(0, UTIL_MIN(turn, end));
        line[g] = share > 1 ? cost / share : cost;
    }
}

/* What the edge's transfer pays, in w->line; nothing on one device. */
static wide *edge_line(const pricing *w, const prove_edge *e, int32_t from, int32_t to)
{
    int32_t share = w->b->p->by_edge ? 1 : e->readers;
    if (from == to)
        memset(w->line, 0, (size_t)w->N * sizeof *w->line);
    else
        task_line(w, prove_held_by(w->b->p, from, to), e->ns[from * w->K + to], share, w->line);
    return w->line;
}

/* ---- one component ---- */

static void add(wide *value, wide more)
{
    *value = *value >= PROVE_TOO_LATE || more >= PROVE_TOO_LATE ? PROVE_TOO_LATE : *value + more;
}

/* out[g]: the least of in[x] with x + shift <= g or, backwards, with x >= g + shift. */
static void sweep(const pricing *w, wide *out, const wide *in, int64_t shift, bool forwards)
{
    wide least = PROVE_TOO_LATE;
    int64_t step = forwards ? 1 : -1, g = forwards ? 0 : w->N - 1;
    for (int64_t y = 0; y < w->N; y++, g += step) {
        if (y >= shift)
            least = UTIL_MIN(least, in[g - step * shift]);
        out[g] = least;
    }
}

static void add_all(const pricing *w, wide *value, const wide *more)
{
    for (int32_t g = 0; g < w->N; g++)
        add(&value[g], more[g]);
}

/* The operator waits for a tensor of the entry. */
static void add_entry(const pricing *w, const prove_edge *e, bool shared, int32_t k, wide *value)
{
    if (shared && !w->later[k]) {
        int64_t from = w->arrival[k] < 0 ? w->N : w->arrival[k] / w->step;
        for (int32_t g = 0; g < w->N && g < from; g++)
            value[g] = PROVE_TOO_LATE;
        return;
    }
    int64_t ns = e->ns[w->a * w->K + k];
    wide *cost = edge_line(w, e, w->a, k);
    int64_t first =
        shared ? (w->arrival[k] - ns) / w->step : 0; /* the send's first step: all listed ones come before */
    for (int32_t g = 0; g < w->N && g < first; g++)
        cost[g] = PROVE_TOO_LATE;
    sweep(w, w->best, cost, ns / w->step, true);
    add_all(w, value, w->best);
}

/* The exit waits for a tensor of the operator, which takes `ns`. */
static void add_exit(const pricing *w, const prove_edge *e, int64_t ns, int32_t k, wide *value)
{
    if (k == w->z)
        return;
    sweep(w, w->best, edge_line(w, e, k, w->z), ns / w->step, false);
    add_all(w, value, w->best);
}

/* What the operator at `place` pays on k at any time: counts and bytes. */
static wide flat_cost(const pricing *w, int32_t kind, int32_t place, int64_t bytes, int32_t k)
{
    wide sum = w->leaf->byte_price ? (wide)w->leaf->byte_price[k] * bytes : 0;
    for (int32_t x = 0; x < w->leaf->n_branches; x++) {
        const prove_branch *c = &w->leaf->branch[x];
        if (c->kind == kind && c->op == place && c->device == k)
            sum += w->leaf->branch_price[x];
    }
    return sum;
}

/* By the step of the start of an operator between the cuts of a component, on k. */
static wide *value_of(const pricing *w, const prove_block *one, int32_t i, int32_t k)
{
    return w->value + ((int64_t)(i - prove_first(one)) * w->K + k) * w->N;
}

/* What each operator pays by itself, and for what it has from the entry and for the exit. */
static void own_costs(const pricing *w, int32_t kind)
{
    const prove_block *one = &w->b->kind[kind].one;
    int32_t first = prove_first(one);
    for (int32_t i = first; i < first + prove_interior(one); i++)
        for (int32_t k = 0; k < w->K; k++) {
            wide *value = value_of(w, one, i, k), more = flat_cost(w, kind, i - first, one->p->bytes[one->op[i]], k);
            bool may = one->p->may[one->op[i]] >> k & 1;
            if (may)
                task_line(w, (prove_held){{k, -1}}, prove_op_ns(one, i, k), 1, value);
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
static void pass_up(pricing *w, const prove_block *one, const prove_edge *e, bool writes)
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
            wide *sent = edge_line(w, e, from, to), *message = w->message + (int64_t)k * w->N;
            for (int64_t u = 0; u < w->N; u++)
                add(&sent[u], u + later < w->N ? w->best[u + later] : PROVE_TOO_LATE);
            sweep(w, w->spare, sent, writes ? wait : prove_op_ns(one, parent, k) / w->step, writes);
            for (int64_t g = 0; g < w->N; g++)
                message[g] = UTIL_MIN(message[g], w->spare[g]);
        }
    }
}

/* What a component of the kind pays at least. */
static int cheapest_component(wide *least, pricing *w, int32_t kind)
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

/* ---- a leaf ---- */

/* A sending of the shared tensor starts no sooner than its arrival less its own time, and ends by the latest
 * arrival. */
static wide cheapest_send(const pricing *w, int32_t k)
{
    int64_t ns = prove_edge_ns(w->b, w->b->shared, w->a, k);
    wide least = PROVE_TOO_LATE;
    if (w->arrived[k] < w->arrival[k])
        return PROVE_TOO_LATE;
    task_line(w, prove_held_by(w->b->p, w->a, k), ns, 1, w->best);
    for (int64_t g = (w->arrival[k] - ns) / w->step; g < w->N && g <= (w->arrived[k] - ns) / w->step; g++)
        least = UTIL_MIN(least, w->best[g]);
    return least;
}

/* What the leaf assumes of the arrival on k. */
static void narrow(const pricing *w, int32_t k, int64_t *soonest, int64_t *latest)
{
    for (int32_t x = 0; x < w->leaf->n_branches; x++) {
        const prove_branch *c = &w->leaf->branch[x];
        if (c->kind == PROVE_ARRIVAL && c->device == k) {
            *soonest = UTIL_MAX(*soonest, c->least);
            *latest = UTIL_MIN(*latest, c->most);
        }
    }
}

static void set_arrivals(pricing *w)
{
    bool port = w->b->p->congestion == PROVE_PORT;
    int32_t n = w->leaf->fixed ? w->leaf->n_receivers : 0;
    int64_t sent = 0, next = w->length; /* by when the send before it must have ended */
    for (int32_t k = 0; k < w->K; k++) {
        w->arrival[k] = k == w->a ? 0 : -1;
        w->arrived[k] = w->length;
    }
    for (int32_t x = 0; x < n; x++) {
        int32_t k = w->leaf->receiver[x];
        int64_t ns = prove_edge_ns(w->b, w->b->shared, w->a, k);
        /* One port sends them one after the other; nothing else is known elsewhere. Later than any leaf is late enough.
         */
        sent = port ? UTIL_MIN(sent + ns, FAR_NS) : ns;
        narrow(w, k, &sent, &w->arrived[k]);
        w->arrival[k] = sent;
    }
    for (int32_t k = 0; k < w->K; k++) {
        w->later[k] = w->leaf->open && w->arrival[k] < 0;
        if (w->later[k])
            w->arrival[k] = UTIL_MIN(sent + prove_edge_ns(w->b, w->b->shared, w->a, k), FAR_NS);
    }
    for (int32_t x = n - 1; x >= 0 && port; x--) {
        int32_t k = w->leaf->receiver[x];
        w->arrived[k] = UTIL_MIN(w->arrived[k], next);
        next = UTIL_MAX(w->arrived[k] - prove_edge_ns(w->b, w->b->shared, w->a, k), -1); /* -1: never */
    }
}

/* From the entry straight to the exit: too late for T, or excluded by the list of receivers. */
static bool direct_is_late(const pricing *w)
{
    const prove_block *b = w->b;
    for (int32_t e = 0; e < b->n_edges && b->entry >= 0 && w->a != w->z; e++) {
        if (b->edge[e].from != b->entry || b->edge[e].to != b->exit)
            continue;
        int64_t ns = prove_edge_ns(b, e, w->a, w->z);
        if (w->leaf->fixed && prove_is_shared(b, e))
            ns = w->arrival[w->z] < 0 ? INT64_MAX : w->arrival[w->z];
        if (ns > w->length)
            return true;
    }
    return false;
}

wide prove_branch_term(const prove_leaf *leaf)
{
    wide sum = 0;
    for (int32_t x = 0; x < leaf->n_branches; x++) /* times have no price */
        sum += (wide)leaf->branch_price[x] * (leaf->branch_price[x] > 0 ? leaf->branch[x].most : leaf->branch[x].least);
    return sum;
}

/* All time of all resources at its prices, and what counts are worth. */
static wide capacity(const prove_problem *p, const prove_leaf *leaf)
{
    wide sum = prove_branch_term(leaf);
    for (int64_t i = 0; i < (int64_t)prove_resources(p) * leaf->n_buckets; i++) {
        const int32_t *bucket = &leaf->bucket[i % leaf->n_buckets];
        int64_t from = bucket[0] * leaf->step_ns, to = bucket[1] * leaf->step_ns;
        sum += (wide)leaf->price[i] * (UTIL_MIN(to, leaf->length_ns) - UTIL_MIN(from, leaf->length_ns));
    }
    return sum;
}

/* A certificate may ask for a grid so fine that its tables fill the machine: no honest one does. */
static bool is_modest(const pricing *w, size_t largest)
{
    wide cells = (wide)(largest + 1) * w->K + 3 + 2 * prove_resources(w->b->p);
    return cells * w->N <= MAX_CELLS;
}

static int allocate(pricing *w)
{
    size_t N = (size_t)w->N, K = (size_t)w->K, R = (size_t)prove_resources(w->b->p), largest = 1;
    for (int32_t i = 0; i < w->b->n_kinds; i++)
        largest = UTIL_MAX(largest, (size_t)prove_interior(&w->b->kind[i].one));
    if (!is_modest(w, largest))
        return moirai_error(MOIRAI_EVERIFY, PROVE_LIMITS "a leaf's grid of %d steps is too fine for its block", w->N);
    UTIL_TAKE(&w->memory, w->rate, R * N);
    UTIL_TAKE(&w->memory, w->sum, R * N);
    UTIL_TAKE(&w->memory, w->value, largest * K * N);
    UTIL_TAKE(&w->memory, w->message, K * N);
    UTIL_TAKE(&w->memory, w->line, N);
    UTIL_TAKE(&w->memory, w->best, N);
    UTIL_TAKE(&w->memory, w->spare, N);
    return util_taken_all(&w->memory);
}

static void spread_prices(pricing *w)
{
    const prove_leaf *leaf = w->leaf;
    for (int32_t r = 0; r < prove_resources(w->b->p); r++) {
        int64_t *rate = w->rate + (int64_t)r * w->N;
        wide *sum = w->sum + (int64_t)r * w->N;
        for (int32_t x = 0; x < leaf->n_buckets; x++)
            for (int32_t g = leaf->bucket[x]; g < leaf->bucket[x + 1]; g++)
                rate[g] = leaf->price[(int64_t)r * leaf->n_buckets + x];
        for (int32_t g = 0; g + 1 < w->N; g++)
            sum[g + 1] = sum[g] + (wide)rate[g] * w->step;
    }
}

/* What is sent to the receivers that are listed, and the components. */
static int add_up(pricing *w, wide *sum)
{
    int rc = 0;
    spread_prices(w);
    for (int32_t x = 0; x < w->leaf->n_receivers; x++)
        add(sum, cheapest_send(w, w->leaf->receiver[x]));
    for (int32_t kind = 0; kind < w->b->n_kinds && *sum < PROVE_TOO_LATE && !rc; kind++) {
        wide least;
        rc = cheapest_component(&least, w, kind);
        add(sum, least < PROVE_TOO_LATE ? least * w->b->kind[kind].count : least);
    }
    return rc;
}

int prove_least_cost(wide *sum, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf)
{
    pricing w = {.b = b, .leaf = leaf, .a = a, .z = z, .K = b->p->K, .N = leaf->n_steps};
    w.step = leaf->step_ns;
    w.length = leaf->length_ns;
    *sum = 0;
    int rc = allocate(&w);
    if (!rc) {
        set_arrivals(&w);
        if (direct_is_late(&w))
            *sum = PROVE_TOO_LATE;
        else
            rc = add_up(&w, sum);
    }
    util_release(&w.memory);
    return rc;
}

int prove_prices(bool *holds, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf)
{
    wide cost;
    int rc = prove_least_cost(&cost, b, a, z, leaf);
    *holds = !rc && cost > capacity(b->p, leaf);
    return rc;
}
