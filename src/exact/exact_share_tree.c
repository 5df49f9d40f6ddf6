/* The cheapest placement at given prices, over a forest of units.
 *
 * A unit on a device costs price * time; a tensor that changes device costs (price of the send port + price of the
 * receive port) * time, or price of the channel * time. Units whose device is fixed turn the tensors at them into costs
 * of the neighbour alone. Between open units a spanning forest is kept (heavy pairs first): there the least sum is
 * found exactly by passing least costs from the leaves to the roots. A pair outside the forest still counts for the
 * first of its units with the least over the devices of the other: never more than the truth.
 *
 * Flow tensor: a tensor is sent once per device. Devices where a fixed reader waits are counted once; the open readers
 * share what is left: 1/m of the length each, m of them, nothing where the tensor is wanted anyway.
 *
 * Complexity: O((V + E) K^2). */
#include "exact/exact_share.h"

#include <string.h>

static inline uint64_t dom_of(const exact_search *s, const exact_state *st, int32_t u)
{
    return st->dom[s->unit_op[s->unit_off[u]]];
}

static int32_t root_of(int32_t *find, int32_t u)
{
    while (find[u] != u)
        u = find[u] = find[find[u]];
    return u;
}

/* Which edges count, and for how much. */
static void count_edges(exact_search *s, const exact_state *st)
{
    exact_share *h = s->share;
    const moirai_problem *p = s->p;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        int32_t begin = p->tensor_edge_off[t], end = p->tensor_edge_off[t + 1], open = 0;
        uint64_t there = 0;
        for (int32_t e = begin; e < end; e++) {
            uint64_t dom = st->dom[p->edge_reader[e]];
            bool fixed = EXACT_ONLY(dom);
            h->edge_parts[e] = s->edge || (fixed && !(there & dom));
            if (fixed)
                there |= dom;
            open += !fixed;
        }
        h->tensor_there[t] = s->edge ? 0 : there;
        for (int32_t e = begin; !s->edge && e < end; e++)
            if (!EXACT_ONLY(st->dom[p->edge_reader[e]]))
                h->edge_parts[e] = open;
    }
}

static void make_forest(exact_search *s, const exact_state *st)
{
    exact_share *h = s->share;
    memset(h->link_off, 0, ((size_t)s->n_units + 1) * sizeof *h->link_off);
    for (int32_t u = 0; u < s->n_units; u++) {
        h->find[u] = u;
        h->parent[u] = h->parent_pair[u] = -1;
    }
    int32_t n = 0, *kept = h->order; /* at most n_units - 1 pairs */
    for (int32_t a = 0; a < h->n_pairs; a++) {
        int32_t x = h->pair_order[a], u = h->pair_a[x], v = h->pair_b[x];
        if (EXACT_ONLY(dom_of(s, st, u)) || EXACT_ONLY(dom_of(s, st, v)))
            continue;
        int32_t ru = root_of(h->find, u), rv = root_of(h->find, v);
        if (ru == rv)
            continue;
        h->find[ru] = rv;
        h->link_off[u + 1]++;
        h->link_off[v + 1]++;
        kept[n++] = x;
    }
    for (int32_t u = 0; u < s->n_units; u++)
        h->link_off[u + 1] += h->link_off[u];
    memcpy(h->find, h->link_off, (size_t)s->n_units * sizeof *h->find);
    for (int32_t a = 0; a < n; a++) {
        h->link[h->find[h->pair_a[kept[a]]]++] = kept[a];
        h->link[h->find[h->pair_b[kept[a]]]++] = kept[a];
    }
}

/* Parents before children. */
static void order_forest(exact_search *s)
{
    exact_share *h = s->share;
    h->n_order = 0;
    memset(h->find, 0, (size_t)s->n_units * sizeof *h->find); /* now: seen */
    for (int32_t root = 0; root < s->n_units; root++) {
        if (h->find[root])
            continue;
        int32_t at = h->n_order;
        h->order[h->n_order++] = root;
        h->find[root] = 1;
        for (; at < h->n_order; at++) {
            int32_t u = h->order[at];
            for (int32_t a = h->link_off[u]; a < h->link_off[u + 1]; a++) {
                int32_t x = h->link[a], v = h->pair_a[x] == u ? h->pair_b[x] : h->pair_a[x];
                if (h->find[v])
                    continue;
                h->find[v] = 1;
                h->parent[v] = u;
                h->parent_pair[v] = x;
                h->order[h->n_order++] = v;
            }
        }
    }
}

