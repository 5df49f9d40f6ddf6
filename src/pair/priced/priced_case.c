/* One case of a pair at prices on bytes: what it is worth, where it is divided, how it is solved.
 *
 * Its value is the better of two: the least length that it allows with all bytes where they are cheapest, and what its
 * prices in time prove (priced.c). It is divided in its range of lengths if the grid is coarse or the LP solution combines
 * short and long ones; then the first arrival that is not known well is halved; then as in cases.c. */
#include "pair/priced/priced_case.h"

#include <stdlib.h>
#include <string.h>

#include "pair/cases.h"
#include "pair/priced/priced_tuning.h"
#include "util/util.h"

void pair_priced_case_free(pair_priced_case *c)
{
    free(c->branch);
    free(c->found.prices.price);
    free(c->kept.prices.price);
}

int64_t pair_priced_cheapest_bytes(const decompose_block *b, const int64_t *byte_price, double *use)
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

static pricing_master_task task_of(const pair_priced *v, const pair_priced_solver *by, const pair_priced_case *c,
                                   const int64_t *byte_price)
{
    return (pricing_master_task){
        .pricer = by->pricer,
        .at = {.how = &v->pair->sending.how[c->sending], .n_branches = c->n_branches, .branch = c->branch},
        .form = PRICING_PRICED_FORM,
        .length_ns = c->most_ns,
        .least_ns = c->least_ns,
        .memory_price = byte_price,
        .max_rounds = PRICED_CASE_ROUNDS,
        .start = &c->found.prices};
}

/* What is known at some prices on bytes says something at all others (Lemma 36). */
int64_t pair_priced_floor(const pair_priced *v, const pair_priced_case *c, const pair_priced_finding *by,
                          const pair_priced_bytes *at)
{
    int64_t least = UTIL_MAX(c->least_ns, v->pair->lower_ns), rise = INT64_MAX;
    int64_t floor = pricing_units(v->pair->block.unit, least) + at->cheapest;
    if (least > c->most_ns || by->known >= PRICING_NONE) /* no plan, at no prices */
        return PRICING_NONE;
    for (int32_t k = 0; k < v->pair->block.problem.n_devices; k++)
        rise = UTIL_MIN(rise, at->price[k] - by->known_at[k]);
    __int128 known = by->known + (__int128)rise * at->total;
    return by->known && known > floor ? (int64_t)known : floor;
}

/* What a length of so much is worth, with all bytes where they are cheapest. */
static int64_t length_value(const pair_priced *v, int64_t length_ns, const int64_t *byte_price)
{
    return pricing_units(v->pair->block.unit, length_ns) +
           pair_priced_cheapest_bytes(&v->pair->block, byte_price, NULL);
}

static int64_t value_of_case(const pair_priced *v, const pair_priced_solver *by, const pair_priced_case *c,
                             const int64_t *byte_price, int64_t proven_ns)
{
    int64_t least = UTIL_MAX(c->least_ns, proven_ns);
    int64_t value = length_value(v, least, byte_price);
    if (least > c->most_ns)
        return PRICING_NONE;
    const pricing_duals *prices = &c->found.prices;
    if (prices->price) {
        pricing_master_task task = task_of(v, by, c, byte_price);
        task.least_ns = least;
        task.at.n_branches = prices->n_branches; /* those that have prices */
        value = UTIL_MAX(value, pricing_master_reprice(by->master, &task, &prices->grid, prices->price));
    }
    return value;
}

int64_t pair_priced_of_case(pair_priced *v, const pair_priced_case *c, const int64_t *byte_price, int64_t proven_ns)
{
    return value_of_case(v, &v->solver[0], c, byte_price, proven_ns);
}

/* ---- findings ----
 *
 * The prices on bytes move back and forth between the best so far and others that promise more. What was found at the best is
 * put aside when something better is found elsewhere, and taken out again on return: else each round would have to find
 * anew what the one before has forgotten (swin-6.6B: a layer proven to take 41.0 ms was back at 38.3 each time). */

static void swap_findings(pair_priced_case *c)
{
    pair_priced_finding found = c->found;
    c->found = c->kept;
    c->kept = found;
}

static bool is_known_at(const pair_priced *v, const pair_priced_finding *x, const int64_t *byte_price)
{
    return x->known && !memcmp(x->known_at, byte_price, sizeof *byte_price * (size_t)v->pair->block.problem.n_devices);
}

