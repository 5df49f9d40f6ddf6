/* Pieces of a strip of rows: copies of its operators that read and write some rows each.
 *
 * A piece reads the rows that it needs: those that the piece itself has, or a slice of them. What comes from outside is
 * sliced; where another strip of rows has made it in pieces, it is put together from these, the piece of the same number
 * first, so that only rows beside a cut move and nobody needs the whole image. Padding is where the image ends and nowhere
 * else: it becomes numbers, whatever the operator said. */
#include "shard/shard_build.h"

#include <string.h>

#include "onnx/onnx_message.h"
#include "onnx/rules/onnx_rules.h"

typedef struct job {
    shard_builder *b;
    const shard_cut *cut;
    const shard_strip *x;
    onnx_node *n;
    const shard_member *m;
    const shard_map *map;
    int32_t k;
    shard_span in, made; /* of the first input where it is a window; of the output */
    Onnx__NodeProto *node;
} job;

static bool equal(shard_span x, shard_span y)
{
    return x.begin == y.begin && x.end == y.end;
}

static const onnx_value *value_of(const shard_builder *b, const shard_strip *x, int32_t part)
{
    return b->s->net->im.root->value[x->part[part].value];
}

/* Rows of what piece `k` has of a part; a Slice where that is not all of it. */
static const char *rows_of(shard_builder *b, const shard_cut *cut, int32_t part, int32_t k, shard_span rows)
{
    const shard_strip *x = &b->s->strip[cut->strip];
    const onnx_value *v = value_of(b, x, part);
    shard_span have = cut->rows.have[part * cut->n_pieces + k];
    const char *all = shard_piece_name(b, v, cut, k);
    if (!all || equal(have, rows))
        return all;
    char *key = onnx_text(&b->arena, "rows|%d|%d|%lld|%lld|%s", cut->strip, k, (long long)rows.begin,
                          (long long)rows.end, v->name);
    int32_t known = key ? util_names_put(b->slices, key, (int32_t)b->slice.n) : -1;
    if (known < 0 || (size_t)known < b->slice.n)
        return known < 0 ? NULL : b->slice.item[known];
    const char *label = shard_piece_label(b, cut, k);
    const char *to = shard_unique(b, onnx_text(&b->arena, "%s.%dof%d.rows%lld-%lld", v->name, k + 1, cut->n_pieces,
                                               (long long)rows.begin + 1, (long long)rows.end));
    char *name = onnx_text(&b->arena, "%s rows %lld-%lld %s", v->name, (long long)rows.begin + 1, (long long)rows.end,
                           label ? label : "");
    shard_span inside = {rows.begin - have.begin, rows.end - have.begin};
    if (!to || !name || shard_list_add(&b->slice, (char *)to) ||
        shard_slice_node(b, name, all, x->part[part].at.axis, inside, to))
        return NULL;
    return to;
}

/* ---- what comes in ---- */

/* The cut that makes `v` in rows along this axis; NULL: it is made whole. */
static const shard_cut *maker_of(const shard_builder *b, const onnx_value *v, int32_t axis, int32_t *part)
{
    int32_t number = v->producer >= 0 ? b->cuts->of_node[v->producer] : 0;
    const shard_cut *cut = number ? &b->cuts->cut[number - 1] : NULL;
    const shard_strip *x = cut ? &b->s->strip[cut->strip] : NULL;
    *part = x && x->map ? shard_rows_part(x, v->stamp) : -1;
    return *part >= 0 && x->part[*part].at.axis == axis ? cut : NULL;
}

