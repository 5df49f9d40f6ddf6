/* One case of a pair at prices on bytes: what it is worth, how it is solved, where it is split next.
 *
 * Its value is the better of two: the least length that it allows with all bytes where they are cheapest, and what its
 * prices in time prove. Who receives the shared tensor is asked first: it says most. Then the range of lengths is divided, if the grid is
 * coarse or the LP solution combines short and long ones. Then what the LP solution does that no plan could: a number of components that is
 * not whole, or a tensor that is read before it arrives; of these the one on which most time of the dearest devices hangs. Where bytes
 * have prices, an arrival that is not known well is halved first. */
#include "pair/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/pair_tuning.h"
#include "util/util.h"

void pair_case_free(pair_case *c)
{
    free(c->branch);
    free(c->prices.price);
}

int64_t pair_cheapest_bytes(const decompose_block *b, const int64_t *byte_price, double *use)
{
    const moirai_problem *q = &b->problem;
    int64_t sum = 0;
    for (int32_t i = b->first; i < b->first + b->n_interior; i++) {
        int32_t best = __builtin_ctzll(q->op_devices[i]);
        for (int32_t k = 0; k < q->n_devices; k++)
            if ((q->op_devices[i] >> k & 1) && byte_price[k] < byte_price[best])
                best = k;
        sum += byte_price[best] * q->op_memory_bytes[i];
        if (use)
            use[best] += (double)q->op_memory_bytes[i];
    }
    return sum;
}

/* Whether they prove the pair's length, and no other tree's bytes. */
static bool are_lengths(const pair_cases *v)
{
    return v == &v->pair->cases;
}

int64_t pair_case_least_ns(const pair_cases *v, const pair_case *c)
{
    return UTIL_MAX(c->least_ns, pair_certified_ns(v->pair) - are_lengths(v));
}

/* The same by other proofs than that of the tree itself: where a case is worth more, its own prices say so. */
static int64_t otherwise_ns(const pair_cases *v, const pair_case *c)
{
    return UTIL_MAX(c->least_ns, are_lengths(v) ? pair_certified_otherwise_ns(v->pair) : pair_certified_ns(v->pair));
}

const int64_t *pair_paid_bytes(const decompose_block *b, const int64_t *byte_price)
{
    int32_t k = 0;
    while (k < b->problem.n_devices && byte_price[k] == 0)
        k++;
    return k < b->problem.n_devices ? byte_price : NULL;
}

static pricing_master_task task_of(const pair_cases *v, const pair_solver *by, const pair_case *c,
                                   const int64_t *byte_price)
{
    return (pricing_master_task){
        .pricer = by->pricer,
        .at = {.how = &v->pair->sending.how[c->sending], .n_branches = c->n_branches, .branch = c->branch},
        .length_ns = c->most_ns,
        .least_ns = pair_case_least_ns(v, c),
        .memory_price = pair_paid_bytes(&v->pair->block, byte_price),
        .max_rounds = PAIR_CASE_ROUNDS,
        .start = &c->prices};
}

/* What is known at some prices on bytes says something at all others (Lemma 36). */
int64_t pair_case_floor(const pair_cases *v, const pair_case *c, const pair_bytes_at *at)
{
    int64_t least = otherwise_ns(v, c), rise = INT64_MAX;
    int64_t floor = pricing_units(v->pair->block.unit, least) + at->cheapest;
    if (least > c->most_ns || c->known >= PRICING_NONE) /* no plan, at no prices */
        return PRICING_NONE;
    for (int32_t k = 0; k < v->pair->block.problem.n_devices; k++)
        rise = UTIL_MIN(rise, at->price[k] - c->known_at[k]);
    __int128 known = c->known + (__int128)rise * at->total;
    return c->known && known > floor ? (int64_t)known : floor;
}

int64_t pair_length_value(const pair_cases *v, int64_t length_ns, const int64_t *byte_price)
{
    return pricing_units(v->pair->block.unit, length_ns) + pair_cheapest_bytes(&v->pair->block, byte_price, NULL);
}