void pair_priced_move_case(const pair_priced *v, pair_priced_case *c, const pair_priced_bytes *at)
{
    if (c->found.centre && is_known_at(v, &c->found, v->byte_price))
        c->found.end = c->end;
    int64_t found = pair_priced_floor(v, c, &c->found, at), kept = pair_priced_floor(v, c, &c->kept, at);
    if (kept > found)
        swap_findings(c);
    c->value = UTIL_MAX(found, kept);
    c->valued = is_known_at(v, &c->found, at->price);
    c->end.solved = false;
    if (c->found.centre && c->valued)
        c->end = c->found.end;
}

/* What is known at centre stays known there. */
static void take_value(const pair_priced *v, pair_priced_case *c, int64_t value)
{
    c->value = value;
    c->valued = true;
    if (c->found.centre && !v->centre)
        return;
    c->found.known = value;
    memcpy(c->found.known_at, v->byte_price, sizeof v->byte_price);
}

void pair_priced_value_case(pair_priced *v, pair_priced_case *c)
{
    take_value(v, c, pair_priced_of_case(v, c, v->byte_price, v->pair->lower_ns));
}

/* Makes room in `found`. */
static void put_aside(const pair_priced *v, pair_priced_case *c)
{
    if (c->found.centre && !v->centre)
        swap_findings(c);
    free(c->found.prices.price);
    c->found = (pair_priced_finding){.centre = v->centre};
}

int pair_priced_take_prices(const pair_priced *v, pair_priced_case *c, const pricing_duals *prices, int64_t value)
{
    put_aside(v, c);
    take_value(v, c, value);
    return pricing_duals_set(&c->found.prices, &v->pair->block.problem, prices);
}

/* ---- dividing ---- */

/* What the next branch of the case says of it. */
static void ask(const pair_priced *v, pair_priced_case *c, const int64_t *byte_price)
{
    pricing_branch question = c->branch[c->n_branches++];
    c->end.solved = c->found.end.solved = c->kept.end.solved = false;
    if (question.on != PRICING_LENGTH)
        return;
    c->least_ns = UTIL_MAX(c->least_ns, question.least);
    c->most_ns = UTIL_MIN(c->most_ns, question.most);
    c->value = UTIL_MAX(c->value, length_value(v, UTIL_MAX(c->least_ns, v->pair->lower_ns), byte_price));
}

int pair_priced_halves(const pair_priced *v, pair_priced_case *c, pair_priced_case *d, const int64_t *byte_price)
{
    const decompose_block *b = &v->pair->block;
    *d = *c;
    d->found.prices.price = d->kept.prices.price = NULL;
    int rc = pair_cases_branch(&c->branch, &d->branch, c->n_branches, b, c->end.split);
    rc = rc ? rc : pricing_duals_set(&d->found.prices, &b->problem, &c->found.prices);
    rc = rc ? rc : pricing_duals_set(&d->kept.prices, &b->problem, &c->kept.prices);
    if (rc) {
        pair_priced_case_free(d);
        return rc;
    }
    ask(v, c, byte_price);
    ask(v, d, byte_price);
    return 0;
}

/* Where the range of lengths is divided, 0: nowhere. Too coarse a grid: first what is near the LP solution's length, from
 * above and from below; else where the LP solution has short lengths and long ones. */
static int64_t divide_range(const pricing_master *m, int64_t least, int64_t most)
{
    double spread, mean = pricing_master_length(m, &spread);
    int64_t range = most - least, middle = UTIL_MIN(UTIL_MAX((int64_t)mean, least), most), near = least / 16;
    if (range > least / 4)
        return middle + near < most - near / 2 ? middle + near : UTIL_MAX(UTIL_MIN(middle, most - 1) - near, least);
    if (spread <= PRICED_CASE_NARROW / 2 * (double)least || (double)range <= PRICED_CASE_NARROW * (double)least)
        return 0;
    return UTIL_MIN(UTIL_MAX(middle, least + range / 4), most - UTIL_MAX(range / 4, 1));
}

/* Halves the first arrival that is not known well; PRICING_NO_BRANCH: there is none. */
static pricing_branch halve_arrival(const pricing_sending *how, const pricing_master *m)
{
    for (int32_t j = 0; how->fixed && j < how->n_receivers; j++) {
        int64_t first = pricing_master_arrival(m, j), last = pricing_master_arrived(m, j);
        int64_t middle = first + (last - first) / 2;
        if (last - first > pricing_master_grid(m)->length_ns / PRICED_CASE_NARROWEST)
            return (pricing_branch){PRICING_ARRIVAL, 0, 0, how->receiver[j], middle, middle + 1};
    }
    return (pricing_branch){.on = PRICING_NO_BRANCH};
}

