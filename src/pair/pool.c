/* The pool: all devices as one, every precedence kept.
 *
 * Prices in time (pricing/) see a component through a spanning tree, and on a wide irregular network most edges are
 * outside of it. Here links are left out instead, and all precedences are kept. Take a length T, weights c(k) >= 0 of
 * the devices and a price p(u) >= 0 of each moment u < T. An operator that starts at u on k pays c(k) times the
 * integral of p from u to u + t(i, k). At each moment each device serves at most one operator, so in a plan of length T
 * all operators together pay at most (sum of c) * (integral of p). If they must pay more, there is no such plan.
 *
 * What must they pay? Starts are counted in steps of s from the operator's own earliest start o(i): label g says that i
 * starts in [o(i) + g s, o(i) + (g + 1) s). A label costs the least over devices and over starts in that range that lie
 * in the device's window [head, T - time - tail]. For an edge from i to j with least distance d, start(j) >= start(i) +
 * d gives g(j) >= g(i) - m with m = ceil((o(j) - o(i) - d) / s); along a critical path nothing is lost to rounding. The
 * cheapest labels under these conditions are a minimum cut (Picard; Moehring, Schulz, Stork and Uetz for project
 * scheduling): a chain of nodes per operator, its arcs costing the labels, and an arc without limit from node (i, a) to
 * (j, a - m).
 *
 * **What proves.** The flow on the unlimited arcs are multipliers f(e, a) >= 0 of "g(i) >= a implies g(j) >= a - m".
 * For any such f the sum over i of the least over g of
 *     cost(i, g) + sum over a <= g of (f that leaves (i, a)) - (f that enters (i, a))
 * is at most what every plan pays. So the verdict is this sum, in whole numbers, and neither the cut nor the prices
 * need be right (docs/theory.md, Theorem 25).
 *
 * Prices: multiplicative updates by how much the cheapest labels use each bucket of time; weights: those that are best
 * for the load alone (pool_input.c). Lengths are tried four side by side, whatever the number of threads. */
#include "pair/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/pool_cut.h"
#include "pair/pool_input.h"
#include "schedule/paths.h"
#include "util/pool.h"
#include "util/util.h"

#define BUCKETS 128      /* of time, one price each */
#define MOST_LABELS 2000 /* of an operator */
#define PRICE_BITS 59    /* weights * integral of the price stays below */
#define RATE 0.8         /* of the first change of prices */
#define RATE_ROUNDS 5.0  /* until it falls */
#define LATEST 0.15      /* of the mean use is the latest */
#define LEAST_SHAPE 1e-6
#define PATIENCE 5 /* rounds before a length is given up */
#define HOPE 2.2

typedef __int128 wide;

typedef struct trial {
    const moirai_problem *q;
    const pair_pool_task *job;
    const int64_t *head, *tail, *weight;
    int32_t n, K, E; /* E: arcs, the problem's edges first */
    const pair_pool_arcs *arcs;
    int64_t length_ns, step_ns, bucket_ns;
    double *shape;         /* per bucket: the price, up to a factor */
    int64_t *price, *paid; /* per bucket: price; integral up to its beginning */
    int64_t *offset;       /* per operator: earliest start */
    int32_t *labels;       /* per operator */
    int32_t *late;         /* per arc: how many labels its end may be behind its beginning */
    int32_t *label_off;
    int64_t *cost;         /* per label; -1: no device can start then */
    int32_t *arc;          /* per label: the arc that costs it; MOIRAI_NONE: constant */
    int32_t *edge_arc_off; /* per arc: its first unlimited one in the network, for step edge_step */
    int32_t *edge_step;
    pair_cut cut;
    double *use, *mean; /* per bucket */
    bool impossible;    /* no window is left: excluded by heads and tails alone */
    bool excluded;
    pair_pool_proof proof;
} trial;

void pair_pool_proof_free(pair_pool_proof *proof)
{
    free(proof->weight);
    free(proof->price);
    free(proof->flow);
    *proof = (pair_pool_proof){0};
}

static void clear(trial *x)
{
    void *all[] = {x->shape, x->price, x->paid,         x->offset,    x->labels, x->late, x->label_off,
                   x->cost,  x->arc,   x->edge_arc_off, x->edge_step, x->use,    x->mean};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    pair_cut_free(&x->cut);
    pair_pool_proof_free(&x->proof);
}

