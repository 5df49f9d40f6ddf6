/* Windows: heads and tails of all operators from intervals, and the pool of all devices within them.
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
 * Every operator runs somewhere: the makespan is at least the greatest over i of the least over k of head + time + tail.
 * And v starts at least min over k, l of time(u, k) + L(u, k, v, l) behind u: an arc for the pool (prove_pool.c). */
#include <stdlib.h>
#include <string.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define NEVER INT64_MAX
#define MAX_TIME (INT64_C(1) << 61)
#define MAX_INTERVALS 65536

typedef struct interval {
    int32_t entry, exit; /* MOIRAI_NONE: the beginning, the end */
    int64_t *ns;         /* [k * K + l] */
} interval;

typedef struct court {
    const moirai_problem *p;
    moirai_proof *proof;
    int32_t K;
    interval *list;
    size_t n;
    prove_view view;
} court;

/* ---- one interval ---- */

/* Operators that follow `entry`, and those of them that precede `exit`; the two themselves as well. False: `exit` does
 * not follow. */
static bool find_between(const moirai_problem *p, int32_t entry, int32_t exit, bool *in, bool *before)
{
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        in[i] = entry == MOIRAI_NONE || i == entry;
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1] && !in[i]; j++)
            in[i] = in[p->tensor_producer[p->op_in[j]]];
    }
    for (int32_t z = p->n_ops - 1; z >= 0; z--) {
        int32_t i = p->topo[z];
        before[i] = exit == MOIRAI_NONE || i == exit;
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1] && !before[i]; o++)
            for (int32_t e = p->tensor_edge_off[p->op_out[o]]; e < p->tensor_edge_off[p->op_out[o] + 1]; e++)
                before[i] |= before[p->edge_reader[e]];
    }
    bool follows = entry == MOIRAI_NONE || exit == MOIRAI_NONE || (entry != exit && in[exit]);
    for (int32_t i = 0; i < p->n_ops; i++)
        in[i] = in[i] && before[i];
    return follows;
}

/* What is claimed of the interval counts, where it is proven: prices of a pool are prices of given windows. */
static int take_claims(court *x, interval *v, yyjson_val *list)
{
    int64_t *claim;
    size_t n;
    int rc = prove_list(&claim, &n, list, 0, INT64_MAX, "ns of an interval");
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

/* What is proven of the interval, in the problem of its operators alone. */
static int judge_interval(court *x, interval *v, const moirai_problem *q, const int32_t *number, yyjson_val *object)
{
    prove_cuts cuts = {0};
    prove_block b = {0};
    int32_t cut[2], n = 0;
    if (v->entry != MOIRAI_NONE)
        cut[n++] = number[v->entry];
    if (v->exit != MOIRAI_NONE)
        cut[n++] = number[v->exit];
    int rc = prove_cuts_new(&cuts, q, n, cut);
    rc = rc ? rc : prove_block_new(&b, q, &cuts, v->entry != MOIRAI_NONE);
    rc = rc ? rc : prove_class(v->ns, x->proof, &b, object);
    rc = rc || !yyjson_obj_get(object, "ns") ? rc : take_claims(x, v, yyjson_obj_get(object, "ns"));
    prove_block_free(&b);
    prove_cuts_free(&cuts);
    return rc;
}

static int read_interval(court *x, interval *v, bool *in, int32_t *number, yyjson_val *object)
{
    const moirai_problem *p = x->p;
    yyjson_val *entry = yyjson_obj_get(object, "entry"), *exit = yyjson_obj_get(object, "exit");
    *v = (interval){MOIRAI_NONE, MOIRAI_NONE, util_alloc((size_t)x->K * (size_t)x->K, sizeof *v->ns)};
    if (!v->ns)
        return MOIRAI_EFAIL;
    if (!yyjson_is_obj(object) || (entry && !prove_int32(entry, 0, p->n_ops - 1, &v->entry)) ||
        (exit && !prove_int32(exit, 0, p->n_ops - 1, &v->exit)))
        return prove_wrong("entry or exit is no operator");
    bool *gone = in + p->n_ops;
    if (!find_between(p, v->entry, v->exit, in, gone))
        return prove_wrong("its exit does not follow its entry");
    int32_t left = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        number[i] = left;
        gone[i] = !in[i];
        left += in[i];
    }
    if (left == p->n_ops)
        return judge_interval(x, v, p, number, object);
    moirai_problem *q;
    int rc = moirai_problem_without(&q, p, gone);
    if (rc)
        return rc;
    rc = judge_interval(x, v, q, number, object);
    moirai_problem_free(q);
    return rc;
}

