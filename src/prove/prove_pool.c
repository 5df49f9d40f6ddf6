/* The proof by one pool of all devices within windows, judged in whole numbers.
 *
 * Suppose a plan takes at most T. Operator i on k starts in [head(i, k), T - time
 * - tail(i, k)]. Let o(i) be the least such start over the devices that have any, and g(i) the number of whole steps s
 * from o(i) to the start of i. Two things hold:
 *
 *   (pay)   At each moment a device serves one operator. So with weights c(k) >= 0 and a price >= 0 of each moment, the
 *           operators pay at most sum of c * integral of the price over [0, T) together.
 *   (order) For an edge from i to j, start(j) - start(i) >= d, the least time of i and of the transfer over allowed
 *           devices. So g(j) >= g(i) - m with m = ceil((o(j) - o(i) - d) / s): if i is in step x or later, j is in step
 *           x - m or later.
 *
 * The certificate gives c, the prices, s and multipliers >= 0 of (order), per edge and x. For each operator the least
 * over its steps of (what it pays there at least) + (multipliers of its own steps reached) - (multipliers of steps
 * reached as a reader) is found here; their sum is at most what all pay. If it is more than (pay) allows, there is no
 * such plan, and T + 1 is proven.
 *
 * Nothing is asked of heads and tails but that they are true. They come from intervals (prove_windows.c), which also say how
 * far apart two operators start at least: (order) holds for these as for edges. */
#include "prove/prove_read.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define NEVER INT64_MAX
#define MAX_PRICES 65536
#define MAX_STEPS INT64_C(65536)    /* of one operator */
#define MAX_ALL (INT64_C(1) << 26)  /* of all */
#define MAX_PAY ((__int128)1 << 62) /* of all devices */

typedef struct court {
    const prove_block *b;
    int32_t K;
    int64_t length, step, width;
    int64_t *weight, *price, *flow; /* flow: edge, step, value */
    size_t n_prices, n_flows;
    int64_t *sum;           /* [n_prices + 1] integral of the price up to each bucket */
    int64_t *first, *steps; /* per operator: o and how many steps */
    const prove_view *view;
    int32_t n_arcs;     /* edges, then those of the view */
    int32_t *from, *to; /* of arcs */
    int64_t *apart;     /* and the least time from start to start */
    int64_t *late;      /* per arc: m */
    int64_t *off;       /* per operator: its first step in extra */
    __int128 *extra;    /* per step: multipliers that begin to count there */
    util_memory memory;
} court;

/* The starts of i on k: [*from, *to], empty where from > to. */
static void window(const court *x, int32_t i, int32_t k, int64_t *from, int64_t *to)
{
    *from = x->view->head[i * x->K + k];
    *to = x->b->p->may[i] >> k & 1 ? x->length - prove_op_ns(x->b, i, k) - x->view->tail[i * x->K + k] : -1;
}

/* Steps of every operator. */
static int find_steps(court *x)
{
    int64_t all = 0;
    for (int32_t i = 0; i < x->b->n; i++) {
        int64_t first = NEVER, last = -1;
        for (int32_t k = 0; k < x->K; k++) {
            int64_t from, to;
            window(x, i, k, &from, &to);
            if (from <= to) {
                first = UTIL_MIN(first, from);
                last = UTIL_MAX(last, to);
            }
        }
        if (first > last)
            return prove_wrong("a pool's length leaves some operator no start");
        if ((last - first) / x->step >= MAX_STEPS)
            return prove_too_large("an operator of a pool has too many steps");
        x->first[i] = first;
        x->steps[i] = (last - first) / x->step + 1;
        all += x->steps[i];
    }
    return all <= MAX_ALL ? 0 : prove_too_large("a pool has too many steps");
}

