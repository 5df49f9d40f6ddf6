/* Devices that can be exchanged in a block.
 *
 * If exchanging j and k leaves the times of the block's operators, the devices allowed to them and all transfers of its
 * tensors as they are, it takes every schedule of the block to one of the same length, with the cuts on the exchanged
 * devices. So what is proven between a and z is proven between their images, too. */
#include "prove/prove.h"

static bool same_operators(const prove_block *b, int32_t j, int32_t k)
{
    for (int32_t i = 0; i < b->n; i++) {
        if (i == b->entry || i == b->exit)
            continue;
        uint64_t allowed = b->p->op_devices[b->op[i]];
        if ((allowed >> j & 1) != (allowed >> k & 1) ||
            (allowed >> j & 1 && moirai_op_ns(b->p, b->op[i], j) != moirai_op_ns(b->p, b->op[i], k)))
            return false;
    }
    return true;
}

static bool same_transfers(const prove_block *b, int32_t j, int32_t k)
{
    for (int32_t e = 0; e < b->n_edges; e++) {
        int32_t t = b->edge[e].tensor;
        if (moirai_transfer_ns(b->p, t, j, k) != moirai_transfer_ns(b->p, t, k, j))
            return false;
        for (int32_t l = 0; l < b->p->n_devices; l++)
            if (l != j && l != k &&
                (moirai_transfer_ns(b->p, t, j, l) != moirai_transfer_ns(b->p, t, k, l) ||
                 moirai_transfer_ns(b->p, t, l, j) != moirai_transfer_ns(b->p, t, l, k)))
                return false;
    }
    return true;
}

void prove_equal_devices(const prove_block *b, int32_t *least)
{
    for (int32_t k = 0; k < b->p->n_devices; k++) {
        least[k] = k;
        for (int32_t j = 0; j < k && least[k] == k; j++)
            if (least[j] == j && same_operators(b, j, k) && same_transfers(b, j, k))
                least[k] = j;
    }
}
