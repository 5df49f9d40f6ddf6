/* What pricing a block needs to know before there are prices: spanning trees, which tasks cost alike, arrivals of the
 * shared tensor. */
#include <stdlib.h>
#include <string.h>

#include "pricing/pricer_state.h"
#include "pricing/pricing_tuning.h"
#include "problem/equal_devices.h"
#include "util/util.h"

/* ---- the spanning trees ---- */

/* The slowest transfer of a tensor: what dropping its edge would lose. */
static int64_t edge_weight(const moirai_problem *q, int32_t tensor)
{
    int64_t most = 0;
    for (int32_t a = 0; a < q->n_devices; a++)
        for (int32_t b = 0; b < q->n_devices; b++)
            most = UTIL_MAX(most, moirai_transfer_ns(q, tensor, a, b));
    return most;
}

/* Prim's algorithm over the component, heaviest edge first; ties by operator number. O(n * edges of n) is fine: n is
 * small or the edges are few. */
static void grow_tree(pricing_pricer *w, int32_t kind, int32_t *in_tree, const int64_t *weight)
{
    const decompose_block *b = w->block;
    const moirai_problem *q = &b->problem;
    int32_t c = b->kind_component[kind], begin = b->component_off[c], n = b->component_off[c + 1] - begin;
    int32_t base = w->tree.n_nodes;
    w->tree.node[w->tree.n_nodes++] = (pricing_tree_node){b->component_op[begin + n - 1], -1, MOIRAI_NONE, false, 1};
    in_tree[b->component_op[begin + n - 1]] = base;
    while (w->tree.n_nodes < base + n) {
        int64_t best = -1;
        pricing_tree_node pick = {0};
        for (int32_t x = base; x < w->tree.n_nodes; x++) {
            int32_t op = w->tree.node[x].op;
            for (int32_t j = q->op_in_off[op]; j < q->op_in_off[op + 1]; j++) {
                int32_t t = q->op_in[j], other = q->tensor_producer[t];
                if (other != b->entry && in_tree[other] < 0 && weight[t] > best) {
                    best = weight[t];
                    pick = (pricing_tree_node){other, x, t, true, w->tree.readers[t]};
                }
            }
            for (int32_t t = q->op_out_off[op]; t < q->op_out_off[op + 1]; t++)
                for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++) {
                    int32_t other = q->edge_reader[e];
                    if (other != b->exit && in_tree[other] < 0 && weight[t] > best) {
                        best = weight[t];
                        pick = (pricing_tree_node){other, x, t, false, w->tree.readers[t]};
                    }
                }
        }
        in_tree[pick.op] = w->tree.n_nodes;
        w->tree.node[w->tree.n_nodes++] = pick;
    }
}

static int build_trees(pricing_pricer *w)
{
    const decompose_block *b = w->block;
    const moirai_problem *q = &b->problem;
    int32_t *in_tree = util_alloc((size_t)q->n_ops, sizeof *in_tree);
    int64_t *weight = util_alloc((size_t)q->n_tensors, sizeof *weight); /* once for all kinds, which may be many */
    int rc = in_tree && weight ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < q->n_ops && !rc; i++)
        in_tree[i] = -1;
    for (int32_t t = 0; t < q->n_tensors && !rc; t++)
        weight[t] = edge_weight(q, t);
    for (int32_t kind = 0; kind < b->n_kinds && !rc; kind++) {
        w->tree.kind_node[kind] = w->tree.n_nodes;
        grow_tree(w, kind, in_tree, weight);
    }
    w->tree.kind_node[b->n_kinds] = w->tree.n_nodes;
    free(in_tree);
    free(weight);
    return rc;
}

int32_t pricing_pricer_tree(const pricing_pricer *w, int32_t kind, pricing_tree_edge *edge)
{
    int32_t n = 0;
    for (int32_t x = w->tree.kind_node[kind] + 1; x < w->tree.kind_node[kind + 1]; x++) {
        const pricing_tree_node *node = &w->tree.node[x];
        int32_t parent = w->tree.node[node->parent].op;
        edge[n++] = node->is_source ? (pricing_tree_edge){node->op, node->tensor, parent}
                                    : (pricing_tree_edge){parent, node->tensor, node->op};
    }
    return n;
}