static bool allowed(const trial *x, int32_t i, int32_t k)
{
    return x->q->op_devices[i] >> k & 1;
}

static int64_t latest(const trial *x, int32_t i, int32_t k)
{
    return x->length_ns - moirai_op_ns(x->q, i, k) - x->tail[(int64_t)i * x->K + k];
}

/* ---- labels ---- */

/* Earliest starts and latest, over all devices. */
static void find_windows(trial *x)
{
    for (int32_t i = 0; i < x->n; i++) {
        int64_t first = INT64_MAX, last = INT64_MIN;
        for (int32_t k = 0; k < x->K; k++)
            if (allowed(x, i, k) && x->head[(int64_t)i * x->K + k] <= latest(x, i, k)) {
                first = UTIL_MIN(first, x->head[(int64_t)i * x->K + k]);
                last = UTIL_MAX(last, latest(x, i, k));
            }
        x->impossible |= first > last;
        x->offset[i] = first;
        x->labels[i] = first > last ? 1 : (int32_t)((last - first) / x->step_ns + 1);
    }
}

/* ceil(a / b) for b > 0. */
static int64_t up(int64_t a, int64_t b)
{
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

static void find_lateness(trial *x)
{
    const pair_pool_arcs *arcs = x->arcs;
    for (int32_t e = 0; e < x->E; e++) {
        const pair_pool_arc *a = &arcs->arc[e];
        x->late[e] = (int32_t)up(x->offset[a->to] - x->offset[a->from] - a->ns, x->step_ns);
    }
    /* Nothing is later than what follows it allows. */
    for (int32_t z = x->n - 1; z >= 0; z--) {
        int32_t i = x->q->topo[z];
        for (int32_t o = arcs->out_off[i]; o < arcs->out_off[i + 1]; o++) {
            int32_t e = arcs->out[o];
            x->labels[i] = UTIL_MIN(x->labels[i], x->labels[arcs->arc[e].to] + x->late[e]);
        }
        x->impossible |= x->labels[i] < 1;
        x->labels[i] = UTIL_MAX(x->labels[i], 1);
    }
}

/* ---- costs ---- */

static int64_t integral(const trial *x, int64_t u)
{
    int64_t b = UTIL_MIN(u / x->bucket_ns, x->proof.n_buckets - 1);
    return x->paid[b] + x->price[b] * (u - b * x->bucket_ns);
}

/* The least integral over [u, u + ns) for u in [from, to], and where. It is linear between the points where u or u + ns
 * enters a bucket. */
static int64_t least_pay(const trial *x, int64_t from, int64_t to, int64_t ns, int64_t *where)
{
    int64_t best = integral(x, from + ns) - integral(x, from), last = integral(x, to + ns) - integral(x, to);
    *where = from;
    if (last < best) {
        best = last;
        *where = to;
    }
    for (int side = 0; side < 2; side++) {
        int64_t shift = side ? ns : 0;
        for (int64_t u = ((from + shift) / x->bucket_ns + 1) * x->bucket_ns - shift; u < to; u += x->bucket_ns) {
            int64_t pay = integral(x, u + ns) - integral(x, u);
            if (pay < best) {
                best = pay;
                *where = u;
            }
        }
    }
    return best;
}

/* The cheapest device and start of label g, -1: none. */
static int64_t label_cost(const trial *x, int32_t i, int32_t g, int32_t *device, int64_t *start)
{
    int64_t best = -1, from = x->offset[i] + g * x->step_ns, to = from + x->step_ns - 1;
    for (int32_t k = 0; k < x->K; k++) {
        int64_t a = UTIL_MAX(from, x->head[(int64_t)i * x->K + k]), b, at;
        if (!allowed(x, i, k) || a > (b = UTIL_MIN(to, latest(x, i, k))))
            continue;
        int64_t pay = x->weight[k] * least_pay(x, a, b, moirai_op_ns(x->q, i, k), &at);
        if (best < 0 || pay < best) {
            best = pay;
            *device = k;
            *start = at;
        }
    }
    return best;
}

static void find_costs(trial *x)
{
    int32_t k;
    int64_t at;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t g = 0; g < x->labels[i]; g++)
            x->cost[x->label_off[i] + g] = label_cost(x, i, g, &k, &at);
}

