/* Sub-models: the nodes of a segment, in the plan's order, with the constants that they read and nothing else.
 *
 * What a segment reads of others and what others (or the user) read of it become the inputs and outputs of its graph,
 * with the types and shapes that the importer inferred. Messages of the model are shared, not copied: a sub-model is a
 * new tree of pointers, and lives in the import's arena. Every node says in its metadata where and when the plan runs
 * it. */
#include "split/split_build.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "onnx/onnx_message.h"

/* ---- inputs and outputs ---- */

/* The type as the file has it, or NULL. */
static const Onnx__TypeProto *declared_type(const onnx_value *v)
{
    const Onnx__TypeProto *t = v->declared;
    bool whole = t && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && t->tensor_type->has_elem_type &&
                 t->tensor_type->elem_type;
    return whole ? t : NULL;
}

/* A guessed size is left out, and with it the shape: the backend finds its own. A node with graphs inside (If, Loop)
 * may hold a branch that is never taken with these shapes and makes no sense with them; the whole model runs because
 * nobody knows its shapes beforehand. A sub-model with such a node says no more of its tensors than the file does. */
static const Onnx__TypeProto *type_of(split_builder *b, const onnx_value *v)
{
    if (v->declared && v->declared->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
        v->declared->value_case != ONNX__TYPE_PROTO__VALUE__NOT_SET)
        return v->declared;
    bool open = b->open[b->segment];
    if (open && declared_type(v))
        return declared_type(v);
    return onnx_tensor_type(&b->net->im.arena, v, !open && b->certain[v->stamp]);
}

static int add_value(split_builder *b, split_list *list, const onnx_value *v)
{
    const Onnx__TypeProto *type = NULL;
    if (!v->type && list == &b->inputs && !v->declared)
        return moirai_error(MOIRAI_EINPUT, "%s: the type of tensor '%s' is not known, and the plan cuts there",
                            b->net->label, v->name);
    if ((v->type || v->declared) && !(type = type_of(b, v)))
        return MOIRAI_EFAIL;
    Onnx__ValueInfoProto *info = onnx_value_info(&b->net->im.arena, v->name, type);
    return info ? split_list_add(list, info) : MOIRAI_EFAIL;
}

/* ---- nodes ---- */

#if MOIRAI_NODE_METADATA
static int add_metadata(split_builder *b, Onnx__NodeProto *node, int32_t unit)
{
    enum { N = 5 };
    const split_plan *p = b->p;
    const char *key[N] = {"moirai.device", "moirai.segment", "moirai.op", "moirai.start_ns", "moirai.finish_ns"};
    onnx_arena *arena = &b->net->im.arena;
    char *value[N] = {onnx_text(arena, "%s", p->device[p->unit_device[unit]]), onnx_text(arena, "%d", b->segment),
                      onnx_text(arena, "%s", p->units->op_name[unit]),
                      onnx_text(arena, "%lld", (long long)p->unit_start_ns[unit]),
                      onnx_text(arena, "%lld", (long long)p->unit_finish_ns[unit])};
    size_t old = node->n_metadata_props;
    Onnx__StringStringEntryProto **list = onnx_take(arena, old + N, sizeof *list);
    if (!list)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < old; i++)
        list[i] = node->metadata_props[i];
    for (size_t i = 0; i < N; i++)
        if (!(list[old + i] = onnx_entry(arena, key[i], value[i])))
            return MOIRAI_EFAIL;
    node->metadata_props = list;
    node->n_metadata_props = old + N;
    return 0;
}
#else
static int add_metadata(split_builder *b, Onnx__NodeProto *node, int32_t unit)
{
    (void)b;
    (void)node;
    (void)unit;
    return 0;
}
#endif

static int add_input(split_builder *b, onnx_value *v)
{
    if (!v)
        return 0;
    if (v->constant)
        return split_take_constant(b, v);
    if ((v->producer >= 0 && b->node_segment[v->producer] == b->segment) || b->read[v->stamp] == b->segment)
        return 0;
    b->read[v->stamp] = b->segment;
    return add_value(b, &b->inputs, v);
}

