/* Pricing in time.
 *
 * Suppose the block could be done within T. Put a price >= 0 on every resource (device, port, channel) and every
 * bucket of [0, T]. Each component pays for what it uses; together they cannot use more than there is, so
 *     sum over components of (cost of its schedule)  <=  sum over resources and buckets of price * length.
 * If even the cheapest schedule of every component alone, taken together, costs more than the right side, no schedule
 * of length T exists. That holds for any prices, whoever found them: the proof is the prices.
 *
 * The cheapest schedule of a component is found by dynamic programming over a spanning tree of its operators. The state of an
 * operator is its device and the grid step g = floor(start / step) in which it starts. What is given away, each time in the
 * safe direction:
 *  - durations are rounded down to steps where they separate two starts: start(j) >= start(i) + d implies
 *    g(j) >= g(i) + floor(d / step); the cost of a task is the least over all starts within its step, with its true duration;
 *  - edges outside the spanning tree are dropped, and of several tensors between two operators the slowest is kept;
 *  - with flow tensor, each of m readers of a tensor pays 1/m of its transfer, rounded down, since at most m share one;
 *  - keep-together groups are not seen.
 * A case of the shared entry tensor fixes who receives it and in which order. With congestion port the j-th arrival is then no
 * earlier than the sum of the first j sends; readers elsewhere are forbidden, readers there wait for the arrival and pay
 * nothing, and each send is a component of its own that pays for the ports.
 *
 * Where the sends happen is not tied to where their readers are: a send could be paid late and read early. A case may therefore say
 * between which two times the tensor arrives on a device; readers wait for the first, the send ends by the second.
 *
 * A count ("how many components of a kind have operator i on device k") lies in a known range in each case of a branching. A
 * price c of any sign on it is paid by every component that has i on k; all together pay at most c * most (c > 0) or c * least,
 * which is added to the right side.
 *
 * Cost of one pricing: O(sum over kinds of operators * K^2 * steps). All arithmetic is in whole numbers. */
#include "place/moirai/price.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define NONE MOIRAI_PRICE_NONE

/* An edge of the spanning tree, seen from the child. */
typedef struct tree_node {
    int32_t op;
    int32_t parent;   /* index of the node, -1 for the root */
    int32_t tensor;   /* between child and parent */
    bool is_source;   /* the child produces what the parent reads */
    int32_t share;    /* readers among whom the transfer is shared */
} tree_node;

struct moirai_pricer {
    const moirai_block *block;
    int32_t K, n_resources, max_steps;
    int32_t shared_tensor;
    int32_t *kind_node; /* per kind: first node in `node`; parents come before children */
    tree_node *node;
    int32_t n_nodes;
    int32_t *readers;   /* per local tensor: distinct readers in the block */
    /* Costs of tasks by start step under the prices at hand. Operators of equal times share lines, and so do
     * tensors of equal transfer times and share. */
    int32_t *op_line, n_op_lines;          /* per operator */
    int32_t *tensor_line, n_tensor_lines;  /* per tensor */
    int32_t *line_op, *line_tensor;        /* a representative of each */
    int64_t *op_cost;                      /* [(line * K + k) * N + g] */
    int64_t *transfer_cost;                /* [((line * K + a) * K + b) * N + g] */
    /* set by moirai_pricer_set */
    int32_t entry_device, exit_device;
    moirai_sending how;
    const moirai_grid *grid;
    int64_t arrival_ns[MOIRAI_MAX_DEVICES]; /* of the shared tensor: no sooner; -1: not received */
    int64_t arrived_ns[MOIRAI_MAX_DEVICES]; /* and no later */
    const moirai_prices *prices;
    /* scratch */
    int64_t *value;      /* [node * K * N + k * N + g], of the kind at hand */
    int64_t *message;    /* K * N */
    int64_t *line;       /* N */
    int64_t *cumulative; /* [resource * (N + 1) + g] */
    int64_t *step_price; /* [resource * N + g] */
    int8_t *device;
    int64_t *start;
    moirai_use *use;
    int32_t n_uses;
    int64_t finish_ns; /* of what `use` holds */
};

int32_t moirai_resource_count(const moirai_problem *q)
{
    int32_t K = q->n_devices;
    switch (q->congestion) {
    case MOIRAI_CONGESTION_PORT:
        return 3 * K;
    case MOIRAI_CONGESTION_CHANNEL:
        return K + K * K;
    default:
        return K;
    }
}

void moirai_grid_init(moirai_grid *grid, int64_t length_ns, int64_t step_ns, int32_t buckets)
{
    grid->length_ns = length_ns;
    grid->step_ns = step_ns;
    grid->n_steps = (int32_t)(length_ns / step_ns) + 1;
    grid->n_buckets = MOIRAI_MIN(MOIRAI_MIN(buckets, grid->n_steps), MOIRAI_MAX_BUCKETS);
    for (int32_t i = 0; i < grid->n_buckets; i++) {
        /* A third of the buckets for each end's eighth, the rest even. */
        double x = (double)i / grid->n_buckets;
        double y = x < 1.0 / 3 ? x * 3 / 8 : x > 2.0 / 3 ? 1 - (1 - x) * 3 / 8 : 0.125 + (x - 1.0 / 3) * 2.25;
        int32_t at = (int32_t)((grid->n_buckets < 6 ? x : y) * grid->n_steps + 0.5);
        grid->bucket_step[i] = i && at <= grid->bucket_step[i - 1] ? grid->bucket_step[i - 1] + 1 : at;
    }
    /* Pushing apart may have run over the end. */
    grid->bucket_step[grid->n_buckets] = grid->n_steps;
    for (int32_t i = grid->n_buckets - 1; i > 0 && grid->bucket_step[i] >= grid->bucket_step[i + 1]; i--)
        grid->bucket_step[i] = grid->bucket_step[i + 1] - 1;
}

