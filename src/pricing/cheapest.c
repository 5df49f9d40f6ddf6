/* Pricing in time.
 *
 * Suppose the block could be done within T. Put a price >= 0 on every resource (device, port, channel) and every
 * bucket of [0, T]. Each component pays for what it uses; together they cannot use more than there is, so
 *     sum over components of (cost of its schedule)  <=  sum over resources and buckets of price * length.
 * If even the cheapest schedule of every component alone, taken together, costs more than the right side, no schedule
 * of length T exists. That holds for any prices, whoever found them: the proof is the prices.
 *
 * The cheapest schedule of a component is found by dynamic programming over a spanning tree of its operators. The state
 * of an operator is its device and the grid step g = floor(start / step) in which it starts. What is given away, each
 * time in the safe direction:
 *  - durations are rounded down to steps where they separate two starts: start(j) >= start(i) + d implies
 *    g(j) >= g(i) + floor(d / step); the cost of a task is the least over all starts within its step, with its true
 *    duration;
 *  - edges outside the spanning tree are dropped, and of several tensors between two operators the slowest is kept;
 *  - with flow tensor, each of m readers of a tensor pays 1/m of its transfer, rounded down, since at most m share one;
 *  - keep-together groups are not seen.
 * A case of the shared entry tensor fixes who receives it and in which order. With congestion port the j-th arrival is
 * then no earlier than the sum of the first j sends; readers elsewhere are forbidden, readers there wait for the
 * arrival and pay nothing, and each send is a component of its own that pays for the ports.
 *
 * Where the sends happen is not tied to where their readers are: a send could be paid late and read early. A case may
 * therefore say between which two times the tensor arrives on a device; readers wait for the first, the send ends by
 * the second.
 *
 * A number ("how many components of a kind have operator i on device k") lies in a known range in each case of a
 * branching. A price c of any sign on it is paid by every component that has i on k; all together pay at most c * most
 * (c > 0) or c * least, which is added to the right side.
 *
 * Cost of one pricing: O(sum over kinds of operators * K^2 * steps). All arithmetic is in whole numbers. */
#include <stdlib.h>
#include <string.h>

#include "pricing/pricer_state.h"
#include "util/util.h"

#define NONE PRICING_NONE

/* ---- costs of single tasks ---- */

/* Price of a resource integrated from 0 to t. */
static int64_t integral(const pricing_pricer *w, int32_t r, int64_t t)
{
    int64_t g = t / w->grid->step_ns, rest = t - g * w->grid->step_ns;
    const int64_t *cumulative = w->cumulative + (int64_t)r * (w->grid->n_steps + 1);
    return cumulative[g] + (rest ? rest * w->step_price[(int64_t)r * w->grid->n_steps + g] : 0);
}

static int64_t task_cost_at(const pricing_pricer *w, pricing_task_use x, int64_t s)
{
    int64_t cost = 0;
    if (x.r1 >= 0)
        cost = integral(w, x.r1, s + x.ns) - integral(w, x.r1, s);
    if (x.r2 >= 0)
        cost += integral(w, x.r2, s + x.ns) - integral(w, x.r2, s);
    return cost;
}

/* Least cost over the starts within step g: the cost is linear between the step's ends except where the task's end
 * meets a step's boundary. *start gets where (if not NULL). NONE where it would end after T. */
int64_t pricing_pricer_task_cost(const pricing_pricer *w, pricing_task_use x, int32_t g, int64_t *start)
{
    int64_t step = w->grid->step_ns, latest = w->grid->length_ns - x.ns, low = g * step;
    if (low > latest)
        return NONE;
    int64_t best = task_cost_at(w, x, low), at = low;
    if (x.r1 >= 0 && x.ns > 0) {
        int64_t high = UTIL_MIN(low + step, latest), kink = (low + x.ns + step - 1) / step * step - x.ns;
        int64_t cost = task_cost_at(w, x, high);
        if (cost < best) {
            best = cost;
            at = high;
        }
        if (kink > low && kink < high && (cost = task_cost_at(w, x, kink)) < best) {
            best = cost;
            at = kink;
        }
    }
    if (start)
        *start = at;
    return best;
}

