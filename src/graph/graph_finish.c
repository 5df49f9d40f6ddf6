/* Finishing a graph: pairs are sorted into CSR arrays, tensors and time keys are numbered anew by operator (so that
 * the same network gives the same arrays in whatever order it was described, and a graph that was written and read
 * again is equal to itself), and the operators are put in topological order or shown to be on a cycle. */
#include "graph/graph_builder.h"
#include "graph/dag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stable: items of one operator keep the order of the calls. */
static int to_csr(int32_t **off_out, int32_t **item_out, const pairs *list, size_t n_ops)
{
    int32_t *off = util_alloc(n_ops + 1, sizeof *off);
    int32_t *item = util_alloc(list->n, sizeof *item);
    *off_out = off;
    *item_out = item;
    if (!off || !item)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < list->n; i++)
        off[list->row[i].op + 1]++;
    for (size_t v = 0; v < n_ops; v++)
        off[v + 1] += off[v];
    for (size_t i = 0; i < list->n; i++)
        item[off[list->row[i].op]++] = list->row[i].item;
    memmove(off + 1, off, n_ops * sizeof *off);
    off[0] = 0;
    return 0;
}

static int copy_ops(moirai_graph *g, const moirai_graph_builder *b)
{
    size_t n = b->n_ops;
    g->n_ops = (int32_t)n;
    g->op_name = util_alloc(n, sizeof *g->op_name);
    g->op_type = util_alloc(n, sizeof *g->op_type);
    g->op_weight_bytes = util_alloc(n, sizeof(int64_t));
    g->op_workspace_bytes = util_alloc(n, sizeof(int64_t));
    g->op_flops = util_alloc(n, sizeof(int64_t));
    g->op_traffic_bytes = util_alloc(n, sizeof(int64_t));
    if (!g->op_name || !g->op_type || !g->op_weight_bytes || !g->op_workspace_bytes || !g->op_flops ||
        !g->op_traffic_bytes)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < n; i++) {
        g->op_name[i] = b->op[i].name;
        g->op_type[i] = b->op[i].type;
        g->op_weight_bytes[i] = b->op[i].weight_bytes;
        g->op_workspace_bytes[i] = b->op[i].workspace_bytes;
        g->op_flops[i] = b->op[i].flops;
        g->op_traffic_bytes[i] = b->op[i].traffic_bytes;
    }
    return 0;
}

/* Produced tensors first, by operator; then the network's inputs and weights, by first reader. */
static void renumber(int32_t *item, int32_t n, moirai_graph_builder *b, int32_t *next)
{
    for (int32_t i = 0; i < n; i++) {
        tensor_row *row = &b->tensor[item[i]];
        if (row->number == MOIRAI_NONE)
            row->number = (*next)++;
        item[i] = row->number;
    }
}

static int copy_tensors(moirai_graph *g, moirai_graph_builder *b)
{
    size_t n = b->n_tensors;
    int32_t next = 0;
    if (to_csr(&g->op_in_off, &g->op_in, &b->inputs, b->n_ops) ||
        to_csr(&g->op_out_off, &g->op_out, &b->outputs, b->n_ops))
        return MOIRAI_EFAIL;
    renumber(g->op_out, g->op_out_off[g->n_ops], b, &next);
    renumber(g->op_in, g->op_in_off[g->n_ops], b, &next);
    g->n_tensors = (int32_t)n;
    g->tensor_name = util_alloc(n, sizeof *g->tensor_name);
    g->tensor_bytes = util_alloc(n, sizeof *g->tensor_bytes);
    g->tensor_producer = util_alloc(n, sizeof *g->tensor_producer);
    if (!g->tensor_name || !g->tensor_bytes || !g->tensor_producer)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < n; i++) {
        int32_t t = b->tensor[i].number;
        g->tensor_name[t] = b->tensor[i].name;
        g->tensor_bytes[t] = b->tensor[i].bytes;
        g->tensor_producer[t] = b->tensor[i].producer;
    }
    return 0;
}

/* Visiting operators in order makes each list ascending, so a repeat is the last entry. */
static int index_readers(moirai_graph *g)
{
    size_t n = (size_t)g->n_tensors;
    int32_t *off = util_alloc(n + 1, sizeof *off), *last = util_alloc(n, sizeof *last);
    g->tensor_reader_off = off;
    g->tensor_reader = util_alloc((size_t)g->op_in_off[g->n_ops], sizeof *g->tensor_reader);
    if (!off || !last || !g->tensor_reader) {
        free(last);
        return MOIRAI_EFAIL;
    }
    for (int pass = 0; pass < 2; pass++) {
        memset(last, 0xff, n * sizeof *last);
        for (int32_t i = 0; i < g->n_ops; i++) {
            for (int32_t e = g->op_in_off[i]; e < g->op_in_off[i + 1]; e++) {
                int32_t t = g->op_in[e];
                if (last[t] == i)
                    continue;
                last[t] = i;
                if (pass == 0)
                    off[t + 1]++;
                else
                    g->tensor_reader[off[t]++] = i;
            }
        }
        for (size_t t = 0; pass == 0 && t < n; t++)
            off[t + 1] += off[t];
    }
    memmove(off + 1, off, n * sizeof *off);
    off[0] = 0;
    free(last);
    return 0;
}

