/* Do the prices of a leaf exclude its length? (docs/certificate.md, "Prices".)
 *
 * Suppose the block is done within T. Every resource is held by one task at a time, so what all tasks pay, at `price`
 * per nanosecond of the bucket they fall into, is at most sum of price * bucket length; a price on a count is paid once
 * per component counted, so its sum is at most price * most (or least, if negative). Each component alone pays at least
 * what its cheapest relaxed schedule costs, computed here by dynamic programming over the spanning tree that the
 * certificate gives: state (device, step of the start). If the components' least costs together exceed the right side,
 * length T is impossible.
 *
 * Steps: start(j) >= start(i) + d implies step(j) >= step(i) + floor(d / step_ns). The cost of a task is the least over
 * all whole starts within its step; it is linear there but for one kink, where the task's end passes a step's boundary.
 * Transfers that m readers may share count for 1/m each, rounded down. Whole numbers throughout: single values in int64
 * after a check that nothing can overflow, sums in 128 bits. */
#include "prove/prove.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define NEVER (INT64_MAX / 4)
#define MAX_CELLS (INT64_C(1) << 28) /* numbers of one leaf's tables: 2 GiB, more than any search makes */

typedef struct pricing {
    const prove_block *b;
    const prove_leaf *leaf;
    int32_t a, z, K, N; /* entry device, exit device, devices, steps */
    int64_t step, length;
    int64_t arrival[PROVE_MAX_DEVICES]; /* of the shared tensor: no sooner; -1: never */
    int64_t arrived[PROVE_MAX_DEVICES]; /* and no later */
    bool later[PROVE_MAX_DEVICES];      /* it may come here after all receivers that are listed */
    int64_t *rate;                      /* [resource * N + g]: price in step g */
    int64_t *sum;                       /* [resource * N + g]: price from 0 to the beginning of step g */
    int64_t *op_cost;                   /* [(line * K + k) * N + g] */
    int64_t *edge_cost;                 /* [((line * K + from) * K + to) * N + g] */
    int64_t *value;                     /* [place * K * N + k * N + g] */
    int64_t *message, *best;
    int32_t *order, *above, *above_edge; /* the rooted tree: places, parents first */
} pricing;

/* ---- costs of tasks ---- */

typedef struct held {
    int32_t r[2]; /* resources, -1: none */
} held;

static held held_by_transfer(const pricing *w, int32_t from, int32_t to)
{
    if (w->b->p->congestion == PROVE_PORT)
        return (held){{w->K + from, 2 * w->K + to}};
    if (w->b->p->congestion == PROVE_CHANNEL)
        return (held){{w->K + from * w->K + to, -1}};
    return (held){{-1, -1}};
}

typedef struct span {
    int64_t ns, steps, rest; /* ns = steps * step + rest */
} span;

/* What [start, start + ns) costs, for start = g * step + shift with 0 <= shift < step. */
static int64_t cost_at(const pricing *w, held h, int64_t g, int64_t shift, span x)
{
    int64_t rest = shift + x.rest, over = g + x.steps, cost = 0;
    if (rest >= w->step) {
        rest -= w->step;
        over++;
    }
    for (int32_t y = 0; y < 2; y++) {
        if (h.r[y] < 0)
            continue;
        int64_t row = (int64_t)h.r[y] * w->N;
        cost += w->sum[row + over] + rest * w->rate[row + over] - w->sum[row + g] - shift * w->rate[row + g];
    }
    return cost;
}

/* Least cost by step, NEVER where it would end after T. */
static void task_line(const pricing *w, held h, int64_t ns, int32_t share, int64_t *line)
{
    span x = {ns, ns / w->step, ns % w->step};
    int64_t latest = w->length - ns, kink = w->step - x.rest; /* kink == step: none inside */
    for (int32_t g = 0; g < w->N; g++) {
        int64_t room = latest - g * w->step; /* the latest shift */
        if (room < 0) {
            line[g] = NEVER;
            continue;
        }
        room = UTIL_MIN(room, w->step - 1);
        int64_t least = cost_at(w, h, g, 0, x);
        least = UTIL_MIN(least, cost_at(w, h, g, room, x));
        if (kink < room)
            least = UTIL_MIN(least, cost_at(w, h, g, kink, x));
        line[g] = least / share;
    }
}

