/* Where a strip begins and ends: slices of what it reads, and its results put together or summed up.
 *
 * The result has the name of the whole operator's, so that what reads it never knows. The sum is written as operators:
 * a chain (each piece adds what came before: messages go from device to device), a star (one operator takes all), a tree
 * (pairs, then pairs of pairs). Which is shortest depends on links and on when pieces are ready: the placer decides where
 * each sum runs. */
#include "shard/shard_build.h"

#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_message.h"

typedef struct find {
    const int32_t *rank;
    int32_t node;
} find;

static int by_rank(const void *key, const void *member)
{
    const find *f = key;
    int32_t a = f->rank[f->node], b = f->rank[((const shard_member *)member)->node];
    return a < b ? -1 : a > b;
}

static bool is_member(const shard_builder *b, const shard_strip *x, int32_t node)
{
    find f = {b->s->node_rank, node};
    return bsearch(&f, x->member, (size_t)x->n_members, sizeof *x->member, by_rank) != NULL;
}

/* ---- slices ---- */

int shard_slice_node(shard_builder *b, const char *name, const char *from, int64_t axis, shard_span rows,
                     const char *to)
{
    bool by_input = b->s->net->im.opset >= 10;
    Onnx__NodeProto *node = name && to ? shard_node(b, "Slice", name, by_input ? 4 : 1, 1) : NULL;
    if (!node)
        return MOIRAI_EFAIL;
    node->input[0] = (char *)from;
    node->output[0] = (char *)to;
    if (!by_input) {
        int rc = shard_set_attr(b, node, shard_attr_ints(b, "starts", &rows.begin, 1));
        rc = rc ? rc : shard_set_attr(b, node, shard_attr_ints(b, "ends", &rows.end, 1));
        return rc ? rc : shard_set_attr(b, node, shard_attr_ints(b, "axes", &axis, 1));
    }
    node->input[1] = (char *)shard_ints(b, onnx_text(&b->arena, "%s.start", to), &rows.begin, 1);
    node->input[2] = (char *)shard_ints(b, onnx_text(&b->arena, "%s.end", to), &rows.end, 1);
    node->input[3] = (char *)shard_ints(b, onnx_text(&b->arena, "%s.axis", to), &axis, 1);
    return node->input[1] && node->input[2] && node->input[3] ? 0 : MOIRAI_EFAIL;
}

static int slice_node(shard_builder *b, const shard_cut *cut, const onnx_value *v, shard_layout at, int32_t k)
{
    int64_t start = cut->first[k] * at.inner;
    const char *label = shard_piece_label(b, cut, k), *part = shard_piece_name(b, v, cut, k);
    char *name = label ? onnx_text(&b->arena, "%s %s", v->name, label) : NULL;
    return shard_slice_node(b, name, v->name, at.axis, (shard_span){start, start + cut->size[k] * at.inner}, part);
}

int shard_first_time(bool *first, shard_builder *b, char *key)
{
    *first = key && util_names_get(b->slices, key) < 0;
    if (*first && (shard_list_add(&b->slice, key) || util_names_put(b->slices, key, (int32_t)b->slice.n - 1) < 0))
        return MOIRAI_EFAIL;
    return key ? 0 : MOIRAI_EFAIL;
}

/* Nothing where a member of the strip makes it, or where it is sliced already. */
int shard_slices(shard_builder *b, const shard_cut *cut, const shard_member *m, const onnx_value *v, shard_layout at)
{
    (void)m;
    if (v->producer >= 0 && is_member(b, &b->s->strip[cut->strip], v->producer))
        return 0;
    bool first;
    int rc = shard_first_time(&first, b, onnx_text(&b->arena, "sliced|%d|%s", cut->strip, v->name));
    for (int32_t k = 0; k < cut->n_pieces && first && !rc; k++)
        rc = slice_node(b, cut, v, at, k);
    return rc;
}

/* ---- results ---- */

static bool is_read_outside(const shard_builder *b, const shard_strip *x, const onnx_value *v)
{
    const moirai_shards *s = b->s;
    if (s->leaves[v->stamp])
        return true;
    for (int32_t e = s->use_off[v->stamp]; e < s->use_off[v->stamp + 1]; e++)
        if (!is_member(b, x, s->use[e].node))
            return true;
    return false;
}

