/* Plans of the whole from paths of block plans, and its bound from a path of their bounds.
 *
 * Blocks never share time, so the order of the whole is the orders of the blocks one after the other, with the cuts
 * between them. Transfers over edges that jump across a cut are in no block's order: the simulator sends them just
 * before their reader, which puts them behind everything that the blocks send meanwhile; they start as soon as their
 * ports allow. O(V+E). */
#include <math.h>

#include "place/moirai/blocks/blocks.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "util/util.h"

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

/* ---- paths ---- */

static int compose_path(blocks *x)
{
    int64_t n = place_compose(x->c, x->plan_device, NULL, x->op_device, x->order);
    return incumbent_take_simulated(x->in, x->sim, moirai_sim_replay(x->sim, x->op_device, x->order, n), 'B');
}

/* When the time is up, what is at hand is still composed, but not for long: a large problem takes a while for each. */
static bool late(const blocks *x, double begun)
{
    return incumbent_stopped(x->in) && util_seconds() - begun > 0.05;
}

/* How long the plans of a path's pairs take, INT64_MAX where one has none. */
static int64_t planned_ns(const blocks *x, const int32_t *device)
{
    const decompose_cuts *s = x->c->s;
    int64_t sum = 0;
    for (int32_t i = 0; i < s->n_blocks; i++) {
        const pair_state *pair = pair_chain_get(x->c, pair_chain_on_path(x->c, i, device));
        if (!pair->open || !pair->plan.device)
            return INT64_MAX;
        sum += pair->plan.length_ns;
        if (i < s->n_cuts)
            sum += moirai_op_ns(x->c->p, s->cut[i], device[i]);
    }
    return sum;
}

/* Whether the plans of a path that would be shorter than the best plan, or nearly so, do not fit. */
static bool overflows(blocks *x, const int32_t *device)
{
    const moirai_problem *p = x->c->p;
    int64_t bytes[MOIRAI_MASK_DEVICES] = {0}, length = planned_ns(x, device);
    if (length == INT64_MAX ||
        (x->in->best && (double)length > BLOCKS_COMPOSE_NEARLY * (double)x->in->best->makespan_ns))
        return false;
    place_compose(x->c, device, NULL, x->op_device, x->order);
    for (int32_t i = 0; i < p->n_ops; i++)
        bytes[x->op_device[i]] += p->op_memory_bytes[i];
    for (int32_t k = 0; k < p->n_devices; k++)
        if (bytes[k] > p->device_memory_bytes[k])
            return true;
    return false;
}

/* Paths that change devices less often are tried as well: edges that jump over cuts may make them the faster ones. */
int blocks_compose(blocks *x)
{
    static const double part[] = {0, 0.03, 0.1, 0.3, 1, 3, 1000};
    int64_t length = pair_chain_path(x->c, PAIR_CHAIN_UPPER, x->plan_device);
    if (length == INT64_MAX)
        return 0;
    int rc = 0;
    double mean = (double)length / (x->c->s->n_cuts + 1), best_part = 0, begun = util_seconds();
    bool binds = false;
    for (size_t i = 0; i < sizeof part / sizeof *part && !rc && !late(x, begun); i++) {
        const moirai_plan *before = x->in->best;
        pair_chain_steady_path(x->c, (int64_t)fmin(part[i] * mean, 1e17), x->plan_device);
        x->in->memory_binds = false;
        rc = compose_path(x);
        binds |= i == 0 && x->in->memory_binds;
        if (x->in->best != before)
            best_part = part[i];
    }
    /* A plan that happens to fit may hide what binds: prices without bytes would raise the bound along a path that does
     * not fit. */
    x->in->memory_binds = binds || overflows(x, x->cut_device);
    pair_chain_steady_path(x->c, (int64_t)fmin(best_part * mean, 1e17), x->plan_device);
    return rc;
}

void blocks_raise_bound(blocks *x)
{
    incumbent_take_bound(x->in, pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->cut_device));
}
