/* Features for HRL.
 *
 * An item: its type (hashed into a few columns, so that a policy knows types in networks that it has not seen), the
 * size of its outputs, its place in topological order, and the places, relative to its own, of up to four producers and
 * four readers. The publication has numbers of operators there; places in [0, 1] mean the same in a larger graph. A
 * group: its histogram of types, its share of items and of bytes, and what it exchanges with every other group. */
#include "place/learn/hrl_items.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint8_t type_column(const char *type)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *type; type++)
        hash = (hash ^ (uint8_t)*type) * 16777619u;
    return (uint8_t)((hash ^ hash >> 16) % HRL_TYPES);
}

static double place_of(const moirai_problem *p, const place_units *u, int32_t item)
{
    return (double)p->topo_rank[u->op[u->off[item]]] / (double)p->n_ops;
}

static void describe(hrl_items *h, const moirai_problem *p, const place_units *u, int32_t item)
{
    learn_real *x = h->features + (size_t)item * HRL_ITEM_FEATURES;
    int32_t op = u->op[u->off[item]];
    h->type[item] = type_column(p->op_type[op] ? p->op_type[op] : "");
    x[h->type[item]] = 1;
    for (int32_t j = u->off[item]; j < u->off[item + 1]; j++)
        for (int32_t o = p->op_out_off[u->op[j]]; o < p->op_out_off[u->op[j] + 1]; o++)
            h->out_bytes[item] += p->tensor_bytes[p->op_out[o]];
    x[HRL_TYPES] = (learn_real)(log1p((double)h->out_bytes[item]) / 32);
    x[HRL_PLACE] = (learn_real)place_of(p, u, item);
    for (int32_t k = 0; k < p->n_devices; k++) {
        int64_t ns = u->devices[item] >> k & 1 ? 0 : INT64_MAX;
        for (int32_t j = u->off[item]; j < u->off[item + 1] && ns < INT64_MAX; j++)
            ns += moirai_op_ns(p, u->op[j], k);
        h->least_ns[(int64_t)item * p->n_devices + k] = ns;
    }
}

static int compare_pairs(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Distinct links, sorted by (from, to). */
static void find_links(hrl_items *h, const moirai_problem *p, const place_units *u, uint64_t *pair)
{
    int32_t n = 0;
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t from = u->of_op[p->tensor_producer[p->edge_tensor[e]]], to = u->of_op[p->edge_reader[e]];
        if (from != to)
            pair[n++] = (uint64_t)from << 32 | (uint32_t)to;
    }
    qsort(pair, (size_t)n, sizeof *pair, compare_pairs);
    for (int32_t i = 0; i < n; i++) {
        if (i > 0 && pair[i] == pair[i - 1])
            continue;
        h->from[h->n_links] = (int32_t)(pair[i] >> 32);
        h->to[h->n_links++] = (int32_t)(pair[i] & UINT32_MAX);
    }
}

static void note_neighbours(hrl_items *h, const moirai_problem *p, const place_units *u, uint8_t *producers,
                            uint8_t *readers)
{
    for (int32_t i = 0; i < h->n_links; i++) {
        int32_t from = h->from[i], to = h->to[i];
        learn_real distance = (learn_real)(place_of(p, u, to) - place_of(p, u, from));
        learn_real *reader = h->features + (size_t)to * HRL_ITEM_FEATURES + HRL_TYPES + 2;
        learn_real *producer = h->features + (size_t)from * HRL_ITEM_FEATURES + HRL_TYPES + 2 + HRL_NEAR;
        if (producers[to] < HRL_NEAR)
            reader[producers[to]++] = distance;
        if (readers[from] < HRL_NEAR)
            producer[readers[from]++] = distance;
    }
}

int hrl_items_new(hrl_items **out, const moirai_problem *p, const place_units *u)
{
    size_t n = (size_t)u->n, edges = (size_t)p->n_edges;
    hrl_items *h = *out = util_alloc(1, sizeof *h);
    if (!h)
        return MOIRAI_EFAIL;
    h->n = u->n;
    h->features = util_alloc(n * HRL_ITEM_FEATURES, sizeof *h->features);
    h->type = util_alloc(n, sizeof *h->type);
    h->out_bytes = util_alloc(n, sizeof *h->out_bytes);
    h->from = util_alloc(edges, sizeof *h->from);
    h->to = util_alloc(edges, sizeof *h->to);
    h->least_ns = util_alloc(n * (size_t)p->n_devices, sizeof *h->least_ns);
    uint64_t *pair = util_alloc(edges, sizeof *pair);
    uint8_t *producers = util_alloc(n, 1), *readers = util_alloc(n, 1);
    int rc = h->features && h->type && h->out_bytes && h->from && h->to && h->least_ns && pair && producers && readers
                 ? 0
                 : MOIRAI_EFAIL;
    if (!rc) {
        for (int32_t item = 0; item < h->n; item++)
            describe(h, p, u, item);
        find_links(h, p, u, pair);
        note_neighbours(h, p, u, producers, readers);
    }
    free(pair);
    free(producers);
    free(readers);
    return rc;
}

void hrl_items_free(hrl_items *h)
{
    if (!h)
        return;
    free(h->features);
    free(h->type);
    free(h->out_bytes);
    free(h->from);
    free(h->to);
    free(h->least_ns);
    free(h);
}

int32_t hrl_items_embed(const hrl_items *h, int32_t n_groups, const int32_t *group, int32_t *sequence, int32_t *count,
                        learn_real *features, size_t stride)
{
    int32_t n = 0;
    double bytes = 1;
    size_t width = (size_t)HRL_GROUP_FEATURES(n_groups);
    memset(count, 0, (size_t)n_groups * sizeof *count);
    for (int32_t item = 0; item < h->n; item++) {
        count[group[item]]++;
        bytes += (double)h->out_bytes[item];
    }
    for (int32_t g = 0; g < n_groups; g++) {
        if (count[g] == 0)
            continue;
        learn_real *x = features + (size_t)n * stride;
        memset(x, 0, width * sizeof *x);
        x[HRL_TYPES] = (learn_real)count[g] / (learn_real)h->n;
        x[HRL_TYPES + 1] = (learn_real)(log1p((double)count[g]) / 8);
        sequence[n] = g;
        count[g] = -n - 1; /* from here on: where the group is in the sequence */
        n++;
    }
    for (int32_t item = 0; item < h->n; item++) {
        learn_real *x = features + (size_t)(-count[group[item]] - 1) * stride;
        x[h->type[item]] += 1;
        x[HRL_TYPES + 2] += (learn_real)((double)h->out_bytes[item] / bytes);
    }
    for (int32_t t = 0; t < n; t++) { /* a histogram: shares of the group */
        learn_real *x = features + (size_t)t * stride, members = x[HRL_TYPES] * (learn_real)h->n;
        for (int32_t c = 0; c < HRL_TYPES; c++)
            x[c] /= members;
    }
    for (int32_t i = 0; i < h->n_links; i++) {
        int32_t a = group[h->from[i]], b = group[h->to[i]];
        if (a == b)
            continue;
        features[(size_t)(-count[a] - 1) * stride + HRL_TYPES + 3 + (size_t)b] += (learn_real)0.25;
        features[(size_t)(-count[b] - 1) * stride + HRL_TYPES + 3 + (size_t)a] += (learn_real)0.25;
    }
    return n;
}
