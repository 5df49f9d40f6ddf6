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
 * A proof may go by cases. Of a group of operators some number N is on device k; N <= v or N >= v + 1. Within a case
 * all such numbers have ranges, and N may be multiplied by any whole number u: + u (least - N) for u > 0, u (most - N)
 * for u < 0, which adds nothing positive either. What is proven is the least over the cases; one in which no numbers of
 * a group add up to its size has no plans.
 *
 * With flow `tensor` and congestion `port` a case may also say which devices are the first to receive a tensor of the
 * entry, in order of arrival, and that nobody else does; it is divided by who is next, for every device where a reader
 * may run, or nobody. Transfers of the tensor hold one port, so that it is on the j-th of them no sooner than the first
 * j take together, and on another device no sooner than after all of these. Each of them has a reader (else nothing is
 * sent there), the others have none where nobody is next. Readers are a group of their own, behind the listed ones.
 *
 * With congestion `port` a case may say the same of the other end: who is the last to send results to the exit's device,
 * who comes before, and that nobody else does. Results are all tensors that take `return_ns` at least to get there. And a
 * case may be divided by whether an operator is on a device or elsewhere. What follows from a case for devices, heads and
 * tails is in prove_static_windows.c. */
#include "prove/prove_static.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define MAX_ROWS (INT64_C(1) << 28) /* of the programme, edges times devices squared mostly: 2 GiB of multipliers */
#define MAX_GROUPS 1024
#define MAX_DEPTH 200 /* of cases within cases */

static int read_loads(prove_judge *x, yyjson_val *object)
{
    size_t n;
    int64_t K = x->K;
    prove_congestion how = x->b->p->congestion;
    free(x->load);
    x->load = NULL;
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
    int64_t E = b->n_edges, K = x->K, signs = 2 * E * K, counts = signs + E * K * K + E + b->n + x->n_loads,
            all = counts + x->n_counted * K, *pair;
    size_t n;
    if (all > MAX_ROWS)
        return prove_too_large("a static proof of a block that is too large for one");
    free(x->dual);
    x->dual = prove_alloc((size_t)all, sizeof *x->dual);
    int rc = prove_list(&pair, &n, prove_get(object, "duals"), INT64_MAX, "duals");
    if (!rc && !x->dual)
        rc = MOIRAI_EFAIL;
    for (size_t i = 0; !rc && i < n; i += 2) {
        if (pair[i] < 0 || pair[i] >= all)
            rc = prove_wrong("a multiplier of no row");
        else if (pair[i] >= signs && pair[i] < counts && pair[i + 1] < 0)
            rc = prove_wrong("a negative multiplier of an inequality");
        else
            x->dual[pair[i]] = pair[i + 1];
    }
    free(pair);
    return rc;
}

/* Lists of operators, none of them in two. */
static int read_groups(prove_judge *x, yyjson_val *list)
{
    size_t g, max, n = yyjson_arr_size(list), cells = (n + 1) * (size_t)x->K;
    yyjson_val *value;
    int rc = n <= MAX_GROUPS ? 0 : prove_too_large("too many groups");
    if (rc)
        return rc;
    x->group_of = util_alloc((size_t)x->b->n, sizeof *x->group_of);
    x->size = util_alloc(n + 1, sizeof *x->size);
    x->least = util_alloc(cells, sizeof *x->least);
    x->most = util_alloc(cells, sizeof *x->most);
    x->low = util_alloc(cells, sizeof *x->low);
    x->high = util_alloc(cells, sizeof *x->high);
    x->told = util_alloc((size_t)x->b->n, sizeof *x->told);
    if (!x->group_of || !x->size || !x->least || !x->most || !x->low || !x->high || !x->told)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < x->b->n; i++) {
        x->group_of[i] = PROVE_NONE;
        x->told[i] = ~UINT64_C(0);
    }
    yyjson_arr_foreach(list, g, max, value) {
        int32_t *op = NULL;
        size_t m = 0;
        rc = rc ? rc : prove_list32(&op, &m, value, x->b->n - 1, "a group");
        for (size_t i = 0; i < m && !rc; i++) {
            if (x->group_of[op[i]] != PROVE_NONE)
                rc = prove_wrong("an operator is counted twice");
            x->group_of[op[i]] = (int32_t)g;
        }
        free(op);
        x->size[g] = (int64_t)m;
        for (int32_t k = 0; k < x->K; k++)
            x->most[(int32_t)g * x->K + k] = (int64_t)m;
    }
    x->n_groups = x->n_counted = (int32_t)n;
    return rc;
}

