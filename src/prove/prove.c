/* moirai prove: from a certificate to a bound, trusting nothing in it.
 *
 * The certificate names cuts, says which blocks are copies of each other and, for each class of copies and each pair of
 * devices of its cuts, lists leaves: cases with prices that exclude a length. Everything is checked: cuts
 * (prove_block.c), copies, components, spanning trees, that the cases leave nothing out (prove_cases.c), and each
 * leaf's inequality (prove_price.c), or a static proof of the pair (prove_static.c) or one by the pool of all devices
 * (prove_pool.c). A pair without leaves is bounded by its longest path, which needs no help. A recursion over the cuts
 * adds up: f(i, l) = least over k of f(i-1, k) + bound(block, k, l) + time of cut i on l. Since every operator of a
 * block runs after its entry cut has finished and before its exit cut starts, no plan is faster than f at the end.
 * Groups, memory and edges that jump over a cut are left out, which can only lower f.
 *
 * A certificate may leave operators out altogether (`floating`): a plan, seen at the others alone, is a plan of the
 * others, so that what is proven of them holds for the whole. */
#include "prove/prove_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define MAX_TIME (INT64_C(1) << 61) /* the reader keeps all times of a problem together below this */

typedef prove_chain prover;

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

static int pair_bound(int64_t *ns, prover *x, const prove_block *b, int32_t a, int32_t z, yyjson_val *list)
{
    size_t n = yyjson_arr_size(list), i, max, read = 0;
    if (n == 0)
        return 0;
    if (n > PROVE_MAX_LEAVES)
        return prove_wrong("a pair has too many leaves");
    prove_leaf *leaf = util_alloc(n, sizeof *leaf);
    int rc = leaf ? 0 : MOIRAI_EFAIL;
    int64_t path = *ns, least = INT64_MAX;
    yyjson_val *value;
    yyjson_arr_foreach(list, i, max, value) {
        if (rc)
            break;
        rc = prove_read_leaf(&leaf[read++], b, a, value);
    }
    if (!rc && !prove_cover(b, a, z, leaf, (int32_t)n, true))
        rc = prove_wrong("the leaves leave cases out");
    for (i = 0; !rc && i < n; i++) {
        int64_t bound = path;
        rc = leaf_bound(&bound, b, a, z, &leaf[i]);
        least = UTIL_MIN(least, bound);
        x->proof->leaves++;
    }
    for (i = 0; i < read; i++)
        prove_free_leaf(&leaf[i]);
    free(leaf);
    *ns = UTIL_MAX(path, least);
    return rc;
}

static int read_pair(prover *x, int32_t class_, yyjson_val *object)
{
    const prove_block *b = &x->class_[class_];
    int32_t K = x->p->n_devices, a, z;
    int64_t claim;
    if (!yyjson_is_obj(object) || !prove_int32(yyjson_obj_get(object, "entry"), 0, K - 1, &a) ||
        !prove_int32(yyjson_obj_get(object, "exit"), 0, K - 1, &z) || (b->entry < 0 && a) || (b->exit < 0 && z) ||
        !prove_int64(yyjson_obj_get(object, "lower_ns"), 0, INT64_MAX, &claim))
        return prove_wrong("entry, exit or lower_ns of a pair is missing or out of range");
    int64_t *bound = &x->bound[((int64_t)class_ * K + a) * K + z];
    int64_t by_leaves = *bound;
    int rc = 0;
    size_t i, max;
    yyjson_val *value;
    yyjson_arr_foreach(yyjson_obj_get(object, "static"), i, max, value)
        rc = rc ? rc : prove_static(bound, b, a, z, value);
    if (!rc && yyjson_obj_get(object, "pool"))
        rc = prove_pool(bound, b, a, z, yyjson_obj_get(object, "pool"));
    rc = rc ? rc : pair_bound(&by_leaves, x, b, a, z, yyjson_obj_get(object, "leaves"));
    *bound = UTIL_MAX(*bound, by_leaves);
    x->proof->pairs++;
    if (!rc && *bound < claim)
        rc = moirai_error(MOIRAI_EVERIFY, "%lld ns are claimed, %lld proven", (long long)claim, (long long)*bound);
    return rc ? moirai_error_prefix(rc, "class %d between devices %d and %d", class_, a, z) : 0;
}

/* ---- a class ---- */

