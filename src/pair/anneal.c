/* Simulated annealing on one block.
 *
 * A state is a device per operator and a priority per operator; its value is the simulated length of the block (plus
 * what its memory costs, where memory has a price). Starts: every device alone, the LP solutions of component schedules
 * that the price search kept (rounded to whole components, in the order of their start times), and the plan at hand.
 * Moves keep to what good plans are made of: a component takes over the devices of another one of its kind or of a kept
 * column, an operator or a connected part of a component changes device, two operators or components swap priorities.
 * Temperatures fall geometrically from HOT to COLD: a hot start would only shred what the starts have kept together.
 * The work is counted in evaluations, so that the result depends on the seed alone. One evaluation is one dispatch:
 * O((V+E) log V) of the block. */
#include "pair/anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define DRAWS 50
#define GUIDE 2.0 /* how much priced work counts in the energy, against the length */
#define HOT 0.006 /* temperatures, as parts of the length */
#define COLD 0.00003
#define FAR (INT64_C(1) << 60) /* priorities stay within; all times of a problem together are less than twice that */

typedef struct anneal {
    const decompose_block *b;
    const moirai_problem *q;
    moirai_sim *sim;
    const pair_anneal_task *job;
    pair_plan *plan;
    util_rng rng;
    int32_t *device, *old_device;
    int64_t *priority, *old_priority;
    int32_t *mark; /* scratch of the part moves */
    int64_t evaluations;
    int failed;
} anneal;

static int cheaper(const void *a, const void *b)
{
    const pair_trial *x = a, *y = b;
    int64_t left = x->plan.device ? x->plan.cost : INT64_MAX, right = y->plan.device ? y->plan.cost : INT64_MAX;
    return left != right ? (left > right) - (left < right) : x->index - y->index;
}

void pair_trials_sort(pair_trial *t, int32_t n)
{
    if (n)
        qsort(t, (size_t)n, sizeof *t, cheaper);
}

static int64_t memory_cost(const anneal *x, const int32_t *device)
{
    int64_t cost = 0;
    if (x->job->memory_price)
        for (int32_t i = x->b->first; i < x->b->first + x->b->n_interior; i++)
            cost += x->job->memory_price[device[i]] * x->q->op_memory_bytes[i];
    return cost;
}

static int store(anneal *x, int64_t length_ns, int64_t cost)
{
    const moirai_task *order;
    int64_t n = moirai_sim_order(x->sim, &order);
    x->plan->length_ns = length_ns;
    x->plan->cost = cost;
    return pair_plan_set(x->plan, x->q->n_ops, x->device, order, n);
}

/* Everything the state uses, at the master's prices: where the makespan is flat, this still tells better from worse. */
static double priced_work(const anneal *x)
{
    const moirai_problem *q = x->q;
    const double *weight = x->job->weight;
    int32_t K = q->n_devices;
    double sum = 0;
    for (int32_t i = x->b->first; i < x->b->first + x->b->n_interior; i++)
        sum += weight[x->device[i]] * (double)moirai_op_ns(q, i, x->device[i]);
    if (q->congestion != MOIRAI_CONGESTION_PORT)
        return sum;
    for (int32_t t = 0; t < q->n_tensors; t++) {
        int32_t from = x->device[q->tensor_producer[t]];
        uint64_t sent = UINT64_C(1) << from;
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++) {
            int32_t to = x->device[q->edge_reader[e]];
            if (to == from || (q->flow == MOIRAI_FLOW_TENSOR && (sent >> to & 1)))
                continue;
            sent |= UINT64_C(1) << to;
            sum += (weight[K + from] + weight[2 * K + to]) * (double)moirai_transfer_ns(q, t, from, to);
        }
    }
    return sum;
}

