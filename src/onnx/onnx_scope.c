/* A graph's names: every value and node of one GraphProto, resolved and in topological order. Files promise that
 * order; it is established here all the same, since a cycle or a name that nobody makes must be found before any rule
 * runs. */
#include "onnx/onnx_import.h"

#include <stdlib.h>
#include <string.h>

static const char *text(const char *s)
{
    return s ? s : "";
}

static int declare(onnx_value **out, onnx_import *im, onnx_scope *s, const char *name, const char *what)
{
    if (util_names_get(s->names, name) >= 0)
        return moirai_error(MOIRAI_EINPUT, "%s '%s': the name is taken by another tensor", what, name);
    onnx_value *v = onnx_take(&im->arena, 1, sizeof *v);
    if (!v || util_names_put(s->names, name, s->n_values) < 0)
        return MOIRAI_EFAIL;
    v->name = name;
    v->scope = s;
    v->producer = -1;
    v->stamp = -1;
    s->value[s->n_values++] = v;
    *out = v;
    return 0;
}

static int add_initializers(onnx_import *im, onnx_scope *s)
{
    const Onnx__GraphProto *g = s->graph;
    onnx_value *v;
    for (size_t i = 0; i < g->n_initializer; i++) {
        int rc = declare(&v, im, s, text(g->initializer[i]->name), "initializer");
        if (!rc && (rc = onnx_value_from_tensor(im, v, g->initializer[i])))
            moirai_error_prefix(rc, "initializer '%s'", v->name);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *sp = g->sparse_initializer[i];
        int64_t n, bytes = 0, index_bytes = 0;
        int rc = declare(&v, im, s, text(sp->values ? sp->values->name : NULL), "sparse initializer");
        if (!rc && sp->values)
            rc = onnx_tensor_size(im->model, sp->values, &n, &bytes);
        if (!rc && sp->indices)
            rc = onnx_tensor_size(im->model, sp->indices, &n, &index_bytes);
        if (rc)
            return rc;
        if (sp->n_dims > ONNX_MAX_RANK ||
            !onnx_value_shape(v, sp->values ? sp->values->data_type : 0, (int32_t)sp->n_dims, sp->dims))
            return moirai_error(MOIRAI_EINPUT, "sparse initializer '%s': its dimensions make no sense", v->name);
        v->constant = true;
        v->stored_bytes = bytes + index_bytes;
    }
    return 0;
}

static int add_inputs(onnx_import *im, onnx_scope *s)
{
    for (size_t i = 0; i < s->graph->n_input; i++) {
        const Onnx__ValueInfoProto *input = s->graph->input[i];
        /* Before IR version 4 every initializer is an input, too. */
        int32_t old = util_names_get(s->names, text(input->name));
        if (old >= 0 && s->value[old]->constant)
            continue;
        onnx_value *v;
        int rc = declare(&v, im, s, text(input->name), "input");
        if (rc)
            return rc;
        v->declared = input->type;
    }
    return 0;
}

static int add_node_outputs(onnx_import *im, onnx_scope *s, onnx_node *n, int32_t index)
{
    const Onnx__NodeProto *p = n->proto;
    n->n_out = (int32_t)p->n_output;
    n->out = onnx_take(&im->arena, p->n_output, sizeof *n->out);
    if (!n->out)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < n->n_out; i++) {
        if (!*p->output[i])
            continue;
        int rc = declare(&n->out[i], im, s, p->output[i], "output");
        if (rc)
            return moirai_error_prefix(rc, "node '%s' (%s)", text(p->name), text(p->op_type));
        n->out[i]->producer = index;
    }
    return 0;
}

static int add_node_inputs(onnx_import *im, onnx_node *n)
{
    const Onnx__NodeProto *p = n->proto;
    n->n_in = (int32_t)p->n_input;
    n->in = onnx_take(&im->arena, p->n_input, sizeof *n->in);
    if (!n->in)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!*p->input[i])
            continue;
        n->in[i] = onnx_scope_find(n->scope, p->input[i]);
        if (!n->in[i])
            return moirai_error(MOIRAI_EINPUT, "node '%s' (%s): input '%s' is made by nobody", text(p->name),
                                text(p->op_type), p->input[i]);
    }
    int rc = onnx_captured(im, n);
    return rc ? moirai_error_prefix(rc, "node '%s' (%s)", text(p->name), text(p->op_type)) : 0;
}

static int add_nodes(onnx_import *im, onnx_scope *s)
{
    for (int32_t i = 0; i < s->n_nodes; i++) {
        onnx_node *n = &s->node[i];
        *n = (onnx_node){.proto = s->graph->node[i], .import = im, .scope = s, .read_bytes = -1};
        n->rule = onnx_rule_find(text(n->proto->domain), text(n->proto->op_type));
        int rc = add_node_outputs(im, s, n, i);
        if (rc)
            return rc;
    }
    for (int32_t i = 0; i < s->n_nodes; i++) {
        int rc = add_node_inputs(im, &s->node[i]);
        if (rc)
            return rc;
    }
    return 0;
}

static void attach_declared(onnx_scope *s, Onnx__ValueInfoProto **info, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int32_t at = util_names_get(s->names, text(info[i]->name));
        if (at >= 0 && !s->value[at]->declared)
            s->value[at]->declared = info[i]->type;
    }
}

