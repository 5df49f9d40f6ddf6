/* Windows: heads and tails of all operators from intervals (docs/certificate.md, "Windows").
 *
 * An interval is two operators u and v, one before the other (or the beginning, the end). Of what follows u and precedes v the verifier
 * makes a problem of its own, in which u and v are cuts and the rest is the block between them; longest paths and the listed proofs give
 * L(u, k, v, l) there. A head of v is then, beside what edges say, the least over k of head(u, k) + time(u, k) + L(u, k, v, l). */
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define MAX_INTERVALS 65536

typedef struct court {
    const prove_problem *p;
    moirai_proof *proof;
    int32_t K;
    prove_block
        whole; /* all operators; an interval is an edge more: what it takes from its entry's finish to its exit's start */
    int64_t *head, *tail, most; /* [operator * K + device]; what is proven of the whole as an interval */
    bool *in;                   /* of two for each operator, and `op`: scratch of an interval */
    int32_t *op;
    util_memory memory;
} court;

/* ---- one interval ---- */

/* How many operators follow `entry` and precede `exit`, the two included, and in[i]: i does. 0: `exit` does not follow.
 */
static int32_t find_between(const prove_problem *p, int32_t entry, int32_t exit, bool *in, bool *before)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n; i++) {
        in[i] = entry == PROVE_NONE || i == entry;
        before[i] = exit == PROVE_NONE || i == exit;
    }
    for (int32_t e = 0; e < p->n_edges; e++)
        in[p->edge[e].to] |= in[p->edge[e].from];
    for (int32_t e = p->n_edges - 1; e >= 0; e--)
        before[p->edge[e].from] |= before[p->edge[e].to];
    if (entry != PROVE_NONE && exit != PROVE_NONE && (entry == exit || !in[exit]))
        return 0;
    for (int32_t i = 0; i < p->n; i++) {
        in[i] = in[i] && before[i];
        n += in[i];
    }
    return n;
}

/* What is claimed of the interval counts, where it is proven. */
static int take_claims(court *x, int64_t *ns, yyjson_val *list)
{
    int64_t *claim;
    size_t n;
    int rc = prove_list(&claim, &n, &x->memory, list, INT64_MAX, "ns of an interval");
    if (!rc && n != (size_t)x->K * (size_t)x->K)
        rc = prove_wrong("ns has not one number per pair of devices");
    for (size_t i = 0; i < n && !rc; i++) {
        if (claim[i] > ns[i])
            rc = moirai_error(MOIRAI_EVERIFY, "%lld ns are claimed between devices %zu and %zu, %lld proven",
                              (long long)claim[i], i / (size_t)x->K, i % (size_t)x->K, (long long)ns[i]);
        ns[i] = UTIL_MIN(ns[i], claim[i]);
    }
    return rc;
}

static int read_end(const court *x, int32_t *out, yyjson_val *object, const char *key)
{
    *out = PROVE_NONE;
    if (!prove_get(object, key))
        return 0;
    int32_t number = prove_index(object, key, x->p->n);
    if (number < 0)
        return prove_wrong("entry or exit is no operator");
    *out = x->p->place[number];
    return 0;
}

/* What is proven of an interval, as a block of the operators between its ends. */
static int judge_interval(court *x, int64_t *ns, int32_t entry, int32_t exit, yyjson_val *object)
{
    const prove_problem *p = x->p;
    prove_block b = {0};
    int32_t n = find_between(p, entry, exit, x->in, x->in + p->n), used = 0;
    if (!n)
        return prove_wrong("its exit does not follow its entry");
    for (int32_t i = 0; i < p->n; i++)
        if (x->in[i])
            x->op[used++] = i;
    int rc = prove_block_new(&b, p, n, x->op, entry != PROVE_NONE, exit != PROVE_NONE);
    rc = rc ? rc : prove_class(ns, x->proof, &b, object);
    rc = rc || !prove_get(object, "ns") ? rc : take_claims(x, ns, prove_get(object, "ns"));
    prove_block_free(&b);
    return rc;
}