void exact_share_prepare(exact_search *s, const exact_state *st)
{
    count_edges(s, st);
    make_forest(s, st);
    order_forest(s);
}

static inline int64_t edge_price(const exact_search *s, const exact_state *st, int32_t e, int32_t a, int32_t b)
{
    const exact_share *h = s->share;
    int32_t t = s->p->edge_tensor[e], parts = h->edge_parts[e];
    if (a == b || (h->tensor_there[t] >> b & 1 && !EXACT_ONLY(st->dom[s->p->edge_reader[e]])))
        return 0;
    int64_t ns = h->table_ns[((int64_t)s->p->tensor_class[t] * s->K + a) * s->K + b];
    return (parts > 1 ? ns / parts : ns) * exact_price_of(s, st, a, b);
}

static void fill_costs(exact_search *s, const exact_state *st)
{
    exact_share *h = s->share;
    const moirai_problem *p = s->p;
    int32_t K = s->K;
    for (int32_t u = 0; u < s->n_units; u++)
        for (uint64_t m = dom_of(s, st, u); m != 0; m &= m - 1) {
            int32_t k = EXACT_FIRST(m);
            h->unary[u * K + k] = h->op_ns[u * K + k] * st->price[k];
        }
    if (p->congestion == MOIRAI_CONGESTION_NONE)
        return;
    memset(h->cost, 0, (size_t)h->n_pairs * (size_t)(K * K) * sizeof *h->cost);
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t x = h->edge_pair[e];
        if (x < 0 || h->edge_parts[e] == 0)
            continue;
        int32_t j = p->tensor_producer[p->edge_tensor[e]], i = p->edge_reader[e];
        bool forward = s->unit[j] == h->pair_a[x];
        for (uint64_t m = st->dom[j]; m != 0; m &= m - 1)
            for (uint64_t w = st->dom[i]; w != 0; w &= w - 1) {
                int32_t a = EXACT_FIRST(m), b = EXACT_FIRST(w);
                h->cost[(x * K + (forward ? a : b)) * K + (forward ? b : a)] += edge_price(s, st, e, a, b);
            }
    }
}

/* Pairs that are not in the forest: into the unary cost of an open unit, the least over the other's devices. */
static void fold_pairs(exact_search *s, const exact_state *st)
{
    exact_share *h = s->share;
    int32_t K = s->K;
    for (int32_t x = 0; x < h->n_pairs; x++) {
        int32_t u = h->pair_a[x], v = h->pair_b[x];
        if (h->parent_pair[u] == x || h->parent_pair[v] == x)
            continue;
        bool onto_b = EXACT_ONLY(dom_of(s, st, u));
        int32_t onto = onto_b ? v : u, other = onto_b ? u : v;
        for (uint64_t m = dom_of(s, st, onto); m != 0; m &= m - 1) {
            int32_t k = EXACT_FIRST(m);
            int64_t least = EXACT_NONE_NS;
            for (uint64_t w = dom_of(s, st, other); w != 0; w &= w - 1) {
                int32_t l = EXACT_FIRST(w);
                int64_t c = h->cost[(x * K + (onto_b ? l : k)) * K + (onto_b ? k : l)];
                least = UTIL_MIN(least, c);
            }
            h->unary[onto * K + k] += least;
        }
    }
}

static inline int64_t pair_cost(const exact_search *s, int32_t child, int32_t own, int32_t parents)
{
    const exact_share *h = s->share;
    int32_t x = h->parent_pair[child];
    if (s->p->congestion == MOIRAI_CONGESTION_NONE)
        return 0;
    return h->pair_a[x] == child ? h->cost[(x * s->K + own) * s->K + parents]
                                 : h->cost[(x * s->K + parents) * s->K + own];
}

