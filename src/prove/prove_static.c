/* The static proof of a pair: multipliers of a linear programme, judged in whole numbers.
 *
 * For a plan of length T between the cuts, on devices a and z, let y(i, k) say that operator i is on k, w(e, k, l) that
 * edge e goes from k to l, v(t, k, l) that tensor t is sent from k to l (only where it has several readers and flow is
 * `tensor`), s(i) the start of i. Every plan obeys, e leading from i to j:
 *
 *   (out)   sum over l of w(e, k, l) = y(i, k)        (in)  sum over k of w(e, k, l) = y(j, l)
 *   (share) v(t, k, l) >= w(e, k, l)                  for the edges e of t
 *   (path)  s(j) - s(i) - sum t(i, k) y(i, k) - sum x(e, k, l) w(e, k, l) >= 0
 *   (end)   T - s(i) - sum t(i, k) y(i, k) >= 0
 *   (load)  T - sum over tasks of the resource that start no sooner than h and are followed by q >= h + q,
 *           if h + q is at most what is proven of T already
 *
 * Multiply (out), (in) by any whole numbers, the others by whole numbers >= 0, and add (right side - left side) to UNIT
 * * T: at a plan that adds nothing positive. What results is a sum of terms of one operator's device, one edge's
 * devices, one v, one start, and T alone; the least of each, added up, is at most UNIT * T for every plan of at most
 * `upper`. The certificate lists the multipliers; heads, tails and the least terms are computed here.
 *
 * Heads and tails are longest paths over the devices that are left: where head, time and tail of an operator come to more
 * than `upper`, it is not on that device in any plan that is spoken of. That only says more if less is left, and is
 * repeated until nothing changes. */
#include "prove/prove_static.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define MAX_ROWS (INT64_C(1) << 28) /* of the programme, edges times devices squared mostly: 2 GiB of multipliers */

static int read_loads(prove_judge *x, yyjson_val *object)
{
    size_t n;
    int64_t K = x->K;
    prove_congestion how = x->b->p->congestion;
    int rc = prove_list(&x->load, &n, prove_get(object, "loads"), INT64_MAX, "loads");
    x->n_loads = (int64_t)(n / 4);
    for (int64_t r = 0; !rc && r < x->n_loads; r++) {
        const int64_t *row = x->load + 4 * r;
        bool exists = row[0] == 0 || (row[0] <= 2 && how == PROVE_PORT) || (row[0] == 3 && how == PROVE_CHANNEL);
        if (!exists || row[1] >= (row[0] == 3 ? K * K : K))
            rc = prove_wrong("a load of no resource");
        else if (row[2] + row[3] > x->proven_ns)
            rc = prove_wrong("a load row for more than is proven");
    }
    return rc;
}

/* Pairs of place and value; what is not listed is 0. */
static int read_duals(prove_judge *x, yyjson_val *object)
{
    const prove_block *b = x->b;
    int64_t E = b->n_edges, K = x->K, signs = 2 * E * K, all = signs + E * K * K + E + b->n + x->n_loads, *pair;
    size_t n;
    if (all > MAX_ROWS)
        return prove_too_large("a static proof of a block that is too large for one");
    x->dual = prove_alloc((size_t)all, sizeof *x->dual);
    int rc = prove_list(&pair, &n, prove_get(object, "duals"), INT64_MAX, "duals");
    if (!rc && !x->dual)
        rc = MOIRAI_EFAIL;
    for (size_t i = 0; !rc && i < n; i += 2) {
        if (pair[i] < 0 || pair[i] >= all)
            rc = prove_wrong("a multiplier of no row");
        else if (pair[i] >= signs && pair[i + 1] < 0)
            rc = prove_wrong("a negative multiplier of an inequality");
        else
            x->dual[pair[i]] = pair[i + 1];
    }
    free(pair);
    return rc;
}

/* ---- where and when ---- */

/* From the finish of the producer of e on k to the end, its reader being on l. */
static int64_t after_ns(const prove_judge *x, int32_t e, int32_t k, int32_t l)
{
    int32_t j = x->b->edge[e].to;
    return prove_op_ns(x->b, j, l) + x->tail[j * x->K + l] + prove_edge_ns(x->b, e, k, l);
}