/* Those from the beginning, and to the end, are heads and tails at once. */
static int read_interval(court *x, yyjson_val *object)
{
    int32_t K = x->K, entry, exit;
    int64_t *ns;
    int rc = prove_go_on(x->p);
    rc = rc ? rc : read_end(x, &entry, object, "entry");
    rc = rc ? rc : read_end(x, &exit, object, "exit");
    if (rc || !PROVE_TAKE(&x->memory, ns, (size_t)K * (size_t)K))
        return rc ? rc : MOIRAI_EFAIL;
    rc = judge_interval(x, ns, entry, exit, object);
    if (entry != PROVE_NONE && exit != PROVE_NONE)
        x->whole.edge[x->whole.n_edges++] = (prove_edge){.from = entry, .to = exit, .ns = ns, .even_ns = PROVE_NONE};
    else if (entry == PROVE_NONE && exit == PROVE_NONE)
        x->most = UTIL_MAX(x->most, ns[0]);
    for (int32_t k = 0; k < K && (entry == PROVE_NONE) != (exit == PROVE_NONE); k++) {
        int64_t *to = exit != PROVE_NONE ? &x->head[(int64_t)exit * K + k] : &x->tail[(int64_t)entry * K + k];
        *to = UTIL_MAX(*to, ns[exit != PROVE_NONE ? k : k * K]);
    }
    return rc;
}

/* ---- all of them ---- */

static int open_court(court *x, size_t intervals)
{
    size_t n = (size_t)x->p->n, cells = n * (size_t)x->K;
    prove_edge *edge;
    int rc = prove_block_new(&x->whole, x->p, x->p->n, NULL, false, false);
    PROVE_TAKE(&x->memory, x->head, cells);
    PROVE_TAKE(&x->memory, x->tail, cells);
    UTIL_TAKE(&x->memory, x->in, 2 * n);
    UTIL_TAKE(&x->memory, x->op, n);
    UTIL_TAKE(&x->memory, edge, (size_t)x->whole.n_edges + intervals);
    if (rc || x->memory.failed)
        return MOIRAI_EFAIL;
    memcpy(edge, x->whole.edge, (size_t)x->whole.n_edges * sizeof *edge);
    x->whole.edge = edge;
    return 0;
}

static int by_producer(const void *a, const void *b)
{
    const prove_edge *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static int find_windows(court *x)
{
    qsort(x->whole.edge, (size_t)x->whole.n_edges, sizeof *x->whole.edge, by_producer);
    prove_reach(&x->whole, x->p->may, x->head, true);
    prove_reach(&x->whole, x->p->may, x->tail, false);
    for (int64_t at = 0; at < (int64_t)x->p->n * x->K; at++)
        if (x->p->may[at / x->K] >> at % x->K & 1 && UTIL_MAX(x->head[at], x->tail[at]) > PROVE_MAX_TIME)
            return prove_too_large("windows end beyond all times");
    x->most = UTIL_MAX(x->most, prove_longest(&x->whole, x->p->may, x->head, x->tail));
    return prove_go_on(x->p);
}

int prove_windows(int64_t *bound_ns, prove_chain *chain, yyjson_val *object)
{
    court x = {.p = chain->p, .proof = chain->proof, .K = chain->p->K};
    yyjson_val *list = prove_get(object, "intervals"), *value;
    size_t i, max, n = yyjson_arr_size(list);
    *bound_ns = 0;
    if (!object)
        return 0;
    int rc = n > MAX_INTERVALS ? prove_too_large("windows have too many intervals") : open_court(&x, n);
    x.proof->intervals = (int64_t)n;
    yyjson_arr_foreach(list, i, max, value) {
        if (rc)
            break;
        rc = read_interval(&x, value);
        rc = rc ? moirai_error_prefix(rc, "interval %zu", i) : 0;
    }
    rc = rc ? rc : find_windows(&x);
    *bound_ns = x.most;
    prove_block_free(&x.whole);
    util_release(&x.memory);
    return rc ? moirai_error_prefix(rc, "windows") : 0;
}
