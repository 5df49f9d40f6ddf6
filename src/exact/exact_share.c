/* The share bound: all work and all traffic, shared out at best over unequal devices and ports.
 *
 * For any prices w >= 0 on resources (devices, ports or channels), a plan of length T has sum of w * load <= T * sum of
 * w: no resource is busy for longer than T. The left side is at least that of the cheapest placement at these prices,
 * which a forest of operators gives (exact_share_tree.c). A resource that is surely used is idle before the least
 * head and after the least tail of all that may use it: both count as load. So T >= ceil(least / sum of w), for any
 * prices; good ones equalise the loads. Each node starts from its parent's prices and takes a few steps against the
 * gradient. All sums are whole numbers, rounded down where they are scaled, so that no rounding can break the bound.
 *
 * The same messages, passed back from the roots, give the least price with operator i on device k: where that reaches
 * below_ns * sum of w, device k is out for i.
 *
 * Complexity: O((V + E) K^2) per step. */
#include "exact/exact_share.h"

#include <stdlib.h>
#include <string.h>

#define STEPS 3
#define ROOT_STEPS 60
#define ONE 4096
#define MOST_PRICE (16 * ONE)

/* ---- setup ---- */

static void scale_times(exact_search *s)
{
    exact_share *h = s->share;
    const moirai_problem *p = s->p;
    int64_t limit = ((int64_t)1 << 62) / MOST_PRICE / 4; /* a transfer has two prices; `ends` may double a load */
    while (s->horizon_ns >> h->shift > limit / UTIL_MAX(1, h->n_prices))
        h->shift++;
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t k = 0; k < s->K; k++)
            h->op_ns[s->unit[i] * s->K + k] += UTIL_MAX(0, p->op_time_ns[(int64_t)i * s->K + k]) >> h->shift;
    for (int64_t a = 0; a < (int64_t)p->n_classes * s->K * s->K; a++)
        h->table_ns[a] = p->class_transfer_ns[a] >> h->shift;
}

typedef struct weighed_pair {
    int64_t weight;
    int32_t pair;
} weighed_pair;

static int heavier(const void *left, const void *right)
{
    const weighed_pair *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->pair - b->pair;
}

static int find_pairs(exact_search *s)
{
    exact_share *h = s->share;
    const moirai_problem *p = s->p;
    weighed_pair *list = util_alloc((size_t)p->n_edges, sizeof *list);
    if (!list)
        return MOIRAI_EFAIL;
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t t = p->edge_tensor[e], u = s->unit[p->tensor_producer[t]], v = s->unit[p->edge_reader[e]], x = 0;
        int32_t a = UTIL_MIN(u, v), b = UTIL_MAX(u, v);
        h->edge_pair[e] = -1;
        if (u == v)
            continue;
        while (x < h->n_pairs && (h->pair_a[x] != a || h->pair_b[x] != b))
            x++;
        if (x == h->n_pairs) {
            list[x] = (weighed_pair){0, x};
            h->pair_a[x] = a;
            h->pair_b[x] = b;
            h->n_pairs++;
        }
        h->edge_pair[e] = x;
        const int64_t *table = h->table_ns + (int64_t)p->tensor_class[t] * s->K * s->K;
        int64_t most = 0;
        for (int32_t c = 0; c < s->K * s->K; c++)
            most = UTIL_MAX(most, table[c]);
        list[x].weight += most;
    }
    qsort(list, (size_t)h->n_pairs, sizeof *list, heavier);
    for (int32_t x = 0; x < h->n_pairs; x++)
        h->pair_order[x] = list[x].pair;
    free(list);
    return 0;
}

