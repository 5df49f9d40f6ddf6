/* moirai_shards: a model with its strips, and the cut models that are made of it. */
#include "shard/shard_build.h"

#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_message.h"
#include "onnx/onnx_tensors.h"

#define INLINE_BYTES (256ll << 20) /* of slices that go into the model itself */
#define LOOKS 50000000             /* operators that all searches for dependences visit together */

/* ---- opening ---- */

static int number_readers(moirai_shards *s)
{
    const onnx_scope *root = s->net->im.root;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < s->n_nodes; i++) {
            const onnx_node *n = &root->node[i];
            for (int32_t k = 0; k < n->n_in; k++) {
                if (!n->in[k] || n->in[k]->scope != root)
                    continue;
                int32_t v = n->in[k]->stamp;
                if (pass)
                    s->use[s->use_off[v]++] = (shard_use){i, k};
                else
                    s->use_off[v + 1]++;
            }
        }
        for (int32_t v = 0; v < s->n_values && !pass; v++)
            s->use_off[v + 1] += s->use_off[v];
        if (!pass && !(s->use = onnx_take(&s->arena, (size_t)s->use_off[s->n_values], sizeof *s->use)))
            return MOIRAI_EFAIL;
    }
    for (int32_t v = s->n_values; v > 0; v--) /* the fill has moved every begin to its end */
        s->use_off[v] = s->use_off[v - 1];
    s->use_off[0] = 0;
    return 0;
}

static void mark_leaving(moirai_shards *s)
{
    const onnx_scope *root = s->net->im.root;
    for (size_t i = 0; i < root->graph->n_output; i++) {
        const onnx_value *v = onnx_scope_find(root, root->graph->output[i]->name);
        if (v)
            s->leaves[v->stamp] = true;
    }
    for (int32_t i = 0; i < s->n_nodes; i++)
        for (int32_t k = 0; k < root->node[i].n_captured; k++)
            if (root->node[i].captured[k]->scope == root)
                s->leaves[root->node[i].captured[k]->stamp] = true;
}

static int look_over(moirai_shards *s)
{
    const onnx_scope *root = s->net->im.root;
    size_t nodes = (size_t)root->n_nodes, values = (size_t)root->n_values;
    s->n_nodes = root->n_nodes;
    s->n_values = root->n_values;
    s->node_rank = onnx_take(&s->arena, nodes, sizeof *s->node_rank);
    s->use_off = onnx_take(&s->arena, values + 1, sizeof *s->use_off);
    s->leaves = onnx_take(&s->arena, values, sizeof *s->leaves);
    s->op_name = onnx_take(&s->arena, nodes, sizeof *s->op_name);
    s->taken = onnx_take(&s->arena, nodes, sizeof *s->taken);
    shard_work *w = &s->work;
    w->part_of = onnx_take(&s->arena, values, sizeof *w->part_of);
    w->member_of = onnx_take(&s->arena, nodes, sizeof *w->member_of);
    w->mark = onnx_take(&s->arena, nodes, sizeof *w->mark);
    w->stack = onnx_take(&s->arena, nodes + 1, sizeof *w->stack);
    w->looks = LOOKS;
    if (!s->node_rank || !s->use_off || !s->leaves || !s->op_name || !s->taken || !w->part_of || !w->member_of ||
        !w->mark || !w->stack)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < s->n_values; i++)
        root->value[i]->stamp = i;
    for (int32_t o = 0; o < s->n_nodes; o++)
        s->node_rank[root->order[o]] = o;
    for (int32_t op = 0; op < s->net->graph->n_ops; op++)
        s->op_name[s->net->op_node[op]] = s->net->graph->op_name[op];
    mark_leaving(s);
    return number_readers(s);
}

/* The texts of the options, for graphs of cut models, which are imported anew. */
static int keep_options(moirai_shards *s, const moirai_onnx_options *o)
{
    if (!o)
        return 0;
    int n = o->n_dims + o->n_shapes;
    s->text = onnx_take(&s->arena, (size_t)n, sizeof *s->text);
    for (int i = 0; s->text && i < n; i++)
        if (!(s->text[i] = onnx_text(&s->arena, "%s", i < o->n_dims ? o->dims[i] : o->shapes[i - o->n_dims])))
            return MOIRAI_EFAIL;
    s->options = (moirai_onnx_options){
        .dims = s->text, .n_dims = o->n_dims, .shapes = s->text ? s->text + o->n_dims : NULL, .n_shapes = o->n_shapes};
    return s->text ? 0 : MOIRAI_EFAIL;
}

