/* Windows: heads and tails of all operators from intervals.
 *
 * The certificate lists intervals: two operators u and v, one before the other (or the beginning, the end), and what is
 * proven of the time between them for all pairs of devices. Of the operators that follow u and precede v the verifier
 * makes a problem of its own, in which u and v are cuts and these are the block between them; longest paths and the
 * listed proofs give L(u, k, v, l) there. A plan of the whole, seen at these operators alone, is a plan of that
 * problem, so L holds in every plan of the whole. Then, in topological order,
 *
 *     head(v, l) = max of  (edges)      least over k of head(j, k) + time + transfer, for every input of v,
 *                          (intervals)  least over k of head(u, k) + time(u, k) + L(u, k, v, l)
 *
 * is at most the start of v on l: u runs on some k and v starts L behind its finish. Tails are the same from the end.
 * Every operator runs somewhere: the makespan is at least the greatest over i of the least over k of head + time + tail. */
#include <stdlib.h>
#include <string.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define MAX_INTERVALS 65536

typedef struct interval {
    int32_t entry, exit; /* PROVE_NONE: the beginning, the end */
    int64_t *ns;         /* [k * K + l] */
} interval;

typedef struct court {
    const prove_problem *p;
    moirai_proof *proof;
    int32_t K;
    interval *list;
    size_t n;
    int64_t *head, *tail; /* [operator * K + device] */
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
static int take_claims(court *x, interval *v, yyjson_val *list)
{
    int64_t *claim;
    size_t n;
    int rc = prove_list(&claim, &n, &x->memory, list, INT64_MAX, "ns of an interval");
    if (!rc && n != (size_t)x->K * (size_t)x->K)
        rc = prove_wrong("ns has not one number per pair of devices");
    for (size_t i = 0; i < n && !rc; i++) {
        if (claim[i] > v->ns[i])
            rc = moirai_error(MOIRAI_EVERIFY, "%lld ns are claimed between devices %zu and %zu, %lld proven",
                              (long long)claim[i], i / (size_t)x->K, i % (size_t)x->K, (long long)v->ns[i]);
        v->ns[i] = UTIL_MIN(v->ns[i], claim[i]);
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

/* What is proven of the interval, as a block of the operators between its ends. */
static int read_interval(court *x, interval *v, bool *in, int32_t *op, yyjson_val *object)
{
    const prove_problem *p = x->p;
    prove_block b = {0};
    int rc = read_end(x, &v->entry, object, "entry");
    rc = rc ? rc : read_end(x, &v->exit, object, "exit");
    if (rc || !PROVE_TAKE(&x->memory, v->ns, (size_t)x->K * (size_t)x->K))
        return rc ? rc : MOIRAI_EFAIL;
    int32_t n = find_between(p, v->entry, v->exit, in, in + p->n), used = 0;
    if (!n)
        return prove_wrong("its exit does not follow its entry");
    for (int32_t i = 0; i < p->n; i++)
        if (in[i])
            op[used++] = i;
    rc = prove_block_new(&b, p, n, op, v->entry != PROVE_NONE, v->exit != PROVE_NONE);
    rc = rc ? rc : prove_class(v->ns, x->proof, &b, object);
    rc = rc || !prove_get(object, "ns") ? rc : take_claims(x, v, prove_get(object, "ns"));
    prove_block_free(&b);
    return rc;
}

static int read_intervals(court *x, yyjson_val *list)
{
    size_t n = (size_t)x->p->n, i, max;
    bool *in;
    int32_t *op;
    yyjson_val *value;
    if (yyjson_arr_size(list) > MAX_INTERVALS)
        return prove_too_large("windows have too many intervals");
    UTIL_TAKE(&x->memory, in, 2 * n);
    UTIL_TAKE(&x->memory, op, n);
    UTIL_TAKE(&x->memory, x->list, yyjson_arr_size(list));
    int rc = util_taken_all(&x->memory);
    yyjson_arr_foreach(list, i, max, value) {
        rc = rc ? rc : prove_go_on(x->p);
        if (rc)
            break;
        rc = read_interval(x, &x->list[x->n++], in, op, value);
        rc = rc ? moirai_error_prefix(rc, "interval %zu", i) : 0;
    }
    x->proof->intervals = (int64_t)x->n;
    return rc;
}

/* ---- heads and tails ---- */

static int by_producer(const void *a, const void *b)
{
    const prove_edge *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* All operators as one block, in which an interval is an edge more: what it takes from its entry's finish to its exit's start. Those
 * from the beginning, and to the end, are heads and tails at once; *most: what is proven of the whole as an interval. */
static int add_intervals(court *x, prove_block *whole, int64_t *most)
{
    prove_edge *edge;
    int32_t K = x->K;
    int rc = prove_block_new(whole, x->p, x->p->n, NULL, false, false);
    if (rc || !UTIL_TAKE(&x->memory, edge, (size_t)whole->n_edges + x->n))
        return rc ? rc : MOIRAI_EFAIL;
    memcpy(edge, whole->edge, (size_t)whole->n_edges * sizeof *edge);
    whole->edge = edge;
    for (const interval *v = x->list; v < x->list + x->n; v++) {
        if (v->entry != PROVE_NONE && v->exit != PROVE_NONE)
            edge[whole->n_edges++] = (prove_edge){.from = v->entry, .to = v->exit, .ns = v->ns, .even_ns = PROVE_NONE};
        else if (v->entry == PROVE_NONE && v->exit == PROVE_NONE)
            *most = UTIL_MAX(*most, v->ns[0]);
        for (int32_t k = 0; k < K && (v->entry == PROVE_NONE) != (v->exit == PROVE_NONE); k++) {
            int64_t *to =
                v->exit != PROVE_NONE ? &x->head[(int64_t)v->exit * K + k] : &x->tail[(int64_t)v->entry * K + k];
            *to = UTIL_MAX(*to, v->ns[v->exit != PROVE_NONE ? k : k * K]);
        }
    }
    qsort(edge, (size_t)whole->n_edges, sizeof *edge, by_producer);
    return 0;
}

static int find_windows(int64_t *most, court *x, prove_block *whole)
{
    int rc = add_intervals(x, whole, most);
    if (rc)
        return rc;
    prove_heads(whole, x->p->may, x->head);
    prove_tails(whole, x->p->may, x->tail);
    for (int64_t at = 0; at < (int64_t)x->p->n * x->K; at++)
        if (x->p->may[at / x->K] >> at % x->K & 1 && UTIL_MAX(x->head[at], x->tail[at]) > PROVE_MAX_TIME)
            return prove_too_large("windows end beyond all times");
    *most = UTIL_MAX(*most, prove_longest(whole, x->p->may, x->head, x->tail));
    return prove_go_on(x->p);
}

int prove_windows(int64_t *bound_ns, prove_chain *chain, yyjson_val *object)
{
    *bound_ns = 0;
    if (!object)
        return 0;
    court x = {.p = chain->p, .proof = chain->proof, .K = chain->p->K};
    size_t cells = (size_t)x.p->n * (size_t)x.K;
    prove_block whole = {0};
    PROVE_TAKE(&x.memory, x.head, cells);
    PROVE_TAKE(&x.memory, x.tail, cells);
    int rc = util_taken_all(&x.memory);
    rc = rc ? rc : read_intervals(&x, prove_get(object, "intervals"));
    rc = rc ? rc : find_windows(bound_ns, &x, &whole);
    prove_block_free(&whole);
    util_release(&x.memory);
    return rc ? moirai_error_prefix(rc, "windows") : 0;
}