void moirai_grid_snap(moirai_grid *grid, int64_t at_ns)
{
    int64_t at = at_ns / grid->step_ns;
    int32_t best = -1;
    for (int32_t i = 1; i < grid->n_buckets; i++) {
        bool fits = grid->bucket_step[i - 1] < at && at < grid->bucket_step[i + 1];
        if (fits && (best < 0 || llabs(grid->bucket_step[i] - at) < llabs(grid->bucket_step[best] - at)))
            best = i;
    }
    if (best >= 0)
        grid->bucket_step[best] = (int32_t)at;
}

int64_t moirai_bucket_ns(const moirai_grid *grid, int32_t bucket)
{
    int64_t from = grid->bucket_step[bucket] * grid->step_ns, to = grid->bucket_step[bucket + 1] * grid->step_ns;
    return MOIRAI_MIN(to, grid->length_ns) - MOIRAI_MIN(from, grid->length_ns);
}

int64_t moirai_price_capacity(const moirai_problem *q, const moirai_grid *grid, const moirai_prices *prices)
{
    int64_t sum = 0;
    int32_t resources = moirai_resource_count(q);
    for (int32_t r = 0; r < resources; r++)
        for (int32_t i = 0; i < grid->n_buckets; i++)
            sum += prices->resource[r * grid->n_buckets + i] * moirai_bucket_ns(grid, i);
    for (int32_t i = 0; i < prices->n_counts; i++)
        sum += prices->count_price[i] * (prices->count_price[i] > 0 ? prices->count[i].most : prices->count[i].least);
    return sum;
}

int64_t moirai_price_length(const moirai_problem *q, const moirai_grid *grid, const moirai_prices *prices, int64_t unit,
                            int64_t least_ns)
{
    int32_t resources = moirai_resource_count(q);
    __int128 worth = 0, least = INT64_MAX;
    for (int32_t i = 0; i < grid->n_buckets; i++) { /* linear within a bucket: the ends are enough */
        int64_t from = MOIRAI_MIN(grid->bucket_step[i] * grid->step_ns, grid->length_ns), to = from + moirai_bucket_ns(grid, i);
        __int128 rate = 0;
        for (int32_t r = 0; r < resources; r++)
            rate += prices->resource[r * grid->n_buckets + i];
        if (least_ns >= from && least_ns <= to)
            least = MOIRAI_MIN(least, (__int128)unit * least_ns - worth - rate * (least_ns - from));
        worth += rate * (to - from);
        if (to >= least_ns)
            least = MOIRAI_MIN(least, (__int128)unit * to - worth);
    }
    return (int64_t)MOIRAI_MAX(least, -(__int128)NONE);
}

/* ---- the spanning trees ---- */

/* The slowest transfer of a tensor: what dropping its edge would lose. */
static int64_t edge_weight(const moirai_problem *q, int32_t tensor)
{
    int64_t most = 0;
    for (int32_t a = 0; a < q->n_devices; a++)
        for (int32_t b = 0; b < q->n_devices; b++)
            most = MOIRAI_MAX(most, moirai_transfer_ns(q, tensor, a, b));
    return most;
}

/* Prim's algorithm over the component, heaviest edge first; ties by operator number. O(n * edges of n) is fine: n is
 * small or the edges are few. */
static int grow_tree(moirai_pricer *w, int32_t kind, int32_t *in_tree)
{
    const moirai_block *b = w->block;
    const moirai_problem *q = &b->problem;
    int32_t c = b->kind_component[kind], begin = b->component_off[c], n = b->component_off[c + 1] - begin;
    int32_t base = w->n_nodes;
    int64_t *weight = moirai_alloc((size_t)q->n_tensors, sizeof *weight);
    if (!weight)
        return MOIRAI_EFAIL;
    for (int32_t t = 0; t < q->n_tensors; t++)
        weight[t] = edge_weight(q, t);
    w->node[w->n_nodes++] = (tree_node){b->component_op[begin + n - 1], -1, MOIRAI_NONE, false, 1};
    in_tree[b->component_op[begin + n - 1]] = base;
    while (w->n_nodes < base + n) {
        int64_t best = -1;
        tree_node pick = {0};
        for (int32_t x = base; x < w->n_nodes; x++) {
            int32_t op = w->node[x].op;
            for (int32_t j = q->op_in_off[op]; j < q->op_in_off[op + 1]; j++) {
                int32_t t = q->op_in[j], other = q->tensor_producer[t];
                if (other != b->entry && in_tree[other] < 0 && weight[t] > best) {
                    best = weight[t];
                    pick = (tree_node){other, x, t, true, w->readers[t]};
                }
            }
            for (int32_t t = q->op_out_off[op]; t < q->op_out_off[op + 1]; t++)
                for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++) {
                    int32_t other = q->edge_reader[e];
                    if (other != b->exit && in_tree[other] < 0 && weight[t] > best) {
                        best = weight[t];
                        pick = (tree_node){other, x, t, false, w->readers[t]};
                    }
                }
        }
        in_tree[pick.op] = w->n_nodes;
        w->node[w->n_nodes++] = pick;
    }
    free(weight);
    return MOIRAI_OK;
}

