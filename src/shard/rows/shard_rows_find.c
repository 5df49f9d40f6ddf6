/* Strips of rows: runs of convolutions and of what stands between them, cut by rows of the image.
 *
 * From a first operator a strip goes through the network in topological order. An operator joins if it reads a tensor of
 * the strip (made in it, or sliced for it), a rule says what rows it needs, and nothing that it reads depends on the strip
 * in another way: between its begin and its end nobody waits. Branches that begin with the same tensor are all in it.
 *
 * Rows near a cut are made on both sides of it, more of them the longer the strip is. So a strip ends where in four equal
 * pieces more than a quarter of its arithmetic would be done twice; the next one begins there, and takes its rows from the
 * pieces of the one before it (shard_rows_build.c): only those beside a cut move. Strips of rows share no operators with
 * each other, but do with those by channels.
 *
 * O(edges) for every operator that could be the first one, O(members) for every window that joins. */
#include "shard/shard.h"

#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_message.h"

#define TWICE 1.25     /* arithmetic of pieces to that of the whole, at most */
#define TRIED_PIECES 4 /* into which that is tried */
#define MAX_MEMBERS 1024
#define MAX_UNITS (1 << 18)  /* every one is looked at */
#define MAX_ROWS (1ll << 40) /* of a tensor: no product with a number of units overflows */

typedef struct run {
    moirai_shards *s;
    onnx_arena arena, scratch;
    shard_strip x; /* grows; its arrays are in capacity below */
    size_t members_capacity, parts_capacity, maps_capacity;
    const bool *in_rows;
    bool *after; /* [node] outside of the strip, and made of something in it */
    int32_t n_convs;
    const char *why;
} run;

static onnx_node *node_of(const run *r, int32_t i)
{
    return &r->s->net->im.root->node[i];
}

static bool is_ours(const run *r, const onnx_value *v)
{
    return v->scope == r->s->net->im.root && !(v->constant && v->tensor);
}

static bool made_inside(const run *r, const onnx_value *v)
{
    return is_ours(r, v) && v->producer >= 0 && r->s->work.member_of[v->producer];
}

static bool made_after(const run *r, const onnx_value *v)
{
    return is_ours(r, v) && v->producer >= 0 && r->after[v->producer];
}

static bool is_read_outside(const run *r, int32_t value)
{
    const moirai_shards *s = r->s;
    bool read = false;
    if (s->leaves[value])
        return true;
    for (int32_t e = s->use_off[value]; e < s->use_off[value + 1]; e++) {
        read = true;
        if (!s->work.member_of[s->use[e].node])
            return true;
    }
    return !read;
}

/* ---- units ---- */

/* The rows of the smallest tensor that leaves it: every piece has some of each. */
static void settle_units(run *r)
{
    shard_strip *x = &r->x;
    x->units = 0;
    for (int32_t i = 0; i < x->n_parts; i++) {
        shard_part *p = &x->part[i];
        int64_t rows = r->s->net->im.root->value[p->value]->dim[p->at.axis];
        p->leaves = !p->sliced && is_read_outside(r, p->value);
        if (p->leaves && (!x->units || rows < x->units))
            x->units = rows;
    }
}

static bool take_room(run *r, shard_cut *cut, int32_t pieces)
{
    onnx_arena *arena = &r->scratch;
    size_t n = (size_t)pieces;
    *cut = (shard_cut){.n_pieces = pieces};
    cut->size = onnx_take(arena, n, sizeof *cut->size);
    cut->first = onnx_take(arena, n, sizeof *cut->first);
    cut->rows.own = onnx_take(arena, n * (size_t)r->x.n_parts, sizeof(shard_span));
    cut->rows.have = onnx_take(arena, n * (size_t)r->x.n_parts, sizeof(shard_span));
    cut->rows.made = onnx_take(arena, n * (size_t)r->x.n_members, sizeof(shard_span));
    return cut->size && cut->first && cut->rows.own && cut->rows.have && cut->rows.made;
}

/* Has even a piece of one unit, wherever it is, some rows of every tensor? Then every piece has. */
static bool has_rows_everywhere(run *r)
{
    shard_cut cut;
    bool all = take_room(r, &cut, 1);
    for (int64_t u = 0; u < r->x.units && all; u++) {
        cut.first[0] = u;
        cut.size[0] = 1;
        all = shard_rows_spans(r->s, &r->x, &cut);
    }
    onnx_arena_free(&r->scratch);
    return all;
}

/* Rows that all pieces make, weighed by the arithmetic of a row. */
static double work_of(const run *r, const shard_cut *cut, double *whole)
{
    double pieces = 0;
    for (int32_t i = 0; i < r->x.n_members; i++) {
        const onnx_node *n = node_of(r, r->x.member[i].node);
        int64_t rows = n->out[0]->dim[r->x.member[i].port[n->n_in].at.axis], made = 0;
        for (int32_t k = 0; k < cut->n_pieces; k++)
            made += cut->rows.made[i * cut->n_pieces + k].end - cut->rows.made[i * cut->n_pieces + k].begin;
        *whole += (double)n->flops + 1;
        pieces += ((double)n->flops + 1) * (double)made / (double)rows;
    }
    return pieces;
}