static int read_kinds(prove_block *b, yyjson_val *object)
{
    int32_t *kind;
    size_t n;
    int rc = prove_list32(&kind, &n, yyjson_obj_get(object, "component_kind"), 0, b->n, "component_kind");
    b->kind_component = util_alloc((size_t)b->n_components, sizeof(int32_t));
    b->kind_count = util_alloc((size_t)b->n_components, sizeof(int32_t));
    if (!rc && (!b->kind_component || !b->kind_count))
        rc = MOIRAI_EFAIL;
    if (!rc && n != (size_t)b->n_components)
        rc = prove_wrong("component_kind has not one number per component");
    for (int32_t c = 0; !rc && c < b->n_components; c++) {
        if (kind[c] > b->n_kinds)
            rc = prove_wrong("kinds are not numbered in order");
        else if (kind[c] == b->n_kinds)
            b->kind_component[b->n_kinds++] = c;
        else if (!prove_same_component(b, b->kind_component[kind[c]], c))
            rc = moirai_error(MOIRAI_EVERIFY, "component %d is not a copy of component %d", c,
                              b->kind_component[kind[c]]);
        if (!rc)
            b->kind_count[kind[c]]++;
    }
    free(kind);
    return rc;
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
    int rc = prove_list32(&number, &n, list, 0, INT32_MAX, "a tree");
    if (!rc && n != 3 * (size_t)(m - 1))
        rc = prove_wrong("a tree has too few or too many edges");
    for (int32_t i = 0; i < m; i++)
        label[i] = i;
    for (size_t i = 0; !rc && i < n; i += 3) {
        int32_t from = number[i], to = number[i + 2];
        if (from >= m || to >= m || label[from] == label[to]) {
            rc = prove_wrong("a tree's edge closes a ring or leaves its component");
            break;
        }
        int32_t e = find_edge(b, b->component_op[begin + from], number[i + 1], b->component_op[begin + to]);
        if (e < 0)
            rc = prove_wrong("a tree's edge is not in the problem");
        b->tree_edge[b->tree_off[kind] + (int32_t)(i / 3)] = e;
        for (int32_t y = 0, old = label[to]; y < m; y++)
            if (label[y] == old)
                label[y] = label[from];
    }
    b->tree_off[kind + 1] = b->tree_off[kind] + m - 1;
    free(number);
    return rc;
}

static int read_trees(prove_block *b, yyjson_val *object)
{
    yyjson_val *list = yyjson_obj_get(object, "trees"), *value;
    if (yyjson_arr_size(list) != (size_t)b->n_kinds)
        return prove_wrong("trees has not one tree per kind");
    b->tree_off = util_alloc((size_t)b->n_kinds + 1, sizeof(int32_t));
    b->tree_edge = util_alloc((size_t)b->n, sizeof(int32_t));
    int32_t *label = util_alloc((size_t)b->n, sizeof *label);
    int rc = b->tree_off && b->tree_edge && label ? 0 : MOIRAI_EFAIL;
    size_t kind, max;
    yyjson_arr_foreach(list, kind, max, value)
        rc = rc ? rc : read_tree(b, (int32_t)kind, value, label);
    free(label);
    return rc;
}

static int read_shared(prove_block *b, yyjson_val *value)
{
    int32_t output;
    if (!value || yyjson_is_null(value))
        return 0;
    if (b->p->flow != MOIRAI_FLOW_TENSOR || b->entry < 0 || !prove_int32(value, 0, INT32_MAX, &output))
        return prove_wrong("a shared tensor needs flow tensor and an entry");
    for (int32_t e = 0; e < b->n_edges && b->shared_tensor < 0; e++)
        if (b->edge[e].from == b->entry && b->edge[e].output == output)
            b->shared_tensor = b->edge[e].tensor;
    return b->shared_tensor >= 0 ? 0 : prove_wrong("the shared tensor is not read in its block");
}

/* The first of the pairs that an exchange of equal devices takes to (a, z), and apart from it whether the ends are on
 * one device. An end that is not there is device 0. */
static int32_t image_of(const prove_block *b, const int32_t *least, int32_t a, int32_t z)
{
    bool apart = b->entry >= 0 && b->exit >= 0 && a != z;
    return 2 * (least[a] * b->p->n_devices + least[z]) + apart;
}

/* A pair is proven where an image of it is. */
static int share_among_equals(prover *x, int32_t class_)
{
    const prove_block *b = &x->class_[class_];
    int32_t K = x->p->n_devices, least[MOIRAI_MAX_DEVICES];
    int64_t *bound = x->bound + (int64_t)class_ * K * K, *most = util_alloc(2 * (size_t)K * (size_t)K, sizeof *most);
    if (!most)
        return MOIRAI_EFAIL;
    prove_equal_devices(b, least);
    for (int32_t i = 0; i < K * K; i++) {
        int64_t *at = &most[image_of(b, least, i / K, i % K)];
        *at = UTIL_MAX(*at, bound[i]);
    }
    for (int32_t i = 0; i < K * K; i++)
        bound[i] = most[image_of(b, least, i / K, i % K)];
    free(most);
    return 0;
}

