/* Shapes and sizes that a node names as numbers: those of a piece differ along the cut axis.
 *
 * Dimensions that the operator hands on are not written down (0 of a Reshape, 1 of an Expand), so that a model whose batch
 * or length is open stays open where the cut does not touch it. */
#include "shard/shard_build.h"

#include <string.h>

#include "onnx/onnx_message.h"

typedef struct job {
    shard_builder *b;
    const shard_cut *cut;
    const shard_member *m;
    int32_t k;
    Onnx__NodeProto *node;
    onnx_node *n;
} job;

/* Length of the cut axis of an input or output in this piece. */
static int64_t length_of(const job *j, int32_t port)
{
    return shard_length(j->m->port[port].at, j->cut->size[j->k]);
}

/* Input `i` becomes a constant of these numbers. */
static int set_input(const job *j, int32_t i, const char *what, const int64_t *number, size_t n)
{
    char *name = onnx_text(&j->b->arena, "%s.%s", j->node->output[0], what);
    if (!name || !(j->node->input[i] = (char *)shard_ints(j->b, name, number, n)))
        return MOIRAI_EFAIL;
    j->node->n_input = UTIL_MAX(j->node->n_input, (size_t)i + 1);
    return 0;
}

static int set_reshape(const job *j)
{
    const onnx_value *in = j->n->in[0], *out = j->n->out[0], *asked = onnx_in(j->n, 1);
    const shard_layout *at = &j->m->port[j->n->n_in].at;
    int64_t shape[ONNX_MAX_RANK];
    int32_t open = -1;
    for (int32_t i = 0; i < out->rank; i++) {
        bool handed_on = i < in->rank && in->dim[i] == out->dim[i] && i != j->m->port[0].at.axis;
        bool unsaid = asked && asked->ints && asked->n_numbers == out->rank && asked->ints[i] == -1;
        shape[i] = i == at->axis ? length_of(j, j->n->n_in) : handed_on ? 0 : out->dim[i];
        if (shape[i] > 0 && i != at->axis && (open < 0 || unsaid))
            open = i;
    }
    if (open >= 0)
        shape[open] = -1;
    return set_input(j, 1, "shape", shape, (size_t)out->rank);
}

static int set_expand(const job *j)
{
    const onnx_value *in = j->n->in[0], *out = j->n->out[0];
    int32_t axis = j->m->port[j->n->n_in].at.axis;
    int64_t shape[ONNX_MAX_RANK];
    for (int32_t i = 0; i < out->rank; i++) {
        int32_t own = i - (out->rank - in->rank);
        bool handed_on = own >= 0 && in->dim[own] == out->dim[i];
        shape[i] = handed_on ? 1 : i == axis ? length_of(j, j->n->n_in) : out->dim[i];
    }
    return set_input(j, 1, "shape", shape, (size_t)out->rank);
}

static int set_split(const job *j)
{
    int64_t axis = onnx_attr_int(j->n->proto, "axis", 0);
    axis += axis < 0 ? j->n->in[0]->rank : 0;
    int64_t *size = onnx_take(&j->b->arena, (size_t)j->n->n_out, sizeof *size);
    bool given = onnx_attr(j->n->proto, "split") || onnx_in(j->n, 1);
    if (!size)
        return MOIRAI_EFAIL;
    if (!given || axis != j->m->port[0].at.axis)
        return 0;
    for (int32_t i = 0; i < j->n->n_out; i++)
        size[i] = length_of(j, j->n->n_in + i);
    if (onnx_in(j->n, 1))
        return set_input(j, 1, "sizes", size, (size_t)j->n->n_out);
    return shard_set_attr(j->b, j->node, shard_attr_ints(j->b, "split", size, (size_t)j->n->n_out));
}

/* Whole runs of units are taken; a run is shorter now. Other axes of the same Slice stay. */
static int set_slice(const job *j)
{
    const onnx_value *in = j->n->in[0];
    int32_t axis = j->m->port[0].at.axis;
    int64_t start = 0, end = 0, run = in->dim[axis] / j->m->port[0].at.outer, list[2][ONNX_MAX_RANK];
    bool touches;
    if (!shard_slice_range(j->n, axis, &start, &end, &touches) || !touches)
        return 0;
    int64_t length = length_of(j, 0) / j->m->port[0].at.outer;
    for (int which = 0; which < 2; which++) {
        const char *name = which ? "ends" : "starts";
        const Onnx__AttributeProto *attr = onnx_attr(j->n->proto, name);
        const onnx_value *v = onnx_in(j->n, 1 + which), *axes = onnx_in(j->n, 3);
        const Onnx__AttributeProto *axes_attr = onnx_attr(j->n->proto, "axes");
        size_t n = attr ? attr->n_ints : (size_t)v->n_numbers;
        for (size_t i = 0; i < n && i < ONNX_MAX_RANK; i++) {
            int64_t on = axes_attr ? axes_attr->ints[i] : axes ? axes->ints[i] : (int64_t)i;
            on += on < 0 ? in->rank : 0;
            list[which][i] = attr ? attr->ints[i] : v->ints[i];
            if (on == axis)
                list[which][i] = (which ? end : start) / run * length;
        }
        n = UTIL_MIN(n, (size_t)ONNX_MAX_RANK);
        int rc = attr ? shard_set_attr(j->b, j->node, shard_attr_ints(j->b, name, list[which], n))
                      : set_input(j, 1 + which, name, list[which], n);
        if (rc)
            return rc;
    }
    return 0;
}

static int set_resize(const job *j)
{
    const onnx_value *out = j->n->out[0], *sizes = onnx_in(j->n, 3);
    int64_t size[ONNX_MAX_RANK];
    if (!sizes || !sizes->elements)
        return 0;
    memcpy(size, out->dim, sizeof size);
    size[j->m->port[0].at.axis] = length_of(j, j->n->n_in);
    return set_input(j, 3, "sizes", size, (size_t)out->rank);
}

int shard_reshape(shard_builder *b, const shard_cut *cut, const shard_member *m, int32_t k, Onnx__NodeProto *node)
{
    static const struct {
        const char *type;
        int (*set)(const job *j);
    } jobs[] = {{"Reshape", set_reshape},
                {"Expand", set_expand},
                {"Split", set_split},
                {"Slice", set_slice},
                {"Resize", set_resize}};
    job j = {b, cut, m, k, node, &b->s->net->im.root->node[m->node]};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        if (shard_is(j.n, jobs[i].type))
            return jobs[i].set(&j);
    return 0;
}
