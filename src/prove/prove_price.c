/* Do the prices of a leaf exclude its length? (docs/certificate.md, "Prices".)
 *
 * Suppose the block is done within T. Every resource is held by one task at a time, so what all tasks pay, at `price`
 * per nanosecond of the bucket they fall into, is at most sum of price * bucket length; a price on a count is paid once
 * per component counted, so its sum is at most price * most (or least, if negative). Each component alone pays at least
 * what its cheapest relaxed schedule costs (prove_component.c). If the components' least costs together exceed the right
 * side, length T is impossible. Whole numbers throughout: prices are at most 2^50, all times together below 2^61, so that no sum
 * of what tasks pay, and of what thousands of channels are worth, reaches 2^124. */
#include "prove/prove_price.h"

#include "util/util.h"

#define MAX_CELLS (INT64_C(1) << 27) /* numbers of one leaf's tables: 2 GiB, more than any search makes */
#define FAR_NS (INT64_MAX / 4)       /* later than any leaf: sums of two stay within int64 */

/* A sending of the shared tensor starts no sooner than its arrival less its own time, and ends by the latest
 * arrival. */
static prove_wide cheapest_send(const prove_pricing *w, int32_t k)
{
    int64_t ns = prove_edge_ns(w->b, w->b->shared, w->a, k);
    prove_wide least = PROVE_TOO_LATE;
    if (w->arrived[k] < w->arrival[k])
        return PROVE_TOO_LATE;
    prove_task_line(w, prove_held_by(w->b->p, w->a, k), ns, 1, w->best);
    for (int64_t g = (w->arrival[k] - ns) / w->step; g < w->N && g <= (w->arrived[k] - ns) / w->step; g++)
        least = UTIL_MIN(least, w->best[g]);
    return least;
}

/* What the leaf assumes of the arrival on k. */
static void narrow(const prove_pricing *w, int32_t k, int64_t *soonest, int64_t *latest)
{
    for (int32_t x = 0; x < w->leaf->n_branches; x++) {
        const prove_branch *c = &w->leaf->branch[x];
        if (c->kind == PROVE_ARRIVAL && c->device == k) {
            *soonest = UTIL_MAX(*soonest, c->least);
            *latest = UTIL_MIN(*latest, c->most);
        }
    }
}

static void set_arrivals(prove_pricing *w)
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
static bool direct_is_late(const prove_pricing *w)
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

/* All time of a resource at its prices. */
static __int128 worth(const prove_leaf *leaf, int32_t r)
{
    __int128 sum = 0;
    for (int32_t x = 0; x < leaf->n_buckets; x++) {
        int64_t from = leaf->bucket[x] * leaf->step_ns, to = leaf->bucket[x + 1] * leaf->step_ns;
        sum += (__int128)leaf->price[(int64_t)r * leaf->n_buckets + x] *
               (UTIL_MIN(to, leaf->length_ns) - UTIL_MIN(from, leaf->length_ns));
    }
    return sum;
}

static __int128 capacity(const prove_problem *p, const prove_leaf *leaf)
{
    __int128 sum = prove_branch_term(leaf);
    for (int32_t r = 0; r < prove_resources(p); r++)
        sum += worth(leaf, r);
    return sum;
}

/* A certificate may ask for a grid so fine that its tables fill the machine: no honest one does. */
static bool is_modest(const prove_pricing *w, size_t largest)
{
    __int128 cells = (__int128)(largest + 1) * w->K + 3 + 2 * prove_resources(w->b->p);
    return cells * w->N <= MAX_CELLS;
}

static int allocate(prove_pricing *w)
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

static void spread_prices(prove_pricing *w)
{
    const prove_leaf *leaf = w->leaf;
    for (int32_t r = 0; r < prove_resources(w->b->p); r++) {
        int64_t *rate = w->rate + (int64_t)r * w->N;
        prove_wide *sum = w->sum + (int64_t)r * w->N;
        for (int32_t x = 0; x < leaf->n_buckets; x++)
            for (int32_t g = leaf->bucket[x]; g < leaf->bucket[x + 1]; g++)
                rate[g] = leaf->price[(int64_t)r * leaf->n_buckets + x];
        for (int32_t g = 0; g + 1 < w->N; g++)
            sum[g + 1] = sum[g] + (prove_wide)rate[g] * w->step;
    }
}

static int add_up(prove_pricing *w, prove_cost *out)
{
    out->never = direct_is_late(w);
    if (out->never)
        return 0;
    int rc = 0;
    spread_prices(w);
    for (int32_t x = 0; w->leaf->fixed && x < w->leaf->n_receivers; x++) {
        prove_wide send = cheapest_send(w, w->leaf->receiver[x]);
        out->never = out->never || send >= PROVE_TOO_LATE;
        out->sum += send;
    }
    for (int32_t kind = 0; kind < w->b->n_kinds && !out->never && !rc; kind++) {
        prove_wide least;
        rc = prove_cheapest_component(&least, w, kind);
        out->never = least >= PROVE_TOO_LATE;
        out->sum += least * w->b->kind[kind].count;
    }
    return rc;
}

int prove_least_cost(prove_cost *out, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf)
{
    prove_pricing w = {.b = b,
                       .leaf = leaf,
                       .a = a,
                       .z = z,
                       .K = b->p->K,
                       .N = leaf->n_steps,
                       .step = leaf->step_ns,
                       .length = leaf->length_ns};
    *out = (prove_cost){0};
    int rc = allocate(&w);
    if (!rc) {
        set_arrivals(&w);
        rc = add_up(&w, out);
    }
    util_release(&w.memory);
    return rc;
}

int prove_prices(bool *holds, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf)
{
    prove_cost cost;
    int rc = prove_least_cost(&cost, b, a, z, leaf);
    *holds = !rc && (cost.never || cost.sum > capacity(b->p, leaf));
    return rc;
}