/* The tensor whose receivers are told apart, if there is one: its readers are one more group. */
static int read_sent(prove_judge *x, yyjson_val *object)
{
    if (!prove_get(object, "sent"))
        return 0;
    if (x->b->entry == PROVE_NONE || x->b->p->by_edge || x->b->p->congestion != PROVE_PORT)
        return prove_wrong("a tensor that is sent to one device after the other, where there is none");
    x->sent = (int32_t)prove_number(object, "sent");
    int64_t n = 0;
    for (int32_t e = 0; e < x->b->n_edges; e++)
        n += prove_static_sent(x, e);
    x->size[x->n_groups] = n;
    for (int32_t k = 0; k < x->K; k++)
        x->most[x->n_groups * x->K + k] = n;
    x->n_counted = x->n_groups + 1;
    return 0;
}

/* What the multipliers in `object` prove of the case at hand. */
static int judge_leaf(int64_t *bound, prove_judge *x, yyjson_val *object)
{
    *bound = x->upper_ns;
    bool plans = prove_static_windows(x);
    int rc = prove_go_on(x->b->p);
    if (rc || !plans)
        return rc;
    if (!prove_get(object, "duals"))
        return prove_wrong("a case with plans has no multipliers");
    rc = read_loads(x, object);
    rc = rc ? rc : read_duals(x, object);
    if (!rc && !prove_static_fits(x))
        rc = prove_too_large("multipliers are too large");
    if (!rc)
        *bound = prove_static_sum(x);
    return rc;
}

static int judge_case(int64_t *bound, prove_judge *x, yyjson_val *object, int32_t depth);

/* The two parts of a case: at most `most` operators of a group on a device, or more. */
static int judge_parts(int64_t *bound, prove_judge *x, yyjson_val *object, int32_t depth)
{
    int32_t g = prove_index(object, "group", x->n_groups), k = prove_device(x->b->p, object, "device");
    int64_t most = prove_number(object, "most"), low = 0, high = 0;
    if (g < 0 || k < 0)
        return prove_wrong("group or device of a case is out of range");
    int64_t *least = &x->least[g * x->K + k], *top = &x->most[g * x->K + k], old_least = *least, old_most = *top;
    *top = UTIL_MIN(old_most, most);
    int rc = judge_case(&low, x, prove_get(object, "low"), depth + 1);
    *top = old_most;
    *least = UTIL_MAX(old_least, most + 1);
    rc = rc ? rc : judge_case(&high, x, prove_get(object, "high"), depth + 1);
    *least = old_least;
    *bound = UTIL_MIN(low, high);
    return rc;
}

/* An operator is on a device, or elsewhere. */
static int judge_devices(int64_t *bound, prove_judge *x, yyjson_val *object, int32_t depth)
{
    int32_t i = prove_index(object, "op", x->b->n), k = prove_device(x->b->p, object, "device");
    int64_t there = 0, elsewhere = 0;
    if (i < 0 || k < 0)
        return prove_wrong("op or device of a case is out of range");
    uint64_t old = x->told[i];
    x->told[i] = old & UINT64_C(1) << k;
    int rc = judge_case(&there, x, prove_get(object, "there"), depth + 1);
    x->told[i] = old & ~(UINT64_C(1) << k);
    rc = rc ? rc : judge_case(&elsewhere, x, prove_get(object, "elsewhere"), depth + 1);
    x->told[i] = old;
    *bound = UTIL_MIN(there, elsewhere);
    return rc;
}

static bool is_named(const prove_order *order, int32_t k)
{
    bool named = false;
    for (int32_t i = 0; i < order->n && !named; i++)
        named = order->device[i] == k;
    return named;
}

/* Device k is the next to receive the entry's tensor, or to return results. */
static int judge_next(int64_t *bound, prove_judge *x, prove_order *order, int32_t k, yyjson_val *object, int32_t depth)
{
    int64_t none = 0, *least = order == &x->to ? &x->least[x->n_groups * x->K + k] : &none, old = *least;
    *least = UTIL_MAX(old, 1); /* a reader is where it is received */
    order->device[order->n++] = k;
    int rc = judge_case(bound, x, object, depth + 1);
    order->n--;
    *least = old;
    return rc;
}

static int judge_nobody(int64_t *bound, prove_judge *x, prove_order *order, yyjson_val *object, int32_t depth)
{
    int64_t old[PROVE_MAX_DEVICES], *most = x->most + x->n_groups * x->K;
    bool readers = order == &x->to;
    for (int32_t k = 0; k < x->K && readers; k++) {
        old[k] = most[k];
        most[k] = k == x->a || is_named(order, k) ? most[k] : 0;
    }
    order->closed = true;
    int rc = judge_case(bound, x, object, depth + 1);
    order->closed = false;
    if (readers)
        memcpy(most, old, (size_t)x->K * sizeof *old);
    return rc;
}

