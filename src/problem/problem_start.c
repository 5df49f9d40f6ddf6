/* The structure of a problem from a graph. A graph numbers the tensors that operators write first, in the order of the
 * operators, so a problem's tensors are simply the first n of the graph's. */
#include "problem/problem_build.h"

#include <stdlib.h>
#include <string.h>

const char *problem_keep(moirai_problem *p, const char *text)
{
    problem_store *store = p->store;
    return util_strings_add(store->strings, text, strlen(text));
}

static int reserve(moirai_problem *p, size_t inputs)
{
    size_t k = (size_t)p->n_devices, n = (size_t)p->n_ops, m = (size_t)p->n_tensors, e = (size_t)p->n_edges;
    int ok = 1;
    ok &= (p->device_name = util_alloc(k, sizeof *p->device_name)) != NULL;
    ok &= (p->device_memory_bytes = util_alloc(k, sizeof *p->device_memory_bytes)) != NULL;
    ok &= (p->device_launch_ns = util_alloc(k, sizeof *p->device_launch_ns)) != NULL;
    ok &= (p->device_segment_ns = util_alloc(k, sizeof *p->device_segment_ns)) != NULL;
    ok &= (p->device_whole_ns = util_alloc(k, sizeof *p->device_whole_ns)) != NULL;
    ok &= (p->device_type = util_alloc(k, sizeof *p->device_type)) != NULL;
    for (size_t d = 0; ok && d < k; d++)
        p->device_type[d] = "";
    ok &= (p->bytes_per_second = util_alloc(k * k, sizeof *p->bytes_per_second)) != NULL;
    ok &= (p->latency_ns = util_alloc(k * k, sizeof *p->latency_ns)) != NULL;
    ok &= (p->op_name = util_alloc(n, sizeof *p->op_name)) != NULL;
    ok &= (p->op_type = util_alloc(n, sizeof *p->op_type)) != NULL;
    ok &= (p->op_memory_bytes = util_alloc(n, sizeof *p->op_memory_bytes)) != NULL;
    ok &= (p->op_time_ns = util_alloc(n * k, sizeof *p->op_time_ns)) != NULL;
    ok &= (p->op_group = util_alloc(n, sizeof *p->op_group)) != NULL;
    ok &= (p->group_name = util_alloc(n, sizeof *p->group_name)) != NULL;
    ok &= (p->op_devices = util_alloc(n * (size_t)moirai_device_words(p), sizeof *p->op_devices)) != NULL;
    ok &= (p->op_in_off = util_alloc(n + 1, sizeof *p->op_in_off)) != NULL;
    ok &= (p->op_in = util_alloc(inputs, sizeof *p->op_in)) != NULL;
    ok &= (p->op_in_edge = util_alloc(inputs, sizeof *p->op_in_edge)) != NULL;
    ok &= (p->op_extern_off = util_alloc(n + 1, sizeof *p->op_extern_off)) != NULL;
    ok &= (p->op_extern = util_alloc(inputs, sizeof *p->op_extern)) != NULL;
    ok &= (p->op_member_off = util_alloc(n + 1, sizeof *p->op_member_off)) != NULL;
    ok &= (p->op_out_off = util_alloc(n + 1, sizeof *p->op_out_off)) != NULL;
    ok &= (p->op_out = util_alloc(m, sizeof *p->op_out)) != NULL;
    ok &= (p->tensor_name = util_alloc(m, sizeof *p->tensor_name)) != NULL;
    ok &= (p->tensor_bytes = util_alloc(m, sizeof *p->tensor_bytes)) != NULL;
    ok &= (p->tensor_producer = util_alloc(m, sizeof *p->tensor_producer)) != NULL;
    ok &= (p->tensor_class = util_alloc(m, sizeof *p->tensor_class)) != NULL;
    ok &= (p->tensor_has_table = util_alloc(m, sizeof *p->tensor_has_table)) != NULL;
    ok &= (p->tensor_edge_off = util_alloc(m + 1, sizeof *p->tensor_edge_off)) != NULL;
    ok &= (p->edge_tensor = util_alloc(e, sizeof *p->edge_tensor)) != NULL;
    ok &= (p->edge_reader = util_alloc(e, sizeof *p->edge_reader)) != NULL;
    ok &= (p->topo = util_alloc(n, sizeof *p->topo)) != NULL;
    ok &= (p->topo_rank = util_alloc(n, sizeof *p->topo_rank)) != NULL;
    return ok ? 0 : MOIRAI_EFAIL;
}

