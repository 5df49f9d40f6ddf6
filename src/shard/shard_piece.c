/* Pieces of an operator: copies of its node that read and write parts.
 *
 * A piece's name says what it is part of, "q_proj/MatMul (3 of 4, 5 of 12 heads)": plans, reports and explanations name
 * operators, so that they show it. */
#include "shard/shard_build.h"

#include <string.h>

#include "onnx/onnx_message.h"

const char *shard_unique(shard_builder *b, const char *name)
{
    const char *text = name;
    for (int i = 2; text && util_names_get(b->names, text) >= 0; i++)
        text = onnx_text(&b->arena, "%s~%d", name, i);
    return text && util_names_put(b->names, text, 0) >= 0 ? text : NULL;
}

const char *shard_piece_label(shard_builder *b, const shard_cut *cut, int32_t k)
{
    const shard_strip *x = &b->s->strip[cut->strip];
    return onnx_text(&b->arena, "(%d of %d, %lld of %lld %s)", k + 1, cut->n_pieces, (long long)cut->size[k],
                     (long long)x->units, x->unit);
}

const char *shard_piece_name(shard_builder *b, const onnx_value *v, const shard_cut *cut, int32_t k)
{
    char *key = onnx_text(&b->arena, "#%d|%d|%s", cut->strip, k, v->name);
    int32_t known = key ? util_names_put(b->slices, key, (int32_t)b->slice.n) : -1;
    if (known < 0 || (size_t)known < b->slice.n)
        return known < 0 ? NULL : b->slice.item[known];
    char *wanted = onnx_text(&b->arena, "%s.%dof%d", v->name, k + 1, cut->n_pieces);
    const char *name = wanted ? shard_unique(b, wanted) : NULL;
    return name && !shard_list_add(&b->slice, (char *)name) ? name : NULL;
}

int shard_piece_is(shard_builder *b, const onnx_value *v, const shard_cut *cut, int32_t k, const char *name)
{
    char *key = onnx_text(&b->arena, "#%d|%d|%s", cut->strip, k, v->name);
    if (!key || util_names_put(b->slices, key, (int32_t)b->slice.n) < 0)
        return MOIRAI_EFAIL;
    return shard_list_add(&b->slice, (char *)name);
}

/* ---- messages ---- */

Onnx__NodeProto *shard_node(shard_builder *b, const char *type, const char *name, size_t n_in, size_t n_out)
{
    Onnx__NodeProto *node = onnx_take(&b->arena, 1, sizeof *node);
    if (!node)
        return NULL;
    onnx__node_proto__init(node);
    node->op_type = (char *)type;
    node->name = (char *)shard_unique(b, name);
    node->input = onnx_take(&b->arena, n_in, sizeof *node->input);
    node->output = onnx_take(&b->arena, n_out, sizeof *node->output);
    node->n_input = n_in;
    node->n_output = n_out;
    return node->name && node->input && node->output && !shard_list_add(&b->nodes, node) ? node : NULL;
}

const char *shard_ints(shard_builder *b, const char *name, const int64_t *number, size_t n)
{
    Onnx__TensorProto *t = onnx_take(&b->arena, 1, sizeof *t);
    int64_t *dims = onnx_take(&b->arena, 1, sizeof *dims), *copy = onnx_take(&b->arena, n, sizeof *copy);
    const char *unique = shard_unique(b, name);
    if (!t || !dims || !copy || !unique)
        return NULL;
    onnx__tensor_proto__init(t);
    memcpy(copy, number, n * sizeof *copy);
    *dims = (int64_t)n;
    t->name = (char *)unique;
    t->n_dims = 1;
    t->dims = dims;
    t->has_data_type = 1;
    t->data_type = ONNX_INT64;
    t->n_int64_data = n;
    t->int64_data = copy;
    return shard_list_add(&b->initializers, t) ? NULL : unique;
}

static Onnx__AttributeProto *attribute(shard_builder *b, const char *name, Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = onnx_take(&b->arena, 1, sizeof *a);
    if (!a)
        return NULL;
    onnx__attribute_proto__init(a);
    a->name = (char *)name;
    a->has_type = 1;
    a->type = type;
    return a;
}

Onnx__AttributeProto *shard_attr_int(shard_builder *b, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = attribute(b, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (a) {
        a->has_i = 1;
        a->i = value;
    }
    return a;
}

Onnx__AttributeProto *shard_attr_ints(shard_builder *b, const char *name, const int64_t *number, size_t n)
{
    Onnx__AttributeProto *a = attribute(b, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *copy = onnx_take(&b->arena, n, sizeof *copy);
    if (!a || !copy)
        return NULL;
    memcpy(copy, number, n * sizeof *copy);
    a->n_ints = n;
    a->ints = copy;
    return a;
}

int shard_set_attr(shard_builder *b, Onnx__NodeProto *node, Onnx__AttributeProto *attr)
{
    Onnx__AttributeProto **list = onnx_take(&b->arena, node->n_attribute + 1, sizeof *list);
    size_t n = 0;
    if (!attr || !list)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!node->attribute[i]->name || strcmp(node->attribute[i]->name, attr->name))
            list[n++] = node->attribute[i];
    list[n++] = attr;
    node->attribute = list;
    node->n_attribute = n;
    return 0;
}

void shard_drop_attr(Onnx__NodeProto *node, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!node->attribute[i]->name || strcmp(node->attribute[i]->name, name))
            node->attribute[n++] = node->attribute[i];
    node->n_attribute = n;
}

