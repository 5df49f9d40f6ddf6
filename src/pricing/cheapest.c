/* Pricing in time: the cheapest schedule of each component alone, and what all of them cost together. Whether that
 * excludes a length is Theorem 26; why each of these only lowers the cost, Lemmas 27, 29, 30, 32 and 33
 * (docs/theory.md).
 *
 * The cheapest schedule of a component is found by dynamic programming over a spanning tree of its operators. The
 * state of an operator is its device and the grid step g = floor(start / step) in which it starts. Durations are
 * rounded down to steps where they separate two starts; the cost of a task is the least over all starts within its
 * step, with its true duration; each of m readers of a tensor pays 1/m of its transfer.
 *
 * A case may fix who receives the shared entry tensor, and when: readers elsewhere are forbidden, readers there wait
 * for the arrival and pay nothing, and each send is a component of its own that pays for the ports. Where the sends
 * happen is not tied to where their readers are: a send could be paid late and read early, unless the case says
 * between which two times it arrives.
 *
 * Cost of one pricing: O(sum over kinds of operators * K^2 * steps). All arithmetic is in whole numbers. */
#include <stdlib.h>
#include <string.h>

#include "pricing/lines.h"
#include "pricing/pricer_state.h"
#include "util/util.h"

#define NONE PRICING_NONE

static bool out_of_time(pricing_pricer *w)
{
    w->cut_short = w->cut_short || (w->prices->stop && util_stopped(w->prices->stop));
    return w->cut_short;
}

/* ---- the dynamic programme ---- */

/* Waiting for tensor t of the entry: adds to value[g] for an operator on k. */
static void add_entry_edge(pricing_pricer *w, int64_t *value, int32_t t, int32_t k)
{
    int32_t N = w->grid->n_steps, a = w->block->entry_device;
    bool shared = w->at.how->fixed && t == w->shared_tensor;
    int64_t ns = moirai_transfer_ns(&w->block->problem, t, a, k), step = w->grid->step_ns;
    if (shared && pricing_pricer_sent(w, k)) {
        int64_t from = w->arrival.soonest_ns[k] < 0 ? N : w->arrival.soonest_ns[k] / step;
        for (int32_t g = 0; g < N && g < from; g++)
            value[g] = NONE;
        return;
    }
    if (k == a)
        return;
    int64_t sent = shared ? (w->arrival.soonest_ns[k] - ns) / step : 0, n = UTIL_MAX(N - sent - ns / step, 0);
    pricing_lines_least_before(w->work.line, pricing_pricer_transfer_costs(w, t, a, k) + sent, 1, n);
    pricing_line_fill(value, NONE, N - n);
    pricing_line_add(value + (N - n), w->work.line, n);
}

/* Tensor t must reach the exit by T: adds to value[g] for an operator on k that takes `ns`. */
static void add_exit_edge(pricing_pricer *w, int64_t *value, int32_t t, int32_t k, int64_t ns)
{
    if (k == w->block->exit_device)
        return;
    int64_t N = w->grid->n_steps, n = UTIL_MAX(N - ns / w->grid->step_ns, 0);
    const int64_t *cost = pricing_pricer_transfer_costs(w, t, k, w->block->exit_device);
    pricing_lines_least_behind(w->work.line, cost + (N - n), 1, n);
    pricing_line_add(value, w->work.line, n);
    pricing_line_fill(value + n, NONE, N - n);
}

static void own_value(pricing_pricer *w, int64_t *value, int32_t op, int32_t k, int64_t extra)
{
    const decompose_block *b = w->block;
    const moirai_problem *q = &b->problem;
    int32_t N = w->grid->n_steps;
    if (!pricing_pricer_allows(w, op, k)) {
        pricing_line_fill(value, NONE, N);
        return;
    }
    pricing_task_use x = pricing_pricer_op_task(w, op, k);
    const int64_t *cost = pricing_pricer_op_costs(w, op, k);
    pricing_line_set(value, cost, extra, N);
    for (int32_t j = q->op_in_off[op]; j < q->op_in_off[op + 1]; j++)
        if (q->tensor_producer[q->op_in[j]] == b->entry)
            add_entry_edge(w, value, q->op_in[j], k);
    if (b->exit < 0)
        return;
    for (int32_t j = q->op_in_off[b->exit]; j < q->op_in_off[b->exit + 1]; j++)
        if (q->tensor_producer[q->op_in[j]] == op)
            add_exit_edge(w, value, q->op_in[j], k, x.ns);
}