/* The shape as whole prices, as large as the sums allow. */
static void set_prices(trial *x)
{
    double most = 0, sum = 0, weights = 0;
    int64_t T = x->length_ns;
    for (int32_t k = 0; k < x->K; k++)
        weights += (double)x->weight[k];
    for (int32_t b = 0; b < x->proof.n_buckets; b++) {
        most = fmax(most, x->shape[b]);
        sum += x->shape[b] * (double)UTIL_MIN(x->bucket_ns, T - b * x->bucket_ns);
    }
    double scale = weights * sum > 0 ? ldexp(1, PRICE_BITS) / (weights * sum) : 0; /* nothing to sell within no time */
    int64_t paid = 0;
    for (int32_t b = 0; b < x->proof.n_buckets; b++) {
        x->price[b] = (int64_t)(x->shape[b] * scale);
        x->paid[b] = paid;
        paid += x->price[b] * UTIL_MIN(x->bucket_ns, T - b * x->bucket_ns);
    }
    x->paid[x->proof.n_buckets] = paid;
}

static int64_t capacity(const trial *x)
{
    int64_t weights = 0;
    for (int32_t k = 0; k < x->K; k++)
        weights += x->weight[k];
    return weights * x->paid[x->proof.n_buckets];
}

/* ---- the network ---- */

/* Node of "operator i starts in label g or later"; label 0 is certain, one beyond the last impossible. */
static int32_t node(const trial *x, int32_t i, int32_t g)
{
    return g <= 0 ? PAIR_CUT_SOURCE : g >= x->labels[i] ? PAIR_CUT_SINK : 2 + x->label_off[i] - i + g - 1;
}

static int32_t list_arcs(trial *x, int32_t *from, int32_t *to)
{
    int32_t n = 0;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t g = 0; g < x->labels[i]; g++) {
            int32_t a = node(x, i, g), b = node(x, i, g + 1);
            bool constant = x->labels[i] == 1;
            x->arc[x->label_off[i] + g] = constant ? MOIRAI_NONE : n;
            if (constant)
                continue;
            if (from) {
                from[n] = a;
                to[n] = b;
            }
            n++;
        }
    for (int32_t e = 0; e < x->E; e++) {
        int32_t i = x->arcs->arc[e].from, j = x->arcs->arc[e].to, first = UTIL_MAX(1, 1 + x->late[e]);
        x->edge_arc_off[e] = n;
        x->edge_step[e] = first;
        for (int32_t a = first; a < x->labels[i]; a++, n++)
            if (from) {
                from[n] = node(x, i, a);
                to[n] = node(x, j, a - x->late[e]);
            }
    }
    x->edge_arc_off[x->E] = n;
    return n;
}

static int make_network(trial *x)
{
    int32_t arcs = list_arcs(x, NULL, NULL), *from = util_alloc((size_t)arcs, sizeof *from),
            *to = util_alloc((size_t)arcs, sizeof *to);
    int rc = from && to ? 0 : MOIRAI_EFAIL;
    if (!rc)
        list_arcs(x, from, to);
    rc = rc ? rc : pair_cut_new(&x->cut, 2 + x->label_off[x->n] - x->n, arcs, from, to);
    free(from);
    free(to);
    return rc;
}

/* Costs as capacities; what is constant adds to the flow. */
static int64_t set_capacities(trial *x)
{
    int64_t flow = 0;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t at = x->label_off[i]; at < x->label_off[i + 1]; at++) {
            int64_t cost = x->cost[at] < 0 ? PAIR_CUT_ALWAYS : x->cost[at];
            if (x->arc[at] == MOIRAI_NONE) {
                flow += x->cost[at] < 0 ? 0 : cost;
                continue;
            }
            x->cut.left[2 * x->arc[at]] = cost;
            x->cut.left[2 * x->arc[at] + 1] =
                at > x->label_off[i] && at + 1 < x->label_off[i + 1] ? PAIR_CUT_ALWAYS : 0;
        }
    for (int32_t a = x->edge_arc_off[0]; a < x->edge_arc_off[x->E]; a++) {
        x->cut.left[2 * a] = PAIR_CUT_ALWAYS;
        x->cut.left[2 * a + 1] = 0;
    }
    return flow;
}

/* ---- the verdict ---- */

static int64_t flow_of(const trial *x, int32_t e, int32_t step)
{
    int32_t first = x->edge_step[e], i = x->arcs->arc[e].from;
    return step < first || step >= x->labels[i] ? 0 : x->cut.left[2 * (x->edge_arc_off[e] + step - first) + 1];
}

