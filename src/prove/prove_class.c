/* What is proven of a block between all pairs of devices, and of the chain of blocks.
 *
 * For each pair the certificate lists proofs: one by a search tree (prove_tree.c), one by prices on loads (prove_loads.c), or leaves, cases with
 * prices that exclude a length (prove_price.c) and leave nothing out (prove_cases.c). Leaves are about components, kinds
 * and spanning trees that the certificate names and that are checked here. A pair without proofs is bounded by its longest path, which needs no
 * help; one whose image by an exchange of equal devices is proven is proven with it. */
#include <string.h>
#include <yyjson.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define NO_TREE "a tree's edge closes a ring or leaves its component"
#define FAR ((__int128)1 << 120) /* what a path costs is counted up to here: less is still true */

/* ---- a pair ---- */

/* The leaf's bound: one more than the length its prices exclude, or the longest path. */
static int leaf_bound(int64_t *ns, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf)
{
    bool holds;
    if (!leaf->priced || leaf->length_ns < *ns)
        return 0;
    int rc = prove_prices(&holds, b, a, z, leaf);
    if (!rc && !holds)
        rc = moirai_error(MOIRAI_EVERIFY, "prices do not exclude a length of %lld ns", (long long)leaf->length_ns);
    *ns = leaf->length_ns + 1;
    return rc;
}

static int pair_bound(int64_t *ns, moirai_proof *proof, const prove_block *b, int32_t a, int32_t z, yyjson_val *list)
{
    prove_leaf *leaf;
    util_memory memory = {0};
    int32_t n;
    int64_t path = *ns, least = INT64_MAX;
    int rc = prove_read_leaves(&leaf, &n, &memory, b, a, z, list, true);
    for (int32_t i = 0; !rc && i < n; i++) {
        int64_t bound = path;
        rc = leaf_bound(&bound, b, a, z, &leaf[i]);
        least = UTIL_MIN(least, bound);
        proof->leaves++;
    }
    util_release(&memory);
    *ns = n ? UTIL_MAX(path, least) : path;
    return rc;
}

/* What prices on loads prove goes to `apart` where bytes had prices. */
static int read_pair(int64_t *bounds, int64_t *apart, moirai_proof *proof, const prove_block *b, yyjson_val *object)
{
    int32_t K = b->p->K, a = prove_index(object, "entry", K), z = prove_index(object, "exit", K);
    int64_t claim = prove_number(object, "lower_ns"), by_loads = 0;
    if (a < 0 || z < 0 || (b->entry < 0 && a) || (b->exit < 0 && z))
        return prove_wrong("entry or exit of a pair is out of range");
    int64_t *bound = &bounds[a * K + z], *own = &apart[a * K + z];
    int64_t by_leaves = *bound;
    bool by_bytes = false;
    int rc = 0;
    if (prove_get(object, "leaves") && prove_interior(b) && !b->kind)
        return prove_wrong("leaves of a class without component_kind and trees");
    if (prove_get(object, "search"))
        rc = prove_tree(bound, &proof->searched, b, a, z, prove_get(object, "search"));
    if (!rc && prove_get(object, "loads"))
        rc = prove_loads(&by_loads, &by_bytes, proof, b, a, z, false, prove_get(object, "loads"));
    rc = rc ? rc : pair_bound(&by_leaves, proof, b, a, z, prove_get(object, "leaves"));
    *bound = UTIL_MAX(*bound, UTIL_MAX(by_leaves, by_bytes ? 0 : by_loads));
    *own = UTIL_MAX(*own, by_bytes ? by_loads : 0);
    proof->pairs++;
    int64_t proven = UTIL_MAX(*bound, *own);
    if (!rc && proven < claim)
        rc = moirai_error(MOIRAI_EVERIFY, "%lld ns are claimed, %lld proven", (long long)claim, (long long)proven);
    return rc ? moirai_error_prefix(rc, "between devices %d and %d", a, z) : 0;
}

/* ---- a class ---- */

/* Operators between the cuts by component, these in order of their first ones, and behind those of each its edges, e as b->n + e:
 * item[off[c]] .. item[off[c + 1] - 1]. An edge from cut to cut is in none. */
