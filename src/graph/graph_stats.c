/* Statistics of a graph.
 *
 * Cut points. The operator at position z of a topological order is comparable with every other iff the operators up to
 * z have one sink (itself) and those from z on have one source (itself): then every earlier one reaches it and it
 * reaches every later one. An earlier operator is not a sink of the prefix iff its nearest successor is at z or before;
 * so z is a cut point iff the maximum over earlier operators of the nearest successor's position is at most z, and,
 * seen from the other end, the minimum over later operators of the farthest predecessor's position is at least z. Two
 * sweeps over the edges, no reachability. */
#include <moirai/stats.h>

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

static int64_t add(int64_t a, int64_t b)
{
    int64_t r;
    return b <= 0 ? a : util_add64(&r, a, b) ? r : INT64_MAX;
}

/* ---- cut points ---- */

/* nearest[r]: position of the first successor of the operator at position r; farthest[r]: of its last predecessor. */
static void neighbours(const moirai_graph *g, int32_t *nearest, int32_t *farthest)
{
    for (int32_t r = 0; r < g->n_ops; r++) {
        nearest[r] = g->n_ops;
        farthest[r] = -1;
    }
    for (int32_t t = 0; t < g->n_tensors; t++) {
        if (g->tensor_producer[t] == MOIRAI_NONE)
            continue;
        int32_t from = g->topo_rank[g->tensor_producer[t]];
        for (int32_t e = g->tensor_reader_off[t]; e < g->tensor_reader_off[t + 1]; e++) {
            int32_t to = g->topo_rank[g->tensor_reader[e]];
            nearest[from] = UTIL_MIN(nearest[from], to);
            farthest[to] = UTIL_MAX(farthest[to], from);
        }
    }
}

int32_t moirai_graph_cut_points(const moirai_graph *g, int32_t *ops)
{
    int32_t *nearest = util_alloc((size_t)g->n_ops, sizeof *nearest);
    int32_t *farthest = util_alloc((size_t)g->n_ops + 1, sizeof *farthest);
    if (!nearest || !farthest) {
        free(nearest);
        free(farthest);
        return MOIRAI_EFAIL;
    }
    neighbours(g, nearest, farthest);
    farthest[g->n_ops] = g->n_ops;
    for (int32_t r = g->n_ops - 1; r >= 0; r--) /* from here on: the minimum from r to the end */
        farthest[r] = UTIL_MIN(farthest[r], farthest[r + 1]);
    int32_t n = 0, last = -1;
    for (int32_t r = 0; r < g->n_ops; r++) {
        if (last <= r && farthest[r + 1] >= r)
            ops[n++] = g->topo[r];
        last = UTIL_MAX(last, nearest[r]);
    }
    free(nearest);
    free(farthest);
    return n;
}

/* ---- sums ---- */

/* Bytes of shared weights that readers beyond the first have counted again; at most `counted`. */
static int64_t shared_again(const moirai_graph *g, int64_t counted)
{
    int64_t all = 0, once = 0;
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int32_t e = g->op_weight_off[i]; e < g->op_weight_off[i + 1]; e++)
            all = add(all, g->weight_bytes[g->op_weight[e]]);
    for (int32_t w = 0; w < g->n_weights; w++)
        once = add(once, g->weight_bytes[w]);
    return UTIL_MIN(all - once, counted);
}

static void sum_up(moirai_graph_stats *s, const moirai_graph *g)
{
    for (int32_t i = 0; i < g->n_ops; i++) {
        s->n_unknown_flops += g->op_flops[i] < 0;
        s->flops = add(s->flops, g->op_flops[i]);
        s->traffic_bytes = add(s->traffic_bytes, g->op_traffic_bytes[i]);
        s->weight_bytes = add(s->weight_bytes, g->op_weight_bytes[i]);
    }
    s->weight_bytes -= shared_again(g, s->weight_bytes);
    for (int32_t t = 0; t < g->n_tensors; t++)
        if (g->tensor_producer[t] != MOIRAI_NONE)
            s->activation_bytes = add(s->activation_bytes, g->tensor_bytes[t]);
}

/* Longest path to each operator, the most operators of one length, distinct edges. */
static int measure(moirai_graph_stats *s, const moirai_graph *g)
{
    int32_t *level = util_alloc((size_t)g->n_ops, sizeof *level);
    int32_t *count = util_alloc((size_t)g->n_ops, sizeof *count);
    int32_t *seen = util_alloc((size_t)g->n_ops, sizeof *seen); /* 1 + the last operator that led here */
    bool *has_pred = util_alloc((size_t)g->n_ops, sizeof *has_pred);
    int rc = level && count && seen && has_pred ? 0 : MOIRAI_EFAIL;
    for (int32_t r = 0; r < g->n_ops && !rc; r++) {
        int32_t i = g->topo[r];
        bool has_succ = false;
        for (int32_t o = g->op_out_off[i]; o < g->op_out_off[i + 1]; o++) {
            int32_t t = g->op_out[o];
            for (int32_t e = g->tensor_reader_off[t]; e < g->tensor_reader_off[t + 1]; e++) {
                int32_t j = g->tensor_reader[e];
                has_succ = has_pred[j] = true;
                s->n_edges += seen[j] != i + 1;
                seen[j] = i + 1;
                level[j] = UTIL_MAX(level[j], level[i] + 1);
            }
        }
        s->n_sources += !has_pred[i];
        s->n_sinks += !has_succ;
        s->depth = UTIL_MAX(s->depth, level[i] + 1);
        count[level[i]]++;
        s->width = UTIL_MAX(s->width, count[level[i]]);
    }
    free(level);
    free(count);
    free(seen);
    free(has_pred);
    return rc;
}