/* Is what pieces do twice little enough? */
static bool is_short(run *r)
{
    shard_cut cut;
    double whole = 0;
    settle_units(r);
    int32_t pieces = (int32_t)UTIL_MIN(TRIED_PIECES, r->x.units);
    bool ok = pieces > 1 && r->x.units <= MAX_UNITS && take_room(r, &cut, pieces);
    for (int32_t k = 0; k < pieces && ok; k++) {
        cut.first[k] = r->x.units * k / pieces;
        cut.size[k] = r->x.units * (k + 1) / pieces - cut.first[k];
    }
    ok = ok && shard_rows_spans(r->s, &r->x, &cut) && work_of(r, &cut, &whole) <= TWICE * whole;
    onnx_arena_free(&r->scratch);
    return ok;
}

/* ---- growth ---- */

static void take_back(run *r, int32_t n_members, int32_t n_parts)
{
    while (r->x.n_members > n_members)
        r->s->work.member_of[r->x.member[--r->x.n_members].node] = 0;
    while (r->x.n_parts > n_parts)
        r->s->work.part_of[r->x.part[--r->x.n_parts].value] = 0;
}

/* The part that `v` is, cut along that axis: a new one, or the one that there is. 0: it can't be. */
static int32_t part_for(run *r, const onnx_value *v, int32_t axis, bool sliced)
{
    int32_t known = r->s->work.part_of[v->stamp];
    if (known)
        return r->x.part[known - 1].at.axis == axis ? known : 0;
    if (v->type == 0 || v->dim[axis] > MAX_ROWS ||
        util_grow(&r->x.part, &r->parts_capacity, (size_t)r->x.n_parts + 1, sizeof *r->x.part))
        return 0;
    r->x.part[r->x.n_parts++] = (shard_part){.value = v->stamp, .at = {axis, 1, 1}, .sliced = sliced};
    return r->s->work.part_of[v->stamp] = r->x.n_parts;
}

static bool connect(run *r, const onnx_node *n, shard_port *port)
{
    for (int32_t k = 0; k < n->n_in + n->n_out; k++) {
        const onnx_value *v = shard_value(n, k);
        if (!v || port[k].state != SHARD_CUT) {
            if (v && k < n->n_in && made_inside(r, v))
                return false;
            continue;
        }
        if (v->constant && v->tensor) {
            if (onnx_type_bits(v->type) < 8 || onnx_type_bits(v->type) % 8)
                return false;
        } else if (!is_ours(r, v) || !(port[k].part = part_for(r, v, port[k].at.axis, k < n->n_in))) {
            return false;
        }
    }
    return true;
}

static bool add_member(run *r, int32_t node, shard_port *port, const shard_map *map)
{
    size_t n = (size_t)r->x.n_members + 1;
    if (util_grow(&r->x.member, &r->members_capacity, n, sizeof *r->x.member) ||
        util_grow(&r->x.map, &r->maps_capacity, n, sizeof *r->x.map))
        return false;
    r->x.map[n - 1] = *map;
    r->x.member[n - 1] = (shard_member){node, port};
    r->x.n_members = (int32_t)n;
    r->s->work.member_of[node] = (int32_t)n;
    return true;
}

/* Takes the operator in, its input `from` being cut along `axis`. */
static bool join(run *r, int32_t node, int32_t from, int32_t axis)
{
    onnx_node *n = node_of(r, node);
    int32_t n_members = r->x.n_members, n_parts = r->x.n_parts;
    shard_map map;
    shard_port *port = onnx_take(&r->arena, (size_t)(n->n_in + n->n_out), sizeof *port);
    if (!port || n_members == MAX_MEMBERS)
        return false;
    shard_ask ask = {.n = n, .units = n->in[from]->dim[axis], .from = from, .at = {axis, 1, 1}, .port = port};
    if (shard_rows_relate(&ask, &map) != SHARD_YES) {
        r->why = ask.why;
        return false;
    }
    bool ok = connect(r, n, port) && add_member(r, node, port, &map);
    bool far = map.scale || map.spread || map.extent > 1 || map.stride > 1 || map.pad;
    if (ok && far && !is_short(r)) {
        r->why = r->x.units < 2 ? "its image has one row" : "rows that it needs beside a cut are too many";
        ok = false;
    }
    if (!ok)
        take_back(r, n_members, n_parts);
    return ok;
}

/* Which input is a tensor of the strip; -1: none, or one depends on it in another way. */
static int32_t reads(const run *r, const onnx_node *n, bool *below)
{
    int32_t from = -1;
    bool later = false;
    *below = false;
    for (int32_t k = 0; k < n->n_in + n->n_captured; k++) {
        const onnx_value *v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        if (!v || !is_ours(r, v))
            continue;
        if (from < 0 && k < n->n_in && r->s->work.part_of[v->stamp])
            from = k;
        later |= made_after(r, v);
        *below |= made_inside(r, v);
    }
    *below |= later;
    return later ? -1 : from;
}