static int64_t value_of_case(const pair_cases *v, const pair_solver *by, const pair_case *c, const int64_t *byte_price)
{
    int64_t least = otherwise_ns(v, c), value = pair_length_value(v, least, byte_price);
    if (UTIL_MAX(least, pair_case_least_ns(v, c)) > c->most_ns)
        return PRICING_NONE;
    const pricing_duals *prices = &c->prices;
    if (prices->price) {
        pricing_master_task task = task_of(v, by, c, byte_price);
        task.at.n_branches = prices->n_branches; /* those that have prices */
        value = UTIL_MAX(value, pricing_master_reprice(by->master, &task, &prices->grid, prices->price));
    }
    return value;
}

/* Without a solver there is no price either: nobody begins one to be told of the length. */
int64_t pair_case_value(pair_cases *v, const pair_case *c, const int64_t *byte_price)
{
    return value_of_case(v, &v->solver[0], c, byte_price);
}

/* To other prices on bytes, where nothing is solved yet. */
void pair_case_move(const pair_cases *v, pair_case *c, const pair_bytes_at *at)
{
    size_t bytes = sizeof *at->price * (size_t)v->pair->block.problem.n_devices;
    c->value = pair_case_floor(v, c, at);
    c->valued = c->known && !memcmp(c->known_at, at->price, bytes);
    c->end.solved = false;
}

static void take_value(const pair_cases *v, pair_case *c, int64_t value)
{
    c->value = c->known = value;
    c->valued = true;
    memcpy(c->known_at, v->byte_price, sizeof v->byte_price);
}

void pair_case_revalue(pair_cases *v, pair_case *c)
{
    take_value(v, c, pair_case_value(v, c, v->byte_price));
}

/* ---- splitting ---- */

/* The part of each resource in these prices, over all time; sums to 1. */
static void weigh(const moirai_problem *q, const pricing_grid *grid, const int64_t *price, double *weight)
{
    int32_t resources = schedule_resources(q);
    double sum = 1e-9;
    for (int32_t r = 0; r < resources; r++) {
        weight[r] = 0;
        for (int32_t i = 0; i < grid->n_buckets; i++)
            weight[r] += (double)price[r * grid->n_buckets + i] * (double)pricing_bucket_ns(grid, i);
        sum += weight[r];
    }
    for (int32_t r = 0; r < resources; r++)
        weight[r] /= sum;
}

typedef struct choice {
    pricing_branch split;
    double score; /* how much time of how expensive a device hangs on it */
} choice;

/* The number that is furthest from whole, by the weight of the time that hangs on it. */
static void choose_number(choice *best, const decompose_block *b, const pricing_master *m, const double *weight)
{
    for (int32_t kind = 0; kind < b->n_kinds; kind++) {
        int32_t begin = b->component_off[b->kind_component[kind]];
        int32_t n = b->component_off[b->kind_component[kind] + 1] - begin;
        for (int32_t i = 0; i < n; i++)
            for (int32_t k = 0; k < b->problem.n_devices; k++) {
                int32_t op = b->component_op[begin + i];
                if (!(b->problem.op_devices[op] >> k & 1))
                    continue;
                double number = pricing_master_number(m, kind, i, k), part = number - floor(number);
                double score =
                    fmin(part, 1 - part) * (weight[k] + 0.01) * (double)(moirai_op_ns(&b->problem, op, k) + 1);
                if (fmin(part, 1 - part) > 1e-4 && score > best->score)
                    *best = (choice){{PRICING_NUMBER, kind, i, k, (int64_t)floor(number), (int64_t)floor(number) + 1},
                                     score};
            }
    }
}

/* The receiver where most is read before the tensor arrives. */
static void choose_arrival(choice *best, const pricing_sending *how, const pair_solver *by, const double *weight)
{
    for (int32_t j = 0; how->fixed && j < how->n_receivers; j++) {
        double mean, early = pricing_master_early(by->master, j, &mean) * weight[how->receiver[j]];
        int64_t first = pricing_pricer_arrival(by->pricer, how->receiver[j]);
        int64_t split = first + ((int64_t)mean - first) / 2;
        if (early > best->score && split - first > pricing_master_grid(by->master)->length_ns / 200)
            *best = (choice){{PRICING_ARRIVAL, 0, 0, how->receiver[j], split, split + 1}, early};
    }
}

