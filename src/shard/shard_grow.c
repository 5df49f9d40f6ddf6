/* Growth of a strip from its first operator.
 *
 * The output of a product is cut by columns. Every reader of a cut tensor is asked what becomes of it (shard_rules.c): it
 * joins the strip with its own output cut, or as a last operator whose results are summed up, or it stays outside and the
 * tensor is put together before it. Where a reader needs another tensor cut as well (keys and values beside the queries,
 * the gate of a gated block), the strip grows back through that tensor's maker to a product with weights; a tensor that
 * nothing of the strip is made of (a mask, a cache) may be sliced instead. What fails is taken back.
 *
 * No member may need a whole tensor that depends on the strip: between its begin and its end nobody waits.
 *
 * Where an operator could go on with other units (columns become heads), growth begins again with each of its choices,
 * and once without that operator; the strip with the most arithmetic wins, weighed by how well its units divide. The
 * number of attempts is bounded, and so is each search for dependences: a strip that is too large to judge ends early,
 * which is never wrong. */
#include "shard/shard.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ATTEMPTS 48
#define MAX_DENIED 6
#define MAX_BACK 64      /* operators in a row that growth goes back */
#define MAX_LOOK 20000   /* operators that one question of dependence visits */
#define MAX_MEMBERS 4096 /* of a strip; one of samples has no limit */
#define MANY_UNITS 16    /* more divide no better */

typedef struct attempt {
    int64_t outer, inner; /* factors of the seed's layout */
    int32_t denied[MAX_DENIED];
    int32_t n_denied;
} attempt;

typedef struct grower {
    moirai_shards *s;
    const shard_seed *seed;
    const attempt *now;
    int64_t units;
    onnx_arena arena;             /* of this attempt */
    int32_t *part_of, *member_of; /* of the work */
    shard_part *part;
    size_t n_parts, parts_capacity;
    shard_member *member;
    size_t n_members, members_capacity;
    shard_work *work;
    int32_t lowest;  /* rank of a member */
    size_t next;     /* part to look at */
    shard_ask asked; /* the last question that was answered with other units */
    int32_t asked_node;
    const char *why;
    bool failed; /* out of memory */
} grower;

static onnx_scope *root(const grower *g)
{
    return g->s->net->im.root;
}

static void take_back(grower *g, size_t n_members, size_t n_parts)
{
    while (g->n_members > n_members)
        g->member_of[g->member[--g->n_members].node] = 0;
    while (g->n_parts > n_parts)
        g->part_of[g->part[--g->n_parts].value] = 0;
}

static bool same(shard_layout x, shard_layout y)
{
    return x.axis == y.axis && x.outer == y.outer && x.inner == y.inner;
}

/* ---- dependences ---- */

static void push_makers(grower *g, const onnx_node *n, int32_t *top, int32_t least)
{
    for (int32_t k = 0; k < n->n_in + n->n_captured; k++) {
        const onnx_value *v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
        if (!v || v->scope != root(g) || v->producer < 0 || v->constant ||
            g->work->mark[v->producer] == g->work->stamp || g->s->node_rank[v->producer] < least)
            continue;
        g->work->mark[v->producer] = g->work->stamp;
        g->work->stack[(*top)++] = v->producer;
    }
}

/* Does anything that `v` is made of belong to the strip (target < 0), or is it made by node `target`? */
static bool depends(grower *g, const onnx_value *v, int32_t target)
{
    if (!v || v->constant || v->producer < 0)
        return false;
    int32_t top = 0, least = target >= 0 ? g->s->node_rank[target] : g->lowest, looked = 0;
    g->work->stamp++;
    g->work->mark[v->producer] = g->work->stamp;
    g->work->stack[top++] = v->producer;
    while (top) {
        int32_t i = g->work->stack[--top];
        if (target >= 0 ? i == target : g->member_of[i] != 0)
            return true;
        if (++looked > MAX_LOOK || --g->work->looks < 0)
            return true;
        push_makers(g, &root(g)->node[i], &top, least);
    }
    return false;
}

