/* Graphs into moirai-graph files, one operator per line; what a reader would assume anyway is left out. */
#include <moirai/graph.h>

#include "util/json.h"
#include "util/util.h"

static void write_names(moirai_writer *w, const char *key, const moirai_graph *g, const int32_t *tensor, int32_t n)
{
    moirai_writer_pair_open(w, key, '[');
    for (int32_t i = 0; i < n; i++)
        moirai_writer_string(w, g->tensor_name[tensor[i]]);
    moirai_writer_close(w, ']');
}

static void write_outputs(moirai_writer *w, const moirai_graph *g, int32_t op)
{
    moirai_writer_pair_open(w, "outputs", '[');
    for (int32_t e = g->op_out_off[op]; e < g->op_out_off[op + 1]; e++) {
        int32_t t = g->op_out[e];
        moirai_writer_open(w, '{');
        moirai_writer_pair_string(w, "name", g->tensor_name[t]);
        moirai_writer_pair_int(w, "bytes", g->tensor_bytes[t]);
        moirai_writer_close(w, '}');
    }
    moirai_writer_close(w, ']');
}

static void write_costs(moirai_writer *w, const moirai_graph *g, int32_t op)
{
    if (g->op_weight_bytes[op])
        moirai_writer_pair_int(w, "weight_bytes", g->op_weight_bytes[op]);
    if (g->op_workspace_bytes[op])
        moirai_writer_pair_int(w, "workspace_bytes", g->op_workspace_bytes[op]);
    if (g->op_flops[op] != MOIRAI_UNKNOWN)
        moirai_writer_pair_int(w, "flops", g->op_flops[op]);
    if (g->op_traffic_bytes[op] != MOIRAI_UNKNOWN)
        moirai_writer_pair_int(w, "traffic_bytes", g->op_traffic_bytes[op]);
}

static void write_times(moirai_writer *w, const moirai_graph *g, int32_t op)
{
    const int64_t *row = g->time_ns + (size_t)op * (size_t)g->n_time_keys;
    bool open = false;
    for (int32_t k = 0; k < g->n_time_keys; k++) {
        if (row[k] == MOIRAI_UNKNOWN)
            continue;
        if (!open) {
            moirai_writer_pair_open(w, "time_ns", '{');
            open = true;
        }
        moirai_writer_pair_int(w, g->time_key[k], row[k]);
    }
    if (open)
        moirai_writer_close(w, '}');
}

static void write_members(moirai_writer *w, const moirai_graph *g, int32_t op)
{
    if (g->op_member_off[op] == g->op_member_off[op + 1])
        return;
    moirai_writer_pair_open(w, "members", '[');
    for (int32_t e = g->op_member_off[op]; e < g->op_member_off[op + 1]; e++)
        moirai_writer_string(w, g->op_member[e]);
    moirai_writer_close(w, ']');
}

static void write_op(moirai_writer *w, const moirai_graph *g, int32_t op)
{
    moirai_writer_break(w);
    moirai_writer_open(w, '{');
    moirai_writer_pair_string(w, "name", g->op_name[op]);
    moirai_writer_pair_string(w, "type", g->op_type[op]);
    write_names(w, "inputs", g, g->op_in + g->op_in_off[op], g->op_in_off[op + 1] - g->op_in_off[op]);
    write_outputs(w, g, op);
    write_costs(w, g, op);
    write_times(w, g, op);
    write_members(w, g, op);
    moirai_writer_close(w, '}');
}

int moirai_graph_write(const moirai_graph *g, const char *path)
{
    moirai_writer w;
    moirai_writer_begin(&w, "moirai-graph");
    moirai_writer_pair_string(&w, "name", g->name);
    moirai_writer_pair_string(&w, "dtype", g->element_bytes == 2 ? "fp16" : "fp32");
    moirai_writer_break(&w);
    moirai_writer_pair_open(&w, "ops", '[');
    for (int32_t i = 0; i < g->n_ops; i++)
        write_op(&w, g, i);
    moirai_writer_close(&w, ']');
    moirai_writer_close(&w, '}');
    return moirai_writer_save(&w, path);
}