static pricing_branch as_solution_says(const pair_state *x, int32_t sending, const pair_solver *by,
                                       const int64_t *price, bool numbers)
{
    choice best = {.split = {.on = PRICING_NO_BRANCH}};
    double *weight = util_alloc((size_t)schedule_resources(&x->block.problem), sizeof *weight);
    if (weight) {
        weigh(&x->block.problem, pricing_master_grid(by->master), price, weight);
        if (numbers)
            choose_number(&best, &x->block, by->master, weight);
        choose_arrival(&best, &x->sending.how[sending], by, weight);
    }
    free(weight);
    return best.split;
}

/* Where the range of lengths is divided, 0: nowhere. Too coarse a grid: first what is near the LP solution's length, from above and from
 * below; else where the LP solution has short lengths and long ones. Where bytes have prices, lengths are one part of what is bounded. */
static int64_t divide_range(const pricing_master *m, int64_t least, int64_t most, bool lengths)
{
    double spread, mean = pricing_master_length(m, &spread);
    int64_t range = most - least, middle = UTIL_MIN(UTIL_MAX((int64_t)mean, least), most);
    int64_t coarse = least / (lengths ? 16 : 4), near = least / (lengths ? 64 : 16);
    if (range > coarse)
        return middle + near < most - near / 2 ? middle + near : UTIL_MAX(UTIL_MIN(middle, most - 1) - near, least);
    if (spread <= PAIR_CASE_NARROW / 2 * (double)least || (double)range <= PAIR_CASE_NARROW * (double)least)
        return 0;
    return UTIL_MIN(UTIL_MAX(middle, least + range / 4), most - UTIL_MAX(range / 4, 1));
}

/* Halves the first arrival that is not known well; PRICING_NO_BRANCH: there is none. */
static pricing_branch halve_arrival(const pricing_sending *how, const pair_solver *by)
{
    for (int32_t j = 0; how->fixed && j < how->n_receivers; j++) {
        int32_t k = how->receiver[j];
        int64_t first = pricing_pricer_arrival(by->pricer, k), last = pricing_pricer_arrived(by->pricer, k);
        int64_t middle = first + (last - first) / 2;
        if (last - first > pricing_master_grid(by->master)->length_ns / PAIR_CASE_NARROWEST)
            return (pricing_branch){PRICING_ARRIVAL, 0, 0, k, middle, middle + 1};
    }
    return (pricing_branch){.on = PRICING_NO_BRANCH};
}

/* Where a case is best divided after its master was solved. */
static pricing_branch choose_split(const pair_cases *v, const pair_case *c, const pair_solver *by, const int64_t *price)
{
    const pricing_sending *how = &v->pair->sending.how[c->sending];
    bool lengths = are_lengths(v);
    int32_t numbers = 0;
    for (int32_t i = 0; i < c->n_branches; i++)
        numbers += c->branch[i].on == PRICING_NUMBER;
    if (how->fixed && how->open)
        return (pricing_branch){.on = PRICING_RECEIVER};
    int64_t at = divide_range(by->master, pair_case_least_ns(v, c), c->most_ns, lengths);
    if (at > 0 && at < c->most_ns)
        return (pricing_branch){.on = PRICING_LENGTH, .least = at, .most = at + 1};
    pricing_branch arrival = halve_arrival(how, by);
    if (!lengths && arrival.on != PRICING_NO_BRANCH)
        return arrival;
    pricing_branch split = as_solution_says(v->pair, c->sending, by, price, numbers < PAIR_CASE_MOST_NUMBERS);
    return split.on == PRICING_NO_BRANCH ? arrival : split;
}

/* ---- solving ---- */

static void solution_bytes(const pair_cases *v, const pricing_master *m, pair_case *c)
{
    const decompose_block *b = &v->pair->block;
    int32_t n;
    pricing_chosen_column *kept = pricing_master_solution(m, &n);
    memset(c->end.use, 0, sizeof c->end.use);
    for (int32_t h = 0; h < n; h++) {
        int32_t d = b->kind_component[kept[h].kind];
        for (int32_t i = b->component_off[d]; i < b->component_off[d + 1]; i++)
            c->end.use[kept[h].device[i - b->component_off[d]]] +=
                kept[h].times * (double)b->problem.op_memory_bytes[b->component_op[i]];
    }
    free(kept);
}