void pricing_pricer_free(pricing_pricer *w)
{
    if (!w)
        return;
    util_release(&w->memory);
    free(w);
}

static int too_large(const moirai_problem *q)
{
    return moirai_error(MOIRAI_ELIMIT, "a block of %d operators on %d devices is too large to price", q->n_ops,
                        q->n_devices);
}

static int assign_lines(pricing_pricer *w)
{
    const moirai_problem *q = &w->block->problem;
    size_t K = (size_t)w->K, N = (size_t)w->max_steps + 2;
    bool shared = q->flow == MOIRAI_FLOW_TENSOR;
    util_memory *m = &w->memory;
    UTIL_TAKE(m, w->lines.of_op, (size_t)q->n_ops);
    UTIL_TAKE(m, w->lines.op, (size_t)q->n_ops);
    UTIL_TAKE(m, w->lines.of_tensor, (size_t)q->n_tensors);
    UTIL_TAKE(m, w->lines.tensor, (size_t)q->n_tensors);
    if (m->failed)
        return MOIRAI_EFAIL;
    for (int32_t x = 0; x < w->tree.n_nodes; x++) {
        int32_t i = w->tree.node[x].op, line = 0;
        while (line < w->lines.n_of_ops && memcmp(q->op_time_ns + (size_t)i * K,
                                                  q->op_time_ns + (size_t)w->lines.op[line] * K, K * sizeof(int64_t)))
            line++;
        if (line == w->lines.n_of_ops)
            w->lines.op[w->lines.n_of_ops++] = i;
        w->lines.of_op[i] = line;
    }
    for (int32_t t = 0; t < q->n_tensors; t++) {
        int32_t line = 0;
        while (line < w->lines.n_of_tensors &&
               (q->tensor_class[t] != q->tensor_class[w->lines.tensor[line]] ||
                (shared && w->tree.readers[t] != w->tree.readers[w->lines.tensor[line]])))
            line++;
        if (line == w->lines.n_of_tensors)
            w->lines.tensor[w->lines.n_of_tensors++] = t;
        w->lines.of_tensor[t] = line;
    }
    if ((double)w->lines.n_of_ops * (double)(K * N) + (double)w->lines.n_of_tensors * (double)(K * K * N) >
        PRICING_PRICER_MOST_CELLS)
        return too_large(q);
    UTIL_TAKE(m, w->lines.op_cost, (size_t)w->lines.n_of_ops * K * N);
    UTIL_TAKE(m, w->lines.transfer_cost, (size_t)w->lines.n_of_tensors * K * K * N);
    UTIL_TAKE(m, w->lines.op_filled, (size_t)w->lines.n_of_ops * K);
    UTIL_TAKE(m, w->lines.transfer_filled, (size_t)w->lines.n_of_tensors * K * K);
    return util_taken_all(m);
}