/* Energy of the current state, INT64_MAX where it is not allowed; keeps the state if its value is the best so far. */
static int64_t evaluate(anneal *x, const int64_t *priority)
{
    if (x->plan->device && util_stopped(&x->job->stop))
        return INT64_MAX;
    int64_t length = moirai_sim_dispatch(x->sim, x->device, priority);
    x->evaluations++;
    if (length < 0)
        return INT64_MAX;
    int64_t cost = pricing_units(x->b->unit, length) + memory_cost(x, x->device);
    if (!x->plan->device || cost < x->plan->cost)
        x->failed |= store(x, length, cost);
    return x->job->weight ? cost + (int64_t)(GUIDE * (double)x->b->unit * priced_work(x)) : cost;
}

static bool can_run(const anneal *x, int32_t op, int32_t k)
{
    return x->q->op_devices[op] >> k & 1;
}

/* Nearest allowed device for an operator that should go to k. */
static int32_t nearest(const anneal *x, int32_t op, int32_t k)
{
    if (can_run(x, op, k))
        return k;
    int32_t best = __builtin_ctzll(x->q->op_devices[op]);
    for (int32_t l = 0; l < x->q->n_devices; l++)
        if (can_run(x, op, l) && moirai_op_ns(x->q, op, l) < moirai_op_ns(x->q, op, best))
            best = l;
    return best;
}

/* Groups stay together: everyone follows the one that moved. */
static void follow_group(anneal *x, int32_t op)
{
    int32_t group = x->q->op_group[op];
    if (group < 0)
        return;
    for (int32_t i = 0; i < x->q->n_ops; i++)
        if (x->q->op_group[i] == group)
            x->device[i] = x->device[op];
}

static void put(anneal *x, int32_t op, int32_t k)
{
    x->device[op] = nearest(x, op, k);
    follow_group(x, op);
}

static void pin_cuts(anneal *x)
{
    if (x->b->entry >= 0)
        x->device[x->b->entry] = x->job->entry_device;
    if (x->b->exit >= 0)
        x->device[x->b->exit] = x->job->exit_device;
}

static void all_on(anneal *x, int32_t k)
{
    for (int32_t i = x->b->first; i < x->b->first + x->b->n_interior; i++)
        x->device[i] = nearest(x, i, k);
    for (int32_t i = x->b->first; i < x->b->first + x->b->n_interior; i++)
        follow_group(x, i);
}

/* Longest remaining path with mean times: a priority that does not change with the devices. */
static void mean_ranks(anneal *x)
{
    const moirai_problem *q = x->q;
    int32_t K = q->n_devices;
    for (int32_t i = q->n_ops - 1; i >= 0; i--) {
        int64_t sum = 0, n = 0, after = 0;
        for (int32_t k = 0; k < K; k++)
            if (can_run(x, i, k)) {
                sum += moirai_op_ns(q, i, k);
                n++;
            }
        for (int32_t t = q->op_out_off[i]; t < q->op_out_off[i + 1]; t++)
            for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                after = UTIL_MAX(after, x->priority[q->edge_reader[e]]);
        x->priority[i] = after + (n ? sum / n : 0) + 1;
    }
}

/* Copy column `h` onto component c. */
static void wear_pattern(anneal *x, int32_t c, const pricing_chosen_column *h, bool priorities)
{
    int32_t begin = x->b->component_off[c], n = x->b->component_off[c + 1] - begin;
    for (int32_t i = 0; i < n; i++) {
        int32_t op = x->b->component_op[begin + i];
        put(x, op, h->device[i]);
        if (priorities)
            x->priority[op] = -h->start[i];
    }
}

/* Whole numbers of components for each column of a kind: floors first, then the largest remainders. */
static void round_solution(anneal *x, int32_t kind, bool priorities)
{
    const pair_anneal_task *job = x->job;
    int32_t component = 0, left = x->b->kind_count[kind];
    double carried = 0;
    for (int32_t h = 0; h < job->n_columns && left > 0; h++) {
        if (job->column[h].kind != kind)
            continue;
        carried += job->column[h].times;
        for (; carried >= 0.5 && left > 0; carried -= 1, left--) {
            while (x->b->component_kind[component] != kind)
                component++;
            wear_pattern(x, component++, &job->column[h], priorities);
        }
    }
}

/* Whole components, each to the device that is then least loaded; `far` scales what a component costs away from the
 * entry. */