static pricing_master_task question_task(const pair_cases *v, const pair_solver *by, const pair_case *c,
                                         const pair_cases_task *job)
{
    pricing_master_task task = task_of(v, by, c, job->byte_price);
    task.buckets = pricing_is_sent(task.at.how) ? UTIL_MIN(job->buckets, PAIR_CASE_SENT_BUCKETS) : job->buckets;
    task.ceiling = job->ceiling;
    task.open = pricing_is_sent(task.at.how) ? PAIR_CASE_OPEN : 0;
    task.stop = job->stop;
    return task;
}

/* What a solve has found: better prices, the bytes of its LP solution where there is one, where to divide. */
static int take_found(const pair_cases *v, const pair_solver *by, pair_case *c, const pricing_master_result *found,
                      pricing_branch split, const int64_t *byte_price)
{
    pair_case fresh = *c;
    fresh.prices = (pricing_duals){*pricing_master_grid(by->master), (int64_t *)found->price, c->n_branches};
    int64_t value = value_of_case(v, by, &fresh, byte_price);
    c->end.solved = true;
    c->end.split = split;
    if (found->rounds)
        solution_bytes(v, by->master, c);
    if (value < c->value)
        return 0;
    take_value(v, c, value);
    return pricing_duals_set(&c->prices, &v->pair->block.problem, &fresh.prices);
}

int pair_cases_open_solver(pair_cases *v, int32_t i)
{
    pair_solver *by = &v->solver[i];
    const decompose_block *b = &v->pair->block;
    int rc = by->pricer ? 0 : pricing_pricer_new(&by->pricer, b, PAIR_CASE_STEPS + 2);
    return rc || by->master ? rc : pricing_master_new(&by->master, b, PAIR_CASE_STEPS);
}

int pair_case_solve(pair_cases *v, int32_t solver, pair_case *c, const pair_cases_task *job)
{
    static const pricing_branch nowhere = {.on = PRICING_NO_BRANCH};
    const pair_solver *by = &v->solver[solver];
    int rc = pair_cases_open_solver(v, solver);
    if (!rc && pair_case_least_ns(v, c) > c->most_ns) { /* no such plan */
        c->value = PRICING_NONE;
        c->end.solved = true;
        c->end.split = nowhere;
    }
    if (rc || c->value == PRICING_NONE)
        return rc;
    pricing_master_task task = question_task(v, by, c, job);
    pricing_master_result found;
    rc = pricing_master_solve(&found, by->master, &task);
    bool worth = !rc && found.value >= job->ceiling;
    pricing_branch split = rc || !found.rounds ? nowhere : choose_split(v, c, by, found.price);
    if (!rc && job->ceiling && !worth && split.on == PRICING_NO_BRANCH &&
        !util_stopped(&job->stop)) { /* to its end, then */
        task.ceiling = 0;
        task.buckets = UTIL_MIN(2 * task.buckets, PAIR_CASE_MOST_BUCKETS);
        task.start = NULL;
        rc = pricing_master_solve(&found, by->master, &task);
        split = rc || !found.rounds ? nowhere : choose_split(v, c, by, found.price);
    }
    return rc ? rc : take_found(v, by, c, &found, split, job->byte_price);
}

/* Plans that cost what the case is worth take no longer than that, less what their bytes cost at least; a little more leaves the LP room. */
int pair_case_solution(pricing_chosen_column **column, int32_t *n, double *weight, pair_cases *v, int32_t solver,
                       const pair_case *c, const pair_cases_task *job)
{
    const decompose_block *b = &v->pair->block;
    const pair_solver *by = &v->solver[solver];
    int64_t length = (c->value - pair_cheapest_bytes(b, job->byte_price, NULL)) / b->unit;
    int rc = pair_cases_open_solver(v, solver);
    if (rc)
        return rc;
    pricing_master_task task = question_task(v, by, c, job);
    pricing_master_result found;
    task.length_ns = UTIL_MIN(c->most_ns, UTIL_MAX(length, task.least_ns) + length / PAIR_CASE_NEAR + 1);
    rc = pricing_master_solve(&found, by->master, &task);
    if (rc)
        return rc;
    *column = pricing_master_solution(by->master, n);
    weigh(&b->problem, pricing_master_grid(by->master), found.price, weight);
    return *column ? 0 : MOIRAI_EFAIL;
}