/* Adds to line[g] what the pricing_task_use costs on one resource if it starts at g * step (low) or where its end meets
 * a boundary (kink). The same task_cost_at for all g, without a division. */
static void add_resource(const pricing_pricer *w, int32_t r, int64_t ns, int32_t n, int64_t *low, int64_t *kink)
{
    int64_t step = w->grid->step_ns, whole = ns / step, rest = ns % step;
    const int64_t *sum = w->cumulative + (int64_t)r * (w->grid->n_steps + 1);
    const int64_t *price = w->step_price + (int64_t)r * w->grid->n_steps;
    for (int32_t g = 0; g < n; g++)
        low[g] += sum[g + whole] + (rest ? rest * price[g + whole] : 0) - sum[g];
    if (!rest)
        return;
    for (int32_t g = 0; g + 1 < n; g++)
        kink[g] += sum[g + whole + 1] - sum[g] - (step - rest) * price[g];
}

/* task_cost for all steps at once, divided by `share`. */
static void fill_line(pricing_pricer *w, pricing_task_use x, int32_t share, int64_t *line)
{
    int32_t N = w->grid->n_steps;
    int64_t latest = w->grid->length_ns - x.ns, step = w->grid->step_ns;
    int32_t n = latest < 0 ? 0 : (int32_t)(latest / step) + 1;
    for (int32_t g = n; g < N; g++)
        line[g] = NONE;
    memset(line, 0, sizeof *line * (size_t)n);
    if (n == 0 || x.r1 < 0)
        return;
    int64_t *kink = w->line;
    memset(kink, 0, sizeof *kink * (size_t)n);
    add_resource(w, x.r1, x.ns, n, line, kink);
    if (x.r2 >= 0)
        add_resource(w, x.r2, x.ns, n, line, kink);
    bool has_kink = x.ns % step != 0;
    for (int32_t g = 0; g + 1 < n; g++) {
        int64_t best = UTIL_MIN(line[g], line[g + 1]);
        line[g] = has_kink ? UTIL_MIN(best, kink[g]) : best;
    }
    line[n - 1] = pricing_pricer_task_cost(w, x, n - 1, NULL);
    for (int32_t g = 0; share > 1 && g < n; g++)
        line[g] /= share;
}

static const int64_t *op_costs(const pricing_pricer *w, int32_t op, int32_t k)
{
    return w->op_cost + ((int64_t)w->op_line[op] * w->K + k) * w->grid->n_steps;
}

const int64_t *pricing_pricer_transfer_costs(const pricing_pricer *w, int32_t tensor, int32_t a, int32_t b)
{
    return w->transfer_cost + (((int64_t)w->tensor_line[tensor] * w->K + a) * w->K + b) * w->grid->n_steps;
}

static bool out_of_time(pricing_pricer *w)
{
    w->cut_short = w->cut_short || (w->stop && util_stopped(w->stop));
    return w->cut_short;
}