/* ---- pieces ---- */

static int drop_bias(shard_builder *b, Onnx__NodeProto *node, const onnx_node *n, int32_t i)
{
    if (!shard_is(n, "Gemm") || n->import->opset >= 11) {
        node->input[i] = (char *)"";
        return 0;
    }
    /* Before opset 11 a Gemm has to have it, but need not count it. */
    Onnx__AttributeProto *beta = attribute(b, "beta", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (beta)
        beta->has_f = 1;
    return shard_set_attr(b, node, beta);
}

static int connect(shard_builder *b, const shard_cut *cut, const shard_member *m, int32_t k, Onnx__NodeProto *node)
{
    const onnx_node *n = &b->s->net->im.root->node[m->node];
    int64_t units = b->s->strip[cut->strip].units;
    for (int32_t i = 0; i < n->n_in; i++) {
        const onnx_value *v = n->in[i];
        const shard_port *p = &m->port[i];
        node->input[i] = n->proto->input[i];
        if (v && p->once && k > 0 && drop_bias(b, node, n, i))
            return MOIRAI_EFAIL;
        if (!v || p->state != SHARD_CUT)
            continue;
        node->input[i] =
            (char *)(v->tensor && v->constant ? shard_slice_weight(b, v, p->at, units, cut->first[k], cut->size[k])
                                              : shard_piece_name(b, v, cut, k));
        if (!node->input[i])
            return MOIRAI_EFAIL;
    }
    while (node->n_input > 0 && !*node->input[node->n_input - 1])
        node->n_input--;
    for (int32_t i = 0; i < n->n_out; i++) {
        bool there = n->out[i] && m->port[n->n_in + i].state != SHARD_WHOLE;
        node->output[i] = (char *)(there ? shard_piece_name(b, n->out[i], cut, k) : "");
        if (!node->output[i])
            return MOIRAI_EFAIL;
    }
    return 0;
}

/* A part of a grouped convolution has its part of the groups. */
static int set_groups(shard_builder *b, const shard_cut *cut, const shard_member *m, int32_t k, Onnx__NodeProto *node)
{
    const onnx_node *n = &b->s->net->im.root->node[m->node];
    int64_t groups = onnx_attr_int(n->proto, "group", 1);
    if (!shard_is(n, "Conv") || groups == 1 || m->port[0].state != SHARD_CUT || m->port[0].at.axis != 1)
        return 0;
    int64_t per = n->in[0]->dim[1] / groups;
    return shard_set_attr(b, node, shard_attr_int(b, "group", shard_length(m->port[0].at, cut->size[k]) / per));
}

const char *shard_name_of(const shard_builder *b, int32_t node)
{
    const onnx_node *n = &b->s->net->im.root->node[node];
    const char *own = n->proto->name && *n->proto->name ? n->proto->name : n->out[0]->name;
    return b->s->op_name[node] ? b->s->op_name[node] : own;
}

static int piece(shard_builder *b, const shard_cut *cut, const shard_member *m, int32_t k)
{
    const onnx_node *n = &b->s->net->im.root->node[m->node];
    const char *label = shard_piece_label(b, cut, k);
    char *name = label ? onnx_text(&b->arena, "%s %s", shard_name_of(b, m->node), label) : NULL;
    Onnx__NodeProto *node = name ? shard_node(b, n->proto->op_type, name, (size_t)n->n_in, (size_t)n->n_out) : NULL;
    if (!node)
        return MOIRAI_EFAIL;
    node->domain = n->proto->domain;
    node->attribute = n->proto->attribute;
    node->n_attribute = n->proto->n_attribute;
    int rc = connect(b, cut, m, k, node);
    rc = rc ? rc : set_groups(b, cut, m, k, node);
    return rc ? rc : shard_reshape(b, cut, m, k, node);
}

int shard_pieces(shard_builder *b, const shard_cut *cut, const shard_member *m)
{
    const onnx_node *n = &b->s->net->im.root->node[m->node];
    int rc = 0;
    for (int32_t i = 0; i < n->n_in && !rc; i++)
        if (n->in[i] && m->port[i].state == SHARD_CUT && !(n->in[i]->tensor && n->in[i]->constant))
            rc = shard_slices(b, cut, m, n->in[i], m->port[i].at);
    for (int32_t k = 0; k < cut->n_pieces && !rc; k++)
        rc = piece(b, cut, m, k);
    return rc ? rc : shard_joins(b, cut, m);
}