static int64_t *op_line(const pricing *w, int32_t i, int32_t k)
{
    return w->op_cost + ((int64_t)w->b->op_line[i] * w->K + k) * w->N;
}

static int64_t *edge_line(const pricing *w, const prove_edge *e, int32_t from, int32_t to)
{
    return w->edge_cost + (((int64_t)e->line * w->K + from) * w->K + to) * w->N;
}

static int64_t op_ns(const pricing *w, int32_t i, int32_t k)
{
    return w->b->p->time[(int64_t)w->b->op[i] * w->K + k];
}

static int fill_costs(pricing *w)
{
    const prove_block *b = w->b;
    const prove_leaf *leaf = w->leaf;
    int32_t R = prove_resources(b->p);
    for (int32_t r = 0; r < R; r++) {
        int64_t *rate = w->rate + (int64_t)r * w->N, *sum = w->sum + (int64_t)r * w->N;
        for (int32_t x = 0; x < leaf->n_buckets; x++)
            for (int32_t g = leaf->bucket[x]; g < leaf->bucket[x + 1]; g++)
                rate[g] = leaf->price[(int64_t)r * leaf->n_buckets + x];
        for (int32_t g = 0; g + 1 < w->N; g++)
            sum[g + 1] = sum[g] + rate[g] * w->step;
    }
    int rc = 0;
    for (int32_t x = 0; x < b->n_op_lines && !rc; x++) {
        rc = prove_go_on(b->p);
        for (int32_t k = 0; k < w->K; k++)
            if (op_ns(w, b->line_op[x], k) >= 0)
                task_line(w, (held){{k, -1}}, op_ns(w, b->line_op[x], k), 1, op_line(w, b->line_op[x], k));
    }
    for (int32_t x = 0; x < b->n_edge_lines && !rc; x++) {
        rc = prove_go_on(b->p);
        const prove_edge *e = &b->edge[b->edge_line[x]];
        int32_t share = b->p->by_edge ? 1 : e->readers;
        for (int32_t from = 0; from < w->K; from++)
            for (int32_t to = 0; to < w->K; to++)
                if (from != to)
                    task_line(w, held_by_transfer(w, from, to), e->ns[from * w->K + to], share,
                              edge_line(w, e, from, to));
    }
    return rc;
}

/* ---- one component ---- */

static bool allowed(const pricing *w, int32_t i, int32_t k)
{
    return w->b->p->may[w->b->op[i]] >> k & 1;
}

static void add(int64_t *value, int64_t more)
{
    *value = *value >= NEVER || more >= NEVER ? NEVER : *value + more;
}

/* The operator waits for a tensor of the entry. */
static void add_entry(const pricing *w, const prove_edge *e, int32_t k, int64_t *value)
{
    bool shared = w->leaf->fixed && prove_is_shared(w->b, (int32_t)(e - w->b->edge));
    if (shared && !w->later[k]) {
        int64_t from = w->arrival[k] < 0 ? w->N : w->arrival[k] / w->step;
        for (int32_t g = 0; g < w->N && g < from; g++)
            value[g] = NEVER;
        return;
    }
    if (k == w->a)
        return;
    const int64_t *cost = edge_line(w, e, w->a, k);
    int64_t ns = e->ns[w->a * w->K + k], wait = ns / w->step, least = NEVER;
    int64_t first =
        shared ? (w->arrival[k] - ns) / w->step : 0; /* the send's first step: all listed ones come before */
    for (int32_t g = 0; g < w->N; g++) {
        if (g >= first + wait)
            least = UTIL_MIN(least, cost[g - wait]);
        add(&value[g], least);
    }
}