static int read_intervals(court *x, yyjson_val *list)
{
    size_t n = (size_t)x->p->n_ops, i, max;
    bool *in = util_alloc(2 * n, sizeof *in);
    int32_t *number = util_alloc(n, sizeof *number);
    yyjson_val *value;
    int rc = yyjson_arr_size(list) <= MAX_INTERVALS ? 0 : prove_wrong("windows have too many intervals");
    x->list = rc ? NULL : util_alloc(yyjson_arr_size(list), sizeof *x->list);
    if (!rc && (!in || !number || !x->list))
        rc = MOIRAI_EFAIL;
    yyjson_arr_foreach(list, i, max, value) {
        if (rc)
            break;
        rc = read_interval(x, &x->list[x->n++], in, number, value);
        rc = rc ? moirai_error_prefix(rc, "interval %zu", i) : 0;
    }
    x->proof->intervals = (int64_t)x->n;
    free(in);
    free(number);
    return rc;
}

/* ---- heads, tails, arcs ---- */

/* The start of the interval's exit on l. */
static int64_t start_after(const court *x, const interval *v, int32_t l)
{
    int64_t least = NEVER;
    if (v->entry == MOIRAI_NONE)
        return v->ns[l];
    for (int32_t k = 0; k < x->K; k++)
        if (x->p->op_devices[v->entry] >> k & 1)
            least = UTIL_MIN(least, x->view.head[(int64_t)v->entry * x->K + k] + moirai_op_ns(x->p, v->entry, k) +
                                        v->ns[k * x->K + l]);
    return least;
}

/* What follows the finish of the interval's entry on k. */
static int64_t rest_before(const court *x, const interval *v, int32_t k)
{
    int64_t least = NEVER;
    if (v->exit == MOIRAI_NONE)
        return v->ns[k * x->K];
    for (int32_t l = 0; l < x->K; l++)
        if (x->p->op_devices[v->exit] >> l & 1)
            least = UTIL_MIN(least, v->ns[k * x->K + l] + moirai_op_ns(x->p, v->exit, l) +
                                        x->view.tail[(int64_t)v->exit * x->K + l]);
    return least;
}

static int64_t edge_head(const court *x, int32_t t, int32_t l)
{
    int32_t j = x->p->tensor_producer[t];
    int64_t least = NEVER;
    for (int32_t k = 0; k < x->K; k++)
        if (x->p->op_devices[j] >> k & 1)
            least = UTIL_MIN(least, x->view.head[(int64_t)j * x->K + k] + moirai_op_ns(x->p, j, k) +
                                        moirai_transfer_ns(x->p, t, k, l));
    return least;
}

static int64_t edge_tail(const court *x, int32_t t, int32_t reader, int32_t k)
{
    int64_t least = NEVER;
    for (int32_t l = 0; l < x->K; l++)
        if (x->p->op_devices[reader] >> l & 1)
            least = UTIL_MIN(least, moirai_transfer_ns(x->p, t, k, l) + moirai_op_ns(x->p, reader, l) +
                                        x->view.tail[(int64_t)reader * x->K + l]);
    return least;
}

static void find_head(court *x, int32_t i, int32_t l)
{
    const moirai_problem *p = x->p;
    int64_t *head = &x->view.head[(int64_t)i * x->K + l];
    for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++)
        *head = UTIL_MAX(*head, edge_head(x, p->op_in[j], l));
    for (size_t v = 0; v < x->n; v++)
        if (x->list[v].exit == i)
            *head = UTIL_MAX(*head, start_after(x, &x->list[v], l));
}

static void find_tail(court *x, int32_t i, int32_t k)
{
    const moirai_problem *p = x->p;
    int64_t *tail = &x->view.tail[(int64_t)i * x->K + k];
    for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++)
        for (int32_t t = p->op_out[o], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
            *tail = UTIL_MAX(*tail, edge_tail(x, t, p->edge_reader[e], k));
    for (size_t v = 0; v < x->n; v++)
        if (x->list[v].entry == i)
            *tail = UTIL_MAX(*tail, rest_before(x, &x->list[v], k));
}