/* With many devices the lines of transfers alone take long: cut_short says that they are not all there. */
static void set_prices(pricing_pricer *w, const int64_t *price)
{
    const pricing_grid *grid = w->grid;
    for (int32_t r = 0; r < w->n_resources; r++) {
        int64_t *line = w->step_price + (int64_t)r * grid->n_steps;
        int64_t *sum = w->cumulative + (int64_t)r * (grid->n_steps + 1);
        for (int32_t i = 0; i < grid->n_buckets; i++)
            for (int32_t g = grid->bucket_step[i]; g < grid->bucket_step[i + 1] && g < grid->n_steps; g++)
                line[g] = price[r * grid->n_buckets + i];
        sum[0] = 0;
        for (int32_t g = 0; g < grid->n_steps; g++)
            sum[g + 1] = sum[g] + line[g] * grid->step_ns;
    }
    for (int32_t i = 0; i < w->n_op_lines; i++)
        for (int32_t k = 0; k < w->K; k++)
            if (w->present >> k & 1 && moirai_op_ns(&w->block->problem, w->line_op[i], k) >= 0)
                fill_line(w, pricing_pricer_op_task(w, w->line_op[i], k), 1, (int64_t *)op_costs(w, w->line_op[i], k));
    bool shared = w->block->problem.flow == MOIRAI_FLOW_TENSOR;
    for (int32_t i = 0; i < w->n_tensor_lines; i++) {
        int32_t t = w->line_tensor[i];
        for (int32_t a = 0; a < w->K && !out_of_time(w); a++)
            for (int32_t b = 0; b < w->K; b++)
                if (a != b && w->present >> a & w->present >> b & 1)
                    fill_line(w, pricing_pricer_transfer_task(w, t, a, b), shared ? UTIL_MAX(w->readers[t], 1) : 1,
                              (int64_t *)pricing_pricer_transfer_costs(w, t, a, b));
    }
}

/* ---- the dynamic programme ---- */

/* Waiting for tensor t of the entry: adds to value[g] for an operator on k. */
static void add_entry_edge(pricing_pricer *w, int64_t *value, int32_t t, int32_t k)
{
    int32_t N = w->grid->n_steps, a = w->entry_device;
    bool shared = w->how.fixed && t == w->shared_tensor;
    int64_t ns = moirai_transfer_ns(&w->block->problem, t, a, k), step = w->grid->step_ns;
    if (shared && pricing_pricer_sent(w, k)) {
        int64_t from = w->arrival_ns[k] < 0 ? N : w->arrival_ns[k] / step;
        for (int32_t g = 0; g < N && g < from; g++)
            value[g] = NONE;
        return;
    }
    if (k == a)
        return;
    const int64_t *cost = pricing_pricer_transfer_costs(w, t, a, k);
    int64_t wait = ns / step, first = wait + (shared ? (w->arrival_ns[k] - ns) / step : 0), best = NONE;
    for (int32_t g = 0; g < N; g++) {
        if (g >= first)
            best = UTIL_MIN(best, cost[g - wait]);
        value[g] = value[g] >= NONE || best >= NONE ? NONE : value[g] + best;
    }
}

/* Tensor t must reach the exit by T: adds to value[g] for an operator on k that takes `ns`. */
static void add_exit_edge(pricing_pricer *w, int64_t *value, int32_t t, int32_t k, int64_t ns)
{
    if (k == w->exit_device)
        return;
    int32_t N = w->grid->n_steps;
    int64_t after = ns / w->grid->step_ns, best = NONE;
    const int64_t *cost = pricing_pricer_transfer_costs(w, t, k, w->exit_device);
    for (int32_t g = N - 1; g >= 0; g--) {
        int64_t u = g + after;
        if (u < N)
            best = UTIL_MIN(best, cost[u]);
        value[g] = value[g] >= NONE || best >= NONE ? NONE : value[g] + best;
    }
}

static void own_value(pricing_pricer *w, int64_t *value, int32_t op, int32_t k, int64_t extra)
{
    const decompose_block *b = w->block;
    const moirai_problem *q = &b->problem;
    int32_t N = w->grid->n_steps;
    if (!pricing_pricer_allows(w, op, k)) {
        for (int32_t g = 0; g < N; g++)
            value[g] = NONE;
        return;
    }
    pricing_task_use x = pricing_pricer_op_task(w, op, k);
    const int64_t *cost = op_costs(w, op, k);
    for (int32_t g = 0; g < N; g++)
        value[g] = cost[g] >= NONE ? NONE : cost[g] + extra;
    for (int32_t j = q->op_in_off[op]; j < q->op_in_off[op + 1]; j++)
        if (q->tensor_producer[q->op_in[j]] == b->entry)
            add_entry_edge(w, value, q->op_in[j], k);
    if (b->exit < 0)
        return;
    for (int32_t j = q->op_in_off[b->exit]; j < q->op_in_off[b->exit + 1]; j++)
        if (q->tensor_producer[q->op_in[j]] == op)
            add_exit_edge(w, value, q->op_in[j], k, x.ns);
}

