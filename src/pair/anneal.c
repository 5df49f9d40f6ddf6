/* Simulated annealing on one block.
 *
 * A state is a device per operator and a priority per operator; its value is the simulated length of the block (plus
 * what its memory costs, where memory has a price). Starts: every device alone, the LP solutions of component schedules
 * that the price search kept (rounded to whole components, in the order of their start times), and the plan at hand.
 * Moves are those of anneal_moves.c. The simulation ends where the threshold is passed: four of five trials do.
 * Temperatures fall geometrically from PAIR_ANNEAL_HOT to PAIR_ANNEAL_COLD: a hot start would only shred what the starts have kept together.
 * The work is counted in evaluations, so that the result depends on the seed alone. One evaluation is one dispatch:
 * O((V+E) log V) of the block. */
#include "pair/anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/anneal.h"
#include "pair/anneal_state.h"
#include "pair/pair_tuning.h"
#include "schedule/paths.h"
#include "schedule/sim.h"

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

int32_t pair_trials_add(pair_trial *t, int32_t n, int32_t most, int32_t index, int64_t value)
{
    int32_t at = n < most ? n : most - 1;
    if (n == most && t[at].value <= value)
        return n;
    for (; at > 0 && t[at - 1].value > value; at--)
        t[at] = t[at - 1];
    t[at] = (pair_trial){.index = index, .value = value};
    return UTIL_MIN(n + 1, most);
}

static int64_t memory_cost(const pair_annealing *x, const int32_t *device)
{
    int64_t cost = 0;
    if (x->job->memory_price)
        for (int32_t i = x->b->first; i < x->b->first + x->b->n_interior; i++)
            cost += x->job->memory_price[device[i]] * x->q->op_memory_bytes[i];
    return cost;
}

static int store(pair_annealing *x, int64_t length_ns, int64_t cost)
{
    const moirai_task *order;
    int64_t n = moirai_sim_order(x->sim, &order);
    x->plan->length_ns = length_ns;
    x->plan->cost = cost;
    return pair_plan_set(x->plan, x->q->n_ops, x->device, order, n);
}

/* Everything the state uses, at the master's prices: where the makespan is flat, this still tells better from worse. */
static double priced_work(const pair_annealing *x)
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

/* Energy of the current state; INT64_MAX where it is not allowed, and where it is found to be above `most`. Keeps the state
 * if its value is the best so far, whatever its energy. */
static int64_t evaluate_below(pair_annealing *x, const int64_t *priority, int64_t most)
{
    if (x->plan->device && util_stopped(&x->job->stop))
        return INT64_MAX;
    int64_t memory = memory_cost(x, x->device), unit = x->b->unit;
    int64_t work = x->job->weight ? (int64_t)(PAIR_ANNEAL_GUIDE * (double)unit * priced_work(x)) : 0;
    schedule_limit limit = {
        .ns = (UTIL_MAX(most - work, x->plan->cost) - memory) / unit, .tail_ns = x->tail_ns, .rest_ns = x->rest_ns};
    x->evaluations++;
    int64_t length = schedule_sim_dispatch_within(x->sim, x->device, priority, most == INT64_MAX ? NULL : &limit);
    if (length < 0)
        return INT64_MAX;
    int64_t cost = pricing_units(unit, length) + memory;
    if (!x->plan->device || cost < x->plan->cost)
        x->failed |= store(x, length, cost);
    return cost + work;
}

static int64_t evaluate(pair_annealing *x, const int64_t *priority)
{
    return evaluate_below(x, priority, INT64_MAX);
}

static void pin_cuts(pair_annealing *x)
{
    if (x->b->entry >= 0)
        x->device[x->b->entry] = x->b->entry_device;
    if (x->b->exit >= 0)
        x->device[x->b->exit] = x->b->exit_device;
}

static void all_on(pair_annealing *x, int32_t k)
{
    for (int32_t i = x->b->first; i < x->b->first + x->b->n_interior; i++)
        x->device[i] = pair_annealing_nearest(x, i, k);
    for (int32_t i = x->b->first; i < x->b->first + x->b->n_interior; i++)
        pair_annealing_follow(x, i);
}

/* Longest remaining path with mean times: a priority that does not change with the devices. */
static void mean_ranks(pair_annealing *x)
{
    const moirai_problem *q = x->q;
    int32_t K = q->n_devices;
    for (int32_t i = q->n_ops - 1; i >= 0; i--) {
        int64_t sum = 0, n = 0, after = 0;
        for (int32_t k = 0; k < K; k++)
            if (pair_annealing_can_run(x, i, k)) {
                sum += moirai_op_ns(q, i, k);
                n++;
            }
        for (int32_t t = q->op_out_off[i]; t < q->op_out_off[i + 1]; t++)
            for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                after = UTIL_MAX(after, x->priority[q->edge_reader[e]]);
        x->priority[i] = after + (n ? sum / n : 0) + 1;
    }
}

/* Whole numbers of components for each column of a kind: floors first, then the largest remainders. */
static void round_solution(pair_annealing *x, int32_t kind)
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
            pair_annealing_wear(x, component++, &job->column[h], true);
        }
    }
}

/* Whole components, each to the device that is then least loaded; `far` scales what a component costs away from the
 * entry. */
