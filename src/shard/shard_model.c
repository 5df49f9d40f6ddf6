/* The cut model: nodes in the model's order, each as it was or as its pieces, and of everything else what they need.
 *
 * A node on which no output depends any more (shape arithmetic of a Reshape whose pieces have shapes of their own) goes,
 * and so does a weight that only slices are left of. */
#include "shard/shard_build.h"

#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_message.h"

void shard_builder_free(shard_builder *b)
{
    util_names_free(b->names);
    util_names_free(b->slices);
    free(b->nodes.item);
    free(b->initializers.item);
    free(b->slice.item);
    free(b->moved.item);
    free(b->told);
    onnx_arena_free(&b->arena);
}

static int know_names(shard_builder *b)
{
    const onnx_scope *root = b->s->net->im.root;
    b->names = util_names_new((size_t)root->n_values + (size_t)root->n_nodes);
    b->slices = util_names_new(1024);
    int rc = b->names && b->slices ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < root->n_values && !rc; i++)
        rc = util_names_put(b->names, root->value[i]->name, 0) < 0 ? MOIRAI_EFAIL : 0;
    for (int32_t i = 0; i < root->n_nodes && !rc; i++)
        if (root->node[i].proto->name)
            rc = util_names_put(b->names, root->node[i].proto->name, 0) < 0 ? MOIRAI_EFAIL : 0;
    return rc;
}

/* Members of all cuts are in topological order: one step through the nodes meets all. */
static int add_nodes(shard_builder *b)
{
    const onnx_scope *root = b->s->net->im.root;
    const shard_cuts *c = b->cuts;
    int32_t *next = onnx_take(&b->arena, (size_t)c->n, sizeof *next);
    int rc = next ? 0 : MOIRAI_EFAIL;
    for (int32_t o = 0; o < root->n_nodes && !rc; o++) {
        int32_t node = root->order[o];
        if (!c->of_node[node])
            rc = shard_list_add(&b->nodes, (void *)root->node[node].proto);
        for (int32_t i = 0; i < c->n && !rc; i++) {
            const shard_strip *x = &b->s->strip[c->cut[i].strip];
            if (next[i] >= x->n_members || x->member[next[i]].node != node)
                continue;
            rc = x->map ? shard_rows_pieces(b, &c->cut[i], next[i]) : shard_pieces(b, &c->cut[i], &x->member[next[i]]);
            next[i]++;
        }
    }
    return rc;
}

/* ---- what is needed ---- */

static int need(util_names *needed, const char *name)
{
    return name && *name && util_names_put(needed, name, 0) < 0 ? MOIRAI_EFAIL : 0;
}

static bool is_needed(const util_names *needed, const char *name)
{
    return name && util_names_get(needed, name) >= 0;
}

/* Outer tensors that graphs inside of a node read: by message, since pieces have none. */
static int need_captured(const shard_builder *b, util_names *needed, const Onnx__NodeProto *proto, int32_t *at)
{
    const onnx_scope *root = b->s->net->im.root;
    while (*at >= 0 && root->node[root->order[*at]].proto != proto)
        (*at)--;
    int rc = 0;
    for (int32_t k = 0; *at >= 0 && k < root->node[root->order[*at]].n_captured && !rc; k++)
        rc = need(needed, root->node[root->order[*at]].captured[k]->name);
    return rc;
}

static bool has_graph(const Onnx__NodeProto *n)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (n->attribute[i]->g || n->attribute[i]->n_graphs)
            return true;
    return false;
}

/* Backwards: a node stays if something needs one of its outputs. */
static int keep_needed(shard_builder *b, util_names *needed)
{
    const Onnx__GraphProto *g = b->s->net->model->proto->graph;
    int32_t at = b->s->net->im.root->n_nodes - 1;
    size_t kept = b->nodes.n;
    int rc = 0;
    for (size_t i = 0; i < g->n_output && !rc; i++)
        rc = need(needed, g->output[i]->name);
    for (size_t i = b->nodes.n; i > 0 && !rc; i--) {
        Onnx__NodeProto *n = b->nodes.item[i - 1];
        bool wanted = g->n_output == 0;
        for (size_t k = 0; k < n->n_output; k++)
            wanted |= is_needed(needed, n->output[k]);
        if (!wanted)
            continue;
        for (size_t k = 0; k < n->n_input && !rc; k++)
            rc = need(needed, n->input[k]);
        for (size_t k = 0; k < n->n_output && !rc; k++)
            rc = need(needed, n->output[k]);
        if (!rc && has_graph(n))
            rc = need_captured(b, needed, n, &at);
        b->nodes.item[--kept] = n;
    }
    b->nodes.n -= kept;
    memmove(b->nodes.item, b->nodes.item + kept, b->nodes.n * sizeof *b->nodes.item);
    return rc;
}

