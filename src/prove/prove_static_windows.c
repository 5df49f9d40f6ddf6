/* Where and when the operators of a block can be in a case of a static proof, for plans of at most `upper`.
 *
 * A case tells devices of operators, ranges of numbers, who receives the entry's tensor (`to`, in order of arrival) and
 * who sends results to the exit's device (`back`, from the last on). By these,
 *
 *   - the entry's tensor is on the j-th receiver no sooner than the transfers to the first j take together, since all of
 *     them leave by one port; on a device that is not named no sooner than after all that are and its own;
 *   - what a device sends to the exit's device as a result arrives there, by one port, before the last results of all
 *     devices that are named before it are sent: these take d(k) each, the shortest result's time from k, and all of that
 *     follows the arrival. Where nobody else sends results, no result comes from a device that is not named;
 *   - heads and tails are longest paths over the devices that are left, and where head, time and tail of an operator
 *     come to more than `upper`, it is not on that device in any plan that is spoken of;
 *   - of a group of operators no more are on a device than can be there, and no fewer than the others leave over.
 *
 * Each of these only says more if less is left. They are repeated until nothing changes. */
#include "prove/prove_static.h"

#include <string.h>

#include "util/util.h"

bool prove_static_sent(const prove_judge *x, int32_t e)
{
    return x->sent != PROVE_NONE && prove_is_sent(x->b, e, x->sent);
}

int prove_find_results(prove_judge *x)
{
    x->result = util_alloc((size_t)x->b->n_edges, sizeof *x->result);
    if (!x->result)
        return MOIRAI_EFAIL;
    for (int32_t k = 0; k < x->K; k++)
        x->shortest[k] = PROVE_NEVER;
    for (int32_t e = 0; e < x->b->n_edges; e++) {
        x->result[e] = true;
        for (int32_t k = 0; k < x->K && x->result[e]; k++)
            x->result[e] = k == x->z || prove_edge_ns(x->b, e, k, x->z) >= x->return_ns;
        for (int32_t k = 0; k < x->K && x->result[e]; k++)
            x->shortest[k] = UTIL_MIN(x->shortest[k], prove_edge_ns(x->b, e, k, x->z));
    }
    return 0;
}

/* Place of device k in the order, or as many as there are. */
static int32_t place_of(const prove_order *order, int32_t k)
{
    int32_t i = 0;
    while (i < order->n && order->device[i] != k)
        i++;
    return i;
}

/* ---- the two ends ---- */

static int64_t received_ns(const prove_judge *x, int32_t e, int32_t k)
{
    int32_t at = place_of(&x->to, k);
    int64_t ns = k == x->a || at < x->to.n ? 0 : prove_edge_ns(x->b, e, x->a, k);
    for (int32_t i = 0; i < x->to.n && i <= at && k != x->a; i++)
        ns += prove_edge_ns(x->b, e, x->a, x->to.device[i]);
    return ns;
}

/* What follows the arrival of a result from k. */
static int64_t returned_ns(const prove_judge *x, int32_t k)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < place_of(&x->back, k); i++)
        ns = UTIL_MIN(ns + x->shortest[x->back.device[i]], PROVE_NEVER);
    return ns;
}

static bool may_go(const prove_judge *x, int32_t e, int32_t k, int32_t l)
{
    bool returns = k != l && l == x->z && x->back.closed && place_of(&x->back, k) == x->back.n;
    return !returns || !prove_static_result(x, e);
}

/* From the finish of the producer of e on k to the end, its reader being on l. */
static int64_t after_ns(const prove_judge *x, int32_t e, int32_t k, int32_t l)
{
    int32_t j = x->b->edge[e].to;
    int64_t after = prove_op_ns(x->b, j, l) + x->tail[j * x->K + l];
    if (k != l && l == x->z && x->back.n > 0 && prove_static_result(x, e))
        after = UTIL_MAX(after, returned_ns(x, k));
    return after + prove_edge_ns(x->b, e, k, l);
}

