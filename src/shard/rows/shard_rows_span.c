/* Which rows pieces have.
 *
 * Every tensor that leaves a strip is divided by its pieces: piece k answers for its units' share of the rows. Backwards
 * from there, an operator makes the rows that its readers in the piece need, and what it needs for these is asked of its
 * inputs: so rows near a cut are made twice, on both sides, and no piece waits for another inside of a strip. */
#include "shard/shard.h"

int shard_rows_part(const shard_strip *x, int32_t value)
{
    for (int32_t i = 0; i < x->n_parts; i++)
        if (x->part[i].value == value)
            return i;
    return -1;
}

static shard_span hull(shard_span x, shard_span y)
{
    if (x.begin >= x.end)
        return y;
    return y.begin >= y.end ? x : (shard_span){UTIL_MIN(x.begin, y.begin), UTIL_MAX(x.end, y.end)};
}

/* Of member `i`: what its readers want, from all its inputs. */
static bool go_back(const moirai_shards *s, const shard_strip *x, int32_t i, shard_cut *cut, int32_t k)
{
    const shard_member *m = &x->member[i];
    const onnx_node *n = &s->net->im.root->node[m->node];
    shard_span *have = cut->rows.have, *made = &cut->rows.made[i * cut->n_pieces + k];
    *made = (shard_span){0, 0};
    for (int32_t o = n->n_in; o < n->n_in + n->n_out; o++)
        if (m->port[o].part)
            *made = hull(*made, have[(m->port[o].part - 1) * cut->n_pieces + k]);
    for (int32_t o = n->n_in; o < n->n_in + n->n_out; o++)
        if (m->port[o].part)
            have[(m->port[o].part - 1) * cut->n_pieces + k] = *made;
    for (int32_t p = 0; p < n->n_in; p++) {
        if (!m->port[p].part)
            continue;
        shard_span *all = &have[(m->port[p].part - 1) * cut->n_pieces + k];
        shard_span in = shard_map_needs(&x->map[i], *made, n->in[p]->dim[m->port[p].at.axis]);
        if (in.begin >= in.end)
            return false;
        *all = hull(*all, in);
    }
    return made->begin < made->end;
}

bool shard_rows_spans(const moirai_shards *s, const shard_strip *x, shard_cut *cut)
{
    bool all = true;
    for (int32_t k = 0; k < cut->n_pieces; k++) {
        for (int32_t i = 0; i < x->n_parts; i++) {
            const shard_part *p = &x->part[i];
            int64_t rows = s->net->im.root->value[p->value]->dim[p->at.axis], at = i * cut->n_pieces + k;
            cut->rows.own[at].begin = cut->first[k] * rows / x->units;
            cut->rows.own[at].end = (cut->first[k] + cut->size[k]) * rows / x->units;
            cut->rows.have[at] = p->leaves ? cut->rows.own[at] : (shard_span){0, 0};
        }
        for (int32_t i = x->n_members - 1; i >= 0; i--)
            all &= go_back(s, x, i, cut, k);
    }
    return all;
}

int shard_rows_take(const moirai_shards *s, const shard_strip *x, shard_cut *cut, onnx_arena *arena)
{
    size_t parts = (size_t)x->n_parts * (size_t)cut->n_pieces, members = (size_t)x->n_members * (size_t)cut->n_pieces;
    cut->rows.own = onnx_take(arena, parts, sizeof(shard_span));
    cut->rows.have = onnx_take(arena, parts, sizeof(shard_span));
    cut->rows.made = onnx_take(arena, members, sizeof(shard_span));
    if (!cut->rows.own || !cut->rows.have || !cut->rows.made)
        return MOIRAI_EFAIL;
    if (!shard_rows_spans(s, x, cut))
        return moirai_error(MOIRAI_EUSAGE, "strip '%.200s': a piece would have padding and no rows", x->name);
    return 0;
}
