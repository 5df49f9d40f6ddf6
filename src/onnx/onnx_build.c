/* From an inferred model to a moirai_graph: what an inference backend would run.
 *
 * Left out are nodes that constants alone determine, and nodes on which no output of the network depends (often the
 * producers of shapes that were folded). Weights of an operator are the constants that it and its subgraphs read, each
 * once; a weight of some size that several operators read is named besides, so that a device that runs several of them
 * holds it once. Traffic is what it reads (each tensor once) and writes; operators that a backend does by renaming
 * a tensor (Reshape, Squeeze, Identity, ...) have neither traffic nor arithmetic. O(nodes + edges). */
#include "onnx/onnx_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARED_BYTES 1024 /* smaller weights are nobody's worry: each reader has its own */

/* ---- what is needed ---- */

static void need(onnx_value *v)
{
    if (v)
        v->needed = true;
}

static void mark_needed(onnx_scope *s)
{
    for (size_t i = 0; i < s->graph->n_output; i++)
        need(onnx_scope_find(s, s->graph->output[i]->name));
    for (int32_t o = s->n_nodes - 1; o >= 0; o--) {
        onnx_node *n = &s->node[s->order[o]];
        bool wanted = s->graph->n_output == 0; /* a graph without outputs is kept whole */
        for (int32_t k = 0; k < n->n_out; k++)
            wanted |= n->out[k] && n->out[k]->needed;
        if (!wanted)
            continue;
        need(onnx_out(n, 0));
        if (n->folded && n->rule->flags & ONNX_OF_SHAPE)
            continue;
        for (int32_t k = 0; k < n->n_in; k++)
            need(n->in[k]);
        for (int32_t k = 0; k < n->n_captured; k++)
            need(n->captured[k]);
        for (int32_t k = 0; k < n->n_children; k++)
            mark_needed(n->child[k]);
    }
}

bool onnx_is_kept(const onnx_node *n)
{
    if (n->folded)
        return false;
    bool wanted = n->n_out == 0;
    for (int32_t k = 0; k < n->n_out; k++)
        wanted |= n->out[k] && n->out[k]->needed;
    return wanted;
}

/* ---- what was met ---- */

static bool is_parameter(const onnx_value *v)
{
    int bits = onnx_type_bits(v->type);
    return onnx_type_is_float(v->type) || (bits && bits <= 8 && v->type != ONNX_BOOL);
}

static void count_weights(onnx_import *im, const onnx_scope *s, int64_t bytes_by_width[3])
{
    for (int32_t i = 0; i < s->n_values; i++) {
        const onnx_value *v = s->value[i];
        if (!v->tensor || !v->needed || (v->producer >= 0 && v->rank == 0))
            continue;
        im->report->weight_bytes = onnx_add(im->report->weight_bytes, v->stored_bytes);
        if (is_parameter(v))
            im->report->parameter_count = onnx_add(im->report->parameter_count, v->elements);
        int bits = onnx_type_bits(v->type);
        int width = bits == 64 ? 2 : bits == 32 ? 1 : 0;
        if (onnx_type_is_float(v->type) && bits >= 16)
            bytes_by_width[width] = onnx_add(bytes_by_width[width], v->bytes);
    }
    for (int32_t i = 0; i < s->n_nodes; i++)
        for (int32_t k = 0; k < s->node[i].n_children; k++)
            count_weights(im, s->node[i].child[k], bytes_by_width);
}

static void report_node(onnx_import *im, const onnx_node *n)
{
    moirai_onnx_report *r = im->report;
    if (!n->cost_known && !r->n_unknown_ops++)
        snprintf(r->first_unknown, sizeof r->first_unknown, "%s", n->proto->op_type ? n->proto->op_type : "");
    for (int32_t k = 0; k < n->n_out; k++) {
        if (!n->out[k] || !n->out[k]->guessed || (k && !n->out[k]->needed))
            continue;
        size_t used = strlen(r->unknown_sizes);
        if (r->n_unknown_sizes++ < 3)
            snprintf(r->unknown_sizes + used, sizeof r->unknown_sizes - used, "%s'%.60s'", used ? ", " : "",
                     n->out[k]->name);
    }
}

/* Inputs in the order of the file; what has a value of its own in the file is a weight. */
static void report_inputs(onnx_import *im)
{
    const Onnx__GraphProto *graph = im->root->graph;
    moirai_onnx_report *r = im->report;
    for (size_t i = 0; i < graph->n_input; i++) {
        const onnx_value *v = onnx_scope_find(im->root, graph->input[i]->name ? graph->input[i]->name : "");
        if (!v || v->constant || v->producer >= 0)
            continue;
        if (r->n_inputs < MOIRAI_ONNX_INPUTS) {
            moirai_onnx_input *in = &r->input[r->n_inputs];
            snprintf(in->name, sizeof in->name, "%s", v->name);
            snprintf(in->type, sizeof in->type, "%s", onnx_type_name(v->type));
            onnx_value_show(v, in->shape, sizeof in->shape);
            in->bytes = v->bytes;
        }
        r->n_inputs++;
    }
}