/* The least of an operator's labels at the multipliers. */
static wide part_of_op(const trial *x, int32_t i)
{
    const pair_pool_arcs *arcs = x->arcs;
    wide least = 0, extra = 0;
    bool any = false;
    for (int32_t g = 0; g < x->labels[i]; g++) {
        for (int32_t j = arcs->in_off[i]; j < arcs->in_off[i + 1] && g > 0; j++)
            extra -= flow_of(x, arcs->in[j], g + x->late[arcs->in[j]]);
        for (int32_t j = arcs->out_off[i]; j < arcs->out_off[i + 1] && g > 0; j++)
            extra += flow_of(x, arcs->out[j], g);
        int64_t cost = x->cost[x->label_off[i] + g];
        if (cost >= 0 && (!any || cost + extra < least)) {
            least = cost + extra;
            any = true;
        }
    }
    return least;
}

static bool excludes(const trial *x)
{
    wide sum = 0;
    for (int32_t i = 0; i < x->n; i++)
        sum += part_of_op(x, i);
    return sum > capacity(x);
}

static int keep_proof(trial *x)
{
    pair_pool_proof *p = &x->proof;
    int32_t n = 0;
    p->weight = util_alloc((size_t)x->K, sizeof *p->weight);
    p->price = util_alloc((size_t)p->n_buckets, sizeof *p->price);
    p->flow = util_alloc((size_t)(x->edge_arc_off[x->E] - x->edge_arc_off[0]), sizeof *p->flow);
    if (!p->weight || !p->price || !p->flow)
        return MOIRAI_EFAIL;
    memcpy(p->weight, x->weight, sizeof *p->weight * (size_t)x->K);
    memcpy(p->price, x->price, sizeof *p->price * (size_t)p->n_buckets);
    p->length_ns = x->length_ns;
    p->step_ns = x->step_ns;
    p->bucket_ns = x->bucket_ns;
    for (int32_t e = 0; e < x->E; e++)
        for (int32_t a = x->edge_arc_off[e]; a < x->edge_arc_off[e + 1]; a++)
            if (x->cut.left[2 * a + 1] > 0)
                p->flow[n++] = (pair_pool_flow){e, x->edge_step[e] + a - x->edge_arc_off[e], x->cut.left[2 * a + 1]};
    p->n_flows = n;
    return 0;
}

/* ---- prices ---- */

/* How much of each bucket the cheapest labels use, in parts of all devices together. */
static void find_use(trial *x)
{
    double weights = 0;
    for (int32_t k = 0; k < x->K; k++)
        weights += (double)x->weight[k];
    for (int32_t b = 0; b < x->proof.n_buckets; b++)
        x->use[b] = 0;
    for (int32_t i = 0; i < x->n; i++) {
        int32_t g = 0, k = 0;
        int64_t u = 0;
        while (g + 1 < x->labels[i] && x->cut.level[node(x, i, g + 1)] < 0)
            g++;
        if (label_cost(x, i, g, &k, &u) < 0)
            continue;
        for (int64_t end = u + moirai_op_ns(x->q, i, k), b = u / x->bucket_ns; u < end; b++) {
            int64_t until = UTIL_MIN(end, (b + 1) * x->bucket_ns);
            b = UTIL_MIN(b, x->proof.n_buckets - 1);
            x->use[b] += (double)x->weight[k] * (double)(until - u);
            u = until;
        }
    }
    for (int32_t b = 0; b < x->proof.n_buckets; b++)
        x->use[b] /= weights * (double)UTIL_MAX(UTIL_MIN(x->bucket_ns, x->length_ns - b * x->bucket_ns), 1);
}

/* Prices rise where the mean of the latest uses is above what there is. The mean damps: cheapest labels jump. */
static void update_shape(trial *x, int32_t round)
{
    double rate = RATE / sqrt(1 + round / RATE_ROUNDS), most = 0;
    for (int32_t b = 0; b < x->proof.n_buckets; b++) {
        x->mean[b] += LATEST * (x->use[b] - x->mean[b]);
        x->shape[b] *= exp(rate * fmin(x->mean[b] - 1, 1));
        most = fmax(most, x->shape[b]);
    }
    for (int32_t b = 0; b < x->proof.n_buckets; b++)
        x->shape[b] = fmax(x->shape[b] / most, LEAST_SHAPE);
}

/* ---- a length ---- */