/* What the best state of a child on the parent's own device costs by the start of the parent, less what must lie
 * between; nothing that fits where it may not be there. */
static void begin_message(const pricing_pricer *w, const pricing_tree_node *child, const int64_t *least, int32_t k,
                          int64_t *message)
{
    int64_t N = w->grid->n_steps, n = 0;
    if (pricing_pricer_allows(w, child->op, k)) {
        int64_t after = child->is_source ? moirai_op_ns(&w->block->problem, child->op, k) / w->grid->step_ns : 0;
        n = UTIL_MAX(N - after, 0);
    }
    pricing_line_fill(message, NONE, N - n);
    memcpy(message + (N - n), least, sizeof *least * (size_t)n);
}

/* The same for a child on another device l: the transfer lies between as well. */
static void lower_message(pricing_pricer *w, const pricing_tree_node *child, const int64_t *least, int32_t l, int32_t k,
                          int64_t *message)
{
    const moirai_problem *q = &w->block->problem;
    int64_t N = w->grid->n_steps, step = w->grid->step_ns;
    int64_t after = child->is_source ? moirai_op_ns(q, child->op, l) / step : 0;
    int32_t from = child->is_source ? l : k, to = child->is_source ? k : l;
    int64_t wait = moirai_transfer_ns(q, child->tensor, from, to) / step, n = N - after - wait;
    if (n <= 0)
        return;
    const int64_t *cost = pricing_pricer_transfer_costs(w, child->tensor, from, to);
    if (child->is_source) /* by the parent's start: the child, then the transfer, have ended */
        pricing_line_lower_sum(message + after + wait, least, cost + after, n);
    else /* by the transfer's start */
        pricing_line_lower_sum(message, least + wait, cost, n);
}

/* A source has finished, and is sent, before its parent starts; a reader starts once its parent has finished and was
 * sent. Either may be earlier, or later, than it must: hence the running minima, over the child's start and over that
 * of the transfer. The one over transfers is taken once for all devices that they may come from, or go to. */
static void add_child(pricing_pricer *w, const pricing_tree_node *child, const int64_t *least, int32_t parent_op,
                      int64_t *parent_value)
{
    int32_t N = w->grid->n_steps, K = w->K;
    for (int32_t k = 0; k < K; k++) {
        int64_t *message = w->work.message + (int64_t)k * N;
        if (!pricing_pricer_allows(w, parent_op, k))
            continue;
        begin_message(w, child, least + (int64_t)k * N, k, message);
        for (int32_t l = 0; l < K; l++)
            if (l != k && pricing_pricer_allows(w, child->op, l))
                lower_message(w, child, least + (int64_t)l * N, l, k, message);
    }
    (child->is_source ? pricing_lines_least_before : pricing_lines_least_behind)(w->work.message, w->work.message, K,
                                                                                 N);
    for (int32_t k = 0; k < K; k++) {
        if (!pricing_pricer_allows(w, parent_op, k))
            continue;
        int64_t after = child->is_source ? 0 : moirai_op_ns(&w->block->problem, parent_op, k) / w->grid->step_ns;
        int64_t n = UTIL_MAX(N - after, 0), *value = parent_value + (int64_t)k * N;
        pricing_line_add(value, w->work.message + (int64_t)k * N + (N - n), n);
        pricing_line_fill(value + n, NONE, N - n);
    }
}

/* What an operator pays on k whenever it runs: its bytes, and the branches it is part of. */
static int64_t flat_cost(const pricing_pricer *w, int32_t kind, int32_t op, int32_t k)
{
    const pricing_prices *prices = w->prices;
    int64_t sum = prices->memory ? prices->memory[k] * w->block->problem.op_memory_bytes[op] : 0;
    int32_t begin = w->block->component_off[w->block->kind_component[kind]];
    const int64_t *branch_price = prices->resource + w->n_resources * w->grid->n_buckets;
    for (int32_t i = 0; i < w->at.n_branches; i++) {
        const pricing_branch *branch = &w->at.branch[i];
        if (branch->on == PRICING_NUMBER && branch->kind == kind && branch->device == k &&
            w->block->component_op[begin + branch->op] == op)
            sum += branch_price[i];
    }
    return sum;
}