/* Names of tensors that are `rows` together: of piece `k` as much as it has, of the others what they answer for. */
static int32_t collect(shard_builder *b, const shard_cut *cut, int32_t part, int32_t k, shard_span rows,
                       const char **out)
{
    int32_t n = 0;
    shard_span mid = k < cut->n_pieces ? cut->rows.have[part * cut->n_pieces + k] : (shard_span){0, 0};
    mid.begin = UTIL_MAX(mid.begin, rows.begin);
    mid.end = UTIL_MIN(mid.end, rows.end);
    if (mid.begin >= mid.end)
        mid = (shard_span){rows.end, rows.end};
    for (int side = 0; side < 2; side++) {
        shard_span want = side ? (shard_span){mid.end, rows.end} : (shard_span){rows.begin, mid.begin};
        for (int32_t i = 0; i < cut->n_pieces; i++) {
            shard_span own = cut->rows.own[part * cut->n_pieces + i];
            shard_span some = {UTIL_MAX(own.begin, want.begin), UTIL_MIN(own.end, want.end)};
            if (some.begin < some.end)
                out[n++] = rows_of(b, cut, part, i, some);
        }
        if (!side && mid.begin < mid.end)
            out[n++] = rows_of(b, cut, part, k, mid);
    }
    for (int32_t i = 0; i < n; i++)
        if (!out[i])
            return -1;
    return n;
}

static int enter_piece(shard_builder *b, const shard_cut *cut, int32_t part, int32_t k)
{
    const shard_strip *x = &b->s->strip[cut->strip];
    const onnx_value *v = value_of(b, x, part);
    int32_t axis = x->part[part].at.axis, theirs;
    shard_span rows = cut->rows.have[part * cut->n_pieces + k];
    const shard_cut *maker = maker_of(b, v, axis, &theirs);
    const char *label = shard_piece_label(b, cut, k);
    char *name = label ? onnx_text(&b->arena, "%s %s", v->name, label) : NULL;
    if (!name)
        return MOIRAI_EFAIL;
    if (!maker && equal(rows, (shard_span){0, v->dim[axis]}))
        return shard_piece_is(b, v, cut, k, v->name);
    if (!maker)
        return shard_slice_node(b, name, v->name, axis, rows, shard_piece_name(b, v, cut, k));
    const char **from = onnx_take(&b->arena, (size_t)maker->n_pieces + 1, sizeof *from);
    int32_t n = from ? collect(b, maker, theirs, k, rows, from) : -1;
    if (n < 1)
        return MOIRAI_EFAIL;
    if (n == 1)
        return shard_piece_is(b, v, cut, k, from[0]);
    return shard_concat_node(b, name, from, n, axis, shard_piece_name(b, v, cut, k));
}

/* Once for every part, where it is first read. */
static int enter(shard_builder *b, const shard_cut *cut, int32_t part)
{
    bool first;
    int rc = shard_first_time(&first, b, onnx_text(&b->arena, "entered|%d|%d", cut->strip, part));
    for (int32_t k = 0; k < cut->n_pieces && first && !rc; k++)
        rc = enter_piece(b, cut, part, k);
    return rc;
}

/* ---- attributes ---- */

/* The rows' entry of all pads is new. */
static int set_pads(const job *j, int64_t begin, int64_t end)
{
    shard_window w;
    int64_t pads[2 * ONNX_MAX_RANK];
    shard_window_read(j->n, &w);
    int32_t at = j->m->port[0].at.axis - 2;
    for (int32_t i = 0; i < w.spatial; i++) {
        pads[i] = i == at ? begin : w.begin[i];
        pads[i + w.spatial] = i == at ? end : w.end[i];
    }
    int rc = shard_set_attr(j->b, j->node, shard_attr_ints(j->b, "pads", pads, 2 * (size_t)w.spatial));
    if (!rc)
        shard_drop_attr(j->node, "auto_pad");
    return rc;
}

static int set_window(const job *j)
{
    int64_t first = j->made.begin * j->map->stride - j->map->pad;
    int64_t last = (j->made.end - 1) * j->map->stride - j->map->pad + j->map->extent;
    return set_pads(j, j->in.begin - first, last - j->in.end);
}

/* What its rows make beyond those that are wanted is taken off as padding; what they do not reach is left empty. */
static int set_spread(const job *j)
{
    int64_t first = j->in.begin * j->map->stride - j->map->pad;
    int64_t last = (j->in.end - 1) * j->map->stride - j->map->pad + j->map->extent;
    int64_t extra[ONNX_MAX_RANK] = {0};
    int32_t at = j->m->port[0].at.axis - 2, spatial = j->n->in[0]->rank - 2;
    onnx_list given = {0};
    onnx_list_of(j->n, "output_padding", -1, &given);
    for (int32_t i = 0; i < spatial && i < given.n; i++)
        extra[i] = given.item[i];
    extra[at] = UTIL_MAX(j->made.end - last, 0);
    int rc = set_pads(j, j->made.begin - first, UTIL_MAX(last - j->made.end, 0));
    return rc ? rc : shard_set_attr(j->b, j->node, shard_attr_ints(j->b, "output_padding", extra, (size_t)spatial));
}