static bool allocate(exact_search *s)
{
    exact_share *h = s->share;
    size_t U = (size_t)s->n_units, K = (size_t)s->K, E = (size_t)s->p->n_edges, R = (size_t)h->n_prices;
#define TAKE(field, count) (h->field = util_alloc((count), sizeof *h->field)) != NULL
    return TAKE(op_ns, U * K) && TAKE(table_ns, (size_t)s->p->n_classes * K * K) && TAKE(pair_a, E) &&
           TAKE(pair_b, E) && TAKE(edge_pair, E) && TAKE(pair_order, E) && TAKE(edge_parts, E) &&
           TAKE(tensor_there, (size_t)s->p->n_tensors) && TAKE(ends, R) && TAKE(parent, U) && TAKE(parent_pair, U) &&
           TAKE(order, U) && TAKE(find, U) && TAKE(link_off, U + 1) && TAKE(link, 2 * U) && TAKE(unary, U * K) &&
           TAKE(cost, E * K * K) && TAKE(up, U * K) && TAKE(down, U * K) && TAKE(pick, U) && TAKE(load, R);
#undef TAKE
}

int exact_share_new(exact_search *s)
{
    s->share = util_alloc(1, sizeof *s->share);
    if (!s->share)
        return MOIRAI_EFAIL;
    s->share->n_prices = s->n_prices;
    if (!allocate(s))
        return MOIRAI_EFAIL;
    scale_times(s);
    return find_pairs(s);
}

void exact_share_free(exact_search *s)
{
    exact_share *h = s->share;
    if (!h)
        return;
    void *all[] = {h->op_ns,        h->table_ns, h->pair_a, h->pair_b,      h->edge_pair, h->pair_order, h->edge_parts,
                   h->tensor_there, h->ends,     h->parent, h->parent_pair, h->order,     h->find,       h->link_off,
                   h->link,         h->unary,    h->cost,   h->up,          h->down,      h->pick,       h->load};
    for (size_t a = 0; a < sizeof all / sizeof *all; a++)
        free(all[a]);
    free(h);
}

/* ---- idle time at both ends of what is surely used ---- */

static void device_ends(exact_search *s, const exact_state *st, int32_t k)
{
    int64_t head = EXACT_NONE_NS, tail = EXACT_NONE_NS;
    bool used = false;
    for (int32_t i = 0; i < s->n; i++) {
        int64_t at = (int64_t)i * s->K + k;
        if (!(st->dom[i] >> k & 1) || s->p->op_time_ns[at] == 0)
            continue;
        used |= EXACT_ONLY(st->dom[i]);
        head = UTIL_MIN(head, st->head[at]);
        tail = UTIL_MIN(tail, st->tail[at]);
    }
    s->share->ends[k] = used ? (head + tail) >> s->share->shift : 0;
}

/* The least head and tail of all transfers that may use port or channel `r`. */
static int64_t port_ends(const exact_search *s, const exact_state *st, int32_t r)
{
    const moirai_problem *p = s->p;
    int32_t K = s->K;
    bool channel = p->congestion == MOIRAI_CONGESTION_CHANNEL, sends = channel || r < 2 * K,
         receives = channel || r >= 2 * K;
    int32_t from = channel ? (r - K) / K : r - K, to = channel ? (r - K) % K : r - 2 * K;
    int64_t head = EXACT_NONE_NS, tail = EXACT_NONE_NS;
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t j = p->tensor_producer[p->edge_tensor[e]], i = p->edge_reader[e];
        uint64_t at = sends ? st->dom[j] & (uint64_t)1 << from : st->dom[j] & ~((uint64_t)1 << to);
        uint64_t on = receives ? st->dom[i] & (uint64_t)1 << to : st->dom[i] & ~((uint64_t)1 << from);
        if (at == 0 || on == 0)
            continue;
        for (; at != 0; at &= at - 1)
            head = UTIL_MIN(head, st->head[(int64_t)j * K + EXACT_FIRST(at)] + moirai_op_ns(p, j, EXACT_FIRST(at)));
        for (; on != 0; on &= on - 1)
            tail = UTIL_MIN(tail, st->tail[(int64_t)i * K + EXACT_FIRST(on)] + moirai_op_ns(p, i, EXACT_FIRST(on)));
    }
    return head == EXACT_NONE_NS ? 0 : (head + tail) >> s->share->shift;
}