/* Edges, and what the view adds. */
static void list_arcs(court *x)
{
    const prove_block *b = x->b;
    for (int32_t e = 0; e < b->n_edges; e++) {
        x->from[e] = b->edge[e].from;
        x->to[e] = b->edge[e].to;
        x->apart[e] = prove_apart(b, b->p->may, b->edge[e].from, b->edge[e].to, b->edge[e].ns);
    }
    for (int32_t e = b->n_edges; e < x->n_arcs; e++) {
        x->from[e] = x->view->arc[e - b->n_edges][0];
        x->to[e] = x->view->arc[e - b->n_edges][1];
        x->apart[e] = x->view->arc_ns[e - b->n_edges];
    }
}

static int64_t lateness(const court *x, int32_t e)
{
    int64_t slack = x->first[x->to[e]] - x->first[x->from[e]] - x->apart[e];
    return slack > 0 ? (slack - 1) / x->step + 1 : -(-slack / x->step);
}

/* Steps that would put a reader behind its last one do not exist either: readers before producers. */
static int find_lateness(court *x)
{
    for (int32_t i = x->b->n - 1; i >= 0; i--) {
        int rc = prove_go_on(x->b->p);
        if (rc)
            return rc;
        for (int32_t e = 0; e < x->n_arcs; e++) {
            if (x->from[e] != i)
                continue;
            x->late[e] = lateness(x, e);
            x->steps[i] = UTIL_MIN(x->steps[i], x->steps[x->to[e]] + x->late[e]);
            if (x->steps[i] < 1)
                return prove_wrong("a pool's length leaves some operator no start");
        }
    }
    for (int32_t i = 0; i < x->b->n; i++)
        x->off[i + 1] = x->off[i] + x->steps[i];
    return 0;
}

/* ---- what is paid ---- */

static int64_t until(const court *x, int64_t u)
{
    int64_t q = UTIL_MIN(u / x->width, (int64_t)x->n_prices - 1);
    return x->sum[q] + x->price[q] * (u - q * x->width);
}

/* The least over starts in [from, to]: linear between starts where the beginning or the end meets a new price. */
static int64_t least_pay(const court *x, int64_t from, int64_t to, int64_t time)
{
    int64_t least = UTIL_MIN(until(x, from + time) - until(x, from), until(x, to + time) - until(x, to));
    for (int64_t q = from / x->width + 1; q * x->width <= to; q++)
        least = UTIL_MIN(least, until(x, q * x->width + time) - until(x, q * x->width));
    for (int64_t q = (from + time) / x->width + 1; q * x->width - time <= to; q++)
        least = UTIL_MIN(least, until(x, q * x->width) - until(x, q * x->width - time));
    return least;
}

/* The least over the steps of an operator. */
static __int128 term(const court *x, int32_t i)
{
    __int128 least = MAX_PAY * 2, extra = 0;
    bool any = false;
    for (int64_t g = 0; g < x->steps[i]; g++) {
        extra += x->extra[x->off[i] + g];
        for (int32_t k = 0; k < x->K; k++) {
            int64_t from, to, begin = x->first[i] + g * x->step;
            window(x, i, k, &from, &to);
            from = UTIL_MAX(from, begin);
            to = UTIL_MIN(to, begin + x->step - 1);
            if (from > to)
                continue;
            __int128 pays = (__int128)x->weight[k] * least_pay(x, from, to, prove_op_ns(x->b, i, k)) + extra;
            if (!any || pays < least)
                least = pays;
            any = true;
        }
    }
    return least;
}

static int spread_flows(court *x)
{
    const prove_block *b = x->b;
    UTIL_TAKE(&x->memory, x->extra, (size_t)x->off[b->n]);
    if (!x->extra)
        return MOIRAI_EFAIL;
    for (size_t f = 0; f < x->n_flows; f++) {
        int64_t e = x->flow[3 * f], g = x->flow[3 * f + 1], value = x->flow[3 * f + 2];
        if (e >= x->n_arcs || g < 1 || g - x->late[e] < 1)
            return prove_wrong("a flow of no step");
        int32_t i = x->from[e], j = x->to[e];
        if (g < x->steps[i])
            x->extra[x->off[i] + g] += value;
        if (g < x->steps[i] && g - x->late[e] < x->steps[j])
            x->extra[x->off[j] + g - x->late[e]] -= value;
    }
    return 0;
}