typedef struct parts {
    int32_t n, *off, *item;
    int32_t *place; /* of each operator among those of its component and the cuts */
} parts;

static int32_t root_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static int find_parts(parts *x, util_memory *m, const prove_block *b)
{
    size_t n = (size_t)b->n, items = n + (size_t)b->n_edges;
    int32_t *parent, *part;
    UTIL_TAKE(m, parent, n);
    UTIL_TAKE(m, part, items);
    UTIL_TAKE(m, x->off, n + 2);
    UTIL_TAKE(m, x->item, items);
    UTIL_TAKE(m, x->place, n);
    if (m->failed)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < b->n; i++)
        parent[i] = i;
    for (const prove_edge *e = b->edge; e < b->edge + b->n_edges; e++)
        if (!prove_is_cut(b, e->from) && !prove_is_cut(b, e->to)) {
            int32_t i = root_of(parent, e->from), j = root_of(parent, e->to);
            parent[UTIL_MAX(i, j)] = UTIL_MIN(i, j);
        }
    for (int32_t i = 0; i < b->n; i++) {
        int32_t root = root_of(parent, i); /* the least of its component: seen first */
        part[i] = prove_is_cut(b, i) ? PROVE_NONE : root == i ? x->n++ : part[root];
    }
    for (int32_t e = 0; e < b->n_edges; e++)
        part[b->n + e] = part[prove_is_cut(b, b->edge[e].from) ? b->edge[e].to : b->edge[e].from];
    for (size_t i = 0; i < items; i++)
        x->off[part[i] + 2] += part[i] >= 0;
    for (int32_t c = 0; c < x->n; c++)
        x->off[c + 2] += x->off[c + 1];
    for (size_t i = 0; i < items; i++)
        if (part[i] >= 0)
            x->item[x->off[part[i] + 1]++] = (int32_t)i;
    return 0;
}

/* Component c as a block between the same cuts, in which tensors have the readers that they have in the whole one. */
static int new_part(prove_block *out, const prove_block *b, const parts *x, int32_t c)
{
    int32_t items = x->off[c + 1] - x->off[c];
    const int32_t *item = &x->item[x->off[c]];
    *out = (prove_block){.p = b->p, .entry = b->entry, .exit = PROVE_NONE, .shared = PROVE_NONE};
    UTIL_TAKE(&out->memory, out->op, (size_t)items + 2);
    UTIL_TAKE(&out->memory, out->edge, (size_t)items);
    if (out->memory.failed)
        return MOIRAI_EFAIL;
    if (b->entry >= 0)
        out->op[out->n++] = b->entry;
    for (; items > 0 && *item < b->n; items--)
        out->op[out->n++] = *item++;
    if (b->exit >= 0)
        out->op[out->exit = out->n++] = b->exit;
    for (int32_t i = 0; i < out->n; i++) {
        x->place[out->op[i]] = i;
        out->op[i] = b->op[out->op[i]];
    }
    for (; items > 0; items--) {
        prove_edge *e = &out->edge[out->n_edges++];
        *e = b->edge[*item++ - b->n];
        e->from = x->place[e->from];
        e->to = x->place[e->to];
    }
    return 0;
}

/* The first component of a kind is kept, every other one compared with it. */
static int take_part(prove_block *b, const parts *x, int32_t c, int32_t kind)
{
    if (kind > b->n_kinds)
        return prove_wrong("kinds are not numbered in order");
    prove_kind *k = &b->kind[kind];
    if (kind == b->n_kinds) {
        b->n_kinds++;
        *k = (prove_kind){.first = c, .count = 1};
        return new_part(&k->one, b, x, c);
    }
    prove_block part;
    int rc = new_part(&part, b, x, c);
    k->count++;
    if (!rc && !prove_same_block(&k->one, &part))
        rc = moirai_error(MOIRAI_EVERIFY, "component %d is not a copy of component %d", c, k->first);
    prove_block_free(&part);
    return rc;
}