/* Edges come by producer, and producers before their readers: heads from the first edge on, tails from the last. */
static void find_heads(prove_judge *x)
{
    const prove_block *b = x->b;
    int32_t K = x->K;
    memset(x->head, 0, (size_t)b->n * (size_t)K * sizeof *x->head);
    for (int32_t e = 0; e < b->n_edges; e++)
        for (int32_t l = 0; l < K; l++) {
            int32_t i = b->edge[e].from, j = b->edge[e].to;
            int64_t least = PROVE_NEVER;
            for (int32_t k = 0; k < K; k++)
                if (prove_may(x, i, k))
                    least = UTIL_MIN(least, x->head[i * K + k] + prove_op_ns(b, i, k) + prove_edge_ns(b, e, k, l));
            x->head[j * K + l] = UTIL_MAX(x->head[j * K + l], least);
        }
}

static void find_tails(prove_judge *x)
{
    const prove_block *b = x->b;
    int32_t K = x->K;
    memset(x->tail, 0, (size_t)b->n * (size_t)K * sizeof *x->tail);
    for (int32_t e = b->n_edges - 1; e >= 0; e--)
        for (int32_t k = 0; k < K; k++) {
            int32_t i = b->edge[e].from;
            int64_t least = PROVE_NEVER;
            for (int32_t l = 0; l < K; l++)
                if (prove_may(x, b->edge[e].to, l))
                    least = UTIL_MIN(least, after_ns(x, e, k, l));
            x->tail[i * K + k] = UTIL_MAX(x->tail[i * K + k], least);
        }
}

static bool drop_devices(prove_judge *x)
{
    bool any = false;
    for (int32_t i = 0; i < x->b->n; i++)
        for (int32_t k = 0; k < x->K; k++)
            if (prove_may(x, i, k) &&
                x->head[i * x->K + k] + prove_op_ns(x->b, i, k) + x->tail[i * x->K + k] > x->upper_ns) {
                x->mask[i] &= ~(UINT64_C(1) << k);
                any = true;
            }
    return any;
}

static bool has_devices(const prove_judge *x)
{
    for (int32_t i = 0; i < x->b->n; i++)
        if (!x->mask[i])
            return false;
    return true;
}

bool prove_may_cross(const prove_judge *x, int32_t e, int32_t k, int32_t l)
{
    int32_t i = x->b->edge[e].from;
    return prove_may(x, i, k) && prove_may(x, x->b->edge[e].to, l) &&
           x->head[i * x->K + k] + prove_op_ns(x->b, i, k) + after_ns(x, e, k, l) <= x->upper_ns;
}

static bool has_ways(const prove_judge *x)
{
    for (int32_t e = 0; e < x->b->n_edges; e++) {
        bool any = false;
        for (int32_t c = 0; c < x->K * x->K && !any; c++)
            any = prove_may_cross(x, e, c / x->K, c % x->K);
        if (!any)
            return false;
    }
    return true;
}

/* Devices, heads and tails; false: there are no plans of at most upper_ns. What it says counts only while there is time
 * (prove_go_on). */
static bool find_windows(prove_judge *x)
{
    for (int32_t i = 0; i < x->b->n; i++)
        x->mask[i] = prove_allowed(x->b, i, x->a, x->z);
    for (bool again = true; again && !prove_go_on(x->b->p); again = drop_devices(x)) {
        if (!has_devices(x))
            return false;
        find_heads(x);
        find_tails(x);
    }
    return has_devices(x) && has_ways(x);
}

static int judge(int64_t *bound, prove_judge *x, yyjson_val *object)
{
    *bound = x->upper_ns;
    bool plans = find_windows(x);
    int rc = prove_go_on(x->b->p);
    if (rc || !plans)
        return rc;
    rc = read_loads(x, object);
    rc = rc ? rc : read_duals(x, object);
    if (!rc && !prove_static_fits(x))
        rc = prove_too_large("multipliers are too large");
    if (!rc)
        *bound = prove_static_sum(x);
    return rc;
}

int prove_static(int64_t *ns, const prove_block *b, int32_t a, int32_t z, yyjson_val *object)
{
    prove_judge x = {.b = b, .K = b->p->K, .a = a, .z = z, .proven_ns = *ns};
    size_t cells = (size_t)b->n * (size_t)x.K;
    int64_t bound = 0;
    x.upper_ns = prove_number(object, "upper_ns");
    x.head = prove_alloc(cells, sizeof *x.head);
    x.tail = prove_alloc(cells, sizeof *x.tail);
    x.mask = util_alloc((size_t)b->n, sizeof *x.mask);
    int rc = x.head && x.tail && x.mask ? judge(&bound, &x, object) : MOIRAI_EFAIL;
    if (!rc)
        *ns = UTIL_MAX(*ns, bound);
    void *all[] = {x.head, x.tail, x.mask, x.dual, x.load};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return rc;
}