static int add_node(split_builder *b, int32_t node, int32_t unit)
{
    const onnx_node *n = &b->net->im.root->node[node];
    Onnx__NodeProto *copy = onnx_take(&b->net->im.arena, 1, sizeof *copy);
    if (!copy)
        return MOIRAI_EFAIL;
    *copy = *n->proto;
    int rc = add_metadata(b, copy, unit);
    rc = rc ? rc : split_list_add(&b->nodes, copy);
    for (int32_t k = 0; k < n->n_in && !rc; k++)
        rc = add_input(b, n->in[k]);
    for (int32_t k = 0; k < n->n_captured && !rc; k++)
        rc = add_input(b, n->captured[k]);
    for (int32_t k = 0; k < n->n_out && !rc; k++)
        if (n->out[k] && b->leaves[n->out[k]->stamp])
            rc = add_value(b, &b->outputs, n->out[k]);
    return rc;
}

static int by_rank(const void *x, const void *y, void *data)
{
    const int32_t *rank = data;
    int32_t a = rank[*(const int32_t *)x], c = rank[*(const int32_t *)y];
    return a < c ? -1 : a > c;
}

/* Members of a unit in the model's order: the coarsening lists them along the chain, but side inputs may come between.
 */
static int add_unit(split_builder *b, int32_t unit)
{
    const moirai_graph *u = b->p->units;
    int32_t n = u->op_member_off[unit + 1] - u->op_member_off[unit];
    if (u == b->net->graph || n == 0) {
        int32_t op = u == b->net->graph ? unit : moirai_graph_find(b->net->graph, u->op_name[unit]);
        return add_node(b, b->net->op_node[op], unit);
    }
    int32_t *node = util_alloc((size_t)n, sizeof *node);
    int rc = node ? 0 : MOIRAI_EFAIL;
    for (int32_t k = 0; k < n && !rc; k++)
        node[k] = b->net->op_node[moirai_graph_find(b->net->graph, u->op_member[u->op_member_off[unit] + k])];
    if (!rc)
        qsort_r(node, (size_t)n, sizeof *node, by_rank, b->node_rank);
    for (int32_t k = 0; k < n && !rc; k++)
        rc = add_node(b, node[k], unit);
    free(node);
    return rc;
}

/* ---- the file ---- */

static char **copy_names(const split_list *l)
{
    char **name = util_alloc(l->n, sizeof *name);
    for (size_t i = 0; name && i < l->n; i++)
        if (!(name[i] = util_strdup(((Onnx__ValueInfoProto *)l->item[i])->name))) {
            while (i)
                free(name[--i]);
            free(name);
            return NULL;
        }
    return name;
}

static int remember(split_builder *b, split_segment *s)
{
    s->input = copy_names(&b->inputs);
    s->n_inputs = s->input ? (int32_t)b->inputs.n : 0;
    s->output = copy_names(&b->outputs);
    s->n_outputs = s->output ? (int32_t)b->outputs.n : 0;
    s->n_nodes = (int32_t)b->nodes.n;
    return s->input && s->output ? 0 : MOIRAI_EFAIL;
}

static int write_file(split_builder *b, const split_segment *s)
{
    const Onnx__ModelProto *whole = b->net->model->proto;
    Onnx__ModelProto model = *whole;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    char path[4096];
    struct stat info;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", b->folder, s->file) >= sizeof path)
        return moirai_error(MOIRAI_EUSAGE, "%s: the path is too long", b->folder);
    model.graph = &graph;
    model.n_training_info = 0;
    graph.name = s->file;
    graph.node = (Onnx__NodeProto **)b->nodes.item;
    graph.n_node = b->nodes.n;
    graph.initializer = (Onnx__TensorProto **)b->initializers.item;
    graph.n_initializer = b->initializers.n;
    graph.sparse_initializer = (Onnx__SparseTensorProto **)b->sparse.item;
    graph.n_sparse_initializer = b->sparse.n;
    graph.input = (Onnx__ValueInfoProto **)b->inputs.item;
    graph.n_input = b->inputs.n;
    graph.output = (Onnx__ValueInfoProto **)b->outputs.item;
    graph.n_output = b->outputs.n;
    int rc = split_move_external(b, &model);
    rc = rc ? rc : onnx_model_write(b->net->model, &model, path);
    split_restore_external(b);
    if (!rc && !stat(path, &info))
        b->report->file_bytes += info.st_size;
    return rc;
}