/* False: times grow beyond what can be added up. */
static bool find_windows(court *x)
{
    const moirai_problem *p = x->p;
    for (int32_t z = 0; z < p->n_ops; z++)
        for (int32_t i = p->topo[z], l = 0; l < x->K; l++) {
            if (!(p->op_devices[i] >> l & 1))
                continue;
            find_head(x, i, l);
            if (x->view.head[(int64_t)i * x->K + l] > MAX_TIME)
                return false;
        }
    for (int32_t z = p->n_ops - 1; z >= 0; z--)
        for (int32_t i = p->topo[z], k = 0; k < x->K; k++) {
            if (!(p->op_devices[i] >> k & 1))
                continue;
            find_tail(x, i, k);
            if (x->view.tail[(int64_t)i * x->K + k] > MAX_TIME)
                return false;
        }
    return true;
}

static void find_arcs(court *x)
{
    for (size_t i = 0; i < x->n; i++) {
        const interval *v = &x->list[i];
        int64_t least = NEVER;
        if (v->entry == MOIRAI_NONE || v->exit == MOIRAI_NONE)
            continue;
        for (int32_t k = 0; k < x->K; k++)
            for (int32_t l = 0; l < x->K; l++)
                if (x->p->op_devices[v->entry] >> k & 1 && x->p->op_devices[v->exit] >> l & 1)
                    least = UTIL_MIN(least, moirai_op_ns(x->p, v->entry, k) + v->ns[k * x->K + l]);
        x->view.arc[x->view.n_arcs][0] = v->entry;
        x->view.arc[x->view.n_arcs][1] = v->exit;
        x->view.arc_ns[x->view.n_arcs++] = least;
    }
}

/* The greatest over operators of the least over their devices, and what is proven of the whole as an interval. */
static int64_t longest(const court *x)
{
    int64_t most = 0;
    for (int32_t i = 0; i < x->p->n_ops; i++) {
        int64_t least = NEVER;
        for (int32_t k = 0; k < x->K; k++) {
            int64_t at = (int64_t)i * x->K + k;
            if (x->p->op_devices[i] >> k & 1)
                least = UTIL_MIN(least, x->view.head[at] + moirai_op_ns(x->p, i, k) + x->view.tail[at]);
        }
        most = UTIL_MAX(most, least);
    }
    for (size_t v = 0; v < x->n; v++)
        if (x->list[v].entry == MOIRAI_NONE && x->list[v].exit == MOIRAI_NONE)
            most = UTIL_MAX(most, x->list[v].ns[0]);
    return most;
}

static int judge_pool(int64_t *ns, court *x, yyjson_val *object)
{
    prove_cuts cuts = {0};
    prove_block b = {0};
    int rc = prove_cuts_new(&cuts, x->p, 0, NULL);
    rc = rc ? rc : prove_block_new(&b, x->p, &cuts, 0);
    rc = rc ? rc : prove_pool(ns, &b, 0, 0, object, &x->view);
    prove_block_free(&b);
    prove_cuts_free(&cuts);
    return rc;
}

int prove_windows(int64_t *bound_ns, prove_chain *chain, yyjson_val *object)
{
    *bound_ns = 0;
    if (!object)
        return 0;
    court x = {.p = chain->p, .proof = chain->proof, .K = chain->p->n_devices};
    size_t cells = (size_t)x.p->n_ops * (size_t)x.K;
    int rc = read_intervals(&x, yyjson_obj_get(object, "intervals"));
    x.view.head = util_alloc(cells, sizeof *x.view.head);
    x.view.tail = util_alloc(cells, sizeof *x.view.tail);
    x.view.arc = util_alloc(x.n, sizeof *x.view.arc);
    x.view.arc_ns = util_alloc(x.n, sizeof *x.view.arc_ns);
    if (!rc && (!x.view.head || !x.view.tail || !x.view.arc || !x.view.arc_ns))
        rc = MOIRAI_EFAIL;
    if (!rc && !find_windows(&x))
        rc = prove_wrong("windows end beyond all times");
    if (!rc) {
        find_arcs(&x);
        *bound_ns = longest(&x);
    }
    if (!rc && yyjson_obj_get(object, "pool"))
        rc = judge_pool(bound_ns, &x, yyjson_obj_get(object, "pool"));
    for (size_t i = 0; i < x.n; i++)
        free(x.list[i].ns);
    void *all[] = {x.list, x.view.head, x.view.tail, x.view.arc, x.view.arc_ns};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return rc ? moirai_error_prefix(rc, "windows") : 0;
}
