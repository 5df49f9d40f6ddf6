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
 * for the load alone. Lengths are tried four side by side, whatever the number of threads. */
#include "pair/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/pair_tuning.h"
#include "pair/pool_state.h"
#include "schedule/load.h"
#include "schedule/paths.h"
#include "util/pool.h"
#include "util/util.h"

void pair_pool_proof_free(pair_pool_proof *proof)
{
    free(proof->weight);
    free(proof->price);
    free(proof->flow);
    *proof = (pair_pool_proof){0};
}

typedef struct pooling {
    const moirai_problem *q;
    const pair_pool_task *job;
    int64_t *head, *tail, *weight;
    pair_pool_arcs arcs;
    double *shape;           /* of the best prices so far */
    int64_t low_ns, high_ns; /* excluded; not excluded */
    util_memory memory;
} pooling;

static int32_t buckets_of(int64_t length_ns)
{
    int64_t width = UTIL_MAX(pair_pool_up(length_ns, PAIR_POOL_BUCKETS), 1);
    return (int32_t)UTIL_MAX(pair_pool_up(length_ns, width), 1);
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
    return UTIL_MAX(step, length_ns / PAIR_POOL_MOST_LABELS + 1);
}

static int begin(pair_pool_trial *x, const pooling *p, int64_t length_ns)
{
    *x = (pair_pool_trial){.q = p->q,
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
                           .bucket_ns = UTIL_MAX(pair_pool_up(length_ns, PAIR_POOL_BUCKETS), 1)};
    x->proof.n_buckets = buckets_of(length_ns);
    UTIL_TAKE(&x->memory, x->sale.shape, PAIR_POOL_BUCKETS);
    if (!x->sale.shape)
        return MOIRAI_EFAIL;
    memcpy(x->sale.shape, p->shape, sizeof *x->sale.shape * PAIR_POOL_BUCKETS);
    return 0;
}

/* Four lengths between what is excluded and what was not; the longest excluded one counts. */
static int try_lengths(pooling *p, pair_pool_proof *proof, bool *any)
{
    pair_pool_trial x[PAIR_POOL_SIDE] = {0};
    int32_t n = 0, best = -1;
    int rc = 0;
    *any = false;
    for (int32_t i = 0; i < PAIR_POOL_SIDE && !rc; i++) {
        int64_t length = p->low_ns + (int64_t)((double)(p->high_ns - p->low_ns) * (i + 1) / (PAIR_POOL_SIDE + 1));
        if (length >= p->low_ns && length < p->high_ns)
            rc = begin(&x[n++], p, length);
    }
    rc = rc ? rc : util_pool_run(pair_pool_try, x, n, p->job->threads);
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
        memcpy(p->shape, x[best + 1].sale.shape, sizeof *p->shape * PAIR_POOL_BUCKETS);
    }
    for (int32_t i = 0; i < n; i++)
        pair_pool_trial_clear(&x[i]);
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

/* Those of the load bound: what makes the load alone large. Any are valid. */
static void find_weights(pooling *p)
{
    int64_t sum = 0;
    schedule_bound_load(p->weight, p->q);
    for (int32_t k = 0; k < p->q->n_devices; k++)
        sum += p->weight[k];
    for (int32_t k = 0; k < p->q->n_devices; k++)
        p->weight[k] = (p->weight[k] * PAIR_POOL_WEIGHTS + sum / 2) / UTIL_MAX(sum, 1);
}

static int pool(pooling *p, pair_pool_proof *proof)
{
    bool any = false;
    find_paths(p);
    find_weights(p);
    for (int32_t b = 0; b < PAIR_POOL_BUCKETS; b++)
        p->shape[b] = 1;
    int rc = pair_pool_find_arcs(&p->arcs, p->q, p->job);
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
    UTIL_TAKE(&p.memory, p.head, cells);
    UTIL_TAKE(&p.memory, p.tail, cells);
    UTIL_TAKE(&p.memory, p.weight, (size_t)q->n_devices);
    UTIL_TAKE(&p.memory, p.shape, PAIR_POOL_BUCKETS);
    int rc = p.memory.failed ? MOIRAI_EFAIL : pool(&p, &own);
    if (!rc)
        *lower_ns = p.low_ns;
    if (!rc && proof)
        *proof = own;
    else
        pair_pool_proof_free(&own);
    util_release(&p.arcs.memory);
    util_release(&p.memory);
    return rc;
}