/* Is any whole input of the strip made of `v`? Then it is what the strip works on, no side input. */
static bool feeds_strip(grower *g, const onnx_value *v)
{
    for (size_t m = 0; m < g->n_members; m++) {
        const onnx_node *n = &root(g)->node[g->member[m].node];
        for (int32_t k = 0; k < n->n_in; k++) {
            if (g->member[m].port[k].state != SHARD_WHOLE || !n->in[k])
                continue;
            if (n->in[k] == v || (v->producer >= 0 && depends(g, n->in[k], v->producer)))
                return true;
        }
    }
    return false;
}

/* ---- members ---- */

static int add_part(grower *g, const onnx_value *v, shard_layout at)
{
    if (util_grow(&g->part, &g->parts_capacity, g->n_parts + 1, sizeof *g->part)) {
        g->failed = true;
        return MOIRAI_EFAIL;
    }
    g->part[g->n_parts++] = (shard_part){.value = v->stamp, .at = at};
    g->part_of[v->stamp] = (int32_t)g->n_parts;
    return 0;
}

static shard_answer include(grower *g, int32_t node, int32_t from, shard_layout at, int depth);

static bool may_slice(grower *g, const onnx_value *v, shard_layout at)
{
    if (v->constant || at.outer != 1 || v->type == 0)
        return false;
    if (g->seed->free_entry && g->n_members <= 1)
        return true;
    if (g->seed->batch)
        return v->producer < 0;
    return !depends(g, v, -1) && !feeds_strip(g, v);
}

/* `v` must be cut: its maker joins, or it is sliced. */
static shard_answer require(grower *g, const onnx_value *v, shard_layout at, int depth)
{
    if (v->tensor && v->constant)
        return onnx_type_bits(v->type) >= 8 && onnx_type_bits(v->type) % 8 == 0 ? SHARD_YES : SHARD_NO;
    int32_t known = g->part_of[v->stamp];
    if (known)
        return same(g->part[known - 1].at, at) ? SHARD_YES : SHARD_NO;
    size_t n_members = g->n_members, n_parts = g->n_parts;
    if (v->scope != root(g) || add_part(g, v, at))
        return SHARD_NO;
    shard_answer answer = SHARD_NO;
    if (v->producer >= 0 && depth < MAX_BACK) {
        const onnx_node *maker = &root(g)->node[v->producer];
        int32_t port = maker->n_in;
        while (port < maker->n_in + maker->n_out && maker->out[port - maker->n_in] != v)
            port++;
        answer = include(g, v->producer, port, at, depth + 1);
    }
    if (answer != SHARD_NO)
        return answer;
    take_back(g, n_members, n_parts);
    if (!may_slice(g, v, at) || add_part(g, v, at))
        return SHARD_NO;
    g->part[g->n_parts - 1].sliced = true;
    return SHARD_YES;
}

static bool is_denied(const grower *g, int32_t node)
{
    for (int32_t i = 0; i < g->now->n_denied; i++)
        if (g->now->denied[i] == node)
            return true;
    return !g->seed->batch && g->s->taken[node];
}

static shard_answer connect(grower *g, const onnx_node *n, const shard_port *port, int depth)
{
    for (int32_t k = 0; k < n->n_in; k++) {
        const onnx_value *v = n->in[k];
        if (!v)
            continue;
        if (port[k].state == SHARD_WHOLE && ((v->scope == root(g) && g->part_of[v->stamp]) || depends(g, v, -1))) {
            g->why = "it needs a whole tensor that the strip makes";
            return SHARD_NO;
        }
        shard_answer answer = port[k].state == SHARD_CUT ? require(g, v, port[k].at, depth) : SHARD_YES;
        if (answer != SHARD_YES)
            return answer;
    }
    for (int32_t k = n->n_in; k < n->n_in + n->n_out; k++) {
        const onnx_value *v = n->out[k - n->n_in];
        if (!v || port[k].state != SHARD_CUT)
            continue;
        int32_t known = g->part_of[v->stamp];
        if (known ? !same(g->part[known - 1].at, port[k].at) : add_part(g, v, port[k].at) != 0)
            return SHARD_NO;
    }
    return SHARD_YES;
}

