/* A class of blocks as a problem: what the block searches and the block bounds work on.
 *
 * The local problem keeps what happens between the finish of the entry cut and the start of the exit cut, and drops
 * the rest: edges that jump over a cut, and memory that other blocks take. Its optimum with the entry on device a and
 * the exit on device b is therefore a lower bound of the time between the two cuts in any plan that puts them there. */
#include "decompose/block.h"

#include <stdlib.h>
#include <string.h>

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

static int allocate(decompose_block *b, size_t n, size_t tensors, size_t edges)
{
    moirai_problem *q = &b->problem;
    util_memory *m = &b->memory;
    UTIL_TAKE(m, q->op_name, n);
    UTIL_TAKE(m, q->op_type, n);
    UTIL_TAKE(m, q->op_memory_bytes, n);
    UTIL_TAKE(m, q->op_time_ns, n * (size_t)q->n_devices);
    UTIL_TAKE(m, q->op_group, n);
    UTIL_TAKE(m, q->op_devices, n);
    UTIL_TAKE(m, q->op_in_off, n + 1);
    UTIL_TAKE(m, q->op_out_off, n + 1);
    UTIL_TAKE(m, q->topo, n);
    UTIL_TAKE(m, q->topo_rank, n);
    UTIL_TAKE(m, q->op_extern_off, n + 1);
    UTIL_TAKE(m, q->tensor_name, tensors);
    UTIL_TAKE(m, q->tensor_bytes, tensors);
    UTIL_TAKE(m, q->tensor_producer, tensors);
    UTIL_TAKE(m, q->tensor_class, tensors);
    UTIL_TAKE(m, q->tensor_has_table, tensors);
    UTIL_TAKE(m, q->op_out, tensors);
    UTIL_TAKE(m, q->tensor_edge_off, tensors + 1);
    UTIL_TAKE(m, q->edge_tensor, edges);
    UTIL_TAKE(m, q->edge_reader, edges);
    UTIL_TAKE(m, q->op_in, edges);
    UTIL_TAKE(m, q->op_in_edge, edges);
    return util_taken_all(m);
}

typedef struct span {
    int32_t first, n; /* global topological positions, cuts included */
} span;

static int32_t local_of(const moirai_problem *p, span w, int32_t op)
{
    int32_t z = p->topo_rank[op] - w.first;
    return z >= 0 && z < w.n ? z : MOIRAI_NONE;
}

static void fill_ops(decompose_block *b, const moirai_problem *p, span w)
{
    moirai_problem *q = &b->problem;
    int32_t K = p->n_devices;
    for (int32_t i = 0; i < w.n; i++) {
        int32_t op = p->topo[w.first + i];
        bool cut = i == b->entry || i == b->exit;
        q->op_name[i] = p->op_name[op];
        q->op_type[i] = p->op_type[op];
        q->op_memory_bytes[i] = cut ? 0 : p->op_memory_bytes[op];
        q->op_devices[i] = p->op_devices[op];
        q->op_group[i] = cut ? MOIRAI_NONE : p->op_group[op];
        q->topo[i] = q->topo_rank[i] = i;
        for (int32_t k = 0; k < K; k++)
            q->op_time_ns[(int64_t)i * K + k] = cut ? 0 : moirai_op_ns(p, op, k);
    }
}

/* Tensors written inside (by entry and interior, not by the exit), edges to readers inside. Every output is kept, read
 * inside or not, so that the j-th output here is the j-th output there. */
static void fill_tensors(decompose_block *b, const moirai_problem *p, span w)
{
    moirai_problem *q = &b->problem;
    int32_t t = 0, e = 0;
    for (int32_t i = 0; i < w.n; i++) {
        int32_t op = p->topo[w.first + i];
        q->op_out_off[i] = t;
        if (i == b->exit)
            continue;
        for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++, t++) {
            int32_t g = p->op_out[j];
            q->tensor_name[t] = p->tensor_name[g];
            q->tensor_bytes[t] = p->tensor_bytes[g];
            q->tensor_producer[t] = i;
            q->tensor_class[t] = p->tensor_class[g];
            q->op_out[t] = t;
            q->tensor_edge_off[t] = e;
            int32_t begin = e;
            for (int32_t f = p->tensor_edge_off[g]; f < p->tensor_edge_off[g + 1]; f++) {
                int32_t reader = local_of(p, w, p->edge_reader[f]);
                if (reader < 0)
                    continue;
                int32_t at = e++;
                for (; at > begin && q->edge_reader[at - 1] > reader; at--)
                    q->edge_reader[at] = q->edge_reader[at - 1];
                q->edge_reader[at] = reader;
            }
            for (int32_t f = begin; f < e; f++)
                q->edge_tensor[f] = t;
        }
    }
    q->op_out_off[w.n] = t;
    q->tensor_edge_off[t] = e;
    q->n_tensors = t;
    q->n_edges = e;
}

static void fill_inputs(moirai_problem *q)
{
    for (int32_t e = 0; e < q->n_edges; e++)
        q->op_in_off[q->edge_reader[e] + 1]++;
    for (int32_t i = 0; i < q->n_ops; i++)
        q->op_in_off[i + 1] += q->op_in_off[i];
    /* Fill from the back of each list and walk edges backwards: order by tensor is kept. */
    for (int32_t e = q->n_edges - 1; e >= 0; e--) {
        int32_t at = --q->op_in_off[q->edge_reader[e] + 1];
        q->op_in[at] = q->edge_tensor[e];
        q->op_in_edge[at] = e;
    }
    /* op_in_off[i+1] now holds the start of i's list: shift down. */
    for (int32_t i = 0; i < q->n_ops; i++)
        q->op_in_off[i] = q->op_in_off[i + 1];
    q->op_in_off[q->n_ops] = q->n_edges;
}

static int fill_problem(decompose_block *b, const moirai_problem *p, span w)
{
    moirai_problem *q = &b->problem;
    size_t tensors = 0, edges = 0;
    for (int32_t i = 0; i < w.n; i++) {
        int32_t op = p->topo[w.first + i];
        tensors += (size_t)(p->op_out_off[op + 1] - p->op_out_off[op]);
        edges += (size_t)(p->op_in_off[op + 1] - p->op_in_off[op]);
    }
    *q = *p; /* devices, channels and names are those of the whole; what belongs to operators is made anew */
    /* what holds its devices holds their ports: bounds of blocks with ports hold */
    b->holds_devices = p->congestion == MOIRAI_CONGESTION_DEVICE;
    q->congestion = p->congestion == MOIRAI_CONGESTION_DEVICE ? MOIRAI_CONGESTION_PORT : p->congestion;
    q->memory = MOIRAI_MEMORY_STATIC;
    q->n_ops = w.n;
    q->n_weights = 0;
    if (allocate(b, (size_t)w.n, tensors, edges))
        return MOIRAI_EFAIL;
    fill_ops(b, p, w);
    fill_tensors(b, p, w);
    fill_inputs(q);
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
    span w = {s->block_first[block] - b->first, b->first + b->n_interior + has_exit};
    if (fill_problem(b, p, w) || decompose_block_components(b)) {
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