int pricing_pricer_new(pricing_pricer **out, const decompose_block *b, int32_t max_steps)
{
    *out = NULL;
    const moirai_problem *q = &b->problem;
    pricing_pricer *w = util_alloc(1, sizeof *w);
    if (!w)
        return MOIRAI_EFAIL;
    size_t N = (size_t)max_steps + 2, K = (size_t)q->n_devices, largest = 1, priced = 0;
    w->block = b;
    w->K = q->n_devices;
    w->n_resources = schedule_resources(q);
    w->max_steps = max_steps;
    for (int32_t kind = 0; kind < b->n_kinds; kind++) {
        int32_t c = b->kind_component[kind];
        size_t n = (size_t)(b->component_off[c + 1] - b->component_off[c]);
        largest = UTIL_MAX(largest, n);
        priced += n;
    }
    double steps = (double)priced * (double)(K * K * N);
    if (steps > PRICING_PRICER_MOST_STEPS || (double)(largest * K * N) > PRICING_PRICER_MOST_CELLS ||
        (double)largest * q->n_edges > PRICING_PRICER_MOST_STEPS) {
        free(w);
        return too_large(q);
    }
    size_t R = (size_t)w->n_resources;
    util_memory *m = &w->memory;
    UTIL_TAKE(m, w->tree.kind_node, (size_t)b->n_kinds + 1);
    UTIL_TAKE(m, w->tree.node, (size_t)q->n_ops);
    UTIL_TAKE(m, w->tree.readers, (size_t)q->n_tensors);
    UTIL_TAKE(m, w->work.value, largest * K * N);
    UTIL_TAKE(m, w->work.best_value, largest * K * N);
    UTIL_TAKE(m, w->work.message, K * N);
    UTIL_TAKE(m, w->work.line, N);
    UTIL_TAKE(m, w->work.cumulative, R * (N + 1));
    UTIL_TAKE(m, w->work.step_price, R * N);
    UTIL_TAKE(m, w->found.device, largest);
    UTIL_TAKE(m, w->found.start, largest);
    UTIL_TAKE(m, w->found.use, 4 * (size_t)q->n_ops + 2 * (size_t)q->n_edges + 4);
    int rc = util_taken_all(m);
    if (!rc) {
        for (int32_t t = 0; t < q->n_tensors; t++)
            w->tree.readers[t] = q->tensor_edge_off[t + 1] - q->tensor_edge_off[t];
        w->shared_tensor = decompose_block_shared_tensor(b);
        problem_equal_devices(q, w->stand_in.least);
        rc = build_trees(w);
        rc = rc ? rc : assign_lines(w);
    }
    if (rc)
        pricing_pricer_free(w);
    else
        *out = w;
    return rc;
}

/* ---- equal devices ---- */

/* Devices that the case names are themselves. With congestion channel transfers between two equal devices have channels
 * of their own, for which nothing can stand in. */
static void find_stand_ins(pricing_pricer *w)
{
    uint64_t named = w->arrival.listed | UINT64_C(1) << w->block->entry_device | UINT64_C(1) << w->block->exit_device;
    bool join = !w->at.apart && w->block->problem.congestion != MOIRAI_CONGESTION_CHANNEL;
    int32_t first[MOIRAI_MASK_DEVICES];
    for (int32_t i = 0; i < w->at.n_branches; i++)
        if (w->at.branch[i].on == PRICING_NUMBER || w->at.branch[i].on == PRICING_ARRIVAL)
            named |= UINT64_C(1) << w->at.branch[i].device;
    for (int32_t k = 0; k < w->K; k++) {
        first[k] = -1;
        w->stand_in.copies[k] = 0;
    }
    for (int32_t k = 0; k < w->K; k++) {
        bool alone = !join || named >> k & 1;
        if (!alone && first[w->stand_in.least[k]] < 0)
            first[w->stand_in.least[k]] = k;
        w->stand_in.of[k] = alone ? k : first[w->stand_in.least[k]];
        w->stand_in.copies[w->stand_in.of[k]]++;
    }
}

/* Ports are numbered after the devices, those that send before those that receive; where there are channels nobody
 * stands in. */
int32_t pricing_pricer_stand_in(const pricing_pricer *w, int32_t r)
{
    return r / w->K * w->K + w->stand_in.of[r % w->K];
}

int32_t pricing_pricer_copies(const pricing_pricer *w, int32_t r)
{
    return w->stand_in.copies[r % w->K];
}

/* ---- arrivals ---- */

/* When the shared tensor is where: one port sends it to one receiver after the other; elsewhere each send is on its
 * own. */