static void share_components(pair_annealing *x, double far)
{
    const decompose_block *b = x->b;
    double load[MOIRAI_MASK_DEVICES] = {0};
    for (int32_t c = 0; c < b->n_components; c++) {
        int32_t best = -1;
        double best_load = 0;
        for (int32_t k = 0; k < x->q->n_devices; k++) {
            double sum = 0;
            bool runs = true;
            for (int32_t i = b->component_off[c]; i < b->component_off[c + 1] && runs; i++) {
                runs = pair_annealing_can_run(x, b->component_op[i], k);
                sum += (double)moirai_op_ns(x->q, b->component_op[i], k);
            }
            sum = load[k] + sum * (b->entry >= 0 && k == x->b->entry_device ? 1 : far);
            if (runs && (best < 0 || sum < best_load)) {
                best = k;
                best_load = sum;
            }
        }
        if (best < 0)
            continue;
        load[best] = best_load;
        for (int32_t i = b->component_off[c]; i < b->component_off[c + 1]; i++)
            pair_annealing_put(x, b->component_op[i], best);
    }
}

/* Each component of the kind draws its column with the master's frequencies. */
static void draw_solution(pair_annealing *x, int32_t kind)
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
            pair_annealing_wear(x, c, &job->column[last], true);
    }
}

/* What reads the entry's tensors stays with it: nothing but results leaves the device. */
static void keep_readers(pair_annealing *x)
{
    const moirai_problem *q = x->q;
    for (int32_t t = q->op_out_off[x->b->entry]; t < q->op_out_off[x->b->entry + 1]; t++)
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            if (q->edge_reader[e] != x->b->exit)
                pair_annealing_put(x, q->edge_reader[e], x->b->entry_device);
}

static void starts(pair_annealing *x)
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
        all_on(x, x->b->entry_device);
        keep_readers(x);
        evaluate(x, NULL);
    }
    if (job->n_columns) {
        for (int32_t kind = 0; kind < x->b->n_kinds; kind++)
            round_solution(x, kind);
        evaluate(x, x->priority);
        evaluate(x, NULL);
    }
}

static void remember(pair_annealing *x)
{
    memcpy(x->old_device, x->device, (size_t)x->q->n_ops * sizeof *x->device);
    memcpy(x->old_priority, x->priority, (size_t)x->q->n_ops * sizeof *x->priority);
}

static void go_back(pair_annealing *x)
{
    memcpy(x->device, x->old_device, (size_t)x->q->n_ops * sizeof *x->device);
    memcpy(x->priority, x->old_priority, (size_t)x->q->n_ops * sizeof *x->priority);
}

/* The best of several drawn LP solutions becomes the state at hand, whatever the best plan is: it may lead elsewhere.
 */
static bool begin_from_solution(pair_annealing *x)
{
    int64_t best = INT64_MAX;
    for (int32_t draw = 0; draw < PAIR_ANNEAL_DRAWS && x->evaluations < x->job->evaluations && !x->failed; draw++) {
        for (int32_t kind = 0; kind < x->b->n_kinds; kind++)
            draw_solution(x, kind);
        int64_t energy = evaluate(x, x->priority);
        if (energy < best) {
            best = energy;
            remember(x);
        }
    }
    go_back(x);
    return best != INT64_MAX;
}

static void move(void *data)
{
    remember(data);
    pair_annealing_move(data);
}

static bool judge(void *data, double above)
{
    pair_annealing *x = data;
    int64_t most = x->energy == INT64_MAX ? x->energy : x->energy + (int64_t)above,
            next = evaluate_below(x, x->priority, most);
    if (next != INT64_MAX && next <= most)
        x->energy = next;
    else
        go_back(x);
    return !x->failed;
}

static void cool(pair_annealing *x, int64_t budget)
{
    x->energy = evaluate(x, x->priority);
    if (x->failed || !x->plan->cost)
        return; /* nothing is shorter than no time */
    anneal_run(&(anneal_task){.hot = PAIR_ANNEAL_HOT * (x->job->heat > 0 ? x->job->heat : 1) * (double)x->plan->cost,
                              .cold = PAIR_ANNEAL_COLD * (double)x->plan->cost,
                              .steps = budget,
                              .stride = 1,
                              .rng = &x->rng,
                              .stop = &x->job->stop,
                              .data = x,
                              .move = move,
                              .judge = judge});
}

/* Priorities that reproduce the best plan as far as priorities can: the earlier, the more urgent. */
static void resume_best(pair_annealing *x)
{
    memcpy(x->device, x->plan->device, sizeof *x->device * (size_t)x->q->n_ops);
    int64_t urgency = (int64_t)x->plan->n_order * 16;
    for (int64_t i = 0; i < x->plan->n_order; i++)
        if (x->plan->order[i] < x->q->n_ops)
            x->priority[x->plan->order[i]] = urgency - 16 * i;
}

int pair_anneal(pair_plan *plan, const decompose_block *b, const pair_anneal_task *job)
{
    pair_annealing x = {.b = b, .q = &b->problem, .job = job, .plan = plan};
    size_t n = (size_t)b->problem.n_ops;
    util_memory memory = {0};
    util_rng_seed(&x.rng, job->seed);
    UTIL_TAKE(&memory, x.device, n);
    UTIL_TAKE(&memory, x.old_device, n);
    UTIL_TAKE(&memory, x.priority, n);
    UTIL_TAKE(&memory, x.old_priority, n);
    UTIL_TAKE(&memory, x.mark, n);
    UTIL_TAKE(&memory, x.tail_ns, n * (size_t)b->problem.n_devices);
    int rc = util_taken_all(&memory);
    rc = rc ? rc : moirai_sim_new(&x.sim, &b->problem);
    if (!rc) {
        schedule_tails(x.tail_ns, &(schedule_paths){.p = x.q});
        schedule_rests(x.rest_ns, x.q, x.tail_ns);
        pin_cuts(&x);
        starts(&x);
        int64_t left = job->evaluations - x.evaluations;
        bool draws = job->n_columns && !job->plan_only && left > 4 * PAIR_ANNEAL_DRAWS;
        if (plan->device && b->n_interior > 0 && draws && begin_from_solution(&x))
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
    moirai_sim_free(x.sim);
    util_release(&memory);
    return rc;
}
