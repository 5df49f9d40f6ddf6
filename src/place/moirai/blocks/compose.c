/* Composing block plans.
 *
 * Blocks never share time, so the order of the whole is the orders of the blocks one after the other, with the cuts
 * between them. Transfers over edges that jump across a cut are in no block's order: the simulator sends them just
 * before their reader, which puts them behind everything that the blocks send meanwhile; they start as soon as their
 * ports allow. O(V+E). */
#include "place/moirai/blocks/compose.h"

int64_t place_compose_capacity(const moirai_problem *p)
{
    int64_t transfers = p->flow == MOIRAI_FLOW_EDGE ? p->n_edges : (int64_t)p->n_tensors * p->n_devices;
    return p->n_ops + transfers;
}

/* The global task of a local one; `device` says where the devices of the block's plan are. */
static moirai_task global_task(const pair_chain *c, const decompose_block *b, int32_t block, const int32_t *device,
                               moirai_task task)
{
    const moirai_problem *p = c->p, *q = &b->problem;
    if (task < q->n_ops)
        return decompose_block_global_op(b, p, c->s, block, (int32_t)task);
    int64_t slot = task - q->n_ops;
    if (p->flow == MOIRAI_FLOW_TENSOR) {
        int32_t tensor = (int32_t)(slot / p->n_devices), to = device[slot % p->n_devices];
        return p->n_ops + (int64_t)decompose_block_global_tensor(b, p, c->s, block, tensor) * p->n_devices + to;
    }
    int32_t tensor = decompose_block_global_tensor(b, p, c->s, block, q->edge_tensor[slot]);
    int32_t reader = decompose_block_global_op(b, p, c->s, block, q->edge_reader[slot]);
    int32_t low = p->tensor_edge_off[tensor], high = p->tensor_edge_off[tensor + 1] - 1;
    while (low < high) { /* readers of a tensor are ascending */
        int32_t middle = (low + high) / 2;
        if (p->edge_reader[middle] < reader)
            low = middle + 1;
        else
            high = middle;
    }
    return p->n_ops + low;
}

int64_t place_compose(const pair_chain *c, const int32_t *cut_device, const pair_plan *const *block_plan,
                      int32_t *op_device, moirai_task *order)
{
    int64_t n = 0;
    for (int32_t i = 0; i < c->s->n_blocks; i++) {
        int32_t class_ = c->s->block_class[i];
        const decompose_block *b = c->block[class_];
        const pair_plan *plan = &pair_chain_get(c, pair_chain_on_path(c, i, cut_device))->plan;
        int32_t device[MOIRAI_MASK_DEVICES];
        pair_chain_exchange(c, class_, i > 0 ? cut_device[i - 1] : 0, i < c->s->n_cuts ? cut_device[i] : 0, device);
        if (block_plan && block_plan[i])
            plan = block_plan[i];
        for (int32_t op = b->first; op < b->first + b->n_interior; op++)
            op_device[decompose_block_global_op(b, c->p, c->s, i, op)] = device[plan->device[op]];
        for (int64_t x = 0; x < plan->n_order; x++)
            if (plan->order[x] != b->entry && plan->order[x] != b->exit)
                order[n++] = global_task(c, b, i, device, plan->order[x]);
        if (i < c->s->n_cuts) {
            op_device[c->s->cut[i]] = cut_device[i];
            order[n++] = c->s->cut[i];
        }
    }
    return n;
}
