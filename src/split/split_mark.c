/* What belongs where: the segment of every node, the values that leave theirs, and the shapes that are certain.
 *
 * A guessed shape makes all shapes uncertain that follow from it, but for those that the file declares. */
#include "split/split_build.h"

static void mark_segments(split_builder *b)
{
    const moirai_graph *u = b->p->units;
    for (int32_t i = 0; i < b->net->im.root->n_nodes; i++)
        b->node_segment[i] = -1;
    for (int32_t unit = 0; unit < u->n_ops; unit++) {
        int32_t segment = b->p->unit_segment[unit], first = u->op_member_off[unit], end = u->op_member_off[unit + 1];
        if (u == b->net->graph)
            b->node_segment[b->net->op_node[unit]] = segment;
        else if (first == end)
            b->node_segment[b->net->op_node[moirai_graph_find(b->net->graph, u->op_name[unit])]] = segment;
        for (int32_t k = first; k < end && u != b->net->graph; k++)
            b->node_segment[b->net->op_node[moirai_graph_find(b->net->graph, u->op_member[k])]] = segment;
    }
}

static void mark_values(split_builder *b)
{
    const onnx_scope *s = b->net->im.root;
    for (int32_t i = 0; i < s->n_values; i++) {
        s->value[i]->stamp = i;
        b->taken[i] = b->read[i] = -1;
        b->certain[i] = s->value[i]->shaped && !s->value[i]->guessed;
    }
    for (int32_t o = 0; o < s->n_nodes; o++) {
        int32_t i = s->order[o];
        const onnx_node *n = &s->node[i];
        bool certain = true;
        if (n->n_children && b->node_segment[i] >= 0)
            b->open[b->node_segment[i]] = true;
        b->node_rank[i] = o;
        b->node_taken[i] = -1;
        for (int32_t k = 0; k < n->n_in + n->n_captured; k++) {
            const onnx_value *v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
            certain &= !v || b->certain[v->stamp];
            if (v && !v->constant && v->producer >= 0 && b->node_segment[i] >= 0 &&
                b->node_segment[v->producer] != b->node_segment[i])
                b->leaves[v->stamp] = true;
        }
        for (int32_t k = 0; k < n->n_out; k++)
            if (n->out[k] && !certain && !n->out[k]->declared)
                b->certain[n->out[k]->stamp] = false;
    }
    for (size_t i = 0; i < s->graph->n_output; i++) {
        const onnx_value *v = onnx_scope_find(s, s->graph->output[i]->name);
        if (v && !v->constant)
            b->leaves[v->stamp] = true;
    }
}

int split_mark(split_builder *b)
{
    onnx_import *im = &b->net->im;
    size_t n_nodes = (size_t)im->root->n_nodes, n_values = (size_t)im->root->n_values;
    b->open = onnx_take(&im->arena, (size_t)b->p->n_segments, sizeof *b->open);
    b->node_segment = onnx_take(&im->arena, n_nodes, sizeof *b->node_segment);
    b->node_rank = onnx_take(&im->arena, n_nodes, sizeof *b->node_rank);
    b->node_taken = onnx_take(&im->arena, n_nodes, sizeof *b->node_taken);
    b->leaves = onnx_take(&im->arena, n_values, sizeof *b->leaves);
    b->certain = onnx_take(&im->arena, n_values, sizeof *b->certain);
    b->taken = onnx_take(&im->arena, n_values, sizeof *b->taken);
    b->read = onnx_take(&im->arena, n_values, sizeof *b->read);
    if (!b->node_segment || !b->node_rank || !b->node_taken || !b->leaves || !b->certain || !b->taken || !b->read)
        return MOIRAI_EFAIL;
    mark_segments(b);
    mark_values(b);
    return 0;
}