/* The exit waits for a tensor of the operator. */
static void add_exit(const pricing *w, const prove_edge *e, int32_t k, int64_t *value)
{
    if (k == w->z)
        return;
    const int64_t *cost = edge_line(w, e, k, w->z);
    int64_t after = op_ns(w, e->from, k) / w->step, least = NEVER;
    for (int64_t g = w->N - 1; g >= 0; g--) {
        if (g + after < w->N)
            least = UTIL_MIN(least, cost[g + after]);
        add(&value[g], least);
    }
}

/* What the operator pays on k at any time: counts and bytes. */
static int64_t flat_cost(const pricing *w, int32_t kind, int32_t place, int32_t op, int32_t k)
{
    int64_t sum = w->leaf->byte_price ? w->leaf->byte_price[k] * w->b->p->bytes[op] : 0;
    for (int32_t x = 0; x < w->leaf->n_branches; x++) {
        const prove_branch *c = &w->leaf->branch[x];
        if (c->kind == kind && c->op == place && c->device == k)
            sum += w->leaf->branch_price[x];
    }
    return sum;
}

static void own_costs(const pricing *w, int32_t kind)
{
    const prove_block *b = w->b;
    int32_t c = b->kind_component[kind], begin = b->component_off[c], n = b->component_off[c + 1] - begin;
    for (int32_t x = 0; x < n; x++)
        for (int32_t k = 0; k < w->K; k++) {
            int32_t i = b->component_op[begin + x];
            int64_t *value = w->value + ((int64_t)x * w->K + k) * w->N, more = flat_cost(w, kind, x, b->op[i], k);
            const int64_t *cost = op_line(w, i, k);
            for (int32_t g = 0; g < w->N; g++) {
                value[g] = allowed(w, i, k) ? cost[g] : NEVER;
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
                int64_t *value = w->value + ((int64_t)x * w->K + k) * w->N;
                in ? add_entry(w, f, k, value) : add_exit(w, f, k, value);
            }
    }
}

/* The child writes what the parent reads: least cost of the child by the parent's step, into message. */
static void from_writer(pricing *w, const prove_edge *e, const int64_t *child)
{
    for (int32_t l = 0; l < w->K; l++) {
        if (!allowed(w, e->from, l))
            continue;
        int64_t after = op_ns(w, e->from, l) / w->step, least = NEVER;
        for (int32_t u = 0; u < w->N; u++) { /* best[u]: the child is done by step u */
            if (u >= after)
                least = UTIL_MIN(least, child[(int64_t)l * w->N + u - after]);
            w->best[u] = least;
        }
        for (int32_t k = 0; k < w->K; k++) {
            if (!allowed(w, e->to, k))
                continue;
            int64_t *message = w->message + (int64_t)k * w->N;
            const int64_t *cost = edge_line(w, e, l, k);
            int64_t wait = e->ns[l * w->K + k] / w->step, ready = NEVER;
            for (int64_t g = wait; g < w->N; g++) {
                int64_t sent = w->best[g - wait];
                if (l != k)
                    add(&sent, cost[g - wait]);
                ready = UTIL_MIN(ready, sent);
                message[g] = UTIL_MIN(message[g], ready);
            }
        }
    }
}

/* The child reads what the parent writes. */
static void from_reader(pricing *w, const prove_edge *e, const int64_t *child)
{
    for (int32_t l = 0; l < w->K; l++) {
        if (!allowed(w, e->to, l))
            continue;
        int64_t least = NEVER;
        for (int32_t g = w->N - 1; g >= 0; g--) { /* best[g]: the child starts in step g or later */
            least = UTIL_MIN(least, child[(int64_t)l * w->N + g]);
            w->best[g] = least;
        }
        for (int32_t k = 0; k < w->K; k++) {
            if (!allowed(w, e->from, k))
                continue;
            int64_t *message = w->message + (int64_t)k * w->N;
            const int64_t *cost = edge_line(w, e, k, l);
            int64_t wait = e->ns[k * w->K + l] / w->step, later = NEVER;
            int64_t after = op_ns(w, e->from, k) / w->step;
            for (int64_t u = w->N - 1 - wait; u >= after; u--) {
                int64_t sent = w->best[u + wait];
                if (l != k)
                    add(&sent, cost[u]);
                later = UTIL_MIN(later, sent);
                message[u - after] = UTIL_MIN(message[u - after], later);
            }
        }
    }
}