static int read_class(prover *x, int32_t class_, yyjson_val *object)
{
    prove_block *b = &x->class_[class_];
    int32_t K = x->p->n_devices;
    int rc = prove_components(b);
    for (int32_t i = 0; !rc && i < K * K; i++) {
        int32_t a = i / K, z = i % K;
        if ((b->entry >= 0 || !a) && (b->exit >= 0 || !z))
            rc = prove_path_ns(&x->bound[((int64_t)class_ * K + a) * K + z], b, a, z);
    }
    yyjson_val *pairs = yyjson_obj_get(object, "pairs"), *value;
    if (rc || !yyjson_obj_get(object, "component_kind"))
        return rc ? rc : yyjson_arr_size(pairs) ? prove_wrong("pairs without component_kind") : 0;
    rc = read_kinds(b, object);
    rc = rc ? rc : read_trees(b, object);
    rc = rc ? rc : read_shared(b, yyjson_obj_get(object, "shared"));
    if (rc)
        return moirai_error_prefix(rc, "class %d", class_);
    size_t i, max;
    yyjson_arr_foreach(pairs, i, max, value)
        rc = rc ? rc : read_pair(x, class_, value);
    return rc ? rc : share_among_equals(x, class_);
}

/* ---- the chain ---- */

/* What floats is left out, and the rest of the certificate is about the rest of the problem. */
static int read_floating(prover *x, yyjson_val *root)
{
    yyjson_val *list = yyjson_obj_get(root, "floating");
    if (!list)
        return 0;
    int32_t *number;
    size_t n;
    bool *gone = util_alloc((size_t)x->p->n_ops, sizeof *gone);
    int rc = prove_list32(&number, &n, list, 0, x->p->n_ops - 1, "floating");
    if (!rc && !gone)
        rc = MOIRAI_EFAIL;
    for (size_t i = 0; !rc && i < n; i++) {
        if (gone[number[i]])
            rc = prove_wrong("an operator floats twice");
        gone[number[i]] = true;
    }
    if (!rc && n == (size_t)x->p->n_ops)
        rc = prove_wrong("all operators float");
    rc = rc ? rc : moirai_problem_without(&x->spine, x->p, gone);
    if (!rc)
        x->p = x->spine;
    x->proof->floating = (int64_t)n;
    free(number);
    free(gone);
    return rc;
}

static int read_cuts(prover *x, yyjson_val *root)
{
    int32_t *cut;
    size_t n;
    int rc = prove_list32(&cut, &n, yyjson_obj_get(root, "cuts"), 0, x->p->n_ops - 1, "cuts");
    rc = rc ? rc : prove_cuts_new(&x->cuts, x->p, (int32_t)n, cut);
    free(cut);
    rc = rc ? rc
            : prove_list32(&x->block_class, &n, yyjson_obj_get(root, "block_class"), 0, x->cuts.n_cuts, "block_class");
    if (!rc && n != (size_t)x->cuts.n_cuts + 1)
        rc = prove_wrong("block_class has not one number per block");
    x->proof->cuts = x->cuts.n_cuts;
    return rc;
}

/* The first block of each class is kept, every other one compared with it. */
static int compare_blocks(prover *x)
{
    int32_t n = x->cuts.n_cuts + 1;
    x->class_ = util_alloc((size_t)n, sizeof *x->class_);
    int rc = x->class_ ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; !rc && i < n; i++) {
        int32_t c = x->block_class[i];
        prove_block b;
        if (c > x->n_classes) {
            rc = prove_wrong("classes are not numbered in order");
        } else if (c == x->n_classes) {
            x->n_classes++;
            rc = prove_block_new(&x->class_[c], x->p, &x->cuts, i);
        } else {
            rc = prove_block_new(&b, x->p, &x->cuts, i);
            if (!rc && !prove_same_block(&x->class_[c], &b))
                rc = moirai_error(MOIRAI_EVERIFY, "block %d is not a copy of the first block of class %d", i, c);
            prove_block_free(&b);
        }
    }
    x->proof->classes = x->n_classes;
    return rc;
}