static void report_assumed(onnx_import *im, moirai_graph_builder *b)
{
    moirai_onnx_report *r = im->report;
    for (int32_t i = 0; i < im->n_open; i++) {
        const onnx_open *o = &im->open[i];
        char text[256];
        size_t used = strlen(r->assumed);
        snprintf(text, sizeof text, "%.200s=%lld", o->key, (long long)o->size);
        snprintf(r->assumed + used, sizeof r->assumed - used, "%s%s", used ? ", " : "", text);
        moirai_graph_builder_assumed(b, text);
    }
}

/* ---- names ---- */

typedef struct namer {
    util_names *taken;
    const char **name; /* of each node */
} namer;

static int name_node(onnx_import *im, namer *nm, int32_t i, const char *type)
{
    size_t room = strlen(type) + 32;
    char *text = onnx_take(&im->arena, room, 1);
    if (!text)
        return MOIRAI_EFAIL;
    snprintf(text, room, "%s_%d", type, i);
    for (int32_t k = 2; util_names_get(nm->taken, text) >= 0; k++)
        snprintf(text, room, "%s_%d_%d", type, i, k);
    nm->name[i] = text;
    return util_names_put(nm->taken, text, i) < 0 ? MOIRAI_EFAIL : 0;
}

/* The nodes' own names first, so that made-up ones give way. */
static int name_all(onnx_import *im, namer *nm)
{
    onnx_scope *s = im->root;
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const char *own = s->node[i].proto->name;
        if (!own || !*own || !onnx_is_kept(&s->node[i]))
            continue;
        int32_t first = util_names_put(nm->taken, own, i);
        if (first < 0)
            return MOIRAI_EFAIL;
        if (first == i)
            nm->name[i] = own;
    }
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const char *type = s->node[i].proto->op_type;
        int rc = nm->name[i] || !onnx_is_kept(&s->node[i]) ? 0 : name_node(im, nm, i, type && *type ? type : "op");
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- emission ---- */

/* A weight under another name is the same weight. */
static onnx_value *same_weight(onnx_value *v)
{
    while (v && v->constant && v->producer >= 0) {
        const onnx_node *n = &v->scope->node[v->producer];
        if (!n->folded || !n->proto->op_type || strcmp(n->proto->op_type, "Identity") || !onnx_in(n, 0))
            break;
        v = onnx_in(n, 0);
    }
    return v;
}

static int64_t count_once(onnx_value *v, int32_t stamp)
{
    v = same_weight(v);
    if (!v || v->stamp == stamp)
        return 0;
    v->stamp = stamp;
    return v->constant ? v->stored_bytes : v->bytes;
}

static int64_t constants_of(const onnx_node *n, int32_t stamp)
{
    int64_t sum = 0;
    for (int32_t k = 0; k < n->n_in; k++)
        if (n->in[k] && n->in[k]->constant)
            sum = onnx_add(sum, count_once(n->in[k], stamp));
    for (int32_t c = 0; c < n->n_children; c++)
        for (int32_t i = 0; i < n->child[c]->n_nodes; i++)
            if (!n->child[c]->node[i].folded)
                sum = onnx_add(sum, constants_of(&n->child[c]->node[i], stamp));
    return sum;
}

typedef int (*weight_fn)(void *data, onnx_value *weight);

/* Every constant that the operator holds; one may come twice. */
static int each_constant(const onnx_node *n, weight_fn take, void *data)
{
    int rc = 0;
    for (int32_t k = 0; k < n->n_in && !rc; k++)
        if (n->in[k] && n->in[k]->constant)
            rc = take(data, same_weight(n->in[k]));
    for (int32_t c = 0; c < n->n_children && !rc; c++)
        for (int32_t i = 0; i < n->child[c]->n_nodes && !rc; i++)
            if (!n->child[c]->node[i].folded)
                rc = each_constant(&n->child[c]->node[i], take, data);
    return rc;
}

static int count_reader(void *data, onnx_value *weight)
{
    int32_t reader = *(const int32_t *)data + 1;
    weight->n_readers += weight->read_stamp != reader;
    weight->read_stamp = reader;
    return 0;
}

static bool holds_weights(const onnx_node *n)
{
    return onnx_is_kept(n) && !(n->rule && n->rule->flags & ONNX_VIEW);
}

static void count_readers(onnx_scope *s)
{
    for (int32_t i = 0; i < s->n_nodes; i++)
        if (holds_weights(&s->node[i]))
            each_constant(&s->node[i], count_reader, &i);
}

typedef struct sharing {
    onnx_import *im;
    moirai_graph_builder *b;
    int32_t op;
} sharing;

static int name_shared(void *data, onnx_value *weight)
{
    const sharing *x = data;
    if (weight->n_readers < 2 || weight->stored_bytes < SHARED_BYTES || weight->scope != x->im->root || !*weight->name)
        return 0;
    return moirai_graph_builder_shared_weight(x->b, x->op, weight->name, weight->stored_bytes);
}