static int set_input(const job *j, int32_t i, const char *what, const int64_t *number, size_t n)
{
    char *name = onnx_text(&j->b->arena, "%s.%s", j->node->output[0], what);
    j->node->input[i] = name ? (char *)shard_ints(j->b, name, number, n) : NULL;
    return j->node->input[i] ? 0 : MOIRAI_EFAIL;
}

static int set_padding(const job *j)
{
    onnx_list was = {0};
    int64_t pads[2 * ONNX_MAX_RANK];
    int32_t axis = j->m->port[0].at.axis, rank = j->n->in[0]->rank;
    if (!onnx_list_of(j->n, "pads", 1, &was) || was.n != 2 * rank)
        return moirai_error(MOIRAI_EFAIL, "the widths of a Pad are gone");
    memcpy(pads, was.item, (size_t)was.n * sizeof *pads);
    pads[axis] = j->in.begin - (j->made.begin - j->map->pad);
    pads[axis + rank] = j->made.end - j->map->pad - j->in.end;
    if (onnx_attr(j->n->proto, "pads"))
        return shard_set_attr(j->b, j->node, shard_attr_ints(j->b, "pads", pads, (size_t)was.n));
    return set_input(j, 1, "pads", pads, (size_t)was.n);
}

static int set_sizes(const job *j)
{
    const onnx_value *sizes = onnx_in(j->n, 3), *out = j->n->out[0];
    int64_t size[ONNX_MAX_RANK];
    if (!sizes || !sizes->elements)
        return 0;
    memcpy(size, out->dim, sizeof size);
    size[j->m->port[0].at.axis] = (j->in.end - j->in.begin) * j->map->scale;
    return set_input(j, 3, "sizes", size, (size_t)out->rank);
}

static int set_attributes(const job *j)
{
    if (shard_is(j->n, "ConvTranspose"))
        return j->map->spread ? set_spread(j) : 0;
    if (shard_is_window(j->n))
        return j->m->port[0].at.axis >= 2 ? set_window(j) : 0;
    if (shard_is(j->n, "Pad"))
        return j->m->port[0].at.axis >= 2 ? set_padding(j) : 0;
    if (shard_is(j->n, "Resize"))
        return j->map->scale ? set_sizes(j) : 0;
    /* Point by point: shapes as for any other cut, with as many units as there are rows. */
    shard_cut rows = *j->cut;
    int64_t size[64] = {0};
    size[j->k] = j->made.end - j->made.begin;
    rows.size = size;
    return shard_reshape(j->b, &rows, j->m, j->k, j->node);
}

/* ---- pieces ---- */

static int connect(const job *j)
{
    shard_builder *b = j->b;
    for (int32_t i = 0; i < j->n->n_in; i++) {
        const onnx_value *v = j->n->in[i];
        const shard_port *p = &j->m->port[i];
        const char *name = j->n->proto->input[i];
        if (v && p->state == SHARD_CUT) {
            shard_span in = shard_map_needs(j->map, j->made, v->dim[p->at.axis]);
            name = p->part ? rows_of(b, j->cut, p->part - 1, j->k, in)
                           : shard_slice_weight(b, v, p->at, v->dim[p->at.axis], in.begin, in.end - in.begin);
        }
        if (!name)
            return MOIRAI_EFAIL;
        j->node->input[i] = (char *)name;
    }
    return 0;
}