/* ---- heads and tails ---- */

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
                if (prove_may(x, i, k) && may_go(x, e, k, l))
                    least = UTIL_MIN(least, x->head[i * K + k] + prove_op_ns(b, i, k) + prove_edge_ns(b, e, k, l));
            if (prove_static_sent(x, e))
                least = UTIL_MAX(least, received_ns(x, e, l));
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
                if (prove_may(x, b->edge[e].to, l) && may_go(x, e, k, l))
                    least = UTIL_MIN(least, after_ns(x, e, k, l));
            x->tail[i * K + k] = UTIL_MAX(x->tail[i * K + k], least);
        }
}

/* ---- what is left ---- */

static void begin(prove_judge *x)
{
    for (int32_t i = 0; i < x->b->n; i++) {
        bool reads = false;
        for (int32_t e = 0; e < x->b->n_edges; e++)
            reads |= x->b->edge[e].to == i && prove_static_sent(x, e);
        x->mask[i] = x->told[i] & prove_allowed(x->b, i, x->a, x->z);
        for (int32_t k = 0; k < x->K; k++) {
            bool out = reads && x->to.closed && k != x->a && place_of(&x->to, k) == x->to.n;
            if (out)
                x->mask[i] &= ~(UINT64_C(1) << k);
        }
    }
    size_t cells = (size_t)x->n_counted * (size_t)x->K * sizeof *x->low;
    memcpy(x->low, x->least, cells);
    memcpy(x->high, x->most, cells);
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

/* One step for the number of group g on k; true: it has changed. */
static bool narrow_number(prove_judge *x, int32_t g, int32_t k)
{
    int64_t *low = x->low + g * x->K, *high = x->high + g * x->K, may = 0, must = 0, others_low = 0, others_high = 0;
    for (int32_t i = 0; i < x->b->n; i++)
        if (x->group_of[i] == g) {
            may += prove_may(x, i, k);
            must += x->mask[i] == UINT64_C(1) << k;
        }
    for (int32_t l = 0; l < x->K; l++) {
        others_low += l == k ? 0 : low[l];
        others_high += l == k ? 0 : high[l];
    }
    int64_t least = UTIL_MAX(UTIL_MAX(low[k], must), x->size[g] - others_high),
            most = UTIL_MIN(UTIL_MIN(high[k], may), x->size[g] - others_low);
    bool changed = least > low[k] || most < high[k];
    low[k] = least;
    high[k] = most;
    for (int32_t i = 0; i < x->b->n && most <= 0; i++)
        if (x->group_of[i] == g && prove_may(x, i, k)) {
            x->mask[i] &= ~(UINT64_C(1) << k);
            changed = true;
        }
    return changed;
}

static bool narrow(prove_judge *x)
{
    bool any = false;
    for (int32_t c = 0; c < x->n_groups * x->K; c++)
        if (x->low[c] <= x->high[c])
            any |= narrow_number(x, c / x->K, c % x->K);
    return any;
}

static bool adds_up(const prove_judge *x)
{
    for (int32_t g = 0; g < x->n_counted; g++) {
        int64_t low = 0, high = 0;
        for (int32_t k = 0; k < x->K; k++) {
            if (x->low[g * x->K + k] > x->high[g * x->K + k])
                return false;
            low += x->low[g * x->K + k];
            high += x->high[g * x->K + k];
        }
        if (low > x->size[g] || high < x->size[g])
            return false;
    }
    return true;
}

static bool has_devices(const prove_judge *x)
{
    for (int32_t i = 0; i < x->b->n; i++)
        if (!x->mask[i])
            return false;
    return true;
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

bool prove_static_windows(prove_judge *x)
{
    begin(x);
    for (bool again = true; again && !prove_go_on(x->b->p);) {
        again = narrow(x);
        if (!has_devices(x) || !adds_up(x))
            return false;
        find_heads(x);
        find_tails(x);
        again |= drop_devices(x);
    }
    return has_devices(x) && adds_up(x) && has_ways(x);
}

bool prove_may_cross(const prove_judge *x, int32_t e, int32_t k, int32_t l)
{
    int32_t i = x->b->edge[e].from;
    return prove_may(x, i, k) && prove_may(x, x->b->edge[e].to, l) && may_go(x, e, k, l) &&
           x->head[i * x->K + k] + prove_op_ns(x->b, i, k) + after_ns(x, e, k, l) <= x->upper_ns;
}