static int build_trees(moirai_pricer *w)
{
    const moirai_block *b = w->block;
    const moirai_problem *q = &b->problem;
    int32_t *in_tree = moirai_alloc((size_t)q->n_ops, sizeof *in_tree);
    if (!in_tree)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < q->n_ops; i++)
        in_tree[i] = -1;
    int result = MOIRAI_OK;
    for (int32_t kind = 0; kind < b->n_kinds && !result; kind++) {
        w->kind_node[kind] = w->n_nodes;
        result = grow_tree(w, kind, in_tree);
    }
    w->kind_node[b->n_kinds] = w->n_nodes;
    free(in_tree);
    return result;
}

int32_t moirai_pricer_tree(const moirai_pricer *w, int32_t kind, moirai_tree_edge *edge)
{
    int32_t n = 0;
    for (int32_t x = w->kind_node[kind] + 1; x < w->kind_node[kind + 1]; x++) {
        const tree_node *node = &w->node[x];
        int32_t parent = w->node[node->parent].op;
        edge[n++] = node->is_source ? (moirai_tree_edge){node->op, node->tensor, parent}
                                    : (moirai_tree_edge){parent, node->tensor, node->op};
    }
    return n;
}

/* The entry's tensor with the most readers, if there are several. */
int32_t moirai_block_shared_tensor(const moirai_block *b)
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

void moirai_pricer_free(moirai_pricer *w)
{
    if (!w)
        return;
    free(w->kind_node);
    free(w->node);
    free(w->readers);
    free(w->op_line);
    free(w->tensor_line);
    free(w->line_op);
    free(w->line_tensor);
    free(w->op_cost);
    free(w->transfer_cost);
    free(w->value);
    free(w->message);
    free(w->line);
    free(w->cumulative);
    free(w->step_price);
    free(w->device);
    free(w->start);
    free(w->use);
    free(w);
}

static int assign_lines(moirai_pricer *w)
{
    const moirai_problem *q = &w->block->problem;
    size_t K = (size_t)w->K, N = (size_t)w->max_steps + 2;
    bool shared = q->flow == MOIRAI_FLOW_TENSOR;
    w->op_line = moirai_alloc((size_t)q->n_ops, sizeof(int32_t));
    w->line_op = moirai_alloc((size_t)q->n_ops, sizeof(int32_t));
    w->tensor_line = moirai_alloc((size_t)q->n_tensors, sizeof(int32_t));
    w->line_tensor = moirai_alloc((size_t)q->n_tensors, sizeof(int32_t));
    if (!w->op_line || !w->line_op || !w->tensor_line || !w->line_tensor)
        return MOIRAI_EFAIL;
    for (int32_t x = 0; x < w->n_nodes; x++) {
        int32_t i = w->node[x].op, line = 0;
        while (line < w->n_op_lines && memcmp(q->op_time_ns + (size_t)i * K, q->op_time_ns + (size_t)w->line_op[line] * K,
                                              K * sizeof(int64_t)))
            line++;
        if (line == w->n_op_lines)
            w->line_op[w->n_op_lines++] = i;
        w->op_line[i] = line;
    }
    for (int32_t t = 0; t < q->n_tensors; t++) {
        int32_t line = 0;
        while (line < w->n_tensor_lines && (q->tensor_class[t] != q->tensor_class[w->line_tensor[line]] ||
                                            (shared && w->readers[t] != w->readers[w->line_tensor[line]])))
            line++;
        if (line == w->n_tensor_lines)
            w->line_tensor[w->n_tensor_lines++] = t;
        w->tensor_line[t] = line;
    }
    w->op_cost = moirai_alloc((size_t)w->n_op_lines * K * N, sizeof(int64_t));
    w->transfer_cost = moirai_alloc((size_t)w->n_tensor_lines * K * K * N, sizeof(int64_t));
    return w->op_cost && w->transfer_cost ? MOIRAI_OK : MOIRAI_EFAIL;
}