/* value of the child on l by when it has finished (source) or from when it may start (reader), in w->line. */
void pricing_pricer_child_line(pricing_pricer *w, const pricing_tree_node *child, const int64_t *value, int32_t l,
                               int64_t *line)
{
    int32_t N = w->grid->n_steps;
    if (child->is_source) {
        int64_t ns = moirai_op_ns(&w->block->problem, child->op, l), after = ns / w->grid->step_ns, best = NONE;
        for (int32_t g = 0; g < N; g++) {
            if (g >= after)
                best = UTIL_MIN(best, value[g - after]);
            line[g] = best;
        }
    } else {
        int64_t best = NONE;
        for (int32_t g = N - 1; g >= 0; g--) {
            best = UTIL_MIN(best, value[g]);
            line[g] = best;
        }
    }
}

static void lower(int64_t *a, int64_t b)
{
    if (b < *a)
        *a = b;
}

/* From a source child on l to its parent on k: message[g] for the parent's start. */
static void message_from_source(pricing_pricer *w, const pricing_tree_node *child, const int64_t *line, int32_t l,
                                int32_t k, int64_t *message)
{
    int32_t N = w->grid->n_steps;
    if (l == k) {
        for (int32_t g = 0; g < N; g++)
            lower(&message[g], line[g]);
        return;
    }
    const int64_t *cost = pricing_pricer_transfer_costs(w, child->tensor, l, k);
    int64_t wait = moirai_transfer_ns(&w->block->problem, child->tensor, l, k) / w->grid->step_ns, best = NONE;
    for (int64_t g = wait; g < N; g++) {
        lower(&best, line[g - wait] + cost[g - wait]); /* two NONEs still fit */
        lower(&message[g], best);
    }
}

/* From a reading child on l to its parent on k, whose start step is g: it finishes in step g + after or later. */
static void message_from_reader(pricing_pricer *w, const pricing_tree_node *child, const int64_t *line, int32_t l,
                                int32_t k, int64_t after, int64_t *message)
{
    int32_t N = w->grid->n_steps;
    if (l == k) {
        for (int32_t g = 0; g + after < N; g++)
            lower(&message[g], line[g + after]);
        return;
    }
    const int64_t *cost = pricing_pricer_transfer_costs(w, child->tensor, k, l);
    int64_t wait = moirai_transfer_ns(&w->block->problem, child->tensor, k, l) / w->grid->step_ns, best = NONE;
    for (int64_t u = N - 1 - wait; u >= after; u--) {
        lower(&best, line[u + wait] + cost[u]);
        lower(&message[u - after], best);
    }
}

static void add_child(pricing_pricer *w, const pricing_tree_node *child, const int64_t *child_value, int32_t parent_op,
                      int64_t *parent_value)
{
    int32_t N = w->grid->n_steps, K = w->K;
    for (int64_t x = 0; x < (int64_t)K * N; x++)
        w->message[x] = NONE;
    for (int32_t l = 0; l < K; l++) {
        if (!pricing_pricer_allows(w, child->op, l))
            continue;
        pricing_pricer_child_line(w, child, child_value + (int64_t)l * N, l, w->line);
        for (int32_t k = 0; k < K; k++) {
            if (!pricing_pricer_allows(w, parent_op, k))
                continue;
            int64_t *message = w->message + (int64_t)k * N;
            int64_t after = moirai_op_ns(&w->block->problem, parent_op, k) / w->grid->step_ns;
            if (child->is_source)
                message_from_source(w, child, w->line, l, k, message);
            else
                message_from_reader(w, child, w->line, l, k, after, message);
        }
    }
    for (int64_t x = 0; x < (int64_t)K * N; x++)
        parent_value[x] = parent_value[x] >= NONE || w->message[x] >= NONE ? NONE : parent_value[x] + w->message[x];
}