static void share_components(anneal *x, double far)
{
    const decompose_block *b = x->b;
    double load[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t c = 0; c < b->n_components; c++) {
        int32_t best = -1;
        double best_load = 0;
        for (int32_t k = 0; k < x->q->n_devices; k++) {
            double sum = 0;
            bool runs = true;
            for (int32_t i = b->component_off[c]; i < b->component_off[c + 1] && runs; i++) {
                runs = can_run(x, b->component_op[i], k);
                sum += (double)moirai_op_ns(x->q, b->component_op[i], k);
            }
            sum = load[k] + sum * (b->entry >= 0 && k == x->job->entry_device ? 1 : far);
            if (runs && (best < 0 || sum < best_load)) {
                best = k;
                best_load = sum;
            }
        }
        if (best < 0)
            continue;
        load[best] = best_load;
        for (int32_t i = b->component_off[c]; i < b->component_off[c + 1]; i++)
            put(x, b->component_op[i], best);
    }
}

/* Each component of the kind draws its column with the master's frequencies. */
static void draw_solution(anneal *x, int32_t kind)
{
    const pair_anneal_task *job = x->job;
    for (int32_t c = 0; c < x->b->n_components; c++) {
        if (x->b->component_kind[c] != kind)
            continue;
        double point = util_rng_real(&x->rng) * x->b->kind_count[kind];
        int32_t last = -1;
        for (int32_t h = 0; h < job->n_columns && point >= 0; h++)
            if (job->column[h].kind == kind) {
                point -= job->column[h].times;
                last = h;
            }
        if (last >= 0)
            wear_pattern(x, c, &job->column[last], true);
    }
}

/* What reads the entry's tensors stays with it: nothing but results leaves the device. */
static void keep_readers(anneal *x)
{
    const moirai_problem *q = x->q;
    for (int32_t t = q->op_out_off[x->b->entry]; t < q->op_out_off[x->b->entry + 1]; t++)
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            if (q->edge_reader[e] != x->b->exit)
                put(x, q->edge_reader[e], x->job->entry_device);
}

static void starts(anneal *x)
{
    const pair_anneal_task *job = x->job;
    mean_ranks(x);
    if (job->start_device) {
        memcpy(x->device, job->start_device, sizeof *x->device * (size_t)x->q->n_ops);
        pin_cuts(x);
        evaluate(x, NULL);
    }
    for (int32_t k = 0; k < x->q->n_devices && !job->solution_only && !job->keep_readers; k++) {
        all_on(x, k);
        evaluate(x, NULL);
    }
    for (double far = 1; far < 5 && x->b->n_components > 1 && !job->solution_only; far *= 1.3) {
        share_components(x, far);
        if (job->keep_readers)
            keep_readers(x);
        evaluate(x, NULL);
    }
    if (job->keep_readers && !x->plan->device) { /* one component, or no device that can run a whole one */
        all_on(x, job->entry_device);
        keep_readers(x);
        evaluate(x, NULL);
    }
    if (job->n_columns) {
        for (int32_t kind = 0; kind < x->b->n_kinds; kind++)
            round_solution(x, kind, true);
        evaluate(x, x->priority);
        evaluate(x, NULL);
    }
}

/* The best of several drawn LP solutions becomes the state at hand, whatever the best plan is: it may lead elsewhere.
 */
static bool begin_from_solution(anneal *x)
{
    size_t n = (size_t)x->q->n_ops;
    int64_t best = INT64_MAX;
    for (int32_t draw = 0; draw < DRAWS && x->evaluations < x->job->evaluations && !x->failed; draw++) {
        for (int32_t kind = 0; kind < x->b->n_kinds; kind++)
            draw_solution(x, kind);
        int64_t energy = evaluate(x, x->priority);
        if (energy < best) {
            best = energy;
            memcpy(x->old_device, x->device, n * sizeof *x->device);
            memcpy(x->old_priority, x->priority, n * sizeof *x->priority);
        }
    }
    memcpy(x->device, x->old_device, n * sizeof *x->device);
    memcpy(x->priority, x->old_priority, n * sizeof *x->priority);
    return best != INT64_MAX;
}