/* ---- the message ---- */

/* Pointers of a list for which `name_of` is needed; `also` are put behind. */
typedef const char *(*name_fn)(const void *item);

static void **filter(shard_builder *b, void *const *item, size_t n, name_fn name_of, const util_names *needed,
                     const shard_list *also, size_t *out)
{
    void **list = onnx_take(&b->arena, n + (also ? also->n : 0), sizeof *list);
    *out = 0;
    if (!list)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (is_needed(needed, name_of(item[i])))
            list[(*out)++] = item[i];
    for (size_t i = 0; also && i < also->n; i++)
        if (is_needed(needed, name_of(also->item[i])))
            list[(*out)++] = also->item[i];
    return list;
}

static const char *tensor_name(const void *t)
{
    return ((const Onnx__TensorProto *)t)->name;
}

static const char *sparse_name(const void *t)
{
    const Onnx__SparseTensorProto *x = t;
    return x->values ? x->values->name : NULL;
}

static const char *info_name(const void *i)
{
    return ((const Onnx__ValueInfoProto *)i)->name;
}

static const char *annotated_name(const void *a)
{
    return ((const Onnx__TensorAnnotation *)a)->tensor_name;
}

/* Inputs stay, but for weights that are listed as inputs, too, and of which slices are left. */
static int keep_inputs(shard_builder *b, Onnx__GraphProto *g, const util_names *needed)
{
    const onnx_scope *root = b->s->net->im.root;
    Onnx__ValueInfoProto **list = onnx_take(&b->arena, g->n_input, sizeof *list);
    size_t n = 0;
    if (!list)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < g->n_input; i++) {
        const onnx_value *v = onnx_scope_find(root, g->input[i]->name ? g->input[i]->name : "");
        if (!v || !v->constant || is_needed(needed, v->name))
            list[n++] = g->input[i];
    }
    g->input = list;
    g->n_input = n;
    return 0;
}

static int fill_graph(shard_builder *b, Onnx__GraphProto *g, const util_names *needed)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        b->n_whole += is_needed(needed, g->initializer[i]->name);
    g->initializer = (Onnx__TensorProto **)filter(b, (void **)g->initializer, g->n_initializer, tensor_name, needed,
                                                  &b->initializers, &g->n_initializer);
    g->sparse_initializer =
        (Onnx__SparseTensorProto **)filter(b, (void **)g->sparse_initializer, g->n_sparse_initializer, sparse_name,
                                           needed, NULL, &g->n_sparse_initializer);
    g->value_info = (Onnx__ValueInfoProto **)filter(b, (void **)g->value_info, g->n_value_info, info_name, needed, NULL,
                                                    &g->n_value_info);
    g->quantization_annotation =
        (Onnx__TensorAnnotation **)filter(b, (void **)g->quantization_annotation, g->n_quantization_annotation,
                                          annotated_name, needed, NULL, &g->n_quantization_annotation);
    g->node = (Onnx__NodeProto **)b->nodes.item;
    g->n_node = b->nodes.n;
    if (!g->initializer || !g->sparse_initializer || !g->value_info || !g->quantization_annotation)
        return MOIRAI_EFAIL;
    return keep_inputs(b, g, needed);
}

/* The model says what was done to it. */
static int add_metadata(shard_builder *b, Onnx__ModelProto *m)
{
    Onnx__StringStringEntryProto **list = onnx_take(&b->arena, m->n_metadata_props + 1, sizeof *list);
    if (!list)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < m->n_metadata_props; i++)
        list[i] = m->metadata_props[i];
    list[m->n_metadata_props] =
        onnx_entry(&b->arena, "moirai.shard", onnx_text(&b->arena, "%s", b->told ? b->told : ""));
    m->metadata_props = list;
    return list[m->n_metadata_props++] ? 0 : MOIRAI_EFAIL;
}

int shard_build(shard_builder *b, Onnx__ModelProto **out)
{
    const Onnx__ModelProto *was = b->s->net->model->proto;
    Onnx__ModelProto *m = onnx_take(&b->arena, 1, sizeof *m);
    Onnx__GraphProto *g = onnx_take(&b->arena, 1, sizeof *g);
    util_names *needed = util_names_new(4096);
    int rc = m && g && needed ? know_names(b) : MOIRAI_EFAIL;
    rc = rc ? rc : add_nodes(b);
    rc = rc ? rc : keep_needed(b, needed);
    if (!rc) {
        *m = *was;
        *g = *was->graph;
        m->graph = g;
        rc = fill_graph(b, g, needed);
    }
    rc = rc ? rc : add_metadata(b, m);
    util_names_free(needed);
    b->report->n_nodes = (int32_t)b->nodes.n;
    b->report->n_nodes_before = (int32_t)was->graph->n_node;
    *out = m;
    return rc;
}