static int copy_members(moirai_graph *g, const moirai_graph_builder *b)
{
    int32_t *item = NULL;
    int rc = to_csr(&g->op_member_off, &item, &b->members, b->n_ops);
    if (!rc && !(g->op_member = util_alloc(b->members.n, sizeof *g->op_member)))
        rc = MOIRAI_EFAIL;
    for (size_t i = 0; !rc && i < b->members.n; i++)
        g->op_member[i] = b->member[item[i]];
    free(item);
    return rc;
}

/* Shared weights are numbered by first reader; what an operator names twice counts once. */
static int copy_weights(moirai_graph *g, const moirai_graph_builder *b)
{
    size_t n = b->n_weights;
    int32_t *number = util_alloc(n, sizeof *number), *last = util_alloc(n, sizeof *last), used = 0;
    g->weight_name = util_alloc(n, sizeof *g->weight_name);
    g->weight_bytes = util_alloc(n, sizeof *g->weight_bytes);
    int rc = number && last && g->weight_name && g->weight_bytes
                 ? to_csr(&g->op_weight_off, &g->op_weight, &b->weights, b->n_ops)
                 : MOIRAI_EFAIL;
    for (int32_t i = 0, from = 0; !rc && i < g->n_ops; i++) {
        int32_t end = g->op_weight_off[i + 1];
        g->op_weight_off[i] = used;
        for (; from < end; from++) {
            int32_t w = g->op_weight[from];
            if (!number[w]) {
                number[w] = ++g->n_weights;
                g->weight_name[g->n_weights - 1] = b->weight[w];
                g->weight_bytes[g->n_weights - 1] = b->weight_bytes[w];
            }
            if (last[w] == i + 1)
                continue;
            last[w] = i + 1;
            g->op_weight[used++] = number[w] - 1;
        }
    }
    if (!rc)
        g->op_weight_off[g->n_ops] = used;
    free(number);
    free(last);
    return rc;
}

static int copy_settings(moirai_graph *g, const moirai_graph_builder *b)
{
    g->n_dims = (int32_t)b->n_settings[0];
    g->n_shapes = (int32_t)b->n_settings[1];
    g->n_assumed = (int32_t)b->n_settings[2];
    g->dim = util_alloc(b->n_settings[0], sizeof *g->dim);
    g->shape = util_alloc(b->n_settings[1], sizeof *g->shape);
    g->assumed = util_alloc(b->n_settings[2], sizeof *g->assumed);
    if (!g->dim || !g->shape || !g->assumed)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < g->n_assumed; i++)
        g->assumed[i] = b->setting[2][i];
    for (int32_t i = 0; i < g->n_dims; i++)
        g->dim[i] = b->setting[0][i];
    for (int32_t i = 0; i < g->n_shapes; i++)
        g->shape[i] = b->setting[1][i];
    return 0;
}

/* Number the keys by operator, then fill the table. `order` lists the time rows by operator. */
static int fill_times(moirai_graph *g, const moirai_graph_builder *b, const int32_t *order)
{
    int32_t number[GRAPH_MAX_TIME_KEYS];
    memset(number, 0xff, sizeof number);
    int32_t n_keys = 0;
    for (size_t i = 0; i < b->times.n; i++) {
        pair row = b->times.row[order[i]];
        if (number[row.item] < 0) {
            g->time_key[n_keys] = b->key[row.item];
            number[row.item] = n_keys++;
        }
        int64_t *cell = &g->time_ns[(size_t)row.op * b->n_keys + (size_t)number[row.item]];
        if (*cell != MOIRAI_UNKNOWN)
            return moirai_error(MOIRAI_EINPUT, "operator '%.200s' has two times for '%.200s'", b->op[row.op].name,
                                b->key[row.item]);
        *cell = b->time[order[i]];
    }
    return 0;
}