static void kind_values(pricing_pricer *w, int32_t kind)
{
    int32_t base = w->tree.kind_node[kind], end = w->tree.kind_node[kind + 1], N = w->grid->n_steps;
    int64_t stride = (int64_t)w->K * N;
    for (int32_t x = base; x < end && !out_of_time(w); x++)
        for (int32_t k = 0; k < w->K; k++)
            own_value(w, w->work.value + (x - base) * stride + (int64_t)k * N, w->tree.node[x].op, k,
                      flat_cost(w, kind, w->tree.node[x].op, k));
    for (int32_t x = end - 1; x > base && !out_of_time(w); x--) {
        const pricing_tree_node *child = &w->tree.node[x];
        const int64_t *value = w->work.value + (x - base) * stride;
        int64_t *least = w->work.best_value + (x - base) * stride;
        (child->is_source ? pricing_lines_least_before : pricing_lines_least_behind)(least, value, w->K, N);
        add_child(w, child, least, w->tree.node[child->parent].op, w->work.value + (child->parent - base) * stride);
    }
}

static int64_t price_kind(pricing_pricer *w, int32_t kind, pricing_column_fn column, void *data)
{
    int32_t N = w->grid->n_steps;
    kind_values(w, kind);
    int64_t best = NONE;
    for (int32_t k = 0; k < w->K; k++) {
        const int64_t *value = w->work.value + (int64_t)k * N;
        int64_t least = pricing_line_least(value, N);
        pricing_tree_state root = {k, 0};
        if (least < NONE && column && !out_of_time(w)) {
            while (value[root.g] != least)
                root.g++;
            pricing_pricer_walk(w, kind, root, column, data);
        }
        best = UTIL_MIN(best, least);
    }
    return best;
}

/* A tensor that goes from entry to exit directly takes its own time: too long for T is proof enough. */
static bool direct_edges_fit(const pricing_pricer *w)
{
    const decompose_block *b = w->block;
    const moirai_problem *q = &b->problem;
    if (b->entry < 0 || b->exit < 0 || w->block->entry_device == w->block->exit_device)
        return true;
    for (int32_t j = q->op_in_off[b->exit]; j < q->op_in_off[b->exit + 1]; j++) {
        int32_t t = q->op_in[j];
        if (q->tensor_producer[t] != b->entry)
            continue;
        int64_t arrival = moirai_transfer_ns(q, t, b->entry_device, b->exit_device);
        if (w->at.how->fixed && t == w->shared_tensor) {
            int64_t sent = w->arrival.soonest_ns[b->exit_device];
            arrival = sent < 0 ? INT64_MAX : UTIL_MAX(arrival, sent);
        }
        if (arrival > w->grid->length_ns)
            return false;
    }
    return true;
}

/* Stand-ins are enough where all that they stand for has their prices: a schedule that moves there costs no more, since
 * nothing has to be sent between them any longer. Otherwise every device is looked at. */
static void set_present(pricing_pricer *w, const pricing_prices *prices)
{
    int32_t buckets = w->grid->n_buckets;
    bool joined = !prices->memory;
    for (int32_t r = 0; r < w->n_resources && joined; r++)
        joined = !memcmp(prices->resource + r * buckets, prices->resource + pricing_pricer_stand_in(w, r) * buckets,
                         sizeof *prices->resource * (size_t)buckets);
    w->stand_in.present = 0;
    for (int32_t k = 0; k < w->K; k++)
        w->stand_in.present |= (uint64_t)(!joined || w->stand_in.copies[k] > 0) << k;
}

int64_t pricing_pricer_cost(pricing_pricer *w, const pricing_prices *prices, pricing_column_fn column, void *data)
{
    const decompose_block *b = w->block;
    if (!direct_edges_fit(w))
        return NONE;
    w->prices = prices;
    w->cut_short = false;
    set_present(w, prices);
    pricing_pricer_set_prices(w, prices->resource);
    __int128 sum = 0;
    for (int32_t j = 0; w->at.how->fixed && j < w->at.how->n_receivers; j++) {
        int64_t cost = pricing_pricer_send(w, j, column, data);
        if (cost >= NONE)
            return NONE;
        sum += cost;
    }
    for (int32_t kind = 0; kind < b->n_kinds; kind++) {
        int64_t cost = price_kind(w, kind, column, data);
        if (w->cut_short)
            return -NONE;
        if (cost >= NONE)
            return NONE;
        sum += (__int128)cost * b->kind_count[kind];
    }
    return (int64_t)UTIL_MAX(UTIL_MIN(sum, NONE - 1), -NONE); /* expensive, but possible */
}