static int open_store(moirai_problem *p)
{
    problem_store *store = util_alloc(1, sizeof *store);
    if (!store)
        return MOIRAI_EFAIL;
    p->store = store;
    store->strings = util_strings_new();
    store->ops = util_names_new((size_t)p->n_ops);
    store->tensors = util_names_new((size_t)p->n_tensors);
    return store->strings && store->ops && store->tensors ? 0 : MOIRAI_EFAIL;
}

int problem_reserve(moirai_problem *p, size_t n_inputs)
{
    return open_store(p) || reserve(p, n_inputs) ? MOIRAI_EFAIL : 0;
}

static int copy_names(moirai_problem *p, const moirai_graph *g)
{
    problem_store *store = p->store;
    for (int32_t i = 0; i < p->n_ops; i++) {
        p->op_name[i] = problem_keep(p, g->op_name[i]);
        p->op_type[i] = problem_keep(p, g->op_type[i]);
        if (!p->op_name[i] || !p->op_type[i] || util_names_put(store->ops, p->op_name[i], i) < 0)
            return MOIRAI_EFAIL;
    }
    for (int32_t t = 0; t < p->n_tensors; t++) {
        p->tensor_name[t] = problem_keep(p, g->tensor_name[t]);
        if (!p->tensor_name[t] || util_names_put(store->tensors, p->tensor_name[t], t) < 0)
            return MOIRAI_EFAIL;
    }
    return 0;
}

static int copy_members(moirai_problem *p, const moirai_graph *g)
{
    int32_t n = g->op_member_off[g->n_ops];
    memcpy(p->op_member_off, g->op_member_off, ((size_t)p->n_ops + 1) * sizeof *p->op_member_off);
    p->op_member = util_alloc((size_t)n, sizeof *p->op_member);
    for (int32_t e = 0; p->op_member && e < n; e++)
        if (!(p->op_member[e] = problem_keep(p, g->op_member[e])))
            return MOIRAI_EFAIL;
    return p->op_member ? 0 : MOIRAI_EFAIL;
}

static void copy_tensors(moirai_problem *p, const moirai_graph *g)
{
    int32_t e = 0;
    memcpy(p->op_out_off, g->op_out_off, ((size_t)p->n_ops + 1) * sizeof *p->op_out_off);
    memcpy(p->op_out, g->op_out, (size_t)p->n_tensors * sizeof *p->op_out);
    for (int32_t t = 0; t < p->n_tensors; t++) {
        p->tensor_bytes[t] = g->tensor_bytes[t];
        p->tensor_producer[t] = g->tensor_producer[t];
        p->tensor_edge_off[t] = e;
        for (int32_t r = g->tensor_reader_off[t]; r < g->tensor_reader_off[t + 1]; r++) {
            p->edge_tensor[e] = t;
            p->edge_reader[e++] = g->tensor_reader[r];
        }
    }
    p->tensor_edge_off[p->n_tensors] = e;
}

/* Distinct produced tensors become edges; what comes from outside is kept for the writer. */
static int copy_inputs(moirai_problem *p, const moirai_graph *g)
{
    /* Readers of a tensor are ascending and so is this loop: the next edge of t is always this operator's. */
    int32_t *next_edge = util_alloc((size_t)p->n_tensors, sizeof *next_edge);
    int32_t *last_reader = util_alloc((size_t)p->n_tensors, sizeof *last_reader);
    int32_t n_in = 0, n_extern = 0;
    int rc = next_edge && last_reader ? 0 : MOIRAI_EFAIL;
    for (int32_t t = 0; !rc && t < p->n_tensors; t++) {
        next_edge[t] = p->tensor_edge_off[t];
        last_reader[t] = MOIRAI_NONE;
    }
    for (int32_t i = 0; !rc && i < p->n_ops; i++) {
        p->op_in_off[i] = n_in;
        p->op_extern_off[i] = n_extern;
        for (int32_t j = g->op_in_off[i]; !rc && j < g->op_in_off[i + 1]; j++) {
            int32_t t = g->op_in[j];
            if (t >= p->n_tensors) {
                if (!(p->op_extern[n_extern++] = problem_keep(p, g->tensor_name[t])))
                    rc = MOIRAI_EFAIL;
            } else if (last_reader[t] != i) {
                last_reader[t] = i;
                p->op_in[n_in] = t;
                p->op_in_edge[n_in++] = next_edge[t]++;
            }
        }
    }
    p->op_in_off[p->n_ops] = n_in;
    p->op_extern_off[p->n_ops] = n_extern;
    free(next_edge);
    free(last_reader);
    return rc;
}