/* Where a solved case is divided next: in its range, then the first arrival that is not known well is halved, then as the
 * LP solution says. */
static pricing_branch choose(const pair_priced *v, const pricing_master *m, const pair_priced_case *c,
                             const pricing_master_result *found)
{
    static const pricing_branch nowhere = {.on = PRICING_NO_BRANCH};
    int64_t at = divide_range(m, UTIL_MAX(c->least_ns, v->pair->lower_ns), c->most_ns);
    if (at > 0 && at < c->most_ns)
        return (pricing_branch){.on = PRICING_LENGTH, .least = at, .most = at + 1};
    pricing_branch arrival = halve_arrival(&v->pair->sending.how[c->sending], m);
    if (arrival.on != PRICING_NO_BRANCH)
        return arrival;
    int32_t numbers = 0;
    for (int32_t i = 0; i < c->n_branches; i++)
        numbers += c->branch[i].on == PRICING_NUMBER;
    return numbers >= PRICED_CASE_MOST_NUMBERS ? nowhere : pair_cases_branch_on(v->pair, c->sending, m, found->price);
}

static void solution_bytes(const pair_priced *v, const pricing_master *m, pair_priced_case *c)
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

static pricing_master_task question_task(const pair_priced *v, const pair_priced_solver *by, const pair_priced_case *c,
                                         const pair_priced_task *job)
{
    pricing_master_task task = task_of(v, by, c, job->byte_price);
    task.buckets = pricing_is_sent(task.at.how) ? UTIL_MIN(job->buckets, PRICED_CASE_SENT_BUCKETS) : job->buckets;
    task.ceiling = job->ceiling;
    task.open = PRICED_CASE_OPEN;
    task.stop = job->stop;
    task.least_ns = UTIL_MAX(c->least_ns, v->pair->lower_ns);
    return task;
}

/* What a solve has found: better prices, the bytes of its LP solution where there is one, where to divide. */
static int take_found(const pair_priced *v, const pair_priced_solver *by, pair_priced_case *c,
                      const pricing_master_result *found, pricing_branch split, const int64_t *byte_price)
{
    pair_priced_case fresh = *c;
    fresh.found.prices = (pricing_duals){*pricing_master_grid(by->master), (int64_t *)found->price, c->n_branches};
    int64_t value = value_of_case(v, by, &fresh, byte_price, v->pair->lower_ns);
    c->end.solved = true;
    c->end.split = split;
    if (found->rounds)
        solution_bytes(v, by->master, c);
    return value < c->value ? 0 : pair_priced_take_prices(v, c, &fresh.found.prices, value);
}

int pair_priced_open_solver(pair_priced *v, int32_t i)
{
    pair_priced_solver *by = &v->solver[i];
    const decompose_block *b = &v->pair->block;
    if (by->master)
        return 0;
    int rc = by->pricer ? 0 : pricing_pricer_new(&by->pricer, b, PRICED_PRICED_STEPS + 2);
    return rc ? rc : pricing_master_new(&by->master, b, PRICED_PRICED_STEPS);
}

int pair_priced_solve_case(pair_priced *v, int32_t solver, pair_priced_case *c, const pair_priced_task *job)
{
    static const pricing_branch nowhere = {.on = PRICING_NO_BRANCH};
    const pair_priced_solver *by = &v->solver[solver];
    int rc = pair_priced_open_solver(v, solver);
    if (rc)
        return rc;
    pricing_master_task task = question_task(v, by, c, job);
    pricing_master_result found;
    rc = pricing_master_solve(&found, by->master, &task);
    bool worth = !rc && found.value >= job->ceiling;
    pricing_branch split = rc || !found.rounds ? nowhere : choose(v, by->master, c, &found);
    if (!rc && job->ceiling && !worth && split.on == PRICING_NO_BRANCH &&
        !util_stopped(&job->stop)) { /* to its end, then */
        task.ceiling = 0;
        task.buckets = UTIL_MIN(2 * task.buckets, PRICED_CASE_MOST_BUCKETS);
        task.start = NULL;
        rc = pricing_master_solve(&found, by->master, &task);
        split = rc || !found.rounds ? nowhere : choose(v, by->master, c, &found);
    }
    return rc ? rc : take_found(v, by, c, &found, split, job->byte_price);
}
