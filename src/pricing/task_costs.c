/* What single tasks cost at prices in time: the least over all starts within a step of the grid, with the true duration.
 * Costs of a task by the step of its start are a line, filled when it is first asked for. */
#include <stdlib.h>
#include <string.h>

#include "pricing/lines.h"
#include "pricing/pricer_state.h"
#include "util/util.h"

#define NONE PRICING_NONE

/* Price of a resource integrated from 0 to `rest` within step g. */
static int64_t integral(const pricing_pricer *w, int32_t r, int64_t g, int64_t rest)
{
    const int64_t *cumulative = w->work.cumulative + (int64_t)r * (w->grid->n_steps + 1);
    return cumulative[g] + (rest ? rest * w->work.step_price[(int64_t)r * w->grid->n_steps + g] : 0);
}

/* What the task costs if it starts `after` the beginning of step g, at most a step. */
static int64_t cost_at(const pricing_pricer *w, pricing_task_use x, int64_t g, int64_t after)
{
    int64_t step = w->grid->step_ns, end = g + x.ns / step, rest = after + x.ns % step, cost = 0;
    if (after == step) {
        g++;
        after = 0;
    }
    if (rest >= step) {
        end++;
        rest -= step;
    }
    if (x.r1 >= 0)
        cost = integral(w, x.r1, end, rest) - integral(w, x.r1, g, after);
    if (x.r2 >= 0)
        cost += integral(w, x.r2, end, rest) - integral(w, x.r2, g, after);
    return cost;
}

/* Least cost over the starts within step g: the cost is linear between the step's ends except where the task's end
 * meets a step's boundary. *start gets where (if not NULL). NONE where it would end after T. */
int64_t pricing_pricer_task_cost(const pricing_pricer *w, pricing_task_use x, int32_t g, int64_t *start)
{
    int64_t step = w->grid->step_ns, slack = w->grid->length_ns - x.ns - g * step; /* to the latest start */
    if (slack < 0)
        return NONE;
    int64_t best = cost_at(w, x, g, 0), after = 0;
    if (x.r1 >= 0 && x.ns > 0) {
        int64_t high = UTIL_MIN(step, slack), kink = step - x.ns % step, cost = cost_at(w, x, g, high);
        if (cost < best) {
            best = cost;
            after = high;
        }
        if (kink < high && (cost = cost_at(w, x, g, kink)) < best) {
            best = cost;
            after = kink;
        }
    }
    if (start)
        *start = g * step + after;
    return best;
}

/* Free of charge, as most ports are. */
static bool is_free(const pricing_pricer *w, int32_t r)
{
    return r < 0 || !w->work.cumulative[(int64_t)r * (w->grid->n_steps + 1) + w->grid->n_steps];
}

/* task_cost for steps 0 .. n - 1, in which the task can start anywhere. While the prices at its two ends stay as they
 * are, the cost changes by the same amount from step to step: few pieces, and no product for each step. */
static void fill_pieces(const pricing_pricer *w, pricing_task_use x, int64_t n, int64_t *line)
{
    const int32_t *from = w->grid->bucket_step, buckets = w->grid->n_buckets;
    int64_t price[PRICING_MAX_BUCKETS], step = w->grid->step_ns, whole = x.ns / step, rest = x.ns % step, count = 0;
    int64_t worth = integral(w, x.r1, whole, 0); /* of the whole steps from step g on */
    worth += x.r2 >= 0 ? integral(w, x.r2, whole, 0) : 0;
    for (int32_t b = 0; b < buckets; b++) /* of all its resources together */
        price[b] = w->prices->resource[x.r1 * buckets + b] + (x.r2 >= 0 ? w->prices->resource[x.r2 * buckets + b] : 0);
    int32_t i = 0, j = 0; /* the buckets of step g, and of the one behind the whole steps */
    for (int64_t g = 0; g < n; g += count) {
        while (from[i + 1] <= g)
            i++;
        while (from[j + 1] <= g + whole)
            j++;
        int32_t next = j; /* and of the one behind that */
        while (from[next + 1] <= g + whole + 1)
            next++;
        int64_t slope = step * (price[j] - price[i]), begin = worth + rest * price[j];
        int64_t later = worth + slope + rest * UTIL_MIN(price[i], price[next]);
        count = UTIL_MIN(from[i + 1] - 1 - g, from[j + 1] - 1 - g - whole);
        count = UTIL_MIN(count, n - g);
        line[g] = UTIL_MIN(begin, later);
        if (count > 1)
            pricing_line_ramp(line + g, line[g], slope, count);
        count = UTIL_MAX(count, 1);
        worth += slope * count;
    }
}