static void find_ends(exact_search *s, const exact_state *st)
{
    int32_t machines = exact_machine_count(s);
    for (int32_t k = 0; k < s->K; k++)
        device_ends(s, st, k);
    for (int32_t r = s->K; r < machines; r++)
        s->share->ends[r] = s->machine_count[r] > 0 ? port_ends(s, st, r) : 0;
}

/* ---- prices ---- */

/* Dearer where the load is above the mean, cheaper below; then all are scaled so that the dearest stays in range. */
static void step(exact_search *s, exact_state *st, double size)
{
    const exact_share *h = s->share;
    double mean = 0, total = 0, next[3 * MOIRAI_MAX_DEVICES], most = 0;
    double *w = h->n_prices <= 3 * MOIRAI_MAX_DEVICES ? next : NULL;
    if (!w)
        return; /* channels of many devices: the prices stay as they are */
    for (int32_t r = 0; r < h->n_prices; r++) {
        mean += h->load[r] * st->price[r];
        total += st->price[r];
    }
    if (!(mean > 0))
        return;
    mean /= total;
    for (int32_t r = 0; r < h->n_prices; r++) {
        double off = UTIL_MIN(2.0, h->load[r] / mean - 1);
        w[r] = UTIL_MAX(st->price[r] * (1 + size * off), 1.0);
        most = UTIL_MAX(most, w[r]);
    }
    for (int32_t r = 0; r < h->n_prices; r++)
        st->price[r] = (int32_t)UTIL_MAX(1.0, w[r] * (MOST_PRICE / most));
}

static bool strike(exact_search *s, exact_state *st, __int128 limit, bool *changed)
{
    const exact_share *h = s->share;
    int64_t ends = 0;
    for (int32_t r = 0; r < h->n_prices; r++)
        ends += h->ends[r] * st->price[r];
    exact_share_marginals(s, st);
    for (int32_t u = 0; u < s->n_units; u++) {
        int32_t i = s->unit_op[s->unit_off[u]];
        uint64_t keep = ~(uint64_t)0;
        if (EXACT_ONLY(st->dom[i]))
            continue;
        for (uint64_t m = st->dom[i]; m != 0; m &= m - 1)
            if ((__int128)(h->down[u * s->K + EXACT_FIRST(m)] + ends) << h->shift > limit)
                keep &= ~(m & -m);
        if (!exact_restrict(s, st, i, keep, changed))
            return false;
    }
    return true;
}

static int64_t sum_of_prices(const exact_search *s, const exact_state *st)
{
    int64_t sum = 0;
    for (int32_t r = 0; r < s->share->n_prices; r++)
        sum += st->price[r];
    return sum;
}

bool exact_share_out(exact_search *s, exact_state *st, bool *changed)
{
    exact_share *h = s->share;
    bool root = st == s->stack[0];
    int steps = root ? ROOT_STEPS : STEPS;
    double best = -1, size = root ? 0.5 : 0.15;
    exact_activate(s, st);
    find_ends(s, st);
    exact_share_prepare(s, st);
    for (int n = 0; n < steps; n++, size *= root ? 0.94 : 0.7) {
        double value = (double)exact_share_least(s, st) / (double)sum_of_prices(s, st);
        if (value > best) {
            best = value;
            memcpy(s->price_best, st->price, (size_t)h->n_prices * sizeof *st->price);
        }
        exact_share_loads(s, st);
        step(s, st, size);
    }
    memcpy(st->price, s->price_best, (size_t)h->n_prices * sizeof *st->price);
    int64_t sum = sum_of_prices(s, st);
    __int128 least = (__int128)exact_share_least(s, st) << h->shift;
    st->lb_ns = UTIL_MAX(st->lb_ns, (int64_t)((least + sum - 1) / sum));
    return st->lb_ns < s->below_ns && strike(s, st, (__int128)(s->below_ns - 1) * sum, changed);
}