int moirai_pricer_new(moirai_pricer **out, const moirai_block *b, int32_t max_steps)
{
    *out = NULL;
    const moirai_problem *q = &b->problem;
    moirai_pricer *w = moirai_alloc(1, sizeof *w);
    if (!w)
        return MOIRAI_EFAIL;
    size_t N = (size_t)max_steps + 2, K = (size_t)q->n_devices, largest = 1;
    w->block = b;
    w->K = q->n_devices;
    w->n_resources = moirai_resource_count(q);
    w->max_steps = max_steps;
    for (int32_t kind = 0; kind < b->n_kinds; kind++) {
        int32_t c = b->kind_component[kind];
        largest = MOIRAI_MAX(largest, (size_t)(b->component_off[c + 1] - b->component_off[c]));
    }
    size_t R = (size_t)w->n_resources;
    w->kind_node = moirai_alloc((size_t)b->n_kinds + 1, sizeof(int32_t));
    w->node = moirai_alloc((size_t)q->n_ops, sizeof *w->node);
    w->readers = moirai_alloc((size_t)q->n_tensors, sizeof(int32_t));
    w->value = moirai_alloc(largest * K * N, sizeof(int64_t));
    w->message = moirai_alloc(K * N, sizeof(int64_t));
    w->line = moirai_alloc(N, sizeof(int64_t));
    w->cumulative = moirai_alloc(R * (N + 1), sizeof(int64_t));
    w->step_price = moirai_alloc(R * N, sizeof(int64_t));
    w->device = moirai_alloc(largest, sizeof(int8_t));
    w->start = moirai_alloc(largest, sizeof(int64_t));
    w->use = moirai_alloc(4 * (size_t)q->n_ops + 2 * (size_t)q->n_edges + 4, sizeof *w->use);
    int result = w->kind_node && w->node && w->readers && w->value && w->message && w->line && w->cumulative &&
                         w->step_price && w->device && w->start && w->use
                     ? MOIRAI_OK
                     : MOIRAI_EFAIL;
    if (!result) {
        for (int32_t t = 0; t < q->n_tensors; t++)
            w->readers[t] = q->tensor_edge_off[t + 1] - q->tensor_edge_off[t];
        w->shared_tensor = moirai_block_shared_tensor(b);
        result = build_trees(w);
        if (!result)
            result = assign_lines(w);
    }
    if (result)
        moirai_pricer_free(w);
    else
        *out = w;
    return result;
}

/* When the shared tensor is where: one port sends it to one receiver after the other; elsewhere each send is on its own. */
static void set_arrivals(moirai_pricer *w, int32_t n_counts, const moirai_count *count)
{
    const moirai_problem *q = &w->block->problem;
    bool port = q->congestion == MOIRAI_CONGESTION_PORT;
    int64_t sent = 0, rest = w->grid->length_ns;
    for (int32_t k = 0; k < w->K; k++) {
        w->arrival_ns[k] = k == w->entry_device ? 0 : -1;
        w->arrived_ns[k] = w->grid->length_ns;
    }
    for (int32_t j = 0; w->how.fixed && j < w->how.n_receivers; j++) {
        int32_t k = w->how.receiver[j];
        sent = (port ? sent : 0) + moirai_transfer_ns(q, w->shared_tensor, w->entry_device, k);
        for (int32_t i = 0; i < n_counts; i++)
            if (count[i].kind == MOIRAI_ARRIVAL && count[i].device == k) {
                sent = MOIRAI_MAX(sent, count[i].least);
                w->arrived_ns[k] = MOIRAI_MIN(w->arrived_ns[k], count[i].most);
            }
        w->arrival_ns[k] = sent;
    }
    for (int32_t j = w->how.fixed ? w->how.n_receivers - 1 : -1; j >= 0 && port; j--) {
        int32_t k = w->how.receiver[j];
        w->arrived_ns[k] = MOIRAI_MIN(w->arrived_ns[k], rest);
        rest = w->arrived_ns[k] - moirai_transfer_ns(q, w->shared_tensor, w->entry_device, k);
    }
}

void moirai_pricer_set(moirai_pricer *w, int32_t entry_device, int32_t exit_device, const moirai_sending *how,
                       const moirai_grid *grid)
{
    w->entry_device = entry_device;
    w->exit_device = exit_device;
    w->how = *how;
    w->grid = grid;
    set_arrivals(w, 0, NULL);
}

/* ---- costs of single tasks ---- */

static bool allowed(const moirai_pricer *w, int32_t op, int32_t k)
{
    return w->block->problem.op_devices[op] >> k & 1;
}

/* Price of a resource integrated from 0 to t. */
static int64_t integral(const moirai_pricer *w, int32_t r, int64_t t)
{
    int64_t g = t / w->grid->step_ns, rest = t - g * w->grid->step_ns;
    const int64_t *cumulative = w->cumulative + (int64_t)r * (w->grid->n_steps + 1);
    return cumulative[g] + (rest ? rest * w->step_price[(int64_t)r * w->grid->n_steps + g] : 0);
}

typedef struct task {
    int32_t r1, r2; /* resources; r2 = -1: one only; r1 = -1: none */
    int64_t ns;
} task;