static int64_t chain_bound(const prover *x)
{
    const moirai_problem *p = x->p;
    int32_t K = p->n_devices, n = x->cuts.n_cuts;
    int64_t finish[MOIRAI_MAX_DEVICES] = {0}, next[MOIRAI_MAX_DEVICES];
    for (int32_t i = 0; i <= n; i++) {
        uint64_t in = i > 0 ? p->op_devices[x->cuts.cut[i - 1]] : 1, out = i < n ? p->op_devices[x->cuts.cut[i]] : 1;
        for (int32_t z = 0; z < K; z++) {
            next[z] = INT64_MAX;
            for (int32_t a = 0; a < K; a++)
                if ((in >> a & 1) && (out >> z & 1)) {
                    int64_t bound = x->bound[((int64_t)x->block_class[i] * K + a) * K + z];
                    next[z] =
                        UTIL_MIN(next[z], finish[a] > MAX_TIME || bound > MAX_TIME ? MAX_TIME : finish[a] + bound);
                }
            if (i < n && (out >> z & 1))
                next[z] += moirai_op_ns(p, x->cuts.cut[i], z);
        }
        memcpy(finish, next, sizeof finish);
    }
    return finish[0];
}

static int read_claims(prover *x, yyjson_val *root)
{
    int64_t n;
    if (!prove_int64(yyjson_obj_get(root, "certified_bound_ns"), 0, INT64_MAX, &x->proof->certified_ns) ||
        !prove_int64(yyjson_obj_get(root, "lower_bound_ns"), 0, INT64_MAX, &x->proof->lower_bound_ns) ||
        !prove_int64(yyjson_obj_get(root, "operators"), 0, INT32_MAX, &n))
        return prove_wrong("certified_bound_ns, lower_bound_ns or operators is missing");
    if (n != x->p->n_ops)
        return moirai_error(MOIRAI_EVERIFY, "a certificate for %lld operators, a problem with %d", (long long)n,
                            x->p->n_ops);
    return x->proof->certified_ns <= x->proof->lower_bound_ns
               ? 0
               : prove_wrong("certified_bound_ns is above lower_bound_ns");
}

static int prove_all(prover *x, yyjson_val *root)
{
    int rc = read_claims(x, root);
    rc = rc ? rc : read_floating(x, root);
    rc = rc ? rc : read_cuts(x, root);
    rc = rc ? rc : compare_blocks(x);
    size_t K = (size_t)x->p->n_devices, i, max;
    if (!rc && !(x->bound = util_alloc((size_t)x->n_classes * K * K, sizeof(int64_t))))
        rc = MOIRAI_EFAIL;
    yyjson_val *classes = yyjson_obj_get(root, "classes"), *value;
    if (!rc && yyjson_arr_size(classes) != (size_t)x->n_classes)
        rc = prove_wrong("classes has not one entry per class");
    yyjson_arr_foreach(classes, i, max, value)
        rc = rc ? rc : read_class(x, (int32_t)i, value);
    if (rc)
        return rc;
    int64_t by_memory;
    rc = prove_memory(&by_memory, x, yyjson_obj_get(root, "memory"));
    if (rc)
        return rc;
    x->proof->proven_ns = UTIL_MAX(chain_bound(x), by_memory);
    if (x->proof->proven_ns < x->proof->certified_ns)
        return moirai_error(MOIRAI_EVERIFY, "%lld ns are claimed, %lld proven", (long long)x->proof->certified_ns,
                            (long long)x->proof->proven_ns);
    return 0;
}

/* What fails and was written for another problem is most likely not forged but mistaken. The name alone decides
 * nothing: a proof that holds here holds, whatever it was made for. */
static int blame_name(int rc, const moirai_problem *p, yyjson_val *root)
{
    const char *name = yyjson_get_str(yyjson_obj_get(root, "problem"));
    if (rc != MOIRAI_EVERIFY || !name || !strcmp(name, p->name))
        return rc;
    return moirai_error_prefix(rc, "belongs to another problem, '%.80s', not to '%.80s'", name, p->name);
}

int moirai_prove_text(moirai_proof *out, const moirai_problem *p, const char *json, size_t length, const char *label)
{
    yyjson_doc *doc;
    *out = (moirai_proof){0};
    int rc = util_json_open(&doc, json, length, label, "moirai-certificate");
    if (rc)
        return rc;
    prover x = {.p = p, .proof = out};
    rc = prove_all(&x, yyjson_doc_get_root(doc));
    rc = rc ? blame_name(rc, p, yyjson_doc_get_root(doc)) : 0;
    prove_cuts_free(&x.cuts);
    for (int32_t i = 0; x.class_ && i < x.n_classes; i++)
        prove_block_free(&x.class_[i]);
    free(x.class_);
    free(x.block_class);
    free(x.bound);
    moirai_problem_free(x.spine);
    yyjson_doc_free(doc);
    return rc ? util_json_label(rc, label) : 0;
}

int moirai_prove(moirai_proof *out, const moirai_problem *p, const char *path)
{
    char *json;
    size_t length;
    *out = (moirai_proof){0};
    int rc = util_file_read(&json, &length, path);
    if (rc)
        return rc;
    rc = moirai_prove_text(out, p, json, length, path);
    free(json);
    return rc;
}
