/* A class of blocks as a problem: what the block searches and the block bounds work on.
 *
 * The local problem keeps what happens between the finish of the entry cut and the start of the exit cut, and drops
 * the rest: edges that jump over a cut, and memory that other blocks take. Its optimum with the entry on device a and
 * the exit on device b is therefore a lower bound of the time between the two cuts in any plan that puts them there. */
#include "decompose/block.h"

#include <stdlib.h>
#include <string.h>

#include "problem/op_part.h"
#include "util/util.h"

void decompose_block_free(decompose_block *b)
{
    if (!b)
        return;
    util_release(&b->memory);
    free(b);
}

int32_t decompose_block_global_op(const decompose_block *b, const moirai_problem *p, const decompose_cuts *s,
                                  int32_t block, int32_t op)
{
    return p->topo[s->block_first[block] + op - b->first];
}

int32_t decompose_block_global_tensor(const decompose_block *b, const moirai_problem *p, const decompose_cuts *s,
                                      int32_t block, int32_t tensor)
{
    const moirai_problem *q = &b->problem;
    int32_t producer = q->tensor_producer[tensor];
    int32_t output = tensor - q->op_out[q->op_out_off[producer]];
    int32_t global = decompose_block_global_op(b, p, s, block, producer);
    return p->op_out[p->op_out_off[global] + output];
}

void decompose_block_pin(decompose_block *b, int32_t entry_device, int32_t exit_device)
{
    b->entry_device = entry_device;
    b->exit_device = exit_device;
    if (b->entry >= 0)
        b->problem.op_devices[b->entry] = UINT64_C(1) << entry_device;
    if (b->exit >= 0)
        b->problem.op_devices[b->exit] = UINT64_C(1) << exit_device;
}

/* The cuts are at the finish of one and the start of the other: they take no time, need no memory, and what the exit writes is
 * not the block's. */
static void empty_cut(decompose_block *b, int32_t cut)
{
    moirai_problem *q = &b->problem;
    if (cut == MOIRAI_NONE)
        return;
    memset(q->op_time_ns + (size_t)cut * (size_t)q->n_devices, 0, (size_t)q->n_devices * sizeof *q->op_time_ns);
    q->op_memory_bytes[cut] = 0;
    q->op_group[cut] = MOIRAI_NONE;
}

static int fill_problem(decompose_block *b, const moirai_problem *p, const decompose_cuts *s, int32_t first)
{
    moirai_problem *q = &b->problem;
    int32_t n = b->first + b->n_interior + (b->exit >= 0);
    if (problem_op_part(q, &b->memory, p, p->topo + first, n, s->number))
        return MOIRAI_EFAIL;
    empty_cut(b, b->entry);
    empty_cut(b, b->exit);
    if (b->exit >= 0)
        q->n_tensors = q->op_out_off[n] = q->op_out_off[b->exit];
    q->tensor_edge_off[q->n_tensors] = q->n_edges;
    /* what holds its devices holds their ports: bounds of blocks with ports hold */
    b->holds_devices = p->congestion == MOIRAI_CONGESTION_DEVICE;
    q->congestion = b->holds_devices ? MOIRAI_CONGESTION_PORT : p->congestion;
    q->memory = MOIRAI_MEMORY_STATIC;
    return 0;
}

int decompose_block_new(decompose_block **out, const moirai_problem *p, const decompose_cuts *s, int32_t block)
{
    *out = NULL;
    decompose_block *b = util_alloc(1, sizeof *b);
    if (!b)
        return MOIRAI_EFAIL;
    bool has_entry = decompose_entry(s, block) >= 0, has_exit = decompose_exit(s, block) >= 0;
    b->n_interior = s->block_size[block];
    b->unit = s->unit;
    b->first = has_entry;
    b->entry = has_entry ? 0 : MOIRAI_NONE;
    b->exit = has_exit ? b->first + b->n_interior : MOIRAI_NONE;
    if (fill_problem(b, p, s, s->block_first[block] - b->first) || decompose_block_components(b)) {
        decompose_block_free(b);
        return MOIRAI_EFAIL;
    }
    *out = b;
    return 0;
}

/* The entry's tensor with the most readers, if there are several. */
int32_t decompose_block_shared_tensor(const decompose_block *b)
{
    const moirai_problem *q = &b->problem;
    int32_t best = MOIRAI_NONE, most = 1;
    if (q->flow != MOIRAI_FLOW_TENSOR || b->entry < 0)
        return MOIRAI_NONE;
    for (int32_t t = q->op_out_off[b->entry]; t < q->op_out_off[b->entry + 1]; t++) {
        int32_t readers = q->tensor_edge_off[t + 1] - q->tensor_edge_off[t];
        if (readers > most) {
            most = readers;
            best = t;
        }
    }
    return best;
}
