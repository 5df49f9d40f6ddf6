/* Walking back: the schedule behind the least value, as a column for the master. */
#include <stdlib.h>
#include <string.h>

#include "pricing/lines.h"
#include "pricing/pricer_state.h"
#include "util/util.h"

#define NONE PRICING_NONE

static const int64_t nothing[] = {0}; /* what a transfer from a device to itself costs */

static void use(pricing_pricer *w, pricing_task_use x, int64_t start, double part)
{
    w->found.finish_ns = UTIL_MAX(w->found.finish_ns, start + x.ns);
    if (x.r1 >= 0 && x.ns > 0)
        w->found.use[w->found.n_uses++] = (pricing_use){x.r1, x.r2, start, x.ns, part};
}

static void clear_uses(pricing_pricer *w)
{
    w->found.n_uses = 0;
    w->found.finish_ns = 0;
}

/* The cheapest start of a transfer within steps first .. last, and its cost; PRICING_NONE: there is none. Lines of costs
 * are rounded down to a reader's part: only where a line is least can the cost be. */
static int64_t cheapest_transfer(pricing_pricer *w, int32_t t, int32_t a, int32_t b, int64_t first, int64_t last,
                                 int64_t *at)
{
    pricing_task_use x = pricing_pricer_transfer_task(w, t, a, b);
    const int64_t *line = pricing_pricer_transfer_costs(w, t, a, b);
    first = UTIL_MAX(first, 0);
    last = UTIL_MIN(last, w->grid->n_steps - 1);
    int64_t best = NONE, least = pricing_line_least(line + first, last - first + 1);
    int64_t share = w->block->problem.flow == MOIRAI_FLOW_TENSOR ? UTIL_MAX(w->tree.readers[t], 1) : 1;
    for (int64_t u = first; u <= last && least < NONE && best > least * share; u++) {
        if (line[u] != least)
            continue;
        int64_t start = 0, cost = pricing_pricer_task_cost(w, x, (int32_t)u, &start);
        if (cost < best) {
            best = cost;
            *at = start;
        }
    }
    return best;
}

/* Use the cheapest transfer that starts within steps first .. last. */
static void use_transfer(pricing_pricer *w, int32_t t, int32_t a, int32_t b, int64_t first, int64_t last, int32_t share)
{
    int64_t at = 0;
    cheapest_transfer(w, t, a, b, first, last, &at);
    use(w, pricing_pricer_transfer_task(w, t, a, b), at,
        w->block->problem.flow == MOIRAI_FLOW_EDGE ? 1.0 : 1.0 / share);
}

static void use_op(pricing_pricer *w, int32_t op, int32_t k, int32_t g)
{
    const decompose_block *b = w->block;
    const moirai_problem *q = &b->problem;
    pricing_task_use x = pricing_pricer_op_task(w, op, k);
    int64_t step = w->grid->step_ns, start = 0;
    pricing_pricer_task_cost(w, x, g, &start);
    use(w, x, start, 1.0);
    for (int32_t j = q->op_in_off[op]; j < q->op_in_off[op + 1]; j++) {
        int32_t t = q->op_in[j];
        bool shared = w->at.how->fixed && t == w->shared_tensor;
        int64_t ns = moirai_transfer_ns(q, t, w->block->entry_device, k);
        if (q->tensor_producer[t] == b->entry && k != w->block->entry_device && !(shared && pricing_pricer_sent(w, k)))
            use_transfer(w, t, w->block->entry_device, k, shared ? (w->arrival.soonest_ns[k] - ns) / step : 0,
                         g - ns / step, w->tree.readers[t]);
    }
    if (b->exit < 0 || k == w->block->exit_device)
        return;
    for (int32_t j = q->op_in_off[b->exit]; j < q->op_in_off[b->exit + 1]; j++)
        if (q->tensor_producer[q->op_in[j]] == op)
            use_transfer(w, q->op_in[j], k, w->block->exit_device, g + x.ns / step, w->grid->n_steps,
                         w->tree.readers[q->op_in[j]]);
}

/* The child's pricing_tree_state that gives the parent's state (k, g) its message, and the use of the transfer
 * between. */