static int check_outputs(const onnx_scope *s)
{
    for (size_t i = 0; i < s->graph->n_output; i++) {
        const char *name = text(s->graph->output[i]->name);
        if (!*name)
            return moirai_error(MOIRAI_EINPUT, "output %zu of graph '%s' has no name", i, text(s->graph->name));
        if (!onnx_scope_find(s, name))
            return moirai_error(MOIRAI_EINPUT, "output '%s' of graph '%s' is made by nobody", name,
                                text(s->graph->name));
    }
    return 0;
}

static int allocate(onnx_import *im, onnx_scope *s)
{
    const Onnx__GraphProto *g = s->graph;
    size_t n = g->n_initializer + g->n_sparse_initializer + g->n_input;
    for (size_t i = 0; i < g->n_node; i++)
        n += g->node[i]->n_output;
    if (n > INT32_MAX || g->n_node > INT32_MAX)
        return moirai_error(MOIRAI_EINPUT, "graph '%s' has more than 2^31 tensors", text(g->name));
    s->names = util_names_new(n);
    if (!s->names || util_grow(&im->maps, &im->maps_capacity, im->n_maps + 1, sizeof *im->maps)) {
        util_names_free(s->names);
        return MOIRAI_EFAIL;
    }
    im->maps[im->n_maps++] = s->names;
    s->n_nodes = (int32_t)g->n_node;
    s->value = onnx_take(&im->arena, n, sizeof *s->value);
    s->node = onnx_take(&im->arena, g->n_node, sizeof *s->node);
    s->order = onnx_take(&im->arena, g->n_node, sizeof *s->order);
    return s->value && s->node && s->order ? 0 : MOIRAI_EFAIL;
}

static int sort_nodes(onnx_scope *s);

int onnx_scope_new(onnx_scope **out, onnx_import *im, onnx_scope *parent, const Onnx__GraphProto *graph)
{
    onnx_scope *s = onnx_take(&im->arena, 1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    s->parent = parent;
    s->graph = graph;
    int rc = allocate(im, s);
    rc = rc ? rc : add_initializers(im, s);
    rc = rc ? rc : add_inputs(im, s);
    rc = rc ? rc : add_nodes(im, s);
    rc = rc ? rc : check_outputs(s);
    if (rc)
        return rc;
    attach_declared(s, graph->value_info, graph->n_value_info);
    attach_declared(s, graph->output, graph->n_output);
    *out = s;
    return sort_nodes(s);
}

onnx_value *onnx_scope_find(const onnx_scope *s, const char *name)
{
    for (; s; s = s->parent) {
        int32_t at = util_names_get(s->names, name);
        if (at >= 0)
            return s->value[at];
    }
    return NULL;
}

/* ---- order ---- */

static bool is_local(const onnx_scope *s, const onnx_value *v)
{
    return v && v->scope == s && v->producer >= 0;
}

/* Calls for every value that node i waits for; the k-th of inputs, then captured. */
static onnx_value *dependency(const onnx_node *n, int32_t k)
{
    return k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
}

static int sort(onnx_scope *s, int32_t *waiting, size_t *offset, int32_t *reader)
{
    for (int32_t i = 0; i < s->n_nodes; i++)
        for (int32_t k = 0; k < s->node[i].n_in + s->node[i].n_captured; k++) {
            onnx_value *v = dependency(&s->node[i], k);
            if (is_local(s, v))
                reader[offset[v->producer]++] = i;
        }
    int32_t n_done = 0, n_ready = 0;
    for (int32_t i = 0; i < s->n_nodes; i++)
        if (!waiting[i])
            s->order[n_ready++] = i;
    /* After the fill, offset[i] is the end of i's readers and the begin of i + 1's. */
    while (n_done < n_ready) {
        int32_t i = s->order[n_done++];
        for (size_t e = i ? offset[i - 1] : 0; e < offset[i]; e++)
            if (!--waiting[reader[e]])
                s->order[n_ready++] = reader[e];
    }
    for (int32_t i = 0; i < s->n_nodes && n_done < s->n_nodes; i++)
        if (waiting[i])
            return moirai_error(MOIRAI_EINPUT, "%d nodes form a cycle or wait for one, the first is '%s' (%s)",
                                s->n_nodes - n_done, text(s->node[i].proto->name), text(s->node[i].proto->op_type));
    return 0;
}

static int sort_nodes(onnx_scope *s)
{
    size_t n = (size_t)s->n_nodes, n_edges = 0;
    int32_t *waiting = util_alloc(n, sizeof *waiting);
    size_t *offset = util_alloc(n + 1, sizeof *offset);
    int rc = waiting && offset ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; !rc && i < s->n_nodes; i++)
        for (int32_t k = 0; k < s->node[i].n_in + s->node[i].n_captured; k++) {
            onnx_value *v = dependency(&s->node[i], k);
            if (is_local(s, v)) {
                waiting[i]++;
                offset[v->producer + 1]++;
                n_edges++;
            }
        }
    for (size_t i = 0; !rc && i < n; i++)
        offset[i + 1] += offset[i];
    int32_t *reader = rc ? NULL : util_alloc(n_edges, sizeof *reader);
    rc = rc ? rc : reader ? sort(s, waiting, offset, reader) : MOIRAI_EFAIL;
    free(reader);
    free(offset);
    free(waiting);
    return rc;
}
