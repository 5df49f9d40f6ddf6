/* Dinic's maximum flow, with levels counted from the sink.
 *
 * Each phase finds by breadth-first search how far every node is from the sink over arcs with capacity left, then walks
 * down the levels from the source until every such walk is blocked. Walks are iterative: networks of chains are deep.
 * O(V^2 E) in general; on the pool's networks (pool.c, 10 to 20 thousand nodes) some dozens of phases. */
#include "pair/pool_cut.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

void pair_cut_free(pair_cut *x)
{
    void *all[] = {x->from, x->to, x->left, x->arc_off, x->arc, x->level, x->next, x->queue, x->path};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static int allocate(pair_cut *x)
{
    size_t n = (size_t)x->n_nodes, m = (size_t)x->n_arcs;
    x->from = util_alloc(m, sizeof *x->from);
    x->to = util_alloc(m, sizeof *x->to);
    x->left = util_alloc(2 * m, sizeof *x->left);
    x->arc_off = util_alloc(n + 1, sizeof *x->arc_off);
    x->arc = util_alloc(2 * m, sizeof *x->arc);
    x->level = util_alloc(n, sizeof *x->level);
    x->next = util_alloc(n, sizeof *x->next);
    x->queue = util_alloc(n, sizeof *x->queue);
    x->path = util_alloc(n + 1, sizeof *x->path);
    return x->from && x->to && x->left && x->arc_off && x->arc && x->level && x->next && x->queue && x->path
               ? 0
               : MOIRAI_EFAIL;
}

static int32_t tail_of(const pair_cut *x, int32_t arc)
{
    return arc & 1 ? x->to[arc >> 1] : x->from[arc >> 1];
}

static int32_t head_of(const pair_cut *x, int32_t arc)
{
    return arc & 1 ? x->from[arc >> 1] : x->to[arc >> 1];
}

int pair_cut_new(pair_cut *x, int32_t n_nodes, int32_t n_arcs, const int32_t *from, const int32_t *to)
{
    *x = (pair_cut){.n_nodes = n_nodes, .n_arcs = n_arcs};
    if (allocate(x)) {
        pair_cut_free(x);
        return MOIRAI_EFAIL;
    }
    memcpy(x->from, from, sizeof *from * (size_t)n_arcs);
    memcpy(x->to, to, sizeof *to * (size_t)n_arcs);
    for (int32_t i = 0; i < 2 * n_arcs; i++)
        x->arc_off[tail_of(x, i) + 1]++;
    for (int32_t v = 0; v < n_nodes; v++)
        x->arc_off[v + 1] += x->arc_off[v];
    for (int32_t v = 0; v < n_nodes; v++)
        x->next[v] = x->arc_off[v];
    for (int32_t i = 0; i < 2 * n_arcs; i++)
        x->arc[x->next[tail_of(x, i)]++] = i;
    return 0;
}

/* level[v]: arcs from v to the sink, -1 where there is no way. */
static bool find_levels(pair_cut *x)
{
    int32_t n = 0;
    memset(x->level, -1, sizeof *x->level * (size_t)x->n_nodes);
    x->level[PAIR_CUT_SINK] = 0;
    x->queue[n++] = PAIR_CUT_SINK;
    for (int32_t i = 0; i < n; i++) {
        int32_t v = x->queue[i];
        for (int32_t j = x->arc_off[v]; j < x->arc_off[v + 1]; j++) {
            int32_t back = x->arc[j] ^ 1, u = head_of(x, x->arc[j]);
            if (x->left[back] > 0 && x->level[u] < 0) {
                x->level[u] = x->level[v] + 1;
                x->queue[n++] = u;
            }
        }
    }
    return x->level[PAIR_CUT_SOURCE] >= 0;
}

/* The next arc of v that leads down a level, or -1. */
static int32_t way_down(pair_cut *x, int32_t v)
{
    for (; x->next[v] < x->arc_off[v + 1]; x->next[v]++) {
        int32_t arc = x->arc[x->next[v]];
        if (x->left[arc] > 0 && x->level[head_of(x, arc)] == x->level[v] - 1)
            return arc;
    }
    return -1;
}

/* Sends what the path of `depth` arcs can take; returns the depth of the first arc that is full now. */
static int32_t send(pair_cut *x, int32_t depth, int64_t *flow)
{
    int64_t least = INT64_MAX;
    int32_t full = depth;
    for (int32_t i = 0; i < depth; i++)
        least = UTIL_MIN(least, x->left[x->path[i]]);
    for (int32_t i = depth - 1; i >= 0; i--) {
        x->left[x->path[i]] -= least;
        x->left[x->path[i] ^ 1] += least;
        if (x->left[x->path[i]] == 0)
            full = i;
    }
    *flow += least;
    return full;
}

static void block(pair_cut *x, int64_t *flow, int64_t enough)
{
    int32_t depth = 0, v = PAIR_CUT_SOURCE;
    memcpy(x->next, x->arc_off, sizeof *x->next * (size_t)x->n_nodes);
    while (*flow <= enough) {
        if (v == PAIR_CUT_SINK) {
            depth = send(x, depth, flow);
            v = tail_of(x, x->path[depth]);
            continue;
        }
        int32_t arc = way_down(x, v);
        if (arc >= 0) {
            x->path[depth++] = arc;
            v = head_of(x, arc);
        } else if (depth > 0) {
            v = tail_of(x, x->path[--depth]);
            x->next[v]++;
        } else {
            return;
        }
    }
}

void pair_cut_fill(int64_t *flow, pair_cut *x, int64_t enough, const util_stop *stop)
{
    while (*flow <= enough && !util_stopped(stop) && find_levels(x))
        block(x, flow, enough);
}