static int prepare(trial *x)
{
    size_t n = (size_t)x->n, E = (size_t)x->E, B = (size_t)x->proof.n_buckets;
    x->price = util_alloc(B, sizeof *x->price);
    x->paid = util_alloc(B + 1, sizeof *x->paid);
    x->use = util_alloc(B, sizeof *x->use);
    x->mean = util_alloc(B, sizeof *x->mean);
    x->offset = util_alloc(n, sizeof *x->offset);
    x->labels = util_alloc(n, sizeof *x->labels);
    x->late = util_alloc(E, sizeof *x->late);
    x->label_off = util_alloc(n + 1, sizeof *x->label_off);
    x->edge_arc_off = util_alloc(E + 1, sizeof *x->edge_arc_off);
    x->edge_step = util_alloc(E, sizeof *x->edge_step);
    if (!x->price || !x->paid || !x->use || !x->mean || !x->offset || !x->labels || !x->late || !x->label_off ||
        !x->edge_arc_off || !x->edge_step)
        return MOIRAI_EFAIL;
    find_windows(x);
    if (x->impossible)
        return 0;
    find_lateness(x);
    for (int32_t i = 0; i < x->n; i++)
        x->label_off[i + 1] = x->label_off[i] + x->labels[i];
    x->cost = util_alloc((size_t)x->label_off[n], sizeof *x->cost);
    x->arc = util_alloc((size_t)x->label_off[n], sizeof *x->arc);
    return x->cost && x->arc ? make_network(x) : MOIRAI_EFAIL;
}

/* Whether prices that have come so far in so many rounds are likely to get there. */
static bool hopeless(double ratio, int32_t rounds)
{
    return rounds >= PATIENCE && ratio < 1 - HOPE / rounds;
}

static int try_length(void *data, int32_t which)
{
    trial *x = (trial *)data + which;
    double best = 0;
    int rc = prepare(x);
    for (int32_t b = 0; !rc && b < x->proof.n_buckets; b++)
        x->mean[b] = 1;
    x->excluded = x->impossible && x->job->head && !x->job->written; /* no proof of it could be written down */
    for (int32_t round = 0; round < x->job->cuts && !rc && !x->impossible; round++) {
        set_prices(x);
        find_costs(x);
        int64_t flow = set_capacities(x), enough = capacity(x);
        pair_cut_fill(&flow, &x->cut, enough, &x->job->stop);
        best = fmax(best, (double)flow / (double)UTIL_MAX(enough, 1));
        if (flow > enough && excludes(x)) {
            x->excluded = true;
            return keep_proof(x);
        }
        if (util_stopped(&x->job->stop) || hopeless(best, round + 1))
            break;
        find_use(x);
        update_shape(x, round);
    }
    return rc;
}

/* ---- lengths ---- */

typedef struct pooling {
    const moirai_problem *q;
    const pair_pool_task *job;
    int64_t *head, *tail, *weight;
    pair_pool_arcs arcs;
    double *shape;           /* of the best prices so far */
    int64_t low_ns, high_ns; /* excluded; not excluded */
} pooling;

static int32_t buckets_of(int64_t length_ns)
{
    int64_t width = UTIL_MAX(up(length_ns, BUCKETS), 1);
    return (int32_t)UTIL_MAX(up(length_ns, width), 1);
}

/* A step with which the network has about so many labels. */
static int64_t step_of(const pooling *p, int64_t length_ns)
{
    const moirai_problem *q = p->q;
    double span = 0;
    for (int32_t i = 0; i < q->n_ops; i++) {
        int64_t most = 0;
        for (int32_t k = 0; k < q->n_devices; k++)
            if (q->op_devices[i] >> k & 1) {
                int64_t at = (int64_t)i * q->n_devices + k;
                most = UTIL_MAX(most, length_ns - p->head[at] - moirai_op_ns(q, i, k) - p->tail[at]);
            }
        span += (double)most;
    }
    int64_t step = (int64_t)(span / fmax(p->job->nodes, 1));
    return UTIL_MAX(step, length_ns / MOST_LABELS + 1);
}