static int judge(int64_t *ns, court *x)
{
    list_arcs(x);
    int rc = find_steps(x);
    rc = rc ? rc : find_lateness(x);
    rc = rc ? rc : spread_flows(x);
    __int128 sum = 0, capacity = 0;
    for (int32_t i = 0; i < x->b->n && !rc; i++) {
        rc = prove_go_on(x->b->p);
        sum += term(x, i);
    }
    for (int32_t k = 0; k < x->K; k++)
        capacity += (__int128)x->weight[k] * x->sum[x->n_prices];
    if (!rc && sum <= capacity)
        rc = prove_wrong("a pool's prices exclude nothing");
    if (!rc)
        *ns = UTIL_MAX(*ns, x->length + 1);
    return rc;
}

/* ---- reading ---- */

static int read_prices(court *x, yyjson_val *object)
{
    size_t n;
    int rc = prove_list(&x->weight, &n, prove_get(object, "weights"), INT64_MAX, "weights");
    if (!rc && n != (size_t)x->K)
        rc = prove_wrong("weights has not one number per device");
    rc = rc ? rc : prove_list(&x->price, &x->n_prices, prove_get(object, "prices"), INT64_MAX, "prices");
    if (!rc && x->n_prices > MAX_PRICES)
        rc = prove_too_large("a pool has too many prices");
    if (!rc && (x->n_prices == 0 || (x->length - 1) / x->width + 1 != (int64_t)x->n_prices))
        rc = prove_wrong("prices has not one number per bucket of the length");
    UTIL_TAKE(&x->memory, x->sum, x->n_prices + 1);
    if (!rc && !x->sum)
        rc = MOIRAI_EFAIL;
    __int128 sum = 0, weights = 0;
    for (int32_t k = 0; k < x->K && !rc; k++)
        weights += x->weight[k];
    for (size_t q = 0; q < x->n_prices && !rc; q++) {
        int64_t begin = (int64_t)q * x->width;
        sum += (__int128)x->price[q] * (UTIL_MIN(begin + x->width, x->length) - begin);
        if (sum * (weights + 1) >= MAX_PAY)
            rc = prove_too_large("a pool's prices are too large");
        else
            x->sum[q + 1] = (int64_t)sum;
    }
    return rc;
}

static int read_all(court *x, yyjson_val *object)
{
    x->length = prove_number(object, "length_ns");
    x->step = prove_number(object, "step_ns");
    x->width = prove_number(object, "bucket_ns");
    int rc = read_prices(x, object);
    rc = rc ? rc : prove_list(&x->flow, &x->n_flows, prove_get(object, "flows"), INT64_MAX, "flows");
    x->n_flows /= 3;
    return rc;
}

int prove_pool(int64_t *ns, const prove_block *b, yyjson_val *object, const prove_view *view)
{
    court x = {.b = b, .K = b->p->K, .view = view};
    size_t n = (size_t)b->n, arcs = (size_t)b->n_edges + view->n_arcs;
    x.n_arcs = (int32_t)arcs;
    UTIL_TAKE(&x.memory, x.from, arcs);
    UTIL_TAKE(&x.memory, x.to, arcs);
    UTIL_TAKE(&x.memory, x.apart, arcs);
    UTIL_TAKE(&x.memory, x.first, n);
    UTIL_TAKE(&x.memory, x.steps, n);
    UTIL_TAKE(&x.memory, x.off, n + 1);
    UTIL_TAKE(&x.memory, x.late, arcs);
    int rc = x.memory.failed ? MOIRAI_EFAIL : read_all(&x, object);
    rc = rc ? rc : judge(ns, &x);
    free(x.weight);
    free(x.price);
    free(x.flow);
    util_release(&x.memory);
    return rc;
}