/* More rows than were wanted, where one row makes several: what is wanted of them. */
static int crop(const job *j, const char *name, const char *wanted)
{
    shard_span raw = {j->in.begin * j->map->scale, j->in.end * j->map->scale};
    if (!j->map->scale || equal(raw, j->made))
        return 0;
    const char *all = shard_unique(j->b, onnx_text(&j->b->arena, "%s.all", wanted));
    j->node->output[0] = (char *)all;
    shard_span inside = {j->made.begin - raw.begin, j->made.end - raw.begin};
    return all ? shard_slice_node(j->b, onnx_text(&j->b->arena, "rows of %s", name), all,
                                  j->m->port[j->n->n_in].at.axis, inside, wanted)
               : MOIRAI_EFAIL;
}

/* The node stands behind what it reads, which is made first. */
static int piece(job *j)
{
    shard_builder *b = j->b;
    const char *label = shard_piece_label(b, j->cut, j->k);
    char *name = label ? onnx_text(&b->arena, "%s %s", shard_name_of(b, j->m->node), label) : NULL;
    Onnx__NodeProto scratch = ONNX__NODE_PROTO__INIT;
    scratch.input = onnx_take(&b->arena, (size_t)j->n->n_in, sizeof *scratch.input);
    if (!name || !scratch.input)
        return MOIRAI_EFAIL;
    j->node = &scratch;
    int rc = connect(j);
    Onnx__NodeProto *node =
        rc ? NULL : shard_node(b, j->n->proto->op_type, name, (size_t)j->n->n_in, (size_t)j->n->n_out);
    if (!node)
        return MOIRAI_EFAIL;
    memcpy(node->input, scratch.input, (size_t)j->n->n_in * sizeof *node->input);
    node->domain = j->n->proto->domain;
    node->attribute = onnx_take(&b->arena, j->n->proto->n_attribute, sizeof *node->attribute);
    if (!node->attribute)
        return MOIRAI_EFAIL;
    node->n_attribute = j->n->proto->n_attribute;
    for (size_t i = 0; i < node->n_attribute; i++)
        node->attribute[i] = j->n->proto->attribute[i];
    for (int32_t i = 0; i < j->n->n_out; i++)
        if (!(node->output[i] = (char *)(j->n->out[i] ? shard_piece_name(b, j->n->out[i], j->cut, j->k) : "")))
            return MOIRAI_EFAIL;
    j->node = node;
    rc = set_attributes(j);
    return rc ? rc : crop(j, name, node->output[0]);
}

static int join(const job *j, const onnx_value *v, int32_t part)
{
    const shard_cut *cut = j->cut;
    const char **from = onnx_take(&j->b->arena, (size_t)cut->n_pieces, sizeof *from);
    if (!from)
        return MOIRAI_EFAIL;
    for (int32_t k = 0; k < cut->n_pieces; k++)
        if (!(from[k] = rows_of(j->b, cut, part, k, cut->rows.own[part * cut->n_pieces + k])))
            return MOIRAI_EFAIL;
    char *name = onnx_text(&j->b->arena, "%s (%d joined)", shard_name_of(j->b, j->m->node), cut->n_pieces);
    return shard_concat_node(j->b, name, from, cut->n_pieces, j->x->part[part].at.axis, v->name);
}

int shard_rows_pieces(shard_builder *b, const shard_cut *cut, int32_t member)
{
    const shard_strip *x = &b->s->strip[cut->strip];
    job j = {.b = b, .cut = cut, .x = x, .m = &x->member[member], .map = &x->map[member]};
    j.n = &b->s->net->im.root->node[j.m->node];
    int rc = 0;
    for (int32_t i = 0; i < j.n->n_in && !rc; i++)
        if (j.m->port[i].part && x->part[j.m->port[i].part - 1].sliced)
            rc = enter(b, cut, j.m->port[i].part - 1);
    for (j.k = 0; j.k < cut->n_pieces && !rc; j.k++) {
        j.made = cut->rows.made[member * cut->n_pieces + j.k];
        j.in = shard_map_needs(j.map, j.made, j.n->in[0]->dim[j.m->port[0].at.axis]);
        rc = piece(&j);
    }
    for (int32_t i = j.n->n_in; i < j.n->n_in + j.n->n_out && !rc; i++)
        if (j.m->port[i].part && x->part[j.m->port[i].part - 1].leaves)
            rc = join(&j, j.n->out[i - j.n->n_in], j.m->port[i].part - 1);
    return rc;
}