int prove_kinds(prove_block *b, const int32_t *kind, size_t n)
{
    util_memory memory = {0};
    parts x = {0};
    int rc = find_parts(&x, &memory, b);
    if (!rc && n != (size_t)x.n)
        rc = prove_wrong("component_kind has not one number per component");
    if (!rc && !UTIL_TAKE(&b->memory, b->kind, n))
        rc = MOIRAI_EFAIL;
    for (int32_t c = 0; c < x.n && !rc; c++) {
        rc = prove_go_on(b->p);
        rc = rc ? rc : take_part(b, &x, c, kind[c]);
    }
    util_release(&memory);
    return rc;
}

static int32_t find_edge(const prove_block *b, int32_t from, int32_t output, int32_t to)
{
    for (int32_t e = 0; e < b->n_edges; e++)
        if (b->edge[e].from == from && b->edge[e].output == output && b->edge[e].to == to)
            return e;
    return -1;
}

/* Edges as places of operators and an output; a component of m operators is spanned by m - 1 of them that lead from its first one to all. */
int prove_span(prove_block *b, int32_t kind, const int32_t *number, size_t n)
{
    prove_kind *k = &b->kind[kind];
    int32_t m = prove_interior(&k->one), first = prove_first(&k->one), done = 1, *tree;
    if (n != 3 * (size_t)(m - 1))
        return prove_wrong("a tree has too few or too many edges");
    UTIL_TAKE(&b->memory, tree, (size_t)m);
    UTIL_TAKE(&b->memory, k->order, (size_t)m);
    UTIL_TAKE(&b->memory, k->above, (size_t)m);
    UTIL_TAKE(&b->memory, k->edge, (size_t)m);
    int rc = util_taken_all(&b->memory);
    for (int32_t t = 0; t < m - 1 && !rc; t++, number += 3) {
        if (number[0] >= m || number[2] >= m || number[0] == number[2])
            return prove_wrong(NO_TREE);
        tree[t] = find_edge(&k->one, first + number[0], number[1], first + number[2]);
        rc = tree[t] < 0 ? prove_wrong("a tree's edge is not in the problem") : prove_go_on(b->p);
        k->edge[t + 1] = -1;
    }
    for (int32_t y = 0; y < done && !rc; y++)
        for (int32_t t = 0; t < m - 1; t++) {
            const prove_edge *e = &k->one.edge[tree[t]];
            int32_t mine = first + k->order[y], other = (e->from == mine ? e->to : e->from) - first;
            if ((e->from != mine && e->to != mine) || other == 0 || k->edge[other] >= 0)
                continue;
            k->above[other] = k->order[y];
            k->edge[other] = tree[t];
            k->order[done++] = other;
        }
    return rc || done == m ? rc : prove_wrong(NO_TREE);
}

static int read_kinds(prove_block *b, yyjson_val *object)
{
    yyjson_val *list = prove_get(object, "trees"), *value;
    size_t n, i, max;
    int32_t *number;
    int rc = prove_list32(&number, &n, &b->memory, prove_get(object, "component_kind"), b->n, "component_kind");
    rc = rc ? rc : prove_kinds(b, number, n);
    if (!rc && yyjson_arr_size(list) != (size_t)b->n_kinds)
        rc = prove_wrong("trees has not one tree per kind");
    yyjson_arr_foreach(list, i, max, value) {
        rc = rc ? rc : prove_list32(&number, &n, &b->memory, value, INT32_MAX, "a tree");
        rc = rc ? rc : prove_span(b, (int32_t)i, number, n);
    }
    return rc;
}

int prove_share(prove_block *b, int32_t output)
{
    if (b->p->by_edge || b->entry < 0)
        return prove_wrong("a shared tensor needs flow tensor and an entry");
    b->shared = prove_first_sent(b, output);
    for (int32_t i = 0; i < b->n_kinds; i++)
        b->kind[i].one.shared = prove_first_sent(&b->kind[i].one, output);
    return b->shared >= 0 ? 0 : prove_wrong("the shared tensor is not read in its block");
}

/* The first of the pairs that an exchange of equal devices takes to (a, z), and apart from it whether the ends are on
 * one device. An end that is not there is device 0. */