/* Root the kind's tree at place 0: order, parents and the edges to them. The tree is known to span. */
static void root_tree(pricing *w, int32_t kind)
{
    const prove_block *b = w->b;
    int32_t c = b->kind_component[kind], begin = b->component_off[c], n = b->component_off[c + 1] - begin, done = 1;
    for (int32_t x = 0; x < n; x++)
        w->above_edge[x] = -1;
    w->order[0] = 0;
    w->above[0] = -1;
    for (int32_t y = 0; y < done; y++)
        for (int32_t t = b->tree_off[kind]; t < b->tree_off[kind + 1]; t++) {
            const prove_edge *e = &b->edge[b->tree_edge[t]];
            int32_t mine = b->component_op[begin + w->order[y]];
            int32_t other = e->from == mine ? e->to : e->to == mine ? e->from : -1;
            if (other < 0 || w->above_edge[w->order[y]] == b->tree_edge[t])
                continue;
            int32_t x = 0;
            while (b->component_op[begin + x] != other)
                x++;
            w->above[x] = w->order[y];
            w->above_edge[x] = b->tree_edge[t];
            w->order[done++] = x;
        }
}

static int cheapest_component(int64_t *least, pricing *w, int32_t kind)
{
    const prove_block *b = w->b;
    int32_t c = b->kind_component[kind], begin = b->component_off[c], n = b->component_off[c + 1] - begin;
    int64_t cells = (int64_t)w->K * w->N;
    int rc = 0;
    own_costs(w, kind);
    root_tree(w, kind);
    for (int32_t y = n - 1; y > 0 && !rc; y--) {
        rc = prove_go_on(b->p);
        int32_t x = w->order[y];
        const prove_edge *e = &b->edge[w->above_edge[x]];
        for (int64_t s = 0; s < cells; s++)
            w->message[s] = NEVER;
        if (e->from == b->component_op[begin + x])
            from_writer(w, e, w->value + x * cells);
        else
            from_reader(w, e, w->value + x * cells);
        for (int64_t s = 0; s < cells; s++)
            add(&w->value[w->above[x] * cells + s], w->message[s]);
    }
    *least = NEVER;
    for (int64_t s = 0; s < cells; s++)
        *least = UTIL_MIN(*least, w->value[s]);
    return rc;
}

/* ---- the leaf ---- */

/* A sending of the shared tensor starts no sooner than its arrival less its own time, and ends by the latest
 * arrival. */