int moirai_shards_open(moirai_shards **out, const char *path, const moirai_onnx_options *options)
{
    *out = NULL;
    moirai_shards *s = util_alloc(1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    s->label = util_strdup(path);
    int rc = s->label ? onnx_network_open(&s->net, s->label, options) : MOIRAI_EFAIL;
    rc = rc ? rc : keep_options(s, options);
    rc = rc ? rc : look_over(s);
    rc = rc ? rc : shard_find(s);
    if (rc)
        moirai_shards_free(s);
    else
        *out = s;
    return rc;
}

void moirai_shards_free(moirai_shards *s)
{
    if (!s)
        return;
    onnx_network_free(s->net);
    onnx_arena_free(&s->arena);
    free(s->strip);
    free(s->refusal);
    free(s->label);
    free(s);
}

/* ---- what there is ---- */

int32_t moirai_shards_count(const moirai_shards *s)
{
    return (int32_t)s->n_strips;
}

moirai_shard_strip moirai_shards_strip(const moirai_shards *s, int32_t index)
{
    const shard_strip *x = &s->strip[index];
    return (moirai_shard_strip){.name = x->name,
                                .kind = x->kind,
                                .unit = x->unit,
                                .units = x->units,
                                .n_ops = x->n_ops,
                                .class_number = x->class_number,
                                .flops = x->flops,
                                .weight_bytes = x->weight_bytes,
                                .n_sums = x->n_sums,
                                .n_joins = x->n_joins,
                                .alternative = x->alternative};
}

int32_t moirai_shards_refusal_count(const moirai_shards *s)
{
    return (int32_t)s->n_refusals;
}

moirai_shard_refusal moirai_shards_refusal(const moirai_shards *s, int32_t index)
{
    return s->refusal[index];
}

/* ---- cut models ---- */

/* "layer0/mlp: 2,3,5 tree" */
static int item_text(const shard_builder *b, const shard_cut *c, char *text, size_t size)
{
    static const char *const sum_word[] = {"", " chain", " star", " tree"};
    int n = snprintf(text, size, "%.200s: ", b->s->strip[c->strip].name);
    for (int32_t k = 0; k < c->n_pieces && n < (int)size; k++)
        n += snprintf(text + n, size - (size_t)n, "%s%lld", k ? "," : "", (long long)c->size[k]);
    return n < (int)size ? n + snprintf(text + n, size - (size_t)n, "%s", sum_word[c->sum + 1]) : n;
}

/* All of the cut for the model, and what there is room for in the report. */
static int tell(shard_builder *b)
{
    moirai_shard_report *r = b->report;
    size_t used = 0, capacity = 0;
    for (int32_t i = 0; i < b->cuts->n; i++) {
        char text[1600];
        int n = item_text(b, &b->cuts->cut[i], text, sizeof text);
        if (util_grow(&b->told, &capacity, used + (size_t)n + 3, 1))
            return MOIRAI_EFAIL;
        used += (size_t)snprintf(b->told + used, capacity - used, "%s%s", i ? "; " : "", text);
        r->n_pieces += b->cuts->cut[i].n_pieces;
        r->n_strips++;
        if (used < sizeof r->cut)
            memcpy(r->cut, b->told, used + 1);
    }
    return 0;
}

static int is_external(void *data, Onnx__TensorProto *t, const Onnx__NodeProto *node)
{
    (void)node;
    *(bool *)data |= t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    return 0;
}

/* Too much for one message, or beside the model already. */
static bool wants_file(const shard_builder *b)
{
    int64_t bytes = 0;
    bool external = false;
    for (int32_t i = 0; i < b->cuts->n; i++)
        bytes = onnx_add(bytes, b->s->strip[b->cuts->cut[i].strip].weight_bytes);
    onnx_tensors_each(b->s->net->model->proto, is_external, &external);
    return external || bytes > INLINE_BYTES;
}

static int begin(shard_builder *b, shard_cuts *cuts, const char *text)
{
    memset(b->report, 0, sizeof *b->report);
    int rc = shard_cuts_read(cuts, b->s, text, &b->arena);
    b->cuts = cuts;
    rc = rc ? rc : tell(b);
    return rc ? moirai_error_prefix(rc, "%s", b->s->label) : 0;
}

int moirai_shards_write(const moirai_shards *s, const char *cut, moirai_shard_sum sum, const char *path,
                        moirai_shard_report *report)
{
    moirai_shard_report scratch;
    shard_cuts cuts = {0};
    shard_builder b = {.s = s, .sum = sum, .report = report ? report : &scratch};
    Onnx__ModelProto *model = NULL;
    int rc = begin(&b, &cuts, cut);
    rc = rc || !wants_file(&b) ? rc : shard_data_open(&b.data, &b.arena, path);
    rc = rc ? rc : shard_build(&b, &model);
    rc = rc ? rc : shard_data_take_external(&b, model);
    rc = shard_data_close(&b.data, rc);
    rc = rc ? rc : onnx_model_write(s->net->model, model, path);
    shard_data_give_back(&b);
    shard_builder_free(&b);
    return rc;
}

int moirai_shards_graph(moirai_graph **out, const moirai_shards *s, const char *cut, moirai_shard_sum sum,
                        moirai_shard_report *report)
{
    moirai_shard_report scratch;
    moirai_onnx_report import_report = {0};
    shard_cuts cuts = {0};
    shard_builder b = {.s = s, .sum = sum, .report = report ? report : &scratch, .dry = true};
    onnx_model model = *s->net->model;
    *out = NULL;
    int rc = begin(&b, &cuts, cut);
    rc = rc ? rc : shard_build(&b, &model.proto);
    onnx_import im = {.model = &model, .options = &s->options, .report = &import_report};
    rc = rc ? rc : onnx_import_run(&im);
    rc = rc ? rc : onnx_build(out, &im, s->label);
    onnx_import_free(&im);
    shard_builder_free(&b);
    return rc;
}