static int32_t image_of(const prove_block *b, const int32_t *least, int32_t a, int32_t z)
{
    bool apart = b->entry >= 0 && b->exit >= 0 && a != z;
    return 2 * (least[a] * b->p->K + least[z]) + apart;
}

/* A pair is proven where an image of it is; what is proven with prices on bytes, `apart`, holds for its own pair alone. */
static int share_among_equals(int64_t *bound, const prove_block *b, const int64_t *apart, util_memory *m)
{
    int32_t K = b->p->K, least[PROVE_MASK_DEVICES];
    int64_t *most;
    if (!PROVE_TAKE(m, most, 2 * (size_t)K * (size_t)K))
        return MOIRAI_EFAIL;
    prove_equal_devices(b, least);
    for (int32_t i = 0; i < K * K; i++) {
        int64_t *at = &most[image_of(b, least, i / K, i % K)];
        *at = UTIL_MAX(*at, bound[i]);
    }
    for (int32_t i = 0; i < K * K; i++)
        bound[i] = UTIL_MAX(most[image_of(b, least, i / K, i % K)], apart[i]);
    return 0;
}

static int read_pairs(int64_t *bounds, moirai_proof *proof, const prove_block *b, yyjson_val *list)
{
    size_t i, max;
    util_memory memory = {0};
    int64_t *apart;
    yyjson_val *value;
    int rc = PROVE_TAKE(&memory, apart, (size_t)b->p->K * (size_t)b->p->K) ? 0 : MOIRAI_EFAIL;
    yyjson_arr_foreach(list, i, max, value)
        rc = rc ? rc : read_pair(bounds, apart, proof, b, value);
    rc = rc ? rc : share_among_equals(bounds, b, apart, &memory);
    util_release(&memory);
    return rc;
}

int prove_class(int64_t *bounds, moirai_proof *proof, prove_block *b, yyjson_val *object)
{
    int rc = prove_paths(bounds, b);
    if (!rc && prove_get(object, "component_kind"))
        rc = read_kinds(b, object);
    if (!rc && b->kind && prove_get(object, "shared"))
        rc = prove_share(b, (int32_t)prove_number(object, "shared"));
    return rc || (!b->kind && !prove_get(object, "pairs")) ? rc
                                                           : read_pairs(bounds, proof, b, prove_get(object, "pairs"));
}

/* ---- the chain ---- */

/* The next cut, or the end, on each device: next[z] is the least over a of cost[a] + what block i takes from a to z. */
static void pass_block(__int128 *next, const prove_chain *x, int32_t i, const __int128 *cost, const __int128 *value)
{
    int32_t K = x->p->K;
    uint64_t in = i > 0 ? x->p->may[x->cut[i - 1]] : 1;
    bool first = true;
    for (int32_t a = 0; a < K; a++) {
        int64_t at = ((int64_t)x->block_class[i] * K + a) * K;
        if (!(in >> a & 1))
            continue;
        for (int32_t z = 0; z < K; z++) {
            __int128 sum = UTIL_MIN(cost[a], FAR) + (value ? value[at + z] : x->bound[at + z]);
            next[z] = first ? sum : UTIL_MIN(next[z], sum);
        }
        first = false;
    }
}

int prove_chain_cost(__int128 *least, const prove_chain *x, int64_t unit, const int64_t *price, const __int128 *value)
{
    const prove_problem *p = x->p;
    int32_t K = p->K;
    __int128 cost[PROVE_MASK_DEVICES] = {0}, next[PROVE_MASK_DEVICES] = {0};
    for (int32_t i = 0; i <= x->n_cuts; i++) {
        int rc = prove_look(p, i);
        if (rc)
            return rc;
        pass_block(next, x, i, cost, value);
        for (int32_t z = 0; z < K && i < x->n_cuts; z++)
            if (p->may[x->cut[i]] >> z & 1)
                next[z] += (__int128)p->time[(int64_t)x->cut[i] * K + z] * unit +
                           (price ? (__int128)price[z] * p->bytes[x->cut[i]] : 0);
        memcpy(cost, next, sizeof cost);
    }
    *least = cost[0];
    return 0;
}