/* Node `node` joins the strip, its input or output `from` being cut so. */
static shard_answer include(grower *g, int32_t node, int32_t from, shard_layout at, int depth)
{
    if (g->n_members > MAX_MEMBERS && !g->seed->batch)
        return SHARD_NO;
    if (g->member_of[node]) {
        const shard_port *p = &g->member[g->member_of[node] - 1].port[from];
        return p->state == SHARD_CUT && same(p->at, at) ? SHARD_YES : SHARD_NO;
    }
    onnx_node *n = &root(g)->node[node];
    if (is_denied(g, node)) {
        g->why = "the operator beside it is cut another way";
        return SHARD_NO;
    }
    shard_port *port = onnx_take(&g->arena, (size_t)(n->n_in + n->n_out), sizeof *port);
    if (!port || util_grow(&g->member, &g->members_capacity, g->n_members + 1, sizeof *g->member)) {
        g->failed = true;
        return SHARD_NO;
    }
    shard_ask ask = {.n = n, .units = g->units, .from = from, .at = at, .port = port};
    shard_answer answer = shard_relate(&ask);
    if (answer == SHARD_OTHER) {
        g->asked = ask;
        g->asked_node = node;
    }
    if (answer != SHARD_YES) {
        g->why = ask.why ? ask.why : g->why;
        return answer;
    }
    g->member[g->n_members++] = (shard_member){node, port};
    g->member_of[node] = (int32_t)g->n_members;
    g->lowest = n->folded ? g->lowest : UTIL_MIN(g->lowest, g->s->node_rank[node]);
    return connect(g, n, port, depth);
}

/* ---- one attempt ---- */

static shard_answer begin(grower *g)
{
    const shard_seed *seed = g->seed;
    shard_layout at = seed->at;
    at.outer *= g->now->outer;
    at.inner *= g->now->inner;
    g->units = seed->units / (g->now->outer * g->now->inner);
    if (seed->node >= 0)
        return include(g, seed->node, root(g)->node[seed->node].n_in, at, 0);
    if (add_part(g, root(g)->value[seed->value], at))
        return SHARD_NO;
    g->part[0].sliced = true;
    return SHARD_YES;
}

static shard_answer go_forward(grower *g)
{
    for (; g->next < g->n_parts; g->next++) {
        shard_part part = g->part[g->next];
        if (root(g)->value[part.value]->constant)
            continue; /* its other readers have nothing to do with the strip */
        for (int32_t e = g->s->use_off[part.value]; e < g->s->use_off[part.value + 1]; e++) {
            shard_use use = g->s->use[e];
            size_t n_members = g->n_members, n_parts = g->n_parts;
            if (g->member_of[use.node] || use.port < 0)
                continue;
            shard_answer answer = include(g, use.node, use.port, part.at, 0);
            if (answer == SHARD_OTHER || g->failed)
                return answer;
            if (answer == SHARD_NO)
                take_back(g, n_members, n_parts);
        }
    }
    return SHARD_YES;
}

/* Values that pieces share with the rest must be put together, which needs one run of units. */
static bool can_join(const grower *g)
{
    for (size_t i = 0; i < g->n_parts; i++) {
        const shard_part *p = &g->part[i];
        bool outside = g->s->leaves[p->value];
        if (root(g)->value[p->value]->constant || p->sliced)
            continue;
        for (int32_t e = g->s->use_off[p->value]; e < g->s->use_off[p->value + 1]; e++)
            outside |= !g->member_of[g->s->use[e].node];
        if (outside && p->at.outer != 1)
            return false;
    }
    return true;
}

