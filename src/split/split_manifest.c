/* The manifest: what `moirai run` (or anyone else) needs to run the sub-models of a folder; docs/run.md describes it.
 */
#include "split/split.h"

#include <stdio.h>
#include <string.h>

#include "onnx/onnx_network.h"
#include "util/json.h"

static const char *type_name(int32_t type)
{
    static const char *const name[] = {"",       "float32", "uint8",     "int8",       "uint16",  "int16",
                                       "int32",  "int64",   "string",    "bool",       "float16", "float64",
                                       "uint32", "uint64",  "complex64", "complex128", "bfloat16"};
    return type > 0 && type < (int32_t)(sizeof name / sizeof *name) ? name[type] : "other";
}

static void write_value(util_writer *w, const onnx_value *v)
{
    util_writer_pair_string(w, "name", v->name);
    util_writer_pair_string(w, "type", type_name(v->type));
    if (!v->shaped || v->guessed)
        return;
    util_writer_pair_open(w, "shape", '[');
    for (int32_t i = 0; i < v->rank; i++)
        util_writer_int(w, v->dim[i]);
    util_writer_close(w, ']');
}

/* The model's inputs or outputs. */
static void write_values(util_writer *w, const char *key, const onnx_scope *s, Onnx__ValueInfoProto *const *value,
                         size_t n, bool constants)
{
    util_writer_break(w);
    util_writer_pair_open(w, key, '[');
    for (size_t i = 0; i < n; i++) {
        const onnx_value *v = onnx_scope_find(s, value[i]->name ? value[i]->name : "");
        if (!v || (v->constant && !constants))
            continue;
        util_writer_break(w);
        util_writer_open(w, '{');
        write_value(w, v);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_names(util_writer *w, const char *key, char *const *name, int32_t n)
{
    util_writer_pair_open(w, key, '[');
    for (int32_t i = 0; i < n; i++)
        util_writer_string(w, name[i]);
    util_writer_close(w, ']');
}

static void write_segment(util_writer *w, const split_plan *p, const split_segment *s)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "file", s->file);
    util_writer_pair_int(w, "start_ns", s->start_ns);
    util_writer_pair_int(w, "finish_ns", s->finish_ns);
    util_writer_pair_int(w, "work_ns", s->work_ns);
    util_writer_pair_int(w, "nodes", s->n_nodes);
    write_names(w, "inputs", s->input, s->n_inputs);
    write_names(w, "outputs", s->output, s->n_outputs);
    util_writer_pair_open(w, "ops", '[');
    for (int32_t i = 0; i < s->n_units; i++)
        util_writer_string(w, p->units->op_name[p->order[s->first + i]]);
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

static void write_devices(util_writer *w, const split_plan *p)
{
    util_writer_break(w);
    util_writer_pair_open(w, "devices", '[');
    for (int32_t k = 0, at = 0; k < p->n_devices; k++) {
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", p->device[k]);
        util_writer_pair_open(w, "segments", '[');
        for (; at < p->n_segments && p->segment[at].device == k; at++)
            write_segment(w, p, &p->segment[at]);
        util_writer_close(w, ']');
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

static void write_transfers(util_writer *w, const split_plan *p, const onnx_scope *s)
{
    util_writer_break(w);
    util_writer_pair_open(w, "transfers", '[');
    for (int32_t i = 0; i < p->n_transfers; i++) {
        const split_transfer *x = &p->transfer[i];
        const onnx_value *v = onnx_scope_find(s, p->units->tensor_name[x->tensor]);
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "tensor", p->units->tensor_name[x->tensor]);
        util_writer_pair_string(w, "type", type_name(v ? v->type : 0));
        util_writer_pair_string(w, "from", p->device[x->from]);
        util_writer_pair_string(w, "to", p->device[x->to]);
        util_writer_pair_int(w, "bytes", x->bytes);
        util_writer_pair_int(w, "start_ns", x->start_ns);
        util_writer_pair_int(w, "finish_ns", x->finish_ns);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
}

int split_manifest(const split_plan *p, const onnx_network *net, const char *folder)
{
    util_writer w;
    char path[4096];
    const char *slash = strrchr(net->label, '/');
    if ((size_t)snprintf(path, sizeof path, "%s/manifest.json", folder) >= sizeof path)
        return moirai_error(MOIRAI_EUSAGE, "%s: the path is too long", folder);
    util_writer_begin(&w, "moirai-manifest");
    util_writer_pair_string(&w, "model", slash ? slash + 1 : net->label);
    util_writer_pair_string(&w, "placer", p->placer);
    util_writer_pair_int(&w, "makespan_ns", p->makespan_ns);
    const onnx_scope *s = net->im.root;
    /* Before IR version 4 initializers are inputs, too. */
    write_values(&w, "inputs", s, s->graph->input, s->graph->n_input, false);
    write_values(&w, "outputs", s, s->graph->output, s->graph->n_output, true);
    write_devices(&w, p);
    write_transfers(&w, p, s);
    util_writer_close(&w, '}');
    return util_writer_save(&w, path);
}
