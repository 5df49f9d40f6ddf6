/* Devices that can be exchanged in a block.
 *
 * If exchanging j and k leaves the times of the block's operators, the devices allowed to them and all transfers of its
 * tensors as they are, it takes every schedule of the block to one of the same length, with the cuts on the exchanged
 * devices. So what is proven between a and z is proven between their images, too. */
#include "prove/prove.h"

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