static int64_t task_cost_at(const moirai_pricer *w, task x, int64_t s)
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
static int64_t task_cost(const moirai_pricer *w, task x, int32_t g, int64_t *start)
{
    int64_t step = w->grid->step_ns, latest = w->grid->length_ns - x.ns, low = g * step;
    if (low > latest)
        return NONE;
    int64_t best = task_cost_at(w, x, low), at = low;
    if (x.r1 >= 0 && x.ns > 0) {
        int64_t high = MOIRAI_MIN(low + step, latest), kink = (low + x.ns + step - 1) / step * step - x.ns;
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

static task op_task(const moirai_pricer *w, int32_t op, int32_t k)
{
    return (task){k, -1, moirai_op_ns(&w->block->problem, op, k)};
}

static task transfer_task(const moirai_pricer *w, int32_t tensor, int32_t a, int32_t b)
{
    const moirai_problem *q = &w->block->problem;
    int64_t ns = moirai_transfer_ns(q, tensor, a, b);
    switch (q->congestion) {
    case MOIRAI_CONGESTION_PORT:
        return (task){w->K + a, 2 * w->K + b, ns};
    case MOIRAI_CONGESTION_CHANNEL:
        return (task){w->K + a * w->K + b, -1, ns};
    default:
        return (task){-1, -1, ns};
    }
}

/* Adds to line[g] what the task costs on one resource if it starts at g * step (low) or where its end meets a
 * boundary (kink). The same task_cost_at for all g, without a division. */
static void add_resource(const moirai_pricer *w, int32_t r, int64_t ns, int32_t n, int64_t *low, int64_t *kink)
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
static void fill_line(moirai_pricer *w, task x, int32_t share, int64_t *line)
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
        int64_t best = MOIRAI_MIN(line[g], line[g + 1]);
        line[g] = has_kink ? MOIRAI_MIN(best, kink[g]) : best;
    }
    line[n - 1] = task_cost(w, x, n - 1, NULL);
    for (int32_t g = 0; share > 1 && g < n; g++)
        line[g] /= share;
}

static const int64_t *op_costs(const moirai_pricer *w, int32_t op, int32_t k)
{
    return w->op_cost + ((int64_t)w->op_line[op] * w->K + k) * w->grid->n_steps;
}

static const int64_t *transfer_costs(const moirai_pricer *w, int32_t tensor, int32_t a, int32_t b)
{
    return w->transfer_cost + (((int64_t)w->tensor_line[tensor] * w->K + a) * w->K + b) * w->grid->n_steps;
}

static void set_prices(moirai_pricer *w, const int64_t *price)
{
    const moirai_grid *grid = w->grid;
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
            if (moirai_op_ns(&w->block->problem, w->line_op[i], k) >= 0)
                fill_line(w, op_task(w, w->line_op[i], k), 1, (int64_t *)op_costs(w, w->line_op[i], k));
    bool shared = w->block->problem.flow == MOIRAI_FLOW_TENSOR;
    for (int32_t i = 0; i < w->n_tensor_lines; i++) {
        int32_t t = w->line_tensor[i];
        for (int32_t a = 0; a < w->K; a++)
            for (int32_t b = 0; b < w->K; b++)
                if (a != b)
                    fill_line(w, transfer_task(w, t, a, b), shared ? MOIRAI_MAX(w->readers[t], 1) : 1,
                              (int64_t *)transfer_costs(w, t, a, b));
    }
}

/* ---- the dynamic programme ---- */

/* Waiting for tensor t of the entry: adds to value[g] for an operator on k. */
static void add_entry_edge(moirai_pricer *w, int64_t *value, int32_t t, int32_t k)
{
    int32_t N = w->grid->n_steps, a = w->entry_device;
    if (w->how.fixed && t == w->shared_tensor) {
        int64_t from = w->arrival_ns[k] < 0 ? N : w->arrival_ns[k] / w->grid->step_ns;
        for (int32_t g = 0; g < N && g < from; g++)
            value[g] = NONE;
        return;
    }
    if (k == a)
        return;
    const int64_t *cost = transfer_costs(w, t, a, k);
    int64_t wait = moirai_transfer_ns(&w->block->problem, t, a, k) / w->grid->step_ns, best = NONE;
    for (int32_t g = 0; g < N; g++) {
        if (g >= wait)
            best = MOIRAI_MIN(best, cost[g - wait]);
        value[g] = value[g] >= NONE || best >= NONE ? NONE : value[g] + best;
    }
}

/* Tensor t must reach the exit by T: adds to value[g] for an operator on k that takes `ns`. */
static void add_exit_edge(moirai_pricer *w, int64_t *value, int32_t t, int32_t k, int64_t ns)
{
    if (k == w->exit_device)
        return;
    int32_t N = w->grid->n_steps;
    int64_t after = ns / w->grid->step_ns, best = NONE;
    const int64_t *cost = transfer_costs(w, t, k, w->exit_device);
    for (int32_t g = N - 1; g >= 0; g--) {
        int64_t u = g + after;
        if (u < N)
            best = MOIRAI_MIN(best, cost[u]);
        value[g] = value[g] >= NONE || best >= NONE ? NONE : value[g] + best;
    }
}