static int peak(moirai_graph_stats *s, const moirai_graph *g)
{
    int32_t *left = util_alloc((size_t)g->n_tensors, sizeof *left); /* readers that have not run */
    int32_t *seen = util_alloc((size_t)g->n_tensors, sizeof *seen); /* 1 + the last operator that read it */
    if (!left || !seen) {
        free(left);
        free(seen);
        return MOIRAI_EFAIL;
    }
    for (int32_t t = 0; t < g->n_tensors; t++)
        left[t] = g->tensor_reader_off[t + 1] - g->tensor_reader_off[t];
    int64_t alive = 0;
    for (int32_t r = 0; r < g->n_ops; r++) {
        int32_t i = g->topo[r];
        for (int32_t o = g->op_out_off[i]; o < g->op_out_off[i + 1]; o++)
            alive = add(alive, g->tensor_bytes[g->op_out[o]]);
        s->peak_activation_bytes = UTIL_MAX(s->peak_activation_bytes, alive);
        for (int32_t e = g->op_in_off[i]; e < g->op_in_off[i + 1]; e++) {
            int32_t t = g->op_in[e];
            if (seen[t] == i + 1)
                continue;
            seen[t] = i + 1;
            if (g->tensor_producer[t] != MOIRAI_NONE && --left[t] == 0)
                alive -= g->tensor_bytes[t];
        }
    }
    free(left);
    free(seen);
    return 0;
}

int moirai_graph_stats_get(moirai_graph_stats *out, const moirai_graph *g)
{
    memset(out, 0, sizeof *out);
    sum_up(out, g);
    int rc = measure(out, g);
    rc = rc ? rc : peak(out, g);
    int32_t *ops = rc ? NULL : util_alloc((size_t)g->n_ops, sizeof *ops);
    moirai_type_stats *types = NULL;
    if (ops)
        out->n_cut_points = moirai_graph_cut_points(g, ops);
    if (!rc && (!ops || out->n_cut_points < 0))
        rc = MOIRAI_EFAIL;
    rc = rc ? rc : moirai_graph_types(&types, &out->n_types, g);
    free(types);
    free(ops);
    return rc;
}

/* ---- types ---- */

static int by_weight(const void *a, const void *b)
{
    const moirai_type_stats *x = a, *y = b;
    if (x->flops != y->flops)
        return x->flops < y->flops ? 1 : -1;
    if (x->n_ops != y->n_ops)
        return x->n_ops < y->n_ops ? 1 : -1;
    return strcmp(x->type, y->type);
}

static void add_op(moirai_type_stats *s, const moirai_graph *g, int32_t i)
{
    s->n_ops++;
    s->n_unknown_flops += g->op_flops[i] < 0;
    s->flops = add(s->flops, g->op_flops[i]);
    s->traffic_bytes = add(s->traffic_bytes, g->op_traffic_bytes[i]);
    s->weight_bytes = add(s->weight_bytes, g->op_weight_bytes[i]);
    for (int32_t o = g->op_out_off[i]; o < g->op_out_off[i + 1]; o++)
        s->activation_bytes = add(s->activation_bytes, g->tensor_bytes[g->op_out[o]]);
}

int moirai_graph_types(moirai_type_stats **out, int32_t *n, const moirai_graph *g)
{
    util_names *names = util_names_new(64);
    size_t capacity = 0;
    int rc = names ? 0 : MOIRAI_EFAIL;
    *out = NULL;
    *n = 0;
    for (int32_t i = 0; i < g->n_ops && !rc; i++) {
        int32_t at = util_names_put(names, g->op_type[i], *n);
        if (at < 0 || util_grow(out, &capacity, (size_t)*n + 1, sizeof **out)) {
            rc = MOIRAI_EFAIL;
            break;
        }
        if (at == *n)
            (*out)[(*n)++] = (moirai_type_stats){.type = g->op_type[i]};
        add_op(&(*out)[at], g, i);
    }
    util_names_free(names);
    if (rc) {
        free(*out);
        *out = NULL;
        return rc;
    }
    if (*n)
        qsort(*out, (size_t)*n, sizeof **out, by_weight);
    return 0;
}