int64_t exact_share_least(exact_search *s, const exact_state *st)
{
    exact_share *h = s->share;
    int32_t K = s->K;
    int64_t total = 0;
    fill_costs(s, st);
    if (s->p->congestion != MOIRAI_CONGESTION_NONE)
        fold_pairs(s, st);
    for (int32_t r = 0; r < h->n_prices; r++)
        total += h->ends[r] * st->price[r];
    for (int32_t a = h->n_order - 1; a >= 0; a--) {
        int32_t u = h->order[a], v = h->parent[u];
        uint64_t dom = dom_of(s, st, u);
        if (v < 0) {
            int64_t least = EXACT_NONE_NS;
            for (uint64_t m = dom; m != 0; m &= m - 1)
                least = UTIL_MIN(least, h->unary[u * K + EXACT_FIRST(m)]);
            total += least;
            continue;
        }
        for (uint64_t w = dom_of(s, st, v); w != 0; w &= w - 1) {
            int32_t l = EXACT_FIRST(w);
            int64_t least = EXACT_NONE_NS;
            for (uint64_t m = dom; m != 0; m &= m - 1) {
                int32_t k = EXACT_FIRST(m);
                least = UTIL_MIN(least, h->unary[u * K + k] + pair_cost(s, u, k, l));
            }
            h->up[u * K + l] = least;
            h->unary[v * K + l] += least; /* now: with all below it */
        }
    }
    return total;
}

void exact_share_marginals(exact_search *s, const exact_state *st)
{
    exact_share *h = s->share;
    int32_t K = s->K;
    int64_t total = 0;
    for (int32_t a = 0; a < h->n_order; a++) {
        int32_t u = h->order[a];
        int64_t least = EXACT_NONE_NS;
        for (uint64_t m = dom_of(s, st, u); h->parent[u] < 0 && m != 0; m &= m - 1)
            least = UTIL_MIN(least, h->unary[u * K + EXACT_FIRST(m)]);
        total += h->parent[u] < 0 ? least : 0;
        h->up[u * K] = h->parent[u] < 0 ? least : h->up[u * K]; /* a root keeps its tree's least there */
    }
    for (int32_t a = 0; a < h->n_order; a++) {
        int32_t u = h->order[a], v = h->parent[u];
        for (uint64_t m = dom_of(s, st, u); m != 0; m &= m - 1) {
            int32_t k = EXACT_FIRST(m);
            if (v < 0) {
                h->down[u * K + k] = total - h->up[u * K] + h->unary[u * K + k];
                continue;
            }
            int64_t least = EXACT_NONE_NS;
            for (uint64_t w = dom_of(s, st, v); w != 0; w &= w - 1) {
                int32_t l = EXACT_FIRST(w);
                least = UTIL_MIN(least, h->down[v * K + l] - h->up[u * K + l] + pair_cost(s, u, k, l));
            }
            h->down[u * K + k] = least + h->unary[u * K + k];
        }
    }
}

static void add_transfer(exact_search *s, const exact_state *st, int32_t e, int32_t a, int32_t b)
{
    exact_share *h = s->share;
    int32_t t = s->p->edge_tensor[e], parts = h->edge_parts[e], K = s->K;
    if (parts == 0 || a == b || (h->tensor_there[t] >> b & 1 && !EXACT_ONLY(st->dom[s->p->edge_reader[e]])))
        return;
    double ns = (double)(h->table_ns[((int64_t)s->p->tensor_class[t] * K + a) * K + b] / parts);
    if (s->p->congestion == MOIRAI_CONGESTION_CHANNEL) {
        h->load[K + a * K + b] += ns;
        return;
    }
    h->load[K + a] += ns;
    h->load[2 * K + b] += ns;
}

void exact_share_loads(exact_search *s, const exact_state *st)
{
    exact_share *h = s->share;
    int32_t K = s->K;
    for (int32_t r = 0; r < h->n_prices; r++)
        h->load[r] = (double)h->ends[r];
    for (int32_t a = 0; a < h->n_order; a++) {
        int32_t u = h->order[a], v = h->parent[u], best = 0;
        int64_t least = EXACT_NONE_NS;
        for (uint64_t m = dom_of(s, st, u); m != 0; m &= m - 1) {
            int32_t k = EXACT_FIRST(m);
            int64_t c = h->unary[u * K + k] + (v < 0 ? 0 : pair_cost(s, u, k, h->pick[v]));
            if (c < least) {
                least = c;
                best = k;
            }
        }
        h->pick[u] = best;
        h->load[best] += (double)h->op_ns[u * K + best];
    }
    for (int32_t e = 0; s->p->congestion != MOIRAI_CONGESTION_NONE && e < s->p->n_edges; e++) {
        int32_t from = h->pick[s->unit[s->p->tensor_producer[s->p->edge_tensor[e]]]];
        add_transfer(s, st, e, from, h->pick[s->unit[s->p->edge_reader[e]]]);
    }
}