static int64_t cheapest_send(const pricing *w, int32_t k)
{
    int64_t ns = prove_edge_ns(w->b, w->b->shared, w->a, k), least = NEVER;
    if (w->arrived[k] < w->arrival[k])
        return NEVER;
    task_line(w, held_by_transfer(w, w->a, k), ns, 1, w->best);
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
        sent = port ? UTIL_MIN(sent + ns, NEVER) : ns;
        narrow(w, k, &sent, &w->arrived[k]);
        w->arrival[k] = sent;
    }
    for (int32_t k = 0; k < w->K; k++) {
        w->later[k] = w->leaf->open && w->arrival[k] < 0;
        if (w->later[k])
            w->arrival[k] = UTIL_MIN(sent + prove_edge_ns(w->b, w->b->shared, w->a, k), NEVER);
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

__int128 prove_branch_term(const prove_leaf *leaf)
{
    __int128 sum = 0;
    for (int32_t x = 0; x < leaf->n_branches; x++) /* times have no price */
        sum += (__int128)leaf->branch_price[x] *
               (leaf->branch_price[x] > 0 ? leaf->branch[x].most : leaf->branch[x].least);
    return sum;
}

static __int128 capacity(const prove_problem *p, const prove_leaf *leaf)
{
    __int128 sum = prove_branch_term(leaf);
    int32_t R = prove_resources(p);
    for (int32_t r = 0; r < R; r++)
        for (int32_t x = 0; x < leaf->n_buckets; x++) {
            int64_t from = leaf->bucket[x] * leaf->step_ns, to = leaf->bucket[x + 1] * leaf->step_ns;
            sum += (__int128)leaf->price[(int64_t)r * leaf->n_buckets + x] *
                   (UTIL_MIN(to, leaf->length_ns) - UTIL_MIN(from, leaf->length_ns));
        }
    return sum;
}

typedef struct ceiling {
    int64_t rate;   /* the dearest price */
    __int128 whole; /* all time of the dearest resource */
} ceiling;

/* The most that a task can pay on two resources. */
static __int128 most_paid(int64_t ns, ceiling dearest)
{
    __int128 paid = (__int128)ns * dearest.rate;
    return ns > 0 ? 2 * UTIL_MIN(paid, dearest.whole) : 0;
}

static ceiling find_ceiling(const prove_problem *p, const prove_leaf *leaf)
{
    ceiling dearest = {0};
    int32_t R = prove_resources(p);
    for (int32_t r = 0; r < R; r++) {
        __int128 sum = 0;
        for (int32_t x = 0; x < leaf->n_buckets; x++) {
            int64_t price = leaf->price[(int64_t)r * leaf->n_buckets + x];
            int64_t from = leaf->bucket[x] * leaf->step_ns, to = leaf->bucket[x + 1] * leaf->step_ns;
            sum += (__int128)price * (UTIL_MIN(to, leaf->length_ns) - UTIL_MIN(from, leaf->length_ns));
            dearest.rate = UTIL_MAX(dearest.rate, price);
        }
        dearest.whole = UTIL_MAX(dearest.whole, sum);
    }
    return dearest;
}

/* All that a component with its edges can pay at any time. */
static __int128 component_most(const pricing *w, int32_t c, ceiling dearest)
{
    const prove_block *b = w->b;
    __int128 sum = 0;
    for (int32_t x = b->component_off[c]; x < b->component_off[c + 1]; x++) {
        __int128 most = 0;
        int32_t i = b->component_op[x];
        for (int32_t k = 0; k < w->K; k++) {
            __int128 paid = most_paid(op_ns(w, i, k), dearest);
            if (w->leaf->byte_price)
                paid += (__int128)w->leaf->byte_price[k] * b->p->bytes[b->op[i]];
            most = UTIL_MAX(most, paid);
        }
        sum += most;
    }
    for (int32_t e = 0; e < b->n_edges; e++) {
        int64_t longest = 0;
        if (b->component[b->edge[e].from] != c && b->component[b->edge[e].to] != c)
            continue;
        for (int32_t k = 0; k < w->K * w->K; k++)
            longest = UTIL_MAX(longest, b->edge[e].ns[k]);
        sum += most_paid(longest, dearest);
    }
    return sum;
}

/* No value of the dynamic programme, and no sum of prices over time, can leave int64. */
static bool fits(const pricing *w)
{
    const prove_leaf *leaf = w->leaf;
    ceiling dearest = find_ceiling(w->b->p, leaf);
    __int128 counts = 0;
    if (dearest.whole >= NEVER / 2)
        return false;
    for (int32_t x = 0; x < leaf->n_branches; x++)
        counts += leaf->branch_price[x] < 0 ? -(__int128)leaf->branch_price[x] : leaf->branch_price[x];
    for (int32_t kind = 0; kind < w->b->n_kinds; kind++)
        if (component_most(w, w->b->kind_component[kind], dearest) + counts >= NEVER / 2)
            return false;
    return true;
}

/* A certificate may ask for a grid so fine that its tables fill the machine: no honest one does. */
static bool is_modest(const pricing *w, size_t largest)
{
    const prove_block *b = w->b;
    __int128 K = w->K, cells = (__int128)b->n_op_lines * K + (__int128)b->n_edge_lines * K * K + (__int128)largest * K +
                               K + 2 * prove_resources(b->p);
    return cells * w->N <= MAX_CELLS;
}

static int allocate(pricing *w)
{
    size_t N = (size_t)w->N, K = (size_t)w->K, R = (size_t)prove_resources(w->b->p), largest = 1;
    for (int32_t c = 0; c < w->b->n_components; c++)
        largest = UTIL_MAX(largest, (size_t)(w->b->component_off[c + 1] - w->b->component_off[c]));
    if (!is_modest(w, largest))
        return moirai_error(MOIRAI_EVERIFY, PROVE_LIMITS "a leaf's grid of %d steps is too fine for its block", w->N);
    w->rate = util_alloc(R * N, sizeof(int64_t));
    w->sum = util_alloc(R * N, sizeof(int64_t));
    w->op_cost = util_alloc((size_t)w->b->n_op_lines * K * N, sizeof(int64_t));
    w->edge_cost = util_alloc((size_t)w->b->n_edge_lines * K * K * N, sizeof(int64_t));
    w->value = util_alloc(largest * K * N, sizeof(int64_t));
    w->message = util_alloc(K * N, sizeof(int64_t));
    w->best = util_alloc(N, sizeof(int64_t));
    w->order = util_alloc(largest, sizeof(int32_t));
    w->above = util_alloc(largest, sizeof(int32_t));
    w->above_edge = util_alloc(largest, sizeof(int32_t));
    return w->rate && w->sum && w->op_cost && w->edge_cost && w->value && w->message && w->best && w->order &&
                   w->above && w->above_edge
               ? 0
               : MOIRAI_EFAIL;
}

static void release(pricing *w)
{
    free(w->rate);
    free(w->sum);
    free(w->op_cost);
    free(w->edge_cost);
    free(w->value);
    free(w->message);
    free(w->best);
    free(w->order);
    free(w->above);
    free(w->above_edge);
}

static int add_up(pricing *w, prove_cost *out)
{
    out->never = direct_is_late(w);
    if (out->never)
        return 0;
    int rc = fill_costs(w);
    for (int32_t x = 0; w->leaf->fixed && x < w->leaf->n_receivers; x++) {
        int64_t send = cheapest_send(w, w->leaf->receiver[x]);
        out->never = out->never || send >= NEVER;
        out->sum += send;
    }
    for (int32_t kind = 0; kind < w->b->n_kinds && !out->never && !rc; kind++) {
        int64_t least;
        rc = cheapest_component(&least, w, kind);
        out->never = least >= NEVER;
        out->sum += (__int128)least * w->b->kind_count[kind];
    }
    return rc;
}

int prove_least_cost(prove_cost *out, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf)
{
    pricing w = {.b = b,
                 .leaf = leaf,
                 .a = a,
                 .z = z,
                 .K = b->p->K,
                 .N = leaf->n_steps,
                 .step = leaf->step_ns,
                 .length = leaf->length_ns};
    *out = (prove_cost){.usable = fits(&w)};
    if (!out->usable)
        return 0;
    int rc = allocate(&w);
    if (!rc) {
        set_arrivals(&w);
        rc = add_up(&w, out);
    }
    release(&w);
    return rc;
}

int prove_prices(bool *holds, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf)
{
    prove_cost cost;
    int rc = prove_least_cost(&cost, b, a, z, leaf);
    if (!rc && !cost.usable)
        rc = moirai_error(MOIRAI_EVERIFY, PROVE_LIMITS "prices are too large");
    *holds = !rc && (cost.never || cost.sum > capacity(b->p, leaf));
    return rc;
}
