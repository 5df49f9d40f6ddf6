/* What is proven of a block between all pairs of devices, and of the chain of blocks.
 *
 * For each pair the certificate lists proofs: one by a search tree (prove_tree.c), one by prices on loads (prove_loads.c), or leaves, cases with
 * prices that exclude a length (prove_price.c) and leave nothing out (prove_cases.c). Leaves are about components, kinds
 * and spanning trees that the certificate names and that are checked here. A pair without proofs is bounded by its longest path, which needs no
 * help; one whose image by an exchange of equal devices is proven is proven with it. */
#include <string.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define LOOK 16                  /* cuts per look at the clock */
#define FAR ((__int128)1 << 120) /* what a path costs is counted up to here: less is still true */

/* ---- a pair ---- */

/* The leaf's bound: one more than the length its prices exclude, or the longest path. */
static int leaf_bound(int64_t *ns, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf)
{
    if (!leaf->priced || leaf->length_ns < *ns)
        return 0;
    bool holds;
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

/* What prices on loads prove goes to `bounds`, or to `apart` where bytes had prices. */
static int read_loads(int64_t *bounds, int64_t *apart, moirai_proof *proof, const prove_block *b, int32_t a, int32_t z,
                      yyjson_val *object)
{
    int64_t ns = 0, at = (int64_t)a * b->p->K + z;
    bool by_bytes = false;
    int rc = prove_loads(&ns, &by_bytes, proof, b, a, z, object);
    int64_t *to = by_bytes ? &apart[at] : &bounds[at];
    if (!rc)
        *to = UTIL_MAX(*to, ns);
    return rc;
}

static int read_pair(int64_t *bounds, int64_t *apart, moirai_proof *proof, const prove_block *b, yyjson_val *object)
{
    int32_t K = b->p->K, a = prove_device(b->p, object, "entry"), z = prove_device(b->p, object, "exit");
    int64_t claim = prove_number(object, "lower_ns");
    if (a < 0 || z < 0 || (b->entry < 0 && a) || (b->exit < 0 && z))
        return prove_wrong("entry or exit of a pair is out of range");
    int64_t *bound = &bounds[a * K + z];
    int64_t by_leaves = *bound;
    int rc = 0;
    if (prove_get(object, "leaves") && b->n_components && !b->tree_off)
        return prove_wrong("leaves of a class without component_kind and trees");
    if (prove_get(object, "search"))
        rc = prove_tree(bound, &proof->searched, b, a, z, prove_get(object, "search"));
    if (!rc && prove_get(object, "loads"))
        rc = read_loads(bounds, apart, proof, b, a, z, prove_get(object, "loads"));
    rc = rc ? rc : pair_bound(&by_leaves, proof, b, a, z, prove_get(object, "leaves"));
    *bound = UTIL_MAX(*bound, by_leaves);
    proof->pairs++;
    int64_t proven = UTIL_MAX(*bound, apart[a * K + z]);
    if (!rc && proven < claim)
        rc = moirai_error(MOIRAI_EVERIFY, "%lld ns are claimed, %lld proven", (long long)claim, (long long)proven);
    return rc ? moirai_error_prefix(rc, "between devices %d and %d", a, z) : 0;
}

/* ---- a class ---- */

static int read_kinds(prove_block *b, yyjson_val *object)
{
    int32_t *kind;
    size_t n;
    int rc = prove_list32(&kind, &n, &b->memory, prove_get(object, "component_kind"), b->n, "component_kind");
    UTIL_TAKE(&b->memory, b->kind_component, (size_t)b->n_components);
    UTIL_TAKE(&b->memory, b->kind_count, (size_t)b->n_components);
    if (rc || b->memory.failed)
        return rc ? rc : MOIRAI_EFAIL;
    if (n != (size_t)b->n_components)
        return prove_wrong("component_kind has not one number per component");
    for (int32_t c = 0; c < b->n_components; c++) {
        if (kind[c] > b->n_kinds)
            return prove_wrong("kinds are not numbered in order");
        if (kind[c] == b->n_kinds)
            b->kind_component[b->n_kinds++] = c;
        else if (!prove_same_component(b, b->kind_component[kind[c]], c))
            return moirai_error(MOIRAI_EVERIFY, "component %d is not a copy of component %d", c,
                                b->kind_component[kind[c]]);
        b->kind_count[kind[c]]++;
    }
    return 0;
}

static int32_t find_edge(const prove_block *b, int32_t from, int32_t output, int32_t to)
{
    for (int32_t e = 0; e < b->n_edges; e++)
        if (b->edge[e].from == from && b->edge[e].output == output && b->edge[e].to == to)
            return e;
    return -1;
}

/* A component of m operators needs m - 1 edges that never close a ring: then they span it. */
static int read_tree(prove_block *b, int32_t kind, yyjson_val *list, int32_t *label)
{
    int32_t c = b->kind_component[kind], begin = b->component_off[c], m = b->component_off[c + 1] - begin, *number;
    size_t n;
    int rc = prove_list32(&number, &n, &b->memory, list, INT32_MAX, "a tree");
    if (!rc && n != 3 * (size_t)(m - 1))
        rc = prove_wrong("a tree has too few or too many edges");
    for (int32_t i = 0; i < m; i++)
        label[i] = i;
    b->tree_off[kind + 1] = b->tree_off[kind];
    for (size_t i = 0; !rc && i < n; i += 3) {
        int32_t from = number[i], to = number[i + 2];
        if (from >= m || to >= m || label[from] == label[to])
            return prove_wrong("a tree's edge closes a ring or leaves its component");
        int32_t e = find_edge(b, b->component_op[begin + from], number[i + 1], b->component_op[begin + to]);
        rc = e < 0 ? prove_wrong("a tree's edge is not in the problem") : prove_go_on(b->p);
        b->tree_edge[b->tree_off[kind + 1]++] = e;
        for (int32_t y = 0, old = label[to]; y < m; y++)
            if (label[y] == old)
                label[y] = label[from];
    }
    return rc;
}

static int read_trees(prove_block *b, yyjson_val *object)
{
    yyjson_val *list = prove_get(object, "trees"), *value;
    int32_t *label;
    if (yyjson_arr_size(list) != (size_t)b->n_kinds)
        return prove_wrong("trees has not one tree per kind");
    UTIL_TAKE(&b->memory, b->tree_off, (size_t)b->n_kinds + 1);
    UTIL_TAKE(&b->memory, b->tree_edge, (size_t)b->n);
    UTIL_TAKE(&b->memory, label, (size_t)b->n);
    int rc = util_taken_all(&b->memory);
    size_t kind, max;
    yyjson_arr_foreach(list, kind, max, value)
        rc = rc ? rc : read_tree(b, (int32_t)kind, value, label);
    return rc;
}

static int read_shared(prove_block *b, yyjson_val *object)
{
    if (!prove_get(object, "shared"))
        return 0;
    if (b->p->by_edge || b->entry < 0)
        return prove_wrong("a shared tensor needs flow tensor and an entry");
    for (int32_t e = 0; e < b->n_edges && b->shared < 0; e++)
        if (prove_is_sent(b, e, (int32_t)prove_number(object, "shared")))
            b->shared = e;
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
    bool described = prove_get(object, "component_kind") != NULL;
    int rc = prove_components(b);
    rc = rc ? rc : prove_paths(bounds, b);
    if (!rc && described) {
        rc = read_kinds(b, object);
        rc = rc ? rc : read_trees(b, object);
        rc = rc ? rc : read_shared(b, object);
    }
    return rc || (!described && !prove_get(object, "pairs")) ? rc
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
        int rc = i % LOOK ? 0 : prove_go_on(p);
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