static void set_arrivals(pricing_pricer *w)
{
    const moirai_problem *q = &w->block->problem;
    const pricing_branch *branch = w->at.branch;
    int32_t from = w->block->entry_device;
    bool port = q->congestion == MOIRAI_CONGESTION_PORT;
    int64_t sent = 0, rest = w->grid->length_ns;
    w->arrival.listed = 0;
    for (int32_t k = 0; k < w->K; k++) {
        w->arrival.soonest_ns[k] = k == from ? 0 : -1;
        w->arrival.latest_ns[k] = w->grid->length_ns;
    }
    for (int32_t j = 0; w->at.how->fixed && j < w->at.how->n_receivers; j++) {
        int32_t k = w->at.how->receiver[j];
        sent = (port ? sent : 0) + moirai_transfer_ns(q, w->shared_tensor, from, k);
        for (int32_t i = 0; i < w->at.n_branches; i++)
            if (branch[i].on == PRICING_ARRIVAL && branch[i].device == k) {
                sent = UTIL_MAX(sent, branch[i].least);
                w->arrival.latest_ns[k] = UTIL_MIN(w->arrival.latest_ns[k], branch[i].most);
            }
        w->arrival.soonest_ns[k] = sent;
        w->arrival.listed |= UINT64_C(1) << k;
    }
    for (int32_t k = 0; w->at.how->fixed && w->at.how->open && k < w->K; k++) /* later than all of these */
        if (w->arrival.soonest_ns[k] < 0)
            w->arrival.soonest_ns[k] = (port ? sent : 0) + moirai_transfer_ns(q, w->shared_tensor, from, k);
    for (int32_t j = w->at.how->fixed ? w->at.how->n_receivers - 1 : -1; j >= 0 && port; j--) {
        int32_t k = w->at.how->receiver[j];
        w->arrival.latest_ns[k] = UTIL_MIN(w->arrival.latest_ns[k], rest);
        rest = w->arrival.latest_ns[k] - moirai_transfer_ns(q, w->shared_tensor, from, k);
    }
    find_stand_ins(w);
}

void pricing_pricer_set(pricing_pricer *w, const pricing_case *at, const pricing_grid *grid)
{
    w->at = *at;
    w->grid = grid;
    set_arrivals(w);
}

bool pricing_pricer_fits(const pricing_pricer *w, const pricing_column *column)
{
    const decompose_block *b = w->block;
    int64_t step = w->grid->step_ns;
    if (column->finish_ns > w->grid->length_ns)
        return false;
    if (!w->at.how->fixed)
        return true;
    if (column->kind < 0) {
        int32_t k = w->at.how->receiver[-1 - column->kind];
        /* A step's cheapest start may be anywhere in it. */
        return column->finish_ns + step >= w->arrival.soonest_ns[k] &&
               column->finish_ns <= w->arrival.latest_ns[k] + step;
    }
    int32_t begin = b->component_off[b->kind_component[column->kind]];
    for (int32_t i = 0; i < column->n_ops; i++) {
        int32_t op = b->component_op[begin + i];
        for (int32_t j = b->problem.op_in_off[op]; j < b->problem.op_in_off[op + 1]; j++)
            if (b->problem.op_in[j] == w->shared_tensor &&
                (w->arrival.soonest_ns[column->device[i]] < 0 ||
                 column->start[i] / step < w->arrival.soonest_ns[column->device[i]] / step))
                return false;
    }
    return true;
}

int64_t pricing_pricer_arrival(const pricing_pricer *w, int32_t device)
{
    return w->arrival.soonest_ns[device];
}

int64_t pricing_pricer_arrived(const pricing_pricer *w, int32_t device)
{
    return w->arrival.latest_ns[device];
}

void pricing_pricer_held(pricing_pricer *w, double *held_ns)
{
    memset(held_ns, 0, sizeof *held_ns * (size_t)(w->n_resources * w->grid->n_buckets));
    for (int32_t j = 0; w->at.how->fixed && j < w->at.how->n_receivers; j++) {
        int32_t k = w->at.how->receiver[j];
        pricing_task_use x = pricing_pricer_transfer_task(w, w->shared_tensor, w->block->entry_device, k);
        pricing_use held = {.start_ns = w->arrival.latest_ns[k] - x.ns, .part = 1};
        held.ns = w->arrival.soonest_ns[k] - held.start_ns;
        for (int32_t i = 0; i < 2; i++)
            if ((i ? x.r2 : x.r1) >= 0)
                pricing_grid_spread(w->grid, i ? x.r2 : x.r1, &held, NULL, held_ns);
    }
}