static int begin(trial *x, const pooling *p, int64_t length_ns)
{
    *x = (trial){.q = p->q,
                 .job = p->job,
                 .head = p->head,
                 .tail = p->tail,
                 .weight = p->weight,
                 .n = p->q->n_ops,
                 .K = p->q->n_devices,
                 .E = p->arcs.n,
                 .arcs = &p->arcs,
                 .length_ns = length_ns,
                 .step_ns = step_of(p, length_ns),
                 .bucket_ns = UTIL_MAX(up(length_ns, BUCKETS), 1)};
    x->proof.n_buckets = buckets_of(length_ns);
    x->shape = util_alloc(BUCKETS, sizeof *x->shape);
    if (!x->shape)
        return MOIRAI_EFAIL;
    memcpy(x->shape, p->shape, sizeof *x->shape * BUCKETS);
    return 0;
}

/* Four lengths between what is excluded and what was not; the longest excluded one counts. */
static int try_lengths(pooling *p, pair_pool_proof *proof, bool *any)
{
    trial x[PAIR_POOL_SIDE] = {0};
    int32_t n = 0, best = -1;
    int rc = 0;
    *any = false;
    for (int32_t i = 0; i < PAIR_POOL_SIDE && !rc; i++) {
        int64_t length = p->low_ns + (int64_t)((double)(p->high_ns - p->low_ns) * (i + 1) / (PAIR_POOL_SIDE + 1));
        if (length >= p->low_ns && length < p->high_ns)
            rc = begin(&x[n++], p, length);
    }
    rc = rc ? rc : util_pool_run(try_length, x, n, p->job->threads);
    for (int32_t i = 0; i < n && !rc; i++)
        if (x[i].excluded)
            best = i;
    if (!rc && best >= 0) {
        *any = true;
        p->low_ns = x[best].length_ns + 1;
        pair_pool_proof_free(proof);
        *proof = x[best].proof;
        x[best].proof = (pair_pool_proof){0};
    }
    if (!rc && best + 1 < n) {
        p->high_ns = x[best + 1].length_ns;
        memcpy(p->shape, x[best + 1].shape, sizeof *p->shape * BUCKETS);
    }
    for (int32_t i = 0; i < n; i++)
        clear(&x[i]);
    return rc;
}

static void find_paths(pooling *p)
{
    size_t bytes = sizeof *p->head * (size_t)p->q->n_ops * (size_t)p->q->n_devices;
    schedule_paths paths = {.p = p->q};
    if (p->job->head && p->job->tail) {
        memcpy(p->head, p->job->head, bytes);
        memcpy(p->tail, p->job->tail, bytes);
        return;
    }
    schedule_heads(p->head, &paths);
    schedule_tails(p->tail, &paths);
}

static int pool(pooling *p, pair_pool_proof *proof)
{
    bool any = false;
    find_paths(p);
    for (int32_t b = 0; b < BUCKETS; b++)
        p->shape[b] = 1;
    int rc = pair_pool_find_arcs(&p->arcs, p->q, p->job);
    rc = rc ? rc : pair_pool_find_weights(p->weight, p->q, &p->job->stop);
    for (int32_t i = 0, idle = 0; i < p->job->rounds && !rc && p->low_ns < p->high_ns && idle < 2; i++) {
        rc = util_stopped(&p->job->stop) ? 0 : try_lengths(p, proof, &any);
        idle = any ? 0 : idle + 1;
    }
    return rc;
}

int pair_pool(int64_t *lower_ns, const moirai_problem *q, const pair_pool_task *job, pair_pool_proof *proof)
{
    size_t cells = (size_t)q->n_ops * (size_t)q->n_devices;
    pair_pool_proof own = {0};
    pooling p = {.q = q, .job = job, .low_ns = job->proven_ns, .high_ns = job->upper_ns};
    *lower_ns = job->proven_ns;
    if (proof)
        *proof = own;
    if (q->n_ops == 0 || job->proven_ns >= job->upper_ns)
        return 0;
    p.head = util_alloc(cells, sizeof *p.head);
    p.tail = util_alloc(cells, sizeof *p.tail);
    p.weight = util_alloc((size_t)q->n_devices, sizeof *p.weight);
    p.shape = util_alloc(BUCKETS, sizeof *p.shape);
    int rc = p.head && p.tail && p.weight && p.shape ? pool(&p, &own) : MOIRAI_EFAIL;
    if (!rc)
        *lower_ns = p.low_ns;
    if (!rc && proof)
        *proof = own;
    else
        pair_pool_proof_free(&own);
    pair_pool_clear_arcs(&p.arcs);
    free(p.head);
    free(p.tail);
    free(p.weight);
    free(p.shape);
    return rc;
}
