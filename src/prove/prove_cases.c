/* Do the leaves leave no case out? (docs/certificate.md, "Receivers of a shared tensor", "Numbers".)
 *
 * Two disjunctions are allowed: who receives the entry's shared tensor, in every order of arrival with congestion port, where a leaf that
 * assumes nothing stands for all; and, within each of these, numbers and times that are at most x or at least x + 1. The leaves' lists
 * must form a tree of such questions, all leaves of a subtree agreeing on the one asked at its root. */
#include "prove/prove.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

/* ---- equal devices ---- */

/* If exchanging j and k leaves the times of the block's operators, the devices allowed to them and all transfers of its
 * tensors as they are, it takes every schedule of the block to one of the same length, with the cuts on the exchanged
 * devices. So what is proven between a and z is proven between their images, too. */
static bool same_operators(const prove_block *b, int32_t j, int32_t k)
{
    for (int32_t i = 0; i < b->n; i++) {
        if (prove_is_cut(b, i))
            continue;
        uint64_t allowed = b->p->may[b->op[i]];
        if ((allowed >> j & 1) != (allowed >> k & 1) ||
            (allowed >> j & 1 && prove_op_ns(b, i, j) != prove_op_ns(b, i, k)))
            return false;
    }
    return true;
}

static bool same_transfers(const prove_block *b, int32_t j, int32_t k)
{
    for (int32_t e = 0; e < b->n_edges; e++) {
        if (prove_edge_ns(b, e, j, k) != prove_edge_ns(b, e, k, j))
            return false;
        for (int32_t l = 0; l < b->p->K; l++)
            if (l != j && l != k &&
                (prove_edge_ns(b, e, j, l) != prove_edge_ns(b, e, k, l) ||
                 prove_edge_ns(b, e, l, j) != prove_edge_ns(b, e, l, k)))
                return false;
    }
    return true;
}

void prove_equal_devices(const prove_block *b, int32_t *least)
{
    for (int32_t k = 0; k < b->p->K; k++) {
        least[k] = k;
        for (int32_t j = 0; j < k && least[k] == k; j++)
            if (least[j] == j && same_operators(b, j, k) && same_transfers(b, j, k))
                least[k] = j;
    }
}

/* ---- cover ---- */

/* Leaves pick[0..n) agree on their first `depth` counts. Reorders pick. */
static bool counts_cover(const prove_block *b, const prove_leaf *leaf, int32_t *pick, int32_t n, int32_t depth)
{
    if (n == 0)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (leaf[pick[i]].n_branches == depth)
            return true; /* it asks nothing more: the others only repeat */
    const prove_branch *first = &leaf[pick[0]].branch[depth];
    int64_t all = first->kind < 0 ? INT64_MAX : b->kind[first->kind].count, most = INT64_MIN, least = INT64_MAX;
    int32_t low = 0;
    for (int32_t i = 0; i < n; i++) {
        const prove_branch *c = &leaf[pick[i]].branch[depth];
        if (c->kind != first->kind || c->op != first->op || c->device != first->device)
            return false;
        if (c->least <= 0) { /* the lower side: all must reach as far as the shortest that is counted on */
            most = low == 0 ? c->most : UTIL_MIN(most, c->most);
            int32_t swap = pick[low];
            pick[low++] = pick[i];
            pick[i] = swap;
        } else if (c->most >= all) {
            least = least == INT64_MAX ? c->least : UTIL_MAX(least, c->least);
        } else {
            return false;
        }
    }
    if (low == n)
        return most >= all && counts_cover(b, leaf, pick, n, depth + 1);
    return low > 0 && most >= least - 1 && counts_cover(b, leaf, pick, low, depth + 1) &&
           counts_cover(b, leaf, pick + low, n - low, depth + 1);
}

typedef struct listing {
    const prove_block *b;
    const prove_leaf *leaf;
    int32_t n, *pick;
    bool ordered;
    const int32_t *least; /* equal devices, or NULL: none are */
    int32_t n_receivers, receiver[PROVE_MASK_DEVICES];
} listing;

static bool same_sending(const prove_leaf *leaf, bool fixed, bool open, int32_t n, const int32_t *receiver)
{
    return leaf->fixed == fixed && leaf->open == open &&
           (!fixed || (leaf->n_receivers == n && !memcmp(leaf->receiver, receiver, sizeof *receiver * (size_t)n)));
}

static bool sending_covered(listing *x, bool fixed, bool open)
{
    int32_t n = 0;
    if (prove_go_on(x->b->p))
        return false;
    for (int32_t i = 0; i < x->n; i++)
        if (same_sending(&x->leaf[i], fixed, open, x->n_receivers, x->receiver))
            x->pick[n++] = i;
    return counts_cover(x->b, x->leaf, x->pick, n, 0);
}

/* Every continuation of the present list by devices of `left`, or one leaf for all of them. */
static bool sendings_covered(listing *x, uint64_t left)
{
    if (x->ordered && sending_covered(x, true, true))
        return true;
    if (!sending_covered(x, true, false))
        return false;
    uint64_t seen = 0; /* classes of equal devices */
    for (uint64_t rest = left; rest; rest &= rest - 1) {
        int32_t k = __builtin_ctzll(rest);
        uint64_t bit = UINT64_C(1) << k;
        if (x->ordered && x->least && (seen >> x->least[k] & 1))
            continue; /* the image of a case that was looked at: an equal device in place of k, both in no list */
        x->receiver[x->n_receivers++] = k;
        bool good = sendings_covered(x, x->ordered ? left & ~bit : rest & ~bit);
        x->n_receivers--;
        if (!good)
            return false;
        seen |= x->least ? UINT64_C(1) << x->least[k] : 0;
    }
    return true;
}

/* The devices of the cuts are no longer equal to any: each is known by itself, the least of the others by the next. */
static void name_ends(const prove_block *b, int32_t a, int32_t z, int32_t *least)
{
    int32_t own[PROVE_MASK_DEVICES];
    for (int32_t k = 0; k < b->p->K; k++) {
        bool end = k == a || (b->exit >= 0 && k == z);
        own[k] = k;
        for (int32_t j = 0; j < k && !end && own[k] == k; j++)
            if (least[j] == least[k] && j != a && (b->exit < 0 || j != z))
                own[k] = own[j];
    }
    memcpy(least, own, sizeof *own * (size_t)b->p->K);
}

bool prove_cover(const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf, int32_t n, bool equals)
{
    int32_t least[PROVE_MASK_DEVICES];
    listing x = {.b = b, .leaf = leaf, .n = n, .ordered = b->p->congestion == PROVE_PORT};
    x.pick = util_alloc((size_t)n, sizeof *x.pick);
    if (!x.pick)
        return false;
    bool good = sending_covered(&x, false, false);
    if (!good && b->shared >= 0) {
        uint64_t readers = 0;
        for (int32_t e = 0; e < b->n_edges; e++)
            if (prove_is_shared(b, e))
                readers |= prove_allowed(b, b->edge[e].to, a, z);
        readers &= ~(UINT64_C(1) << a);
        prove_equal_devices(b, least);
        name_ends(b, a, z, least);
        x.least = equals ? least : NULL;
        good = sendings_covered(&x, readers);
    }
    free(x.pick);
    return good;
}