static void grow(run *r, int32_t first)
{
    const moirai_shards *s = r->s;
    memset(r->after, 0, (size_t)s->n_nodes * sizeof *r->after);
    for (int32_t o = s->node_rank[first] + 1; o < s->n_nodes; o++) {
        int32_t node = s->net->im.root->order[o];
        const onnx_node *n = node_of(r, node);
        bool below;
        int32_t from = reads(r, n, &below);
        bool joins = from >= 0 && s->op_name[node] && !n->folded && !r->in_rows[node];
        if (joins && join(r, node, from, r->x.part[s->work.part_of[n->in[from]->stamp] - 1].at.axis))
            r->n_convs += shard_is(n, "Conv") || shard_is(n, "ConvTranspose");
        else
            r->after[node] = below;
    }
}

/* ---- seeds ---- */

/* Where the image's rows are the third axis for sure. */
static bool may_begin(const moirai_shards *s, int32_t node)
{
    const onnx_node *n = &s->net->im.root->node[node];
    if (!s->op_name[node] || n->folded || !n->rule || n->n_in < 1 || !n->in[0] || n->in[0]->constant || n->n_out < 1 ||
        !n->out[0] || !n->in[0]->shaped || !n->out[0]->shaped || shard_is(n, "Transpose"))
        return false;
    int32_t rank = n->in[0]->rank;
    return rank == n->out[0]->rank && rank >= (shard_is_window(n) ? 3 : 4) && n->in[0]->dim[2] > 1;
}

static int keep(run *r, util_names *taken, bool *in_rows)
{
    shard_strip x = r->x;
    onnx_arena *arena = &r->s->arena;
    settle_units(r);
    x.units = r->x.units;
    if (!r->n_convs || x.units < 2 || x.units > MAX_UNITS || !has_rows_everywhere(r))
        return 0;
    x.member = onnx_take(arena, (size_t)x.n_members, sizeof *x.member);
    x.part = onnx_take(arena, (size_t)x.n_parts, sizeof *x.part);
    x.map = onnx_take(arena, (size_t)x.n_members, sizeof *x.map);
    if (!x.member || !x.part || !x.map)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < x.n_members; i++) {
        const onnx_node *n = node_of(r, r->x.member[i].node);
        size_t ports = (size_t)(n->n_in + n->n_out);
        x.member[i] = r->x.member[i];
        x.map[i] = r->x.map[i];
        if (!(x.member[i].port = onnx_take(arena, ports, sizeof(shard_port))))
            return MOIRAI_EFAIL;
        memcpy(x.member[i].port, r->x.member[i].port, ports * sizeof(shard_port));
        in_rows[x.member[i].node] = true;
    }
    memcpy(x.part, r->x.part, (size_t)x.n_parts * sizeof *x.part);
    take_back(r, 0, 0); /* what counts uses the same marks */
    shard_count(r->s, &x);
    x.kind = x.unit = "rows";
    x.alternative = true;
    return shard_add_strip(r->s, &x, taken);
}

static bool has_rows(const onnx_node *n)
{
    bool conv = shard_is(n, "Conv") || shard_is(n, "ConvTranspose");
    return conv && onnx_in(n, 0) && onnx_out(n, 0) && n->in[0]->rank > 2 &&
           (n->in[0]->dim[2] > 1 || n->out[0]->dim[2] > 1);
}

static int try_from(run *r, int32_t node, util_names *taken, bool *in_rows)
{
    const onnx_node *n = node_of(r, node);
    int rc = 0;
    r->n_convs = shard_is(n, "Conv") || shard_is(n, "ConvTranspose");
    r->why = NULL;
    if (join(r, node, 0, 2)) {
        grow(r, node);
        rc = keep(r, taken, in_rows);
        r->why = "its pieces would have padding and no rows";
    }
    if (!rc && has_rows(n) && !in_rows[node])
        rc =
            shard_refuse(r->s, node, onnx_text(&r->s->arena, "by rows: %s", r->why ? r->why : "it can't be the first"));
    take_back(r, 0, 0);
    onnx_arena_free(&r->arena);
    return rc;
}

int shard_rows_find(moirai_shards *s, util_names *taken, bool *in_rows)
{
    run r = {.s = s, .in_rows = in_rows};
    bool any = false;
    for (int32_t i = 0; i < s->n_nodes; i++)
        any |= has_rows(&s->net->im.root->node[i]);
    r.after = util_alloc((size_t)s->n_nodes, sizeof *r.after);
    int rc = r.after ? 0 : MOIRAI_EFAIL;
    for (int32_t o = 0; o < s->n_nodes && any && !rc; o++) {
        int32_t node = s->net->im.root->order[o];
        if (!in_rows[node] && may_begin(s, node))
            rc = try_from(&r, node, taken, in_rows);
    }
    free(r.x.member);
    free(r.x.part);
    free(r.x.map);
    free(r.after);
    return rc;
}