static int copy_times(moirai_graph *g, const moirai_graph_builder *b)
{
    size_t cells = b->n_ops * b->n_keys;
    g->n_time_keys = (int32_t)b->n_keys;
    g->time_key = util_alloc(b->n_keys, sizeof *g->time_key);
    g->time_ns = util_alloc(cells, sizeof *g->time_ns);
    pairs rows = {util_alloc(b->times.n, sizeof(pair)), b->times.n, b->times.n};
    int32_t *off = NULL, *order = NULL;
    int rc = g->time_key && g->time_ns && rows.row ? 0 : MOIRAI_EFAIL;
    for (size_t i = 0; !rc && i < b->times.n; i++)
        rows.row[i] = (pair){b->times.row[i].op, (int32_t)i};
    for (size_t i = 0; !rc && i < cells; i++)
        g->time_ns[i] = MOIRAI_UNKNOWN;
    rc = rc ? rc : to_csr(&off, &order, &rows, b->n_ops);
    rc = rc ? rc : fill_times(g, b, order);
    free(rows.row);
    free(off);
    free(order);
    return rc;
}

/* "a -> b -> c -> a"; of a long cycle the first four and the last two. */
static int report_cycle(const moirai_graph *g, const graph_dag *d)
{
    int32_t *cycle = util_alloc((size_t)g->n_ops, sizeof *cycle);
    int32_t n = cycle ? graph_dag_cycle(d, cycle) : MOIRAI_EFAIL;
    if (n < 0) {
        free(cycle);
        return MOIRAI_EFAIL;
    }
    char text[800];
    size_t used = 0;
    for (int32_t i = 0; i < n; i++) {
        if (n > 8 && i == 4) {
            used += (size_t)snprintf(text + used, sizeof text - used, "... (%d more) -> ", n - 6);
            i = n - 2;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%.60s -> ", g->op_name[cycle[i]]);
    }
    int rc = moirai_error(MOIRAI_EINPUT, "cycle of %d operator%s: %s%.60s", n, n == 1 ? "" : "s", text,
                          g->op_name[cycle[0]]);
    free(cycle);
    return rc;
}

static int sort_ops(moirai_graph *g)
{
    size_t n_edges = 0;
    for (int32_t t = 0; t < g->n_tensors; t++)
        if (g->tensor_producer[t] != MOIRAI_NONE)
            n_edges += (size_t)(g->tensor_reader_off[t + 1] - g->tensor_reader_off[t]);
    int32_t *from = util_alloc(n_edges, sizeof *from), *to = util_alloc(n_edges, sizeof *to);
    graph_dag dag = {0};
    int rc = from && to ? 0 : MOIRAI_EFAIL;
    size_t e = 0;
    for (int32_t t = 0; !rc && t < g->n_tensors; t++) {
        for (int32_t r = g->tensor_reader_off[t]; g->tensor_producer[t] >= 0 && r < g->tensor_reader_off[t + 1]; r++) {
            from[e] = g->tensor_producer[t];
            to[e++] = g->tensor_reader[r];
        }
    }
    rc = rc ? rc : graph_dag_init(&dag, g->n_ops, from, to, n_edges);
    if (rc == MOIRAI_EINPUT)
        rc = report_cycle(g, &dag);
    if (!rc) {
        g->topo = dag.topo;
        g->topo_rank = dag.topo_rank;
        dag.topo = dag.topo_rank = NULL;
    }
    graph_dag_free(&dag);
    free(from);
    free(to);
    return rc;
}

static int assemble(moirai_graph *g, moirai_graph_builder *b)
{
    graph_store *store = util_alloc(1, sizeof *store);
    if (!store)
        return MOIRAI_EFAIL;
    g->store = store;
    store->strings = b->strings;
    store->ops = b->op_names;
    g->name = b->name;
    b->strings = NULL;
    b->op_names = NULL;
    b->name = NULL;
    g->element_bytes = b->element_bytes;
    g->from_onnx = b->from_onnx;
    int rc = copy_ops(g, b);
    rc = rc ? rc : copy_tensors(g, b);
    rc = rc ? rc : index_readers(g);
    rc = rc ? rc : copy_members(g, b);
    rc = rc ? rc : copy_times(g, b);
    rc = rc ? rc : copy_weights(g, b);
    rc = rc ? rc : copy_settings(g, b);
    return rc ? rc : sort_ops(g);
}

int moirai_graph_builder_finish(moirai_graph **out, moirai_graph_builder *b)
{
    *out = NULL;
    int rc = b->failed;
    moirai_graph *g = NULL;
    if (rc)
        moirai_error(rc, "%s", b->message ? b->message : "out of memory");
    else
        rc = (g = util_alloc(1, sizeof *g)) ? assemble(g, b) : MOIRAI_EFAIL;
    moirai_graph_builder_free(b);
    if (rc) {
        moirai_graph_free(g);
        return rc;
    }
    *out = g;
    return 0;
}