static int copy_structure(moirai_problem *p, const moirai_graph *g)
{
    if (problem_reserve(p, (size_t)g->op_in_off[g->n_ops]) || copy_names(p, g) || copy_members(p, g))
        return MOIRAI_EFAIL;
    copy_tensors(p, g);
    memcpy(p->topo, g->topo, (size_t)p->n_ops * sizeof *p->topo);
    memcpy(p->topo_rank, g->topo_rank, (size_t)p->n_ops * sizeof *p->topo_rank);
    for (int32_t i = 0; i < p->n_ops; i++)
        p->op_group[i] = MOIRAI_NONE;
    return copy_inputs(p, g);
}

/* Readers per weight; all of them, settle drops those that are not shared. */
static int copy_weights(moirai_problem *p, const moirai_graph *g)
{
    size_t n = (size_t)g->n_weights, reads = (size_t)g->op_weight_off[g->n_ops];
    p->weight_name = util_alloc(n, sizeof *p->weight_name);
    p->weight_bytes = util_alloc(n, sizeof *p->weight_bytes);
    p->weight_reader_off = util_alloc(n + 1, sizeof *p->weight_reader_off);
    p->weight_reader = util_alloc(reads, sizeof *p->weight_reader);
    if (!p->weight_name || !p->weight_bytes || !p->weight_reader_off || !p->weight_reader)
        return MOIRAI_EFAIL;
    p->n_weights = g->n_weights;
    for (int32_t w = 0; w < g->n_weights; w++) {
        p->weight_bytes[w] = g->weight_bytes[w];
        if (!(p->weight_name[w] = problem_keep(p, g->weight_name[w])))
            return MOIRAI_EFAIL;
    }
    for (size_t e = 0; e < reads; e++)
        p->weight_reader_off[g->op_weight[e] + 1]++;
    for (size_t w = 0; w < n; w++)
        p->weight_reader_off[w + 1] += p->weight_reader_off[w];
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int32_t e = g->op_weight_off[i]; e < g->op_weight_off[i + 1]; e++)
            p->weight_reader[p->weight_reader_off[g->op_weight[e]]++] = i;
    memmove(p->weight_reader_off + 1, p->weight_reader_off, n * sizeof *p->weight_reader_off);
    p->weight_reader_off[0] = 0;
    return 0;
}

int problem_keep_texts(moirai_problem *p, const char ***out, int32_t *n_out, int32_t n, const char *const *text)
{
    const char **kept = util_alloc((size_t)n, sizeof *kept);
    *out = kept;
    for (int32_t i = 0; kept && i < n; i++)
        if (!(kept[i] = problem_keep(p, text[i])))
            return MOIRAI_EFAIL;
    *n_out = n;
    return kept ? 0 : MOIRAI_EFAIL;
}

static int copy_settings(moirai_problem *p, const moirai_graph *g)
{
    int rc = problem_keep_texts(p, &p->dim, &p->n_dims, g->n_dims, g->dim);
    rc = rc ? rc : problem_keep_texts(p, &p->shape, &p->n_shapes, g->n_shapes, g->shape);
    return rc ? rc : problem_keep_texts(p, &p->assumed, &p->n_assumed, g->n_assumed, g->assumed);
}

int problem_start(moirai_problem **out, const moirai_graph *g, const char *name, int32_t n_devices)
{
    *out = NULL;
    moirai_problem *p = util_alloc(1, sizeof *p);
    if (!p)
        return MOIRAI_EFAIL;
    p->n_devices = n_devices;
    p->n_ops = g->n_ops;
    p->n_tensors = g->op_out_off[g->n_ops];
    p->n_edges = g->tensor_reader_off[p->n_tensors];
    p->name = util_strdup(name);
    if (!p->name || copy_structure(p, g) || copy_weights(p, g) || copy_settings(p, g)) {
        moirai_problem_free(p);
        return MOIRAI_EFAIL;
    }
    *out = p;
    return 0;
}