/* Folded nodes come first: they wait for constants only. */
static int put_folded_first(split_builder *b)
{
    split_list all = {0};
    int rc = 0;
    if (b->n_folded)
        qsort_r(b->folded, b->n_folded, sizeof *b->folded, by_rank, b->node_rank);
    for (size_t i = 0; i < b->n_folded && !rc; i++)
        rc = split_list_add(&all, (void *)b->net->im.root->node[b->folded[i]].proto);
    for (size_t i = 0; i < b->nodes.n && !rc; i++)
        rc = split_list_add(&all, b->nodes.item[i]);
    free(b->nodes.item);
    b->nodes = all;
    return rc;
}

/* Outputs of the network that are constants have no segment of their own: the first one hands them out. */
static int add_constant_outputs(split_builder *b)
{
    const Onnx__GraphProto *g = b->net->im.root->graph;
    int rc = 0;
    for (size_t i = 0; i < g->n_output && !rc && b->segment == 0; i++) {
        onnx_value *v = onnx_scope_find(b->net->im.root, g->output[i]->name);
        if (!v || !v->constant)
            continue;
        rc = split_take_constant(b, v);
        rc = rc ? rc : add_value(b, &b->outputs, v);
    }
    return rc;
}

static int name_file(split_plan *p, split_segment *s, int32_t number)
{
    char name[64];
    snprintf(name, sizeof name, "%s", p->device[s->device]);
    for (char *c = name; *c; c++)
        *c = isalnum((unsigned char)*c) || *c == '_' || *c == '.' ? *c : '_';
    size_t room = strlen(name) + 48;
    s->file = util_alloc(room, 1);
    if (s->file)
        snprintf(s->file, room, "%d-%s-%d.onnx", s->device, name, number);
    return s->file ? 0 : MOIRAI_EFAIL;
}

static int build_segment(split_builder *b)
{
    split_plan *p = b->p;
    split_segment *s = &p->segment[b->segment];
    int rc = 0;
    b->nodes.n = b->initializers.n = b->sparse.n = b->inputs.n = b->outputs.n = b->n_folded = 0;
    for (int32_t i = 0; i < s->n_units && !rc; i++)
        rc = add_unit(b, p->order[s->first + i]);
    rc = rc ? rc : add_constant_outputs(b);
    rc = rc ? rc : put_folded_first(b);
    rc = rc ? rc : remember(b, s);
    b->report->n_nodes += s->n_nodes;
    return rc ? rc : write_file(b, s);
}

static int close_weights(split_builder *b)
{
    b->report->file_bytes += b->weights.offset;
    return split_weights_close(&b->weights);
}

static int build_all(split_builder *b)
{
    split_plan *p = b->p;
    int32_t number = 0;
    int rc = split_mark(b);
    for (int32_t i = 0; i < p->n_segments && !rc; i++) {
        bool fresh = i == 0 || p->segment[i].device != p->segment[i - 1].device;
        rc = fresh ? close_weights(b) : 0;
        b->report->n_used += fresh;
        number = fresh ? 0 : number + 1;
        b->segment = i;
        rc = rc ? rc : name_file(p, &p->segment[i], number);
        rc = rc ? rc : build_segment(b);
    }
    int closed = close_weights(b);
    return rc ? rc : closed;
}

int split_models(split_plan *p, onnx_network *net, const char *folder, moirai_split_report *report)
{
    split_builder b = {.p = p, .net = net, .folder = folder, .report = report};
    if (!p->n_segments)
        return moirai_error(MOIRAI_EINPUT, "%s: the model has nothing to run", net->label);
    int rc = build_all(&b);
    report->n_devices = p->n_devices;
    report->n_segments = p->n_segments;
    report->n_transfers = p->n_transfers;
    report->makespan_ns = p->makespan_ns;
    free(b.nodes.item);
    free(b.initializers.item);
    free(b.sparse.item);
    free(b.inputs.item);
    free(b.outputs.item);
    free(b.folded);
    free(b.stack);
    free(b.moved);
    return rc;
}