static void own_value(moirai_pricer *w, int64_t *value, int32_t op, int32_t k, int64_t extra)
{
    const moirai_block *b = w->block;
    const moirai_problem *q = &b->problem;
    int32_t N = w->grid->n_steps;
    if (!allowed(w, op, k)) {
        for (int32_t g = 0; g < N; g++)
            value[g] = NONE;
        return;
    }
    task x = op_task(w, op, k);
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
static void child_line(moirai_pricer *w, const tree_node *child, const int64_t *value, int32_t l, int64_t *line)
{
    int32_t N = w->grid->n_steps;
    if (child->is_source) {
        int64_t ns = moirai_op_ns(&w->block->problem, child->op, l), after = ns / w->grid->step_ns, best = NONE;
        for (int32_t g = 0; g < N; g++) {
            if (g >= after)
                best = MOIRAI_MIN(best, value[g - after]);
            line[g] = best;
        }
    } else {
        int64_t best = NONE;
        for (int32_t g = N - 1; g >= 0; g--) {
            best = MOIRAI_MIN(best, value[g]);
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
static void message_from_source(moirai_pricer *w, const tree_node *child, const int64_t *line, int32_t l, int32_t k,
                                int64_t *message)
{
    int32_t N = w->grid->n_steps;
    if (l == k) {
        for (int32_t g = 0; g < N; g++)
            lower(&message[g], line[g]);
        return;
    }
    const int64_t *cost = transfer_costs(w, child->tensor, l, k);
    int64_t wait = moirai_transfer_ns(&w->block->problem, child->tensor, l, k) / w->grid->step_ns, best = NONE;
    for (int64_t g = wait; g < N; g++) {
        lower(&best, line[g - wait] + cost[g - wait]); /* two NONEs still fit */
        lower(&message[g], best);
    }
}

/* From a reading child on l to its parent on k, whose start step is g: it finishes in step g + after or later. */
static void message_from_reader(moirai_pricer *w, const tree_node *child, const int64_t *line, int32_t l, int32_t k,
                                int64_t after, int64_t *message)
{
    int32_t N = w->grid->n_steps;
    if (l == k) {
        for (int32_t g = 0; g + after < N; g++)
            lower(&message[g], line[g + after]);
        return;
    }
    const int64_t *cost = transfer_costs(w, child->tensor, k, l);
    int64_t wait = moirai_transfer_ns(&w->block->problem, child->tensor, k, l) / w->grid->step_ns, best = NONE;
    for (int64_t u = N - 1 - wait; u >= after; u--) {
        lower(&best, line[u + wait] + cost[u]);
        lower(&message[u - after], best);
    }
}

static void add_child(moirai_pricer *w, const tree_node *child, const int64_t *child_value, int32_t parent_op,
                      int64_t *parent_value)
{
    int32_t N = w->grid->n_steps, K = w->K;
    for (int64_t x = 0; x < (int64_t)K * N; x++)
        w->message[x] = NONE;
    for (int32_t l = 0; l < K; l++) {
        if (!allowed(w, child->op, l))
            continue;
        child_line(w, child, child_value + (int64_t)l * N, l, w->line);
        for (int32_t k = 0; k < K; k++) {
            if (!allowed(w, parent_op, k))
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

/* What an operator pays on k whenever it runs: its bytes, and the counts it is part of. */
static int64_t flat_cost(const moirai_pricer *w, int32_t kind, int32_t op, int32_t k)
{
    const moirai_prices *prices = w->prices;
    int64_t sum = prices->memory ? prices->memory[k] * w->block->problem.op_memory_bytes[op] : 0;
    int32_t begin = w->block->component_off[w->block->kind_component[kind]];
    for (int32_t i = 0; i < prices->n_counts; i++) {
        const moirai_count *count = &prices->count[i];
        if (count->kind == kind && count->device == k && w->block->component_op[begin + count->op] == op)
            sum += prices->count_price[i];
    }
    return sum;
}

static void kind_values(moirai_pricer *w, int32_t kind)
{
    int32_t base = w->kind_node[kind], end = w->kind_node[kind + 1], N = w->grid->n_steps;
    int64_t stride = (int64_t)w->K * N;
    for (int32_t x = base; x < end; x++)
        for (int32_t k = 0; k < w->K; k++)
            own_value(w, w->value + (x - base) * stride + (int64_t)k * N, w->node[x].op, k,
                      flat_cost(w, kind, w->node[x].op, k));
    for (int32_t x = end - 1; x > base; x--)
        add_child(w, &w->node[x], w->value + (x - base) * stride, w->node[w->node[x].parent].op,
                  w->value + (w->node[x].parent - base) * stride);
}

/* ---- walking back: the schedule behind the least value ---- */

static void use(moirai_pricer *w, task x, int64_t start, double part)
{
    w->finish_ns = MOIRAI_MAX(w->finish_ns, start + x.ns);
    if (x.r1 >= 0 && x.ns > 0)
        w->use[w->n_uses++] = (moirai_use){x.r1, x.r2, start, x.ns, part};
}

static void clear_uses(moirai_pricer *w)
{
    w->n_uses = 0;
    w->finish_ns = 0;
}

/* Use the cheapest transfer that starts within steps first .. last. */
static void use_transfer(moirai_pricer *w, int32_t t, int32_t a, int32_t b, int64_t first, int64_t last, int32_t share)
{
    task x = transfer_task(w, t, a, b);
    int64_t best = NONE, at = 0;
    for (int64_t u = MOIRAI_MAX(first, 0); u <= last && u < w->grid->n_steps; u++) {
        int64_t start = 0, cost = task_cost(w, x, (int32_t)u, &start);
        if (cost < best) {
            best = cost;
            at = start;
        }
    }
    use(w, x, at, w->block->problem.flow == MOIRAI_FLOW_EDGE ? 1.0 : 1.0 / share);
}

static void use_op(moirai_pricer *w, int32_t op, int32_t k, int32_t g)
{
    const moirai_block *b = w->block;
    const moirai_problem *q = &b->problem;
    task x = op_task(w, op, k);
    int64_t step = w->grid->step_ns, start = 0;
    task_cost(w, x, g, &start);
    use(w, x, start, 1.0);
    for (int32_t j = q->op_in_off[op]; j < q->op_in_off[op + 1]; j++) {
        int32_t t = q->op_in[j];
        if (q->tensor_producer[t] == b->entry && k != w->entry_device && !(w->how.fixed && t == w->shared_tensor))
            use_transfer(w, t, w->entry_device, k, 0, g - moirai_transfer_ns(q, t, w->entry_device, k) / step,
                         w->readers[t]);
    }
    if (b->exit < 0 || k == w->exit_device)
        return;
    for (int32_t j = q->op_in_off[b->exit]; j < q->op_in_off[b->exit + 1]; j++)
        if (q->tensor_producer[q->op_in[j]] == op)
            use_transfer(w, q->op_in[j], k, w->exit_device, g + x.ns / step, w->grid->n_steps, w->readers[q->op_in[j]]);
}

typedef struct state {
    int32_t k, g;
} state;

/* The child's state that gives the parent's state (k, g) its message, and the use of the transfer between. */
static state best_child(moirai_pricer *w, const tree_node *child, const int64_t *value, int32_t parent_op, state up)
{
    const moirai_problem *q = &w->block->problem;
    int32_t N = w->grid->n_steps;
    int64_t step = w->grid->step_ns, best = NONE;
    int64_t after_parent = moirai_op_ns(q, parent_op, up.k) / step;
    state pick = {up.k, 0};
    int64_t pick_from = 0, pick_to = 0;
    for (int32_t l = 0; l < w->K; l++) {
        if (!allowed(w, child->op, l))
            continue;
        child_line(w, child, value + (int64_t)l * N, l, w->line);
        int64_t after = moirai_op_ns(q, child->op, l) / step;
        int32_t a = child->is_source ? l : up.k, z = child->is_source ? up.k : l;
        const int64_t *costs = transfer_costs(w, child->tensor, a, z);
        int64_t wait = moirai_transfer_ns(q, child->tensor, a, z) / step;
        int64_t from = child->is_source ? 0 : up.g + after_parent;
        int64_t to = child->is_source ? up.g - wait : N - 1 - wait;
        if (l == up.k)
            child->is_source ? (from = to) : (to = from);
        for (int64_t u = MOIRAI_MAX(from, 0); u <= to && u < N; u++) {
            int64_t cost = l == up.k ? 0 : costs[u];
            int64_t rest = w->line[child->is_source ? u : u + wait];
            if (cost >= NONE || rest >= NONE || cost + rest >= best)
                continue;
            best = cost + rest;
            pick.k = l;
            pick_from = pick_to = u;
            /* The step of the child itself: where its line took the value from. */
            int64_t h = child->is_source ? u - after : u + wait;
            while (value[(int64_t)l * N + h] != rest)
                h += child->is_source ? -1 : 1;
            pick.g = (int32_t)h;
        }
    }
    if (pick.k != up.k) {
        int32_t from = child->is_source ? pick.k : up.k, to = child->is_source ? up.k : pick.k;
        use_transfer(w, child->tensor, from, to, pick_from, pick_to, child->share);
    }
    return pick;
}

static int32_t place_of(const moirai_block *b, int32_t kind, int32_t op)
{
    int32_t c = b->kind_component[kind], x = b->component_off[c];
    while (b->component_op[x] != op)
        x++;
    return x - b->component_off[c];
}

static void report_kind(moirai_pricer *w, int32_t kind, state root, moirai_pattern_fn pattern, void *data)
{
    const moirai_block *b = w->block;
    int32_t base = w->kind_node[kind], n = w->kind_node[kind + 1] - base, N = w->grid->n_steps;
    int64_t stride = (int64_t)w->K * N;
    /* States live in the scratch of the nodes' own order, then move to the component's order. */
    state *at = (state *)moirai_alloc((size_t)n, sizeof *at);
    if (!at)
        return;
    clear_uses(w);
    at[0] = root;
    for (int32_t x = 0; x < n; x++) {
        const tree_node *node = &w->node[base + x];
        if (x)
            at[x] = best_child(w, node, w->value + x * stride, w->node[node->parent].op, at[node->parent - base]);
        use_op(w, node->op, at[x].k, at[x].g);
        int32_t place = place_of(b, kind, node->op);
        w->device[place] = (int8_t)at[x].k;
        w->start[place] = at[x].g * w->grid->step_ns;
    }
    free(at);
    moirai_pattern out = {kind, n, w->device, w->start, w->finish_ns, w->n_uses, w->use};
    pattern(data, &out);
}

static int64_t price_kind(moirai_pricer *w, int32_t kind, moirai_pattern_fn pattern, void *data)
{
    int32_t N = w->grid->n_steps;
    kind_values(w, kind);
    int64_t best = NONE;
    for (int32_t k = 0; k < w->K; k++) {
        int64_t least = NONE;
        state root = {k, 0};
        for (int32_t g = 0; g < N; g++)
            if (w->value[(int64_t)k * N + g] < least) {
                least = w->value[(int64_t)k * N + g];
                root.g = g;
            }
        if (least < NONE && pattern)
            report_kind(w, kind, root, pattern, data);
        best = MOIRAI_MIN(best, least);
    }
    return best;
}

/* The j-th sending of the shared tensor. */
static int64_t price_send(moirai_pricer *w, int32_t j, moirai_pattern_fn pattern, void *data)
{
    int32_t k = w->how.receiver[j];
    task x = transfer_task(w, w->shared_tensor, w->entry_device, k);
    int64_t best = NONE, at = 0, first = (w->arrival_ns[k] - x.ns) / w->grid->step_ns;
    int64_t last = w->arrived_ns[k] < w->arrival_ns[k] ? -1 : (w->arrived_ns[k] - x.ns) / w->grid->step_ns;
    for (int64_t u = first; u <= last && u < w->grid->n_steps; u++) {
        int64_t start = 0, cost = task_cost(w, x, (int32_t)u, &start);
        if (cost < best) {
            best = cost;
            at = start;
        }
    }
    if (best < NONE && pattern) {
        clear_uses(w);
        use(w, x, at, 1.0);
        moirai_pattern out = {-1 - j, 0, w->device, w->start, w->finish_ns, w->n_uses, w->use};
        pattern(data, &out);
    }
    return best;
}

/* A tensor that goes from entry to exit directly takes its own time: too long for T is proof enough. */
static bool direct_edges_fit(const moirai_pricer *w)
{
    const moirai_block *b = w->block;
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

int64_t moirai_pricer_cost(moirai_pricer *w, const moirai_prices *prices, moirai_pattern_fn pattern, void *data)
{
    const moirai_block *b = w->block;
    set_arrivals(w, prices->n_counts, prices->count);
    if (!direct_edges_fit(w))
        return NONE;
    w->prices = prices;
    set_prices(w, prices->resource);
    __int128 sum = 0;
    for (int32_t j = 0; w->how.fixed && j < w->how.n_receivers; j++) {
        int64_t cost = price_send(w, j, pattern, data);
        if (cost >= NONE)
            return NONE;
        sum += cost;
    }
    for (int32_t kind = 0; kind < b->n_kinds; kind++) {
        int64_t cost = price_kind(w, kind, pattern, data);
        if (cost >= NONE)
            return NONE;
        sum += (__int128)cost * b->kind_count[kind];
    }
    return (int64_t)MOIRAI_MAX(MOIRAI_MIN(sum, NONE - 1), -NONE); /* dear, but possible */
}

bool moirai_pricer_fits(moirai_pricer *w, int32_t n_counts, const moirai_count *count, const moirai_pattern *pattern)
{
    const moirai_block *b = w->block;
    int64_t step = w->grid->step_ns;
    if (pattern->finish_ns > w->grid->length_ns)
        return false;
    if (!w->how.fixed)
        return true;
    set_arrivals(w, n_counts, count);
    if (pattern->kind < 0) {
        int32_t k = w->how.receiver[-1 - pattern->kind];
        /* A step's cheapest start may be anywhere in it. */
        return pattern->finish_ns + step >= w->arrival_ns[k] && pattern->finish_ns <= w->arrived_ns[k] + step;
    }
    int32_t begin = b->component_off[b->kind_component[pattern->kind]];
    for (int32_t i = 0; i < pattern->n_ops; i++) {
        int32_t op = b->component_op[begin + i];
        for (int32_t j = b->problem.op_in_off[op]; j < b->problem.op_in_off[op + 1]; j++)
            if (b->problem.op_in[j] == w->shared_tensor && (w->arrival_ns[pattern->device[i]] < 0 ||
                                                           pattern->start[i] / step < w->arrival_ns[pattern->device[i]] / step))
                return false;
    }
    return true;
}

int64_t moirai_pricer_arrival(const moirai_pricer *w, int32_t device)
{
    return w->arrival_ns[device];
}

static void hold(const moirai_pricer *w, int32_t r, int64_t from, int64_t to, double *held_ns)
{
    const moirai_grid *grid = w->grid;
    for (int32_t i = 0; i < grid->n_buckets && r >= 0; i++) {
        int64_t begin = MOIRAI_MAX(from, grid->bucket_step[i] * grid->step_ns);
        int64_t end = MOIRAI_MIN(to, grid->bucket_step[i + 1] * grid->step_ns);
        if (end > begin)
            held_ns[r * grid->n_buckets + i] += (double)(end - begin);
    }
}

void moirai_pricer_held(moirai_pricer *w, int32_t n_counts, const moirai_count *count, double *held_ns)
{
    memset(held_ns, 0, sizeof *held_ns * (size_t)(w->n_resources * w->grid->n_buckets));
    set_arrivals(w, n_counts, count);
    for (int32_t j = 0; w->how.fixed && j < w->how.n_receivers; j++) {
        int32_t k = w->how.receiver[j];
        task x = transfer_task(w, w->shared_tensor, w->entry_device, k);
        hold(w, x.r1, w->arrived_ns[k] - x.ns, w->arrival_ns[k], held_ns);
        hold(w, x.r2, w->arrived_ns[k] - x.ns, w->arrival_ns[k], held_ns);
    }
}
