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

#define NEVER INT64_MAX
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
    prove_block whole;
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
    int rc = prove_list(&claim, &n, list, INT64_MAX, "ns of an interval");
    if (!rc && n != (size_t)x->K * (size_t)x->K)
        rc = prove_wrong("ns has not one number per pair of devices");
    for (size_t i = 0; i < n && !rc; i++) {
        if (claim[i] > v->ns[i])
            rc = moirai_error(MOIRAI_EVERIFY, "%lld ns are claimed between devices %zu and %zu, %lld proven",
                              (long long)claim[i], i / (size_t)x->K, i % (size_t)x->K, (long long)v->ns[i]);
        v->ns[i] = UTIL_MIN(v->ns[i], claim[i]);
    }
    free(claim);
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
    v->ns = prove_alloc((size_t)x->K * (size_t)x->K, sizeof *v->ns);
    if (rc || !v->ns)
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
    bool *in = util_alloc(2 * n, sizeof *in);
    int32_t *op = util_alloc(n, sizeof *op);
    yyjson_val *value;
    int rc = yyjson_arr_size(list) <= MAX_INTERVALS ? 0 : prove_too_large("windows have too many intervals");
    x->list = rc ? NULL : util_alloc(yyjson_arr_size(list), sizeof *x->list);
    if (!rc && (!in || !op || !x->list))
        rc = MOIRAI_EFAIL;
    yyjson_arr_foreach(list, i, max, value) {
        rc = rc ? rc : prove_go_on(x->p);
        if (rc)
            break;
        rc = read_interval(x, &x->list[x->n++], in, op, value);
        rc = rc ? moirai_error_prefix(rc, "interval %zu", i) : 0;
    }
    x->proof->intervals = (int64_t)x->n;
    free(in);
    free(op);
    return rc;
}

/* ---- heads and tails ---- */

static bool may(const court *x, int32_t i, int32_t k)
{
    return x->p->may[i] >> k & 1;
}

static int64_t time_of(const court *x, int32_t i, int32_t k)
{
    return x->p->time[(int64_t)i * x->K + k];
}

/* The start of a reader on l, or of an interval's exit, behind i: after[k * K + l] from its finish on k. */
static int64_t start_after(const court *x, int32_t i, const int64_t *after, int32_t l)
{
    int64_t least = NEVER;
    for (int32_t k = 0; k < x->K; k++)
        if (may(x, i, k))
            least = UTIL_MIN(least, x->head[(int64_t)i * x->K + k] + time_of(x, i, k) + after[k * x->K + l]);
    return least;
}

/* What follows the finish of a producer on k, or of an interval's entry, before i and what follows that. */
static int64_t rest_before(const court *x, int32_t i, const int64_t *before, int32_t k)
{
    int64_t least = NEVER;
    for (int32_t l = 0; l < x->K; l++)
        if (may(x, i, l))
            least = UTIL_MIN(least, before[k * x->K + l] + time_of(x, i, l) + x->tail[(int64_t)i * x->K + l]);
    return least;
}

static int64_t raise(int64_t *value, int64_t to)
{
    return *value = UTIL_MAX(*value, to);
}

/* Heads of i are known: what reads it, or is the exit of an interval that begins there, is later. */
static void push_heads(court *x, int32_t i, int32_t l)
{
    const prove_problem *p = x->p;
    for (int32_t e = p->off[i]; e < p->off[i + 1]; e++)
        raise(&x->head[(int64_t)p->edge[e].to * x->K + l], start_after(x, i, p->edge[e].ns, l));
    for (size_t v = 0; v < x->n; v++)
        if (x->list[v].entry == i && x->list[v].exit != PROVE_NONE)
            raise(&x->head[(int64_t)x->list[v].exit * x->K + l], start_after(x, i, x->list[v].ns, l));
}

static void pull_tails(court *x, int32_t i, int32_t k)
{
    const prove_problem *p = x->p;
    int64_t *tail = &x->tail[(int64_t)i * x->K + k];
    for (int32_t e = p->off[i]; e < p->off[i + 1]; e++)
        raise(tail, rest_before(x, p->edge[e].to, p->edge[e].ns, k));
    for (size_t v = 0; v < x->n; v++)
        if (x->list[v].entry == i && x->list[v].exit != PROVE_NONE)
            raise(tail, rest_before(x, x->list[v].exit, x->list[v].ns, k));
}

static int find_windows(court *x)
{
    int rc = 0;
    int64_t most = 0;
    for (size_t v = 0; v < x->n; v++) /* those from the beginning and to the end */
        for (int32_t k = 0; k < x->K; k++) {
            if (x->list[v].entry == PROVE_NONE && x->list[v].exit != PROVE_NONE)
                raise(&x->head[(int64_t)x->list[v].exit * x->K + k], x->list[v].ns[k]);
            if (x->list[v].entry != PROVE_NONE && x->list[v].exit == PROVE_NONE)
                raise(&x->tail[(int64_t)x->list[v].entry * x->K + k], x->list[v].ns[k * x->K]);
        }
    for (int32_t i = 0; i < x->p->n && !rc; i++) {
        for (int32_t k = 0; k < x->K; k++)
            most = may(x, i, k) ? UTIL_MAX(most, x->head[(int64_t)i * x->K + k]) : most;
        rc = most > PROVE_MAX_TIME ? prove_too_large("windows end beyond all times") : prove_go_on(x->p);
        for (int32_t l = 0; l < x->K && !rc; l++)
            push_heads(x, i, l);
    }
    for (int32_t i = x->p->n - 1; i >= 0 && !rc; i--) {
        for (int32_t k = 0; k < x->K; k++) {
            pull_tails(x, i, k);
            most = may(x, i, k) ? UTIL_MAX(most, x->tail[(int64_t)i * x->K + k]) : most;
        }
        rc = most > PROVE_MAX_TIME ? prove_too_large("windows end beyond all times") : prove_go_on(x->p);
    }
    return rc;
}

/* The greatest over operators of the least over their devices, and what is proven of the whole as an interval. */
static int64_t longest(const court *x)
{
    int64_t most = prove_longest(&x->whole, x->p->may, x->head, x->tail);
    for (size_t v = 0; v < x->n; v++)
        if (x->list[v].entry == PROVE_NONE && x->list[v].exit == PROVE_NONE)
            most = UTIL_MAX(most, x->list[v].ns[0]);
    return most;
}

int prove_windows(int64_t *bound_ns, prove_chain *chain, yyjson_val *object)
{
    *bound_ns = 0;
    if (!object)
        return 0;
    court x = {.p = chain->p, .proof = chain->proof, .K = chain->p->K};
    size_t cells = (size_t)x.p->n * (size_t)x.K;
    int rc = read_intervals(&x, prove_get(object, "intervals"));
    x.head = prove_alloc(cells, sizeof *x.head);
    x.tail = prove_alloc(cells, sizeof *x.tail);
    if (!rc && (!x.head || !x.tail))
        rc = MOIRAI_EFAIL;
    rc = rc ? rc : find_windows(&x);
    rc = rc ? rc : prove_block_whole(&x.whole, x.p);
    if (!rc)
        *bound_ns = longest(&x);
    prove_block_free(&x.whole);
    for (size_t i = 0; i < x.n; i++)
        free(x.list[i].ns);
    free(x.list);
    free(x.head);
    free(x.tail);
    return rc ? moirai_error_prefix(rc, "windows") : 0;
}