/* task_cost for all steps at once, divided by `share`. */
static void fill_line(pricing_pricer *w, pricing_task_use x, int32_t share, int64_t *line)
{
    int64_t latest = w->grid->length_ns - x.ns, n = latest < 0 ? 0 : latest / w->grid->step_ns + 1;
    pricing_line_fill(line + n, NONE, w->grid->n_steps - n);
    if (n == 0)
        return;
    if (is_free(w, x.r1) && is_free(w, x.r2)) {
        memset(line, 0, sizeof *line * (size_t)n);
        return;
    }
    fill_pieces(w, x, n - 1, line);
    line[n - 1] = pricing_pricer_task_cost(w, x, (int32_t)n - 1, NULL);
    pricing_line_divide(line, share, n);
}

/* Lines are filled when they are first asked for: many are not, such as those of a tensor from the entry between all
 * other devices. */
const int64_t *pricing_pricer_op_costs(pricing_pricer *w, int32_t op, int32_t k)
{
    int64_t at = (int64_t)w->lines.of_op[op] * w->K + k;
    if (!w->lines.op_filled[at]) {
        w->lines.op_filled[at] = true;
        fill_line(w, pricing_pricer_op_task(w, op, k), 1, w->lines.op_cost + at * w->grid->n_steps);
    }
    return w->lines.op_cost + at * w->grid->n_steps;
}

const int64_t *pricing_pricer_transfer_costs(pricing_pricer *w, int32_t tensor, int32_t a, int32_t b)
{
    int64_t at = ((int64_t)w->lines.of_tensor[tensor] * w->K + a) * w->K + b;
    if (!w->lines.transfer_filled[at]) {
        bool shared = w->block->problem.flow == MOIRAI_FLOW_TENSOR;
        w->lines.transfer_filled[at] = true;
        fill_line(w, pricing_pricer_transfer_task(w, tensor, a, b), shared ? UTIL_MAX(w->tree.readers[tensor], 1) : 1,
                  w->lines.transfer_cost + at * w->grid->n_steps);
    }
    return w->lines.transfer_cost + at * w->grid->n_steps;
}

void pricing_pricer_set_prices(pricing_pricer *w, const int64_t *price)
{
    const pricing_grid *grid = w->grid;
    for (int32_t r = 0; r < w->n_resources; r++) {
        int64_t *line = w->work.step_price + (int64_t)r * grid->n_steps, before = 0;
        int64_t *sum = w->work.cumulative + (int64_t)r * (grid->n_steps + 1);
        for (int32_t i = 0; i < grid->n_buckets; i++) {
            int64_t at = grid->bucket_step[i], n = grid->bucket_step[i + 1] - at;
            int64_t each = price[r * grid->n_buckets + i];
            pricing_line_fill(line + at, each, n);
            pricing_line_ramp(sum + at, before, each * grid->step_ns, n);
            before += each * grid->step_ns * n;
        }
        sum[grid->n_steps] = before;
    }
    memset(w->lines.op_filled, 0, sizeof *w->lines.op_filled * (size_t)(w->lines.n_of_ops * w->K));
    memset(w->lines.transfer_filled, 0,
           sizeof *w->lines.transfer_filled * (size_t)w->lines.n_of_tensors * (size_t)(w->K * w->K));
}