/* Whether k may be next: a reader of the tensor, or the producer of a result, may be there. */
static bool may_be_next(const prove_judge *x, const prove_order *order, int32_t k)
{
    bool to = order == &x->to, may = false;
    if (k == (to ? x->a : x->z) || is_named(order, k))
        return false;
    for (int32_t e = 0; e < x->b->n_edges && !may; e++)
        may = to ? prove_static_sent(x, e) && (prove_allowed(x->b, x->b->edge[e].to, x->a, x->z) >> k & 1)
                 : prove_static_result(x, e) && (prove_allowed(x->b, x->b->edge[e].from, x->a, x->z) >> k & 1);
    return may;
}

static bool all_listed(const prove_judge *x, const prove_order *order, const int32_t *device, size_t n)
{
    for (int32_t k = 0; k < x->K; k++) {
        bool listed = !may_be_next(x, order, k);
        for (size_t i = 0; i < n && !listed; i++)
            listed = device[i] == k;
        if (!listed)
            return false;
    }
    return true;
}

/* The next of an order, from a list that leaves nobody out, or nobody. */
static int judge_order(int64_t *bound, prove_judge *x, prove_order *order, yyjson_val *list, yyjson_val *object,
                       int32_t depth)
{
    yyjson_val *next = prove_get(object, "next");
    int32_t *device = NULL;
    size_t n = 0;
    int64_t part = 0;
    bool known = order == &x->to ? x->sent != PROVE_NONE : x->return_ns > 0;
    int rc = prove_list32(&device, &n, list, x->K - 1, "devices of a case");
    if (!rc && (!known || order->closed || yyjson_arr_size(next) != n || !all_listed(x, order, device, n)))
        rc = prove_wrong("devices of a case leave some out");
    *bound = x->upper_ns;
    for (size_t i = 0; i < n && !rc; i++) {
        if (device[i] == (order == &x->to ? x->a : x->z) || is_named(order, device[i]))
            rc = prove_wrong("a device is named twice");
        rc = rc ? rc : judge_next(&part, x, order, device[i], yyjson_arr_get(next, i), depth);
        *bound = UTIL_MIN(*bound, part);
    }
    rc = rc ? rc : judge_nobody(&part, x, order, prove_get(object, "nobody"), depth);
    *bound = UTIL_MIN(*bound, part);
    free(device);
    return rc;
}

static int judge_case(int64_t *bound, prove_judge *x, yyjson_val *object, int32_t depth)
{
    if (depth > MAX_DEPTH)
        return prove_too_large("a case is divided too often");
    yyjson_val *receivers = prove_get(object, "receivers"), *returns = prove_get(object, "returns");
    if (receivers || returns)
        return judge_order(bound, x, receivers ? &x->to : &x->back, receivers ? receivers : returns, object, depth);
    if (prove_get(object, "there"))
        return judge_devices(bound, x, object, depth);
    return prove_get(object, "low") ? judge_parts(bound, x, object, depth) : judge_leaf(bound, x, object);
}

/* What counts as a result, if anything does. */
static int read_returns(prove_judge *x, yyjson_val *object)
{
    if (!prove_get(object, "return_ns"))
        return 0;
    if (x->b->exit == PROVE_NONE || x->b->p->congestion != PROVE_PORT)
        return prove_wrong("results that are sent to one device one after the other, where there are none");
    x->return_ns = prove_number(object, "return_ns");
    return prove_find_results(x);
}

int prove_static(int64_t *ns, const prove_block *b, int32_t a, int32_t z, yyjson_val *object)
{
    prove_judge x = {.b = b, .K = b->p->K, .a = a, .z = z, .proven_ns = *ns, .sent = PROVE_NONE};
    size_t cells = (size_t)b->n * (size_t)x.K;
    int64_t bound = 0;
    x.upper_ns = prove_number(object, "upper_ns");
    x.head = prove_alloc(cells, sizeof *x.head);
    x.tail = prove_alloc(cells, sizeof *x.tail);
    x.mask = util_alloc((size_t)b->n, sizeof *x.mask);
    int rc = x.head && x.tail && x.mask ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : read_groups(&x, prove_get(object, "groups"));
    if (prove_get(object, "cases")) {
        rc = rc ? rc : read_sent(&x, object);
        rc = rc ? rc : read_returns(&x, object);
        rc = rc ? rc : judge_case(&bound, &x, prove_get(object, "cases"), 0);
    } else {
        rc = rc ? rc : judge_leaf(&bound, &x, object);
    }
    if (!rc)
        *ns = UTIL_MAX(*ns, bound);
    void *all[] = {x.head,  x.tail, x.mask, x.dual, x.load, x.group_of, x.size,
                   x.least, x.most, x.low,  x.high, x.told, x.result};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return rc;
}