int shard_concat_node(shard_builder *b, const char *name, const char *const *from, int32_t n, int64_t axis,
                      const char *to)
{
    Onnx__NodeProto *node = name && to ? shard_node(b, "Concat", name, (size_t)n, 1) : NULL;
    if (!node)
        return MOIRAI_EFAIL;
    for (int32_t k = 0; k < n; k++)
        node->input[k] = (char *)from[k];
    node->output[0] = (char *)to;
    return shard_set_attr(b, node, shard_attr_int(b, "axis", axis));
}

static int put_together(shard_builder *b, const shard_cut *cut, const onnx_value *v, int32_t axis, const char *op)
{
    const char **part = onnx_take(&b->arena, (size_t)cut->n_pieces, sizeof *part);
    if (!part)
        return MOIRAI_EFAIL;
    for (int32_t k = 0; k < cut->n_pieces; k++)
        if (!(part[k] = shard_piece_name(b, v, cut, k)))
            return MOIRAI_EFAIL;
    char *name = onnx_text(&b->arena, "%s (%d joined)", op, cut->n_pieces);
    return shard_concat_node(b, name, part, cut->n_pieces, axis, v->name);
}

static int add_up(shard_builder *b, const char *op, const char **term, int32_t n, const char *type, const char *out)
{
    char *name = onnx_text(&b->arena, "%s (sum)", op);
    Onnx__NodeProto *node = name ? shard_node(b, type, name, (size_t)n, 1) : NULL;
    if (!node)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < n; i++)
        node->input[i] = (char *)term[i];
    node->output[0] = (char *)out;
    return 0;
}

/* Pairs of neighbours until one is left; a chain has the sum so far as its first. */
static int add_in_pairs(shard_builder *b, const onnx_value *v, const char *op, const char **term, int32_t n, bool tree)
{
    int rc = 0;
    while (n > 1 && !rc) {
        int32_t left = 0;
        for (int32_t i = 0; i < n && !rc; i++) {
            bool pair = i + 1 < n && (tree || i == 0);
            if (!pair) {
                term[left++] = term[i];
                continue;
            }
            const char *sum = n == 2 ? v->name : shard_unique(b, onnx_text(&b->arena, "%s.sum", v->name));
            rc = sum ? add_up(b, op, &term[i], 2, "Add", sum) : MOIRAI_EFAIL;
            term[left++] = sum;
            i++;
        }
        n = left;
    }
    return rc;
}

static int sum_up(shard_builder *b, const shard_cut *cut, const onnx_value *v, const char *op)
{
    const char **term = onnx_take(&b->arena, (size_t)cut->n_pieces, sizeof *term);
    if (!term)
        return MOIRAI_EFAIL;
    for (int32_t k = 0; k < cut->n_pieces; k++)
        if (!(term[k] = shard_piece_name(b, v, cut, k)))
            return MOIRAI_EFAIL;
    moirai_shard_sum how = cut->sum < 0 ? b->sum : (moirai_shard_sum)cut->sum;
    if (how == MOIRAI_SHARD_STAR && cut->n_pieces > 2 && onnx_is_real(v->type))
        return add_up(b, op, term, cut->n_pieces, "Sum", v->name);
    return add_in_pairs(b, v, op, term, cut->n_pieces, how == MOIRAI_SHARD_TREE);
}

int shard_joins(shard_builder *b, const shard_cut *cut, const shard_member *m)
{
    const onnx_node *n = &b->s->net->im.root->node[m->node];
    const shard_strip *x = &b->s->strip[cut->strip];
    const char *op = b->s->op_name[m->node];
    int rc = 0;
    for (int32_t i = 0; i < n->n_out && !rc; i++) {
        const onnx_value *v = n->out[i];
        const shard_port *p = &m->port[n->n_in + i];
        if (!v || v->constant || !op)
            continue;
        if (p->state == SHARD_PARTIAL)
            rc = sum_up(b, cut, v, op);
        else if (p->state == SHARD_CUT && is_read_outside(b, x, v))
            rc = put_together(b, cut, v, p->at.axis, op);
    }
    return rc;
}
