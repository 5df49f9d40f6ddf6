/* Problems into moirai-problem files, one operator and one channel per line. */
#include <moirai/problem.h>

#include <stdlib.h>

#include "graph/graph_read.h"
#include "problem/problem_build.h"
#include "problem/problem_write.h"

#define LOOK 64 /* operators per look at the clock */

static void write_devices(util_writer *w, const moirai_problem *p)
{
    util_writer_break(w);
    util_writer_pair_open(w, "devices", '[');
    for (int32_t k = 0; k < p->n_devices; k++) {
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", p->device_name[k]);
        if (*p->device_type[k])
            util_writer_pair_string(w, "type", p->device_type[k]);
        util_writer_pair_int(w, "memory_bytes", p->device_memory_bytes[k]);
        if (p->device_launch_ns[k])
            util_writer_pair_int(w, "launch_ns", p->device_launch_ns[k]);
        if (p->device_segment_ns[k])
            util_writer_pair_int(w, "segment_ns", p->device_segment_ns[k]);
        if (p->device_whole_ns[k])
            util_writer_pair_int(w, "whole_ns", p->device_whole_ns[k]);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_channels(util_writer *w, const moirai_problem *p)
{
    util_writer_break(w);
    util_writer_pair_open(w, "channels", '[');
    for (int32_t a = 0; a < p->n_devices; a++) {
        for (int32_t b = 0; b < p->n_devices; b++) {
            if (a == b)
                continue;
            util_writer_break(w);
            util_writer_open(w, '{');
            util_writer_pair_string(w, "from", p->device_name[a]);
            util_writer_pair_string(w, "to", p->device_name[b]);
            util_writer_pair_int(w, "bytes_per_second", p->bytes_per_second[a * p->n_devices + b]);
            util_writer_pair_int(w, "latency_ns", p->latency_ns[a * p->n_devices + b]);
            util_writer_close(w, '}');
        }
    }
    util_writer_close(w, ']');
}

static void write_table(util_writer *w, const moirai_problem *p, int32_t t)
{
    util_writer_pair_open(w, "transfer_ns", '[');
    for (int32_t a = 0; a < p->n_devices; a++) {
        util_writer_open(w, '[');
        for (int32_t b = 0; b < p->n_devices; b++)
            util_writer_int(w, moirai_transfer_ns(p, t, a, b));
        util_writer_close(w, ']');
    }
    util_writer_close(w, ']');
}

static void write_inputs(util_writer *w, const moirai_problem *p, int32_t op)
{
    util_writer_pair_open(w, "inputs", '[');
    for (int32_t e = p->op_in_off[op]; e < p->op_in_off[op + 1]; e++)
        util_writer_string(w, p->tensor_name[p->op_in[e]]);
    for (int32_t e = p->op_extern_off[op]; e < p->op_extern_off[op + 1]; e++)
        util_writer_string(w, p->op_extern[e]);
    util_writer_close(w, ']');
}

static void write_outputs(util_writer *w, const moirai_problem *p, int32_t op)
{
    util_writer_pair_open(w, "outputs", '[');
    for (int32_t e = p->op_out_off[op]; e < p->op_out_off[op + 1]; e++) {
        int32_t t = p->op_out[e];
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", p->tensor_name[t]);
        util_writer_pair_int(w, "bytes", p->tensor_bytes[t]);
        if (p->tensor_has_table[t])
            write_table(w, p, t);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_op(util_writer *w, const moirai_problem *p, int32_t op, const int32_t *weight, int32_t n_weights)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", p->op_name[op]);
    util_writer_pair_string(w, "type", p->op_type[op]);
    util_writer_pair_int(w, "memory_bytes", p->op_memory_bytes[op]);
    util_writer_pair_open(w, "time_ns", '[');
    for (int32_t k = 0; k < p->n_devices; k++) {
        if (moirai_op_ns(p, op, k) == MOIRAI_NEVER)
            util_writer_null(w);
        else
            util_writer_int(w, moirai_op_ns(p, op, k));
    }
    util_writer_close(w, ']');
    write_inputs(w, p, op);
    write_outputs(w, p, op);
    if (p->op_member_off[op] < p->op_member_off[op + 1]) {
        util_writer_pair_open(w, "members", '[');
        for (int32_t e = p->op_member_off[op]; e < p->op_member_off[op + 1]; e++)
            util_writer_string(w, p->op_member[e]);
        util_writer_close(w, ']');
    }
    if (p->op_group[op] != MOIRAI_NONE)
        util_writer_pair_string(w, "group", p->group_name[p->op_group[op]]);
    graph_write_weights(w, p->weight_name, p->weight_bytes, weight, n_weights);
    util_writer_close(w, '}');
}

static int write_all(util_writer *out, const moirai_problem *p, const util_stop *stop)
{
    int32_t *off, *weight;
    int rc = problem_weights_by_op(p, &off, &weight);
    if (rc) {
        free(off);
        free(weight);
        return rc;
    }
    util_writer w;
    util_writer_begin(&w, "moirai-problem");
    util_writer_pair_string(&w, "name", p->name);
    util_writer_break(&w);
    util_writer_pair_string(&w, "flow", moirai_flow_name(p->flow));
    util_writer_pair_string(&w, "congestion", moirai_congestion_name(p->congestion));
    util_writer_pair_string(&w, "memory", moirai_memory_name(p->memory));
    if (p->move_ns_per_mb)
        util_writer_pair_int(&w, "move_ns_per_mb", p->move_ns_per_mb);
    graph_write_settings(&w, &(graph_settings){p->n_dims, p->n_shapes, p->n_assumed, p->dim, p->shape, p->assumed});
    if (p->n_uncosted)
        graph_write_texts(&w, "uncosted", p->n_uncosted, p->uncosted);
    write_devices(&w, p);
    write_channels(&w, p);
    util_writer_break(&w);
    util_writer_pair_open(&w, "ops", '[');
    for (int32_t i = 0; i < p->n_ops && !rc; i++) {
        write_op(&w, p, i, weight + off[i], off[i + 1] - off[i]);
        rc = stop && i % LOOK == 0 && util_stopped(stop) ? MOIRAI_ELIMIT : 0;
    }
    free(off);
    free(weight);
    if (rc) {
        util_writer_free(&w);
        return rc;
    }
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    *out = w;
    return 0;
}

int moirai_problem_write(const moirai_problem *p, const char *path)
{
    util_writer w;
    int rc = write_all(&w, p, NULL);
    return rc ? rc : util_writer_save(&w, path);
}

int moirai_problem_text(char **out, size_t *length, const moirai_problem *p)
{
    return problem_text_within(out, length, p, NULL);
}

int problem_text_within(char **out, size_t *length, const moirai_problem *p, const util_stop *stop)
{
    util_writer w;
    *out = NULL;
    int rc = write_all(&w, p, stop);
    if (!rc && !(*out = util_writer_take(&w, length)))
        rc = MOIRAI_EFAIL;
    return rc;
}