static int64_t traffic_of(const onnx_node *n, int64_t weight_bytes, int32_t stamp)
{
    if (n->rule && n->rule->flags & ONNX_VIEW)
        return 0;
    int64_t sum = n->inner_bytes;
    for (int32_t k = 0; k < n->n_out; k++)
        sum = onnx_add(sum, n->out[k] && (k == 0 || n->out[k]->needed) ? n->out[k]->bytes : 0);
    if (n->read_bytes >= 0)
        return onnx_add(sum, n->read_bytes);
    sum = onnx_add(sum, weight_bytes);
    for (int32_t k = 0; k < n->n_in; k++)
        if (n->in[k] && !n->in[k]->constant)
            sum = onnx_add(sum, count_once(n->in[k], stamp));
    return sum;
}

static int add_tensors(moirai_graph_builder *b, int32_t op, const onnx_node *n)
{
    int rc = 0;
    for (int32_t k = 0; k < n->n_in + n->n_captured && !rc; k++) {
        const onnx_value *v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        if (v && !v->constant)
            rc = moirai_graph_builder_input(b, op, v->name);
    }
    /* Outputs that nobody asked for (Dropout's mask, ...) are not made. */
    for (int32_t k = 0; k < n->n_out && !rc; k++)
        if (n->out[k] && (k == 0 || n->out[k]->needed))
            rc = moirai_graph_builder_output(b, op, n->out[k]->name, n->out[k]->bytes);
    return rc;
}

static int emit_node(onnx_import *im, moirai_graph_builder *b, onnx_node *n, const char *name, int32_t stamp)
{
    const char *type = n->proto->op_type;
    int32_t op = moirai_graph_builder_op(b, name, type && *type ? type : "op");
    if (op < 0)
        return op;
    int rc = add_tensors(b, op, n);
    if (rc)
        return rc;
    /* What a view reads besides its tensor (a shape, axes) never reaches the device. */
    int64_t weights = n->rule && n->rule->flags & ONNX_VIEW ? 0 : constants_of(n, stamp);
    int64_t traffic = traffic_of(n, weights, stamp);
    report_node(im, n);
    sharing shared = {im, b, op};
    if ((rc = holds_weights(n) ? each_constant(n, name_shared, &shared) : 0))
        return rc;
    return moirai_graph_builder_cost(b, op, weights, 0, n->cost_known ? n->flops : MOIRAI_UNKNOWN,
                                     n->endless ? MOIRAI_UNKNOWN : traffic);
}

static int emit_all(onnx_import *im, moirai_graph_builder *b)
{
    onnx_scope *s = im->root;
    namer nm = {util_names_new((size_t)s->n_nodes), onnx_take(&im->arena, (size_t)s->n_nodes, sizeof *nm.name)};
    int rc = nm.taken && nm.name ? name_all(im, &nm) : MOIRAI_EFAIL;
    im->report->n_nodes = s->n_nodes;
    count_readers(s);
    for (int32_t i = 0; i < s->n_nodes && !rc; i++) {
        if (onnx_is_kept(&s->node[i]))
            rc = emit_node(im, b, &s->node[i], nm.name[i], i);
        else if (s->node[i].folded)
            im->report->n_folded++;
        else
            im->report->n_unused++;
    }
    util_names_free(nm.taken);
    return rc;
}

/* The width that most weight bytes have; without weights, that of the first real input. */
static int32_t main_width(const onnx_import *im, const int64_t bytes_by_width[3])
{
    int best = 1;
    for (int i = 0; i < 3; i++)
        best = bytes_by_width[i] > bytes_by_width[best] ? i : best;
    for (int32_t i = 0; !bytes_by_width[best] && i < im->root->n_values; i++) {
        const onnx_value *v = im->root->value[i];
        if (v->producer < 0 && !v->constant && onnx_type_is_float(v->type)) {
            int bits = onnx_type_bits(v->type);
            return bits <= 16 ? 2 : bits == 64 ? 8 : 4;
        }
    }
    return 2 << best;
}

int onnx_build(moirai_graph **out, onnx_import *im, const char *label)
{
    int64_t bytes_by_width[3] = {0};
    moirai_graph_builder *b;
    mark_needed(im->root);
    report_inputs(im);
    count_weights(im, im->root, bytes_by_width);
    const char *slash = strrchr(label, '/');
    int rc = moirai_graph_builder_new(&b, slash && slash[1] ? slash + 1 : label);
    if (rc)
        return rc;
    moirai_graph_builder_element_bytes(b, main_width(im, bytes_by_width));
    moirai_graph_builder_from_onnx(b, true);
    for (int i = 0; im->options && i < im->options->n_dims; i++)
        moirai_graph_builder_dim(b, im->options->dims[i]);
    for (int i = 0; im->options && i < im->options->n_shapes; i++)
        moirai_graph_builder_shape(b, im->options->shapes[i]);
    report_assumed(im, b);
    rc = emit_all(im, b);
    if (rc) {
        moirai_graph_builder_free(b);
        return rc;
    }
    return moirai_graph_builder_finish(out, b);
}
