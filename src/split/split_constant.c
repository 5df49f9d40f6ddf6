/* Constants of a sub-model: initializers, and what the importer folded away.
 *
 * The importer knows the value of a folded node but seldom keeps its numbers; a sub-model that reads it gets the node
 * and all that leads to it, and the backend folds it again. Two operators are different: Shape and Size read a tensor
 * that may live on another device, only to ask for its shape, which is known here: they become numbers. Where the shape
 * was guessed they can't, and the model can't be split.
 *
 * Where their numbers are is no question here: split_external.c moves those that are in files. */
#include "split/split_build.h"

#include <string.h>

#include "onnx/onnx_message.h"

static int take_sparse(split_builder *b, const onnx_value *v)
{
    const Onnx__GraphProto *g = b->net->im.root->graph;
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        Onnx__SparseTensorProto *s = g->sparse_initializer[i];
        if (s->values && s->values->name && !strcmp(s->values->name, v->name))
            return split_list_add(&b->sparse, s);
    }
    return moirai_error(MOIRAI_EINPUT, "constant '%s' has no value", v->name);
}

static int take_initializer(split_builder *b, const onnx_value *v)
{
    return v->tensor ? split_list_add(&b->initializers, (void *)v->tensor) : take_sparse(b, v);
}

static int take_shape(split_builder *b, const onnx_node *n, const onnx_value *v)
{
    const onnx_value *of = onnx_in(n, 0);
    if (!of || !b->certain[of->stamp] || !v->ints)
        return moirai_error(MOIRAI_EINPUT,
                            "%s: node '%s' (%s): the shape of '%s' is known only when the network runs; "
                            "such a model can't be split",
                            b->net->label, n->proto->name ? n->proto->name : "", n->proto->op_type, of ? of->name : "");
    Onnx__TensorProto *t = onnx_take(&b->net->im.arena, 1, sizeof *t);
    if (!t)
        return MOIRAI_EFAIL;
    onnx__tensor_proto__init(t);
    t->name = (char *)v->name;
    t->has_data_type = 1;
    t->data_type = ONNX_INT64;
    t->n_dims = (size_t)v->rank;
    t->dims = (int64_t *)v->dim;
    t->n_int64_data = (size_t)v->elements;
    t->int64_data = v->ints;
    return split_list_add(&b->initializers, t);
}

/* ---- what constants are made of ---- */

static int push(split_builder *b, onnx_value *v)
{
    if (!v || b->taken[v->stamp] == b->segment)
        return 0;
    b->taken[v->stamp] = b->segment;
    if (util_grow(&b->stack, &b->stack_capacity, b->n_stack + 1, sizeof *b->stack))
        return MOIRAI_EFAIL;
    b->stack[b->n_stack++] = v;
    return 0;
}

static int take_folded(split_builder *b, int32_t node)
{
    const onnx_node *n = &b->net->im.root->node[node];
    if (b->node_taken[node] == b->segment)
        return 0;
    b->node_taken[node] = b->segment;
    int rc = util_grow(&b->folded, &b->folded_capacity, b->n_folded + 1, sizeof *b->folded);
    if (rc)
        return rc;
    b->folded[b->n_folded++] = node;
    for (int32_t k = 0; k < n->n_in && !rc; k++)
        rc = push(b, n->in[k]);
    return rc;
}

int split_take_constant(split_builder *b, onnx_value *v)
{
    int rc = push(b, v);
    while (!rc && b->n_stack) {
        const onnx_value *c = b->stack[--b->n_stack];
        const onnx_node *n = c->producer < 0 ? NULL : &b->net->im.root->node[c->producer];
        if (!n)
            rc = take_initializer(b, c);
        else if (n->rule->flags & ONNX_OF_SHAPE && n->n_in)
            rc = take_shape(b, n, c);
        else
            rc = take_folded(b, c->producer);
    }
    b->n_stack = 0;
    return rc;
}
