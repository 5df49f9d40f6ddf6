/* CSR arrays by two counting sorts, Kahn's topological order with a heap (so that the order depends on the numbers
 * alone, not on how the edges were stored), and a cycle from what Kahn's order leaves over. */
#include "graph/dag.h"
#include "util/heap.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

/* Stable counting sort of edge numbers by `key[edge]`. `order` NULL: 0, 1, 2, ... */
static int sort_edges(int32_t *out, const int32_t *order, const int32_t *key, size_t n_edges, int32_t n)
{
    size_t *at = util_alloc((size_t)n + 1, sizeof *at);
    if (!at)
        return MOIRAI_EFAIL;
    for (size_t e = 0; e < n_edges; e++)
        at[key[e] + 1]++;
    for (int32_t v = 0; v < n; v++)
        at[v + 1] += at[v];
    for (size_t i = 0; i < n_edges; i++) {
        int32_t e = order ? order[i] : (int32_t)i;
        out[at[key[e]]++] = e;
    }
    free(at);
    return 0;
}

static void fill_successors(graph_dag *d, const int32_t *sorted, const int32_t *from, const int32_t *to, size_t n_edges)
{
    int32_t used = 0;
    size_t i = 0;
    for (int32_t v = 0; v < d->n; v++) {
        d->succ_off[v] = used;
        for (; i < n_edges && from[sorted[i]] == v; i++) {
            int32_t w = to[sorted[i]];
            if (used == d->succ_off[v] || d->succ[used - 1] != w)
                d->succ[used++] = w;
        }
    }
    d->succ_off[d->n] = used;
}

static void fill_predecessors(graph_dag *d)
{
    int32_t *off = d->pred_off;
    for (int32_t e = 0; e < d->succ_off[d->n]; e++)
        off[d->succ[e] + 1]++;
    for (int32_t v = 0; v < d->n; v++)
        off[v + 1] += off[v];
    /* off[v] serves as the cursor of v and ends where v + 1 begins: shift back afterwards. */
    for (int32_t v = 0; v < d->n; v++)
        for (int32_t e = d->succ_off[v]; e < d->succ_off[v + 1]; e++)
            d->pred[off[d->succ[e]]++] = v;
    memmove(off + 1, off, (size_t)d->n * sizeof *off);
    off[0] = 0;
}

static int sort_nodes(graph_dag *d)
{
    int32_t *missing = util_alloc((size_t)d->n, sizeof *missing);
    int64_t *heap = util_alloc((size_t)d->n, sizeof *heap);
    int32_t ready = 0, done = 0;
    if (!missing || !heap) {
        free(missing);
        free(heap);
        return MOIRAI_EFAIL;
    }
    for (int32_t v = 0; v < d->n; v++) {
        d->topo_rank[v] = -1;
        missing[v] = d->pred_off[v + 1] - d->pred_off[v];
        if (missing[v] == 0)
            util_heap_push(heap, ready++, v);
    }
    while (ready > 0) {
        int32_t v = (int32_t)util_heap_pop(heap, ready--);
        d->topo_rank[v] = done;
        d->topo[done++] = v;
        for (int32_t e = d->succ_off[v]; e < d->succ_off[v + 1]; e++)
            if (--missing[d->succ[e]] == 0)
                util_heap_push(heap, ready++, d->succ[e]);
    }
    free(missing);
    free(heap);
    return done == d->n ? 0 : moirai_error(MOIRAI_EINPUT, "the graph has a cycle");
}

static int reserve(graph_dag *d, int32_t n, size_t n_edges)
{
    d->n = n;
    d->succ_off = util_alloc((size_t)n + 1, sizeof *d->succ_off);
    d->pred_off = util_alloc((size_t)n + 1, sizeof *d->pred_off);
    d->succ = util_alloc(n_edges, sizeof *d->succ);
    d->pred = util_alloc(n_edges, sizeof *d->pred);
    d->topo = util_alloc((size_t)n, sizeof *d->topo);
    d->topo_rank = util_alloc((size_t)n, sizeof *d->topo_rank);
    return d->succ_off && d->pred_off && d->succ && d->pred && d->topo && d->topo_rank ? 0 : MOIRAI_EFAIL;
}

int graph_dag_init(graph_dag *d, int32_t n, const int32_t *from, const int32_t *to, size_t n_edges)
{
    memset(d, 0, sizeof *d);
    if (n_edges > INT32_MAX)
        return moirai_error(MOIRAI_EFAIL, "%zu edges: more than %d", n_edges, INT32_MAX);
    if (reserve(d, n, n_edges))
        return MOIRAI_EFAIL;
    int32_t *by_head = util_alloc(n_edges, sizeof *by_head);
    int32_t *by_both = util_alloc(n_edges, sizeof *by_both);
    int rc = by_head && by_both ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : sort_edges(by_head, NULL, to, n_edges, n);
    rc = rc ? rc : sort_edges(by_both, by_head, from, n_edges, n);
    if (!rc) {
        fill_successors(d, by_both, from, to, n_edges);
        fill_predecessors(d);
        rc = sort_nodes(d);
    }
    free(by_head);
    free(by_both);
    return rc;
}

void graph_dag_free(graph_dag *d)
{
    if (!d)
        return;
    free(d->succ_off);
    free(d->succ);
    free(d->pred_off);
    free(d->pred);
    free(d->topo);
    free(d->topo_rank);
    memset(d, 0, sizeof *d);
}

static void reverse(int32_t *a, int32_t n)
{
    for (int32_t i = 0, j = n - 1; i < j; i++, j--) {
        int32_t swap = a[i];
        a[i] = a[j];
        a[j] = swap;
    }
}

int32_t graph_dag_cycle(const graph_dag *d, int32_t *cycle)
{
    int32_t v = 0;
    while (v < d->n && d->topo_rank[v] >= 0)
        v++;
    if (v == d->n)
        return 0;
    int32_t *step = util_alloc((size_t)d->n, sizeof *step); /* 1 + when the walk met a node */
    if (!step)
        return MOIRAI_EFAIL;
    /* A node left over has a predecessor left over: walking back must meet itself. */
    int32_t length = 0;
    while (!step[v]) {
        step[v] = ++length;
        cycle[length - 1] = v;
        int32_t e = d->pred_off[v];
        while (d->topo_rank[d->pred[e]] >= 0)
            e++;
        v = d->pred[e];
    }
    int32_t skip = step[v] - 1, n = length - skip, least = 0;
    free(step);
    memmove(cycle, cycle + skip, (size_t)n * sizeof *cycle);
    for (int32_t i = 1; i < n; i++)
        if (cycle[i] < cycle[least])
            least = i;
    /* The walk went backwards; the least node comes first: c[least], c[least-1], ..., c[0], c[n-1], ... */
    reverse(cycle, least + 1);
    reverse(cycle + least + 1, n - least - 1);
    return n;
}