/* What an operator pays on k whenever it runs: its bytes, and the branches it is part of. */
static int64_t flat_cost(const pricing_pricer *w, int32_t kind, int32_t op, int32_t k)
{
    const pricing_prices *prices = w->prices;
    int64_t sum = prices->memory ? prices->memory[k] * w->block->problem.op_memory_bytes[op] : 0;
    int32_t begin = w->block->component_off[w->block->kind_component[kind]];
    for (int32_t i = 0; i < prices->n_branches; i++) {
        const pricing_branch *branch = &prices->branch[i];
        if (branch->on == PRICING_NUMBER && branch->kind == kind && branch->device == k &&
            w->block->component_op[begin + branch->op] == op)
            sum += prices->branch_price[i];
    }
    return sum;
}

static void kind_values(pricing_pricer *w, int32_t kind)
{
    int32_t base = w->kind_node[kind], end = w->kind_node[kind + 1], N = w->grid->n_steps;
    int64_t stride = (int64_t)w->K * N;
    for (int32_t x = base; x < end && !out_of_time(w); x++)
        for (int32_t k = 0; k < w->K; k++)
            own_value(w, w->value + (x - base) * stride + (int64_t)k * N, w->node[x].op, k,
                      flat_cost(w, kind, w->node[x].op, k));
    for (int32_t x = end - 1; x > base && !out_of_time(w); x--)
        add_child(w, &w->node[x], w->value + (x - base) * stride, w->node[w->node[x].parent].op,
                  w->value + (w->node[x].parent - base) * stride);
}

static int64_t price_kind(pricing_pricer *w, int32_t kind, pricing_column_fn column, void *data)
{
    int32_t N = w->grid->n_steps;
    kind_values(w, kind);
    int64_t best = NONE;
    for (int32_t k = 0; k < w->K; k++) {
        int64_t least = NONE;
        pricing_tree_state root = {k, 0};
        for (int32_t g = 0; g < N; g++)
            if (w->value[(int64_t)k * N + g] < least) {
                least = w->value[(int64_t)k * N + g];
                root.g = g;
            }
        if (least < NONE && column && !out_of_time(w))
            pricing_pricer_walk(w, kind, root, column, data);
        best = UTIL_MIN(best, least);
    }
    return best;
}

/* A tensor that goes from entry to exit directly takes its own time: too long for T is proof enough. */
static bool direct_edges_fit(const pricing_pricer *w)
{
    const decompose_block *b = w->block;
    const moirai_problem *q = &b->problem;
    if (b->entry < 0 || b->exit < 0 || w->entry_device == w->exit_device)
        return true;
    for (int32_t j = q->op_in_off[b->exit]; j < q->op_in_off[b->exit + 1]; j++) {
        int32_t t = q->op_in[j];
        if (q->tensor_producer[t] != b->entry)
            continue;
        if (w->how.fixed && t == w->shared_tensor && w->arrival_ns[w->exit_device] < 0)
            return false;
        if (moirai_transfer_ns(q, t, w->entry_device, w->exit_device) > w->grid->length_ns)
            return false;
        if (w->how.fixed && t == w->shared_tensor && w->arrival_ns[w->exit_device] > w->grid->length_ns)
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
    w->present = 0;
    for (int32_t k = 0; k < w->K; k++)
        w->present |= (uint64_t)(!joined || w->copies[k] > 0) << k;
}

int64_t pricing_pricer_cost(pricing_pricer *w, const pricing_prices *prices, pricing_column_fn column, void *data)
{
    const decompose_block *b = w->block;
    pricing_pricer_set_arrivals(w, prices->n_branches, prices->branch);
    if (!direct_edges_fit(w))
        return NONE;
    w->prices = prices;
    w->cut_short = false;
    set_present(w, prices);
    set_prices(w, prices->resource);
    if (w->cut_short)
        return -NONE;
    __int128 sum = 0;
    for (int32_t j = 0; w->how.fixed && j < w->how.n_receivers; j++) {
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
