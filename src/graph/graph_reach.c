/* Reachability by bitset rows, one per node, of its ancestors. Ancestors come earlier in the topological order, so
 * row r needs r bits, not n: the triangle is half the square, 160 MB for the 50,560 operators of the paper's largest
 * network. A row is the union of its predecessors' rows; predecessors are taken latest first, and one whose bit is
 * already set adds nothing and is skipped: the skipped edges are exactly those outside the transitive reduction.
 * O(E_reduced * V / 64) time. */
#include "graph/graph_reach.h"
#include "util/util.h"

#include <stdlib.h>

static size_t row_words(size_t rank)
{
    return (rank + 63) / 64;
}

size_t graph_reach_bytes(int32_t n)
{
    /* Ranks 64(q-1)+1 .. 64q have q words each, rank 0 none; the last rank is n-1. */
    size_t last = n > 0 ? (size_t)n - 1 : 0, full = last / 64, rest = last % 64;
    size_t words = 64 * (full * (full + 1) / 2) + rest * (full + 1);
    return words * sizeof(uint64_t) + (size_t)n * (sizeof(int32_t) + sizeof(size_t));
}

static int compare_descending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x < y) - (x > y);
}

static graph_reach *reserve(const graph_dag *d)
{
    graph_reach *r = util_alloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->n = d->n;
    r->rank = util_alloc((size_t)d->n, sizeof *r->rank);
    r->row_off = util_alloc((size_t)d->n + 1, sizeof *r->row_off);
    if (r->rank && r->row_off) {
        for (int32_t v = 0; v < d->n; v++) {
            r->rank[v] = d->topo_rank[v];
            r->row_off[v + 1] = r->row_off[v] + row_words((size_t)v);
        }
        r->bits = util_alloc(r->row_off[d->n], sizeof *r->bits);
    }
    if (!r->bits) {
        graph_reach_free(r);
        return NULL;
    }
    return r;
}

/* `ranks` is scratch for the predecessors of v; a needed one is left there, a superfluous one becomes -1. */
static void fill_row(graph_reach *r, const graph_dag *d, int32_t v, int32_t *ranks)
{
    int32_t n = d->pred_off[v + 1] - d->pred_off[v];
    uint64_t *row = r->bits + r->row_off[r->rank[v]];
    for (int32_t i = 0; i < n; i++)
        ranks[i] = r->rank[d->pred[d->pred_off[v] + i]];
    if (n > 1)
        qsort(ranks, (size_t)n, sizeof *ranks, compare_descending);
    for (int32_t i = 0; i < n; i++) {
        int32_t p = ranks[i];
        if (row[p >> 6] >> (p & 63) & 1) {
            ranks[i] = -1;
            continue;
        }
        const uint64_t *from = r->bits + r->row_off[p];
        size_t words = row_words((size_t)p);
        for (size_t w = 0; w < words; w++)
            row[w] |= from[w];
        row[p >> 6] |= (uint64_t)1 << (p & 63);
    }
}

static void mark_needed(bool *needed, const graph_dag *d, int32_t v, const int32_t *ranks)
{
    int32_t begin = d->pred_off[v], n = d->pred_off[v + 1] - begin;
    for (int32_t i = 0; i < n; i++)
        needed[begin + i] = false;
    for (int32_t i = 0; i < n; i++) {
        if (ranks[i] < 0)
            continue;
        /* pred is ascending by number: find the node of this rank by bisection. */
        int32_t node = d->topo[ranks[i]], low = begin, high = begin + n - 1;
        while (low < high) {
            int32_t middle = low + (high - low) / 2;
            if (d->pred[middle] < node)
                low = middle + 1;
            else
                high = middle;
        }
        needed[low] = true;
    }
}

int graph_reach_new(graph_reach **out, const graph_dag *d, size_t limit_bytes, bool *needed)
{
    *out = NULL;
    size_t limit = limit_bytes ? limit_bytes : GRAPH_REACH_LIMIT_BYTES, bytes = graph_reach_bytes(d->n);
    if (bytes > limit)
        return moirai_error(MOIRAI_ELIMIT, "reachability of %d operators needs %zu bytes, the limit is %zu", d->n,
                            bytes, limit);
    graph_reach *r = reserve(d);
    int32_t *ranks = util_alloc((size_t)d->n, sizeof *ranks);
    if (!r || !ranks) {
        graph_reach_free(r);
        free(ranks);
        return MOIRAI_EFAIL;
    }
    for (int32_t i = 0; i < d->n; i++) {
        fill_row(r, d, d->topo[i], ranks);
        if (needed)
            mark_needed(needed, d, d->topo[i], ranks);
    }
    free(ranks);
    *out = r;
    return 0;
}

void graph_reach_free(graph_reach *r)
{
    if (!r)
        return;
    free(r->rank);
    free(r->row_off);
    free(r->bits);
    free(r);
}