/* ---- moves ---- */

static int32_t random_interior(anneal *x)
{
    return x->b->first + (int32_t)util_rng_below(&x->rng, (uint32_t)x->b->n_interior);
}

static void move_component(anneal *x)
{
    const decompose_block *b = x->b;
    int32_t c = b->op_component[random_interior(x)], kind = b->component_kind[c];
    if (x->job->n_columns && util_rng_below(&x->rng, 4)) {
        const pricing_chosen_column *h = &x->job->column[util_rng_below(&x->rng, (uint32_t)x->job->n_columns)];
        if (h->kind == kind) {
            wear_pattern(x, c, h, false);
            return;
        }
    }
    int32_t d = (int32_t)util_rng_below(&x->rng, (uint32_t)b->n_components), begin = b->component_off[c];
    int32_t n = b->component_off[c + 1] - begin;
    if (d != c && b->component_kind[d] == kind) {
        for (int32_t i = 0; i < n; i++)
            put(x, b->component_op[begin + i], x->device[b->component_op[b->component_off[d] + i]]);
        return;
    }
    int32_t k = (int32_t)util_rng_below(&x->rng, (uint32_t)x->q->n_devices);
    for (int32_t i = 0; i < n; i++)
        put(x, b->component_op[begin + i], k);
}

/* An operator and what hangs on it, upstream or downstream, while on the same device. */
static void move_part(anneal *x)
{
    const moirai_problem *q = x->q;
    const decompose_block *b = x->b;
    int32_t op = random_interior(x), from = x->device[op], c = b->op_component[op], begin = b->component_off[c];
    int32_t n = b->component_off[c + 1] - begin, k = (int32_t)util_rng_below(&x->rng, (uint32_t)q->n_devices);
    bool down = util_rng_below(&x->rng, 2);
    for (int32_t i = 0; i < n; i++)
        x->mark[b->component_op[begin + i]] = 0;
    x->mark[op] = 1;
    for (int32_t i = 0; i < n; i++) {
        int32_t o = b->component_op[begin + (down ? i : n - 1 - i)];
        if (down) {
            for (int32_t j = q->op_in_off[o]; j < q->op_in_off[o + 1] && !x->mark[o]; j++) {
                int32_t s = q->tensor_producer[q->op_in[j]];
                x->mark[o] = s != b->entry && x->mark[s] && x->device[o] == from;
            }
        } else {
            for (int32_t t = q->op_out_off[o]; t < q->op_out_off[o + 1]; t++)
                for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1] && !x->mark[o]; e++) {
                    int32_t s = q->edge_reader[e];
                    x->mark[o] = s != b->exit && x->mark[s] && x->device[o] == from;
                }
        }
    }
    for (int32_t i = 0; i < n; i++)
        if (x->mark[b->component_op[begin + i]])
            put(x, b->component_op[begin + i], k);
}

static void swap_components(anneal *x)
{
    const decompose_block *b = x->b;
    int32_t c = (int32_t)util_rng_below(&x->rng, (uint32_t)b->n_components);
    int32_t d = (int32_t)util_rng_below(&x->rng, (uint32_t)b->n_components);
    if (b->component_kind[c] != b->component_kind[d])
        return;
    for (int32_t i = 0; i < b->component_off[c + 1] - b->component_off[c]; i++) {
        int32_t o = b->component_op[b->component_off[c] + i], p = b->component_op[b->component_off[d] + i];
        int64_t keep = x->priority[o];
        x->priority[o] = x->priority[p];
        x->priority[p] = keep;
    }
}

/* Shifts of whole components add up, and may double what is between two operators each time. */
static int64_t shifted(int64_t priority, int64_t shift)
{
    int64_t to = priority + shift;
    return to > FAR ? FAR : to < -FAR ? -FAR : to;
}