static pricing_tree_state best_child(pricing_pricer *w, int32_t x, int64_t offset, int32_t parent_op,
                                     pricing_tree_state up)
{
    const pricing_tree_node *child = &w->tree.node[x];
    const moirai_problem *q = &w->block->problem;
    int64_t N = w->grid->n_steps, step = w->grid->step_ns, best = NONE, sent = 0;
    int64_t after_parent = moirai_op_ns(q, parent_op, up.k) / step;
    pricing_tree_state pick = {up.k, 0};
    for (int32_t l = 0; l < w->K; l++) {
        if (!pricing_pricer_allows(w, child->op, l))
            continue;
        const int64_t *value = w->work.value + offset + l * N, *least = w->work.best_value + offset + l * N;
        int64_t after = child->is_source ? moirai_op_ns(q, child->op, l) / step : 0;
        int32_t a = child->is_source ? l : up.k, z = child->is_source ? up.k : l;
        int64_t wait = l == up.k ? 0 : moirai_transfer_ns(q, child->tensor, a, z) / step;
        /* steps in which the transfer may start; where there is none, the only one */
        int64_t from = child->is_source ? after : up.g + after_parent,
                to = child->is_source ? up.g - wait : N - 1 - wait;
        if (l == up.k)
            child->is_source ? (from = UTIL_MAX(from, to)) : (to = UTIL_MIN(from, to));
        const int64_t *costs = l == up.k ? nothing : pricing_pricer_transfer_costs(w, child->tensor, a, z) + from;
        const int64_t *rest = child->is_source ? least + from - after : least + from + wait;
        /* Costs are not below 0, and `rest` falls (or rises) all the way: often its least is too much already. */
        if (from > to || rest[child->is_source ? to - from : 0] >= best)
            continue;
        int64_t cost = pricing_line_least_sum(costs, rest, to - from + 1);
        if (cost >= best)
            continue;
        best = cost;
        pick.k = l;
        sent = 0;
        while (costs[sent] + rest[sent] != cost || costs[sent] >= NONE || rest[sent] >= NONE)
            sent++;
        /* The step of the child itself: where its line took the value from. */
        int64_t taken = rest[sent], h = child->is_source ? from + sent - after : from + sent + wait;
        sent += from;
        while (value[h] != taken)
            h += child->is_source ? -1 : 1;
        pick.g = (int32_t)h;
    }
    if (pick.k != up.k) {
        int32_t from = child->is_source ? pick.k : up.k, to = child->is_source ? up.k : pick.k;
        use_transfer(w, child->tensor, from, to, sent, sent, child->share);
    }
    return pick;
}

void pricing_pricer_walk(pricing_pricer *w, int32_t kind, pricing_tree_state root, pricing_column_fn column, void *data)
{
    const decompose_block *b = w->block;
    int32_t base = w->tree.kind_node[kind], n = w->tree.kind_node[kind + 1] - base, N = w->grid->n_steps;
    int64_t stride = (int64_t)w->K * N;
    /* States live in the scratch of the nodes' own order, then move to the component's order. */
    pricing_tree_state *at = (pricing_tree_state *)util_alloc((size_t)n, sizeof *at);
    if (!at)
        return;
    clear_uses(w);
    at[0] = root;
    for (int32_t x = 0; x < n; x++) {
        const pricing_tree_node *node = &w->tree.node[base + x];
        if (x)
            at[x] = best_child(w, base + x, x * stride, w->tree.node[node->parent].op, at[node->parent - base]);
        use_op(w, node->op, at[x].k, at[x].g);
        w->found.device[b->op_place[node->op]] = (int8_t)at[x].k;
        w->found.start[b->op_place[node->op]] = at[x].g * w->grid->step_ns;
    }
    free(at);
    pricing_column out = {kind, n, w->found.device, w->found.start, w->found.finish_ns, w->found.n_uses, w->found.use};
    column(data, &out);
}

int64_t pricing_pricer_send(pricing_pricer *w, int32_t j, pricing_column_fn column, void *data)
{
    int32_t k = w->at.how->receiver[j];
    pricing_task_use x = pricing_pricer_transfer_task(w, w->shared_tensor, w->block->entry_device, k);
    int64_t at = 0, first = (w->arrival.soonest_ns[k] - x.ns) / w->grid->step_ns;
    int64_t last =
        w->arrival.latest_ns[k] < w->arrival.soonest_ns[k] ? -1 : (w->arrival.latest_ns[k] - x.ns) / w->grid->step_ns;
    int64_t best = cheapest_transfer(w, w->shared_tensor, w->block->entry_device, k, first, last, &at);
    if (best < NONE && column) {
        clear_uses(w);
        use(w, x, at, 1.0);
        pricing_column out = {-1 - j,          0,           w->found.device, w->found.start, w->found.finish_ns,
                              w->found.n_uses, w->found.use};
        column(data, &out);
    }
    return best;
}