static double score(const grower *g)
{
    double flops = 0;
    for (size_t i = 0; i < g->n_members; i++) {
        const onnx_node *n = &root(g)->node[g->member[i].node];
        flops += n->folded ? 0 : (double)n->flops + 1;
    }
    return flops * (1 - 0.5 / (double)UTIL_MIN(g->units, MANY_UNITS));
}

static int by_rank(const void *x, const void *y, void *data)
{
    const int32_t *rank = data;
    int32_t a = rank[((const shard_member *)x)->node], b = rank[((const shard_member *)y)->node];
    return a < b ? -1 : a > b;
}

/* Into the arena of all strips. */
static int keep(grower *g, shard_strip *out)
{
    onnx_arena *arena = &g->s->arena;
    out->units = g->units;
    out->n_members = (int32_t)g->n_members;
    out->n_parts = (int32_t)g->n_parts;
    out->member = onnx_take(arena, g->n_members, sizeof *out->member);
    out->part = onnx_take(arena, g->n_parts, sizeof *out->part);
    if (!out->member || !out->part)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < g->n_members; i++) {
        const onnx_node *n = &root(g)->node[g->member[i].node];
        size_t ports = (size_t)(n->n_in + n->n_out);
        out->member[i] = g->member[i];
        if (!(out->member[i].port = onnx_take(arena, ports, sizeof(shard_port))))
            return MOIRAI_EFAIL;
        memcpy(out->member[i].port, g->member[i].port, ports * sizeof(shard_port));
    }
    memcpy(out->part, g->part, g->n_parts * sizeof *out->part);
    qsort_r(out->member, g->n_members, sizeof *out->member, by_rank, g->s->node_rank);
    return 0;
}

/* ---- all attempts ---- */

static void add_attempts(const grower *g, attempt *list, int *n)
{
    const attempt *now = g->now;
    attempt base = *now;
    for (int i = 0; i < g->asked.n_choices && *n < MAX_ATTEMPTS; i++) {
        list[*n] = base;
        list[*n].outer *= g->asked.choice[i].outer;
        list[*n].inner *= g->asked.choice[i].inner;
        *n += 1;
    }
    if (base.n_denied < MAX_DENIED && *n < MAX_ATTEMPTS) {
        base.denied[base.n_denied++] = g->asked_node;
        list[(*n)++] = base;
    }
}

static int try_one(grower *g, attempt *list, int *n, double *best, shard_strip *out)
{
    g->next = 0;
    g->lowest = INT32_MAX;
    shard_answer answer = begin(g);
    answer = answer == SHARD_YES ? go_forward(g) : answer;
    int rc = g->failed ? MOIRAI_EFAIL : 0;
    if (answer == SHARD_OTHER)
        add_attempts(g, list, n);
    else if (!rc && answer == SHARD_YES && g->units > 1 && can_join(g) && score(g) > *best) {
        *best = score(g);
        rc = keep(g, out);
    } else if (!rc && answer == SHARD_YES && !g->why) {
        g->why = "its pieces can't be put together";
    }
    take_back(g, 0, 0);
    onnx_arena_free(&g->arena);
    return rc;
}

int shard_grow(moirai_shards *s, const shard_seed *seed, shard_strip *out, const char **why)
{
    grower g = {.s = s, .seed = seed, .work = &s->work, .part_of = s->work.part_of, .member_of = s->work.member_of};
    attempt list[MAX_ATTEMPTS] = {{.outer = 1, .inner = 1}};
    double best = 0;
    int n = 1;
    *out = (shard_strip){0};
    int rc = 0;
    for (int i = 0; i < n && !rc; i++) {
        attempt now = list[i];
        g.now = &now;
        rc = try_one(&g, list, &n, &best, out);
    }
    *why = g.why ? g.why : "it has one unit only";
    free(g.part);
    free(g.member);
    onnx_arena_free(&g.arena);
    return rc;
}