static void shift_priority(anneal *x)
{
    const decompose_block *b = x->b;
    int32_t op = random_interior(x), other = random_interior(x);
    int64_t shift = x->priority[other] - x->priority[op];
    if (util_rng_below(&x->rng, 2)) {
        x->priority[op] = shifted(x->priority[op], shift + (util_rng_below(&x->rng, 2) ? 1 : -1));
        return;
    }
    int32_t c = b->op_component[op];
    for (int32_t i = b->component_off[c]; i < b->component_off[c + 1]; i++)
        x->priority[b->component_op[i]] = shifted(x->priority[b->component_op[i]], shift);
}

static void move(anneal *x)
{
    uint32_t dice = util_rng_below(&x->rng, 100);
    bool many = x->b->n_components > 1;
    if (dice < (x->job->n_columns ? 45u : 30u) && many)
        move_component(x);
    else if (dice < 55)
        move_part(x);
    else if (dice < 70)
        put(x, random_interior(x), (int32_t)util_rng_below(&x->rng, (uint32_t)x->q->n_devices));
    else if (dice < 80 && many)
        swap_components(x);
    else
        shift_priority(x);
}

static void cool(anneal *x, int64_t budget)
{
    size_t n = (size_t)x->q->n_ops;
    int64_t now = evaluate(x, x->priority);
    double hot = HOT * (x->job->heat > 0 ? x->job->heat : 1) * (double)x->plan->cost,
           cold = COLD * (double)x->plan->cost;
    for (int64_t step = 0; step < budget && !x->failed; step++) {
        if (util_stopped(&x->job->stop))
            return;
        double temperature = hot * pow(cold / hot, (double)step / (double)budget);
        memcpy(x->old_device, x->device, n * sizeof *x->device);
        memcpy(x->old_priority, x->priority, n * sizeof *x->priority);
        for (uint32_t moves = 1 + (util_rng_below(&x->rng, 4) == 0); moves > 0; moves--)
            move(x);
        int64_t next = evaluate(x, x->priority);
        if (next != INT64_MAX && (next <= now || util_rng_real(&x->rng) < exp((double)(now - next) / temperature))) {
            now = next;
            continue;
        }
        memcpy(x->device, x->old_device, n * sizeof *x->device);
        memcpy(x->priority, x->old_priority, n * sizeof *x->priority);
    }
}

/* Priorities that reproduce the best plan as far as priorities can: the earlier, the more urgent. */
static void resume_best(anneal *x)
{
    memcpy(x->device, x->plan->device, sizeof *x->device * (size_t)x->q->n_ops);
    int64_t urgency = (int64_t)x->plan->n_order * 16;
    for (int64_t i = 0; i < x->plan->n_order; i++)
        if (x->plan->order[i] < x->q->n_ops)
            x->priority[x->plan->order[i]] = urgency - 16 * i;
}

int pair_anneal(pair_plan *plan, const decompose_block *b, moirai_sim *sim, const pair_anneal_task *job)
{
    anneal x = {.b = b, .q = &b->problem, .sim = sim, .job = job, .plan = plan};
    size_t n = (size_t)b->problem.n_ops;
    util_rng_seed(&x.rng, job->seed);
    x.device = util_alloc(n, sizeof(int32_t));
    x.old_device = util_alloc(n, sizeof(int32_t));
    x.priority = util_alloc(n, sizeof(int64_t));
    x.old_priority = util_alloc(n, sizeof(int64_t));
    x.mark = util_alloc(n, sizeof(int32_t));
    int rc = x.device && x.old_device && x.priority && x.old_priority && x.mark ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        pin_cuts(&x);
        starts(&x);
        int64_t left = job->evaluations - x.evaluations;
        if (plan->device && b->n_interior > 0 && job->n_columns && left > 4 * DRAWS && begin_from_solution(&x))
            cool(&x, left / 2);
        left = job->evaluations - x.evaluations;
        if (plan->device && b->n_interior > 0 && left > 0) {
            resume_best(&x);
            cool(&x, left);
        }
        rc = x.failed;
    }
    if (!rc && !plan->device)
        rc = moirai_error(MOIRAI_EINFEASIBLE, "no placement of a block is allowed");
    free(x.device);
    free(x.old_device);
    free(x.priority);
    free(x.old_priority);
    free(x.mark);
    return rc;
}
