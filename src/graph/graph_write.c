/* Graphs into moirai-graph files, one operator per line; what a reader would assume anyway is left out. */
#include <moirai/graph.h>

#include "graph/graph_read.h"
#include "util/util.h"

static void write_names(util_writer *w, const char *key, const moirai_graph *g, const int32_t *tensor, int32_t n)
{
    util_writer_pair_open(w, key, '[');
    for (int32_t i = 0; i < n; i++)
        util_writer_string(w, g->tensor_name[tensor[i]]);
    util_writer_close(w, ']');
}

static void write_outputs(util_writer *w, const moirai_graph *g, int32_t op)
{
    util_writer_pair_open(w, "outputs", '[');
    for (int32_t e = g->op_out_off[op]; e < g->op_out_off[op + 1]; e++) {
        int32_t t = g->op_out[e];
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", g->tensor_name[t]);
        util_writer_pair_int(w, "bytes", g->tensor_bytes[t]);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_costs(util_writer *w, const moirai_graph *g, int32_t op)
{
    if (g->op_weight_bytes[op])
        util_writer_pair_int(w, "weight_bytes", g->op_weight_bytes[op]);
    if (g->op_workspace_bytes[op])
        util_writer_pair_int(w, "workspace_bytes", g->op_workspace_bytes[op]);
    if (g->op_flops[op] != MOIRAI_UNKNOWN)
        util_writer_pair_int(w, "flops", g->op_flops[op]);
    if (g->op_traffic_bytes[op] != MOIRAI_UNKNOWN)
        util_writer_pair_int(w, "traffic_bytes", g->op_traffic_bytes[op]);
}

static void write_times(util_writer *w, const moirai_graph *g, int32_t op)
{
    const int64_t *row = g->time_ns + (size_t)op * (size_t)g->n_time_keys;
    bool open = false;
    for (int32_t k = 0; k < g->n_time_keys; k++) {
        if (row[k] == MOIRAI_UNKNOWN)
            continue;
        if (!open) {
            util_writer_pair_open(w, "time_ns", '{');
            open = true;
        }
        util_writer_pair_int(w, g->time_key[k], row[k]);
    }
    if (open)
        util_writer_close(w, '}');
}

static void write_members(util_writer *w, const moirai_graph *g, int32_t op)
{
    if (g->op_member_off[op] == g->op_member_off[op + 1])
        return;
    util_writer_pair_open(w, "members", '[');
    for (int32_t e = g->op_member_off[op]; e < g->op_member_off[op + 1]; e++)
        util_writer_string(w, g->op_member[e]);
    util_writer_close(w, ']');
}

void graph_write_weights(util_writer *w, const char *const *name, const int64_t *bytes, const int32_t *weight,
                         int32_t n)
{
    if (!n)
        return;
    util_writer_pair_open(w, "shared_weights", '[');
    for (int32_t i = 0; i < n; i++) {
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", name[weight[i]]);
        util_writer_pair_int(w, "bytes", bytes[weight[i]]);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

void graph_write_texts(util_writer *w, const char *key, int32_t n, const char *const *text)
{
    util_writer_pair_open(w, key, '[');
    for (int32_t i = 0; i < n; i++)
        util_writer_string(w, text[i]);
    util_writer_close(w, ']');
}

void graph_write_settings(util_writer *w, const graph_settings *s)
{
    if (!s->n_dims && !s->n_shapes && !s->n_assumed)
        return;
    util_writer_break(w);
    util_writer_pair_open(w, "onnx", '{');
    graph_write_texts(w, "dims", s->n_dims, s->dim);
    graph_write_texts(w, "shapes", s->n_shapes, s->shape);
    if (s->n_assumed)
        graph_write_texts(w, "assumed", s->n_assumed, s->assumed);
    util_writer_close(w, '}');
}

static void write_op(util_writer *w, const moirai_graph *g, int32_t op)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", g->op_name[op]);
    util_writer_pair_string(w, "type", g->op_type[op]);
    write_names(w, "inputs", g, g->op_in + g->op_in_off[op], g->op_in_off[op + 1] - g->op_in_off[op]);
    write_outputs(w, g, op);
    write_costs(w, g, op);
    write_times(w, g, op);
    write_members(w, g, op);
    graph_write_weights(w, g->weight_name, g->weight_bytes, g->op_weight + g->op_weight_off[op],
                        g->op_weight_off[op + 1] - g->op_weight_off[op]);
    util_writer_close(w, '}');
}

static void write_whole(util_writer *w, const moirai_graph *g)
{
    bool open = false;
    for (int32_t k = 0; g->time_whole_ns && k < g->n_time_keys; k++) {
        if (g->time_whole_ns[k] < 0)
            continue;
        if (!open)
            util_writer_pair_open(w, "whole_ns", '{');
        open = true;
        util_writer_pair_int(w, g->time_key[k], g->time_whole_ns[k]);
    }
    if (open)
        util_writer_close(w, '}');
}

int moirai_graph_write(const moirai_graph *g, const char *path)
{
    util_writer w;
    util_writer_begin(&w, "moirai-graph");
    util_writer_pair_string(&w, "name", g->name);
    util_writer_pair_string(&w, "dtype", g->element_bytes == 2 ? "fp16" : g->element_bytes == 8 ? "fp64" : "fp32");
    if (g->from_onnx)
        util_writer_pair_string(&w, "origin", "onnx");
    graph_write_settings(&w, &(graph_settings){g->n_dims, g->n_shapes, g->n_assumed, g->dim, g->shape, g->assumed});
    write_whole(&w, g);
    util_writer_break(&w);
    util_writer_pair_open(&w, "ops", '[');
    for (int32_t i = 0; i < g->n_ops; i++)
        write_op(&w, g, i);
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    return util_writer_save(&w, path);
}
