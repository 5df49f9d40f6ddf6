/* Length plus bytes.
 *
 * V = min over a block's plans of (length + price of its bytes) is bounded by cases, as the length alone is in cases.c;
 * here the range of the length is one more thing to divide on. In a case where the length L lies between `least` and
 * `most`, with prices in time on a grid that ends at `most`,
 *     V  >=  what the components cost, bytes included, each at its cheapest
 *            + min over L of (L - worth of all resources until L),
 * since all that is done within L is paid at most that worth. With one range from 0 on, that is a rate: the time until
 * L can't be worth more than L. With narrow ranges it sees that devices wait for their first input and that results
 * must be back by the end, which a rate does not. Beyond the last range the length itself is enough. Cases are divided
 * lazily: the weakest is solved, and if it stays the weakest, divided: in its range of lengths if the LP solution
 * combines short and long ones, else as in cases.c. */
#include "pair/priced.h"

#include <stdlib.h>
#include <string.h>

#include "pair/cases.h"
#include "util/pool.h"
#include "util/util.h"

#define STEPS 256
#define ROUNDS 40
#define MAX_QUESTIONS 40
#define NARROW 0.02                    /* ranges are not divided below this */
#define END_OF_TIME (INT64_C(1) << 61) /* all times of a problem together are less */
#define SENT_BUCKETS 8
#define OPEN 0.05 /* of what the LP leaves open: less is not worth more rounds, since the case is divided next */

static void free_case(pair_priced_case *c)
{
    free(c->branch);
    free(c->prices.price);
}

static void free_cases(pair_priced *v)
{
    for (int32_t i = 0; i < v->n_cases; i++)
        free_case(&v->cases[i]);
    free(v->cases);
}

void pair_priced_free(pair_priced *v)
{
    free_cases(v);
    for (int32_t i = 0; i < PAIR_PRICED_SOLVERS; i++) {
        pricing_master_free(v->solver[i].master);
        pricing_pricer_free(v->solver[i].pricer);
    }
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
    return (pricing_master_task){.pricer = by->pricer,
                                 .how = &v->pair->sending[c->sending],
                                 .form = PRICING_PRICED_FORM,
                                 .length_ns = c->most_ns,
                                 .least_ns = c->least_ns,
                                 .n_branches = c->n_branches,
                                 .branch = c->branch,
                                 .memory_price = byte_price,
                                 .max_rounds = ROUNDS,
                                 .start_grid = &c->prices.grid,
                                 .start_price = c->prices.price,
                                 .n_start_branches = c->prices.n_branches};
}

static int64_t value_of_case(const pair_priced *v, const pair_priced_solver *by, const pair_priced_case *c,
                             const int64_t *byte_price, int64_t proven_ns)
{
    int64_t least = UTIL_MAX(c->least_ns, proven_ns);
    int64_t value =
        pricing_units(v->pair->block.unit, least) + pair_priced_cheapest_bytes(&v->pair->block, byte_price, NULL);
    if (least > c->most_ns)
        return PRICING_NONE;
    if (c->prices.price) {
        pricing_master_task task = task_of(v, by, c, byte_price);
        task.least_ns = least;
        task.n_branches = c->prices.n_branches; /* those that have prices */
        value = UTIL_MAX(value, pricing_master_reprice(by->master, &task, &c->prices.grid, c->prices.price));
    }
    return value;
}

int64_t pair_priced_of_case(pair_priced *v, const pair_priced_case *c, const int64_t *byte_price, int64_t proven_ns)
{
    return value_of_case(v, &v->solver[0], c, byte_price, proven_ns);
}

static int open_priced(pair_priced *v)
{
    pair_state *x = v->pair;
    size_t n = (size_t)x->n_first_sendings;
    if (util_grow(&v->cases, &v->case_capacity, n, sizeof *v->cases))
        return MOIRAI_EFAIL;
    int rc = 0;
    for (int32_t i = 0; i < PAIR_PRICED_SOLVERS && !rc; i++) {
        rc = pricing_pricer_new(&v->solver[i].pricer, &x->block, STEPS + 2);
        rc = rc ? rc : pricing_master_new(&v->solver[i].master, &x->block, v->entry_device, v->exit_device, STEPS);
    }
    for (size_t i = 0; i < n && !rc; i++)
        v->cases[i] =
            (pair_priced_case){.sending = (int32_t)i, .most_ns = INT64_MAX, .split = {.on = PRICING_NO_BRANCH}};
    v->n_cases = rc ? 0 : (int32_t)n;
    return rc;
}

/* ---- at other prices on bytes ---- */

/* The weakest case that is not among the first n of `picked`; -1: none. */
static int32_t weakest_but(const pair_priced *v, const int32_t *picked, int32_t n)
{
    int32_t least = -1;
    for (int32_t i = 0; i < v->n_cases; i++)
        if (!pair_is_picked(picked, n, i) && (least < 0 || v->cases[i].value < v->cases[least].value))
            least = i;
    return least;
}

static void take_least(pair_priced *v)
{
    const pair_priced_case *c = &v->cases[weakest_but(v, NULL, 0)];
    v->value = c->value;
    memcpy(v->use, c->use, sizeof v->use);
}

void pair_priced_update(pair_priced *v, const pair_priced_task *job)
{
    pair_state *x = v->pair;
    if (v->stamp == job->stamp)
        return;
    v->stamp = job->stamp;
    v->solved = x->block.n_interior == 0;
    memset(v->use, 0, sizeof v->use);
    v->value =
        pricing_units(x->block.unit, x->lower_ns) + pair_priced_cheapest_bytes(&x->block, job->byte_price, v->use);
    for (int32_t i = 0; i < v->n_cases; i++) {
        pair_priced_case *c = &v->cases[i];
        c->solved = false;
        c->value = pair_priced_of_case(v, c, job->byte_price, x->lower_ns);
    }
    if (v->n_cases)
        take_least(v);
}

/* ---- dividing ---- */

static int copy_case(const pair_priced *v, pair_priced_case *to, const pair_priced_case *from)
{
    *to = *from;
    to->prices.price = NULL;
    to->branch = util_alloc((size_t)from->n_branches + 1, sizeof *to->branch);
    if (!to->branch)
        return MOIRAI_EFAIL;
    if (from->n_branches)
        memcpy(to->branch, from->branch, sizeof *to->branch * (size_t)from->n_branches);
    const pricing_duals *prices = &from->prices;
    return pricing_duals_set(&to->prices, &v->pair->block.problem, &prices->grid, prices->price, prices->n_branches);
}

static void ask(pair_priced_case *c, pricing_branch question)
{
    c->branch[c->n_branches++] = question;
    if (question.on == PRICING_LENGTH) {
        c->least_ns = UTIL_MAX(c->least_ns, question.least);
        c->most_ns = UTIL_MIN(c->most_ns, question.most);
    }
    c->solved = false;
}

/* Two cases in place of one; both begin with its prices. */
static int divide(pair_priced *v, int32_t index)
{
    if (util_grow(&v->cases, &v->case_capacity, (size_t)v->n_cases + 1, sizeof *v->cases))
        return MOIRAI_EFAIL;
    pair_priced_case below = {0}, above = {0}, *c = &v->cases[index];
    if (copy_case(v, &below, c) || copy_case(v, &above, c)) {
        free_case(&below);
        free_case(&above);
        return MOIRAI_EFAIL;
    }
    pricing_branch at_most, at_least;
    pair_cases_children(&v->pair->block, c->split, &at_most, &at_least);
    ask(&below, at_most);
    ask(&above, at_least);
    free_case(c);
    *c = below;
    v->cases[v->n_cases++] = above;
    return 0;
}

/* Where a solved case is divided next. */
static pricing_branch choose(const pair_priced *v, const pricing_master *m, const pair_priced_case *c,
                             const pricing_master_result *found)
{
    double spread, mean = pricing_master_length(m, &spread);
    int64_t least = UTIL_MAX(c->least_ns, v->pair->lower_ns), range = c->most_ns - least;
    bool coarse = range > least / 4; /* too coarse a grid: first what is near */
    bool mixed = spread > NARROW / 2 * (double)least && (double)range > NARROW * (double)least;
    int64_t middle = UTIL_MAX((int64_t)mean, least) + (coarse ? least / 16 : 0);
    if ((coarse || mixed) && middle < c->most_ns)
        return (pricing_branch){.on = PRICING_LENGTH, .least = middle, .most = middle + 1};
    return pair_cases_branch_on(v->pair, c->sending, m, found->price);
}

static void solution_bytes(const pair_priced *v, const pricing_master *m, pair_priced_case *c)
{
    const decompose_block *b = &v->pair->block;
    int32_t n;
    pricing_chosen_column *kept = pricing_master_solution(m, &n);
    memset(c->use, 0, sizeof c->use);
    for (int32_t h = 0; h < n; h++) {
        int32_t d = b->kind_component[kept[h].kind];
        for (int32_t i = b->component_off[d]; i < b->component_off[d + 1]; i++)
            c->use[kept[h].device[i - b->component_off[d]]] +=
                kept[h].times * (double)b->problem.op_memory_bytes[b->component_op[i]];
    }
    free(kept);
}

/* What was known at the older ones is kept if it is more. */
int pair_priced_solve_case(pair_priced *v, int32_t solver, pair_priced_case *c, const pair_priced_task *job)
{
    const pair_priced_solver *by = &v->solver[solver];
    pricing_master_task task = task_of(v, by, c, job->byte_price);
    task.buckets = pricing_is_sent(task.how) ? UTIL_MIN(job->buckets, SENT_BUCKETS) : job->buckets;
    task.ceiling = job->ceiling;
    task.open = OPEN;
    task.stop = job->stop;
    task.least_ns = UTIL_MAX(c->least_ns, v->pair->lower_ns);
    pricing_master_result found;
    int rc = pricing_master_solve(&found, by->master, &task);
    pricing_branch split = rc ? (pricing_branch){0} : choose(v, by->master, c, &found);
    if (!rc && task.ceiling && split.on == PRICING_NO_BRANCH && found.value < task.ceiling) { /* to its end, then */
        task.ceiling = 0;
        task.start_price = NULL;
        rc = pricing_master_solve(&found, by->master, &task);
        split = rc ? split : choose(v, by->master, c, &found);
    }
    if (rc)
        return rc;
    const pricing_grid *grid = pricing_master_grid(by->master);
    pair_priced_case fresh = *c;
    fresh.prices.price = NULL;
    if (pricing_duals_set(&fresh.prices, &v->pair->block.problem, grid, found.price, c->n_branches))
        return MOIRAI_EFAIL;
    fresh.value = value_of_case(v, by, &fresh, job->byte_price, v->pair->lower_ns);
    fresh.split = split;
    solution_bytes(v, by->master, &fresh);
    fresh.solved = true;
    if (fresh.value >= c->value) {
        free(c->prices.price);
        *c = fresh;
        return 0;
    }
    free(fresh.prices.price);
    c->solved = true;
    c->split = fresh.split;
    memcpy(c->use, fresh.use, sizeof c->use);
    return 0;
}

/* Prices are valid for every case: those of one, without its branches, for all that nobody has solved yet. One pricing
 * each, where a search takes dozens; sendings that differ little from the solved one are settled by it. */
static int share_prices(pair_priced *v, int32_t index, const pair_priced_task *job, int64_t ceiling)
{
    int rc = 0;
    const pricing_duals *prices = &v->cases[index].prices;
    for (int32_t i = 0; i < v->n_cases && !rc && prices->price; i++) {
        pair_priced_case *c = &v->cases[i], tried = *c;
        if (c->solved || c->value >= UTIL_MIN(ceiling, v->cases[index].value) || c->most_ns > prices->grid.length_ns)
            continue;
        tried.prices = *prices;
        tried.prices.n_branches = 0;
        tried.value = pair_priced_of_case(v, &tried, job->byte_price, v->pair->lower_ns);
        if (tried.value <= c->value)
            continue;
        c->value = tried.value;
        rc = pricing_duals_set(&c->prices, &v->pair->block.problem, &prices->grid, prices->price, 0);
    }
    return rc;
}

/* A range that ends where the length alone is worth the ceiling, and what is beyond. */
static int open_range(pair_priced *v, int32_t index, const pair_priced_task *job, int64_t ceiling)
{
    pair_priced_case *c = &v->cases[index];
    int64_t least = UTIL_MAX(c->least_ns, v->pair->lower_ns),
            bytes = pair_priced_cheapest_bytes(&v->pair->block, job->byte_price, NULL);
    int64_t end = UTIL_MIN(UTIL_MAX((ceiling - bytes) / v->pair->block.unit, least + least / 16), END_OF_TIME - 1);
    c->split = (pricing_branch){.on = PRICING_LENGTH, .least = end, .most = end + 1};
    int rc = divide(v, index);
    if (!rc)
        v->cases[v->n_cases - 1].value =
            pair_priced_of_case(v, &v->cases[v->n_cases - 1], job->byte_price, v->pair->lower_ns);
    return rc;
}

/* Ranges for all cases that may need one. */
static int open_ranges(pair_priced *v, const pair_priced_task *job, int64_t ceiling)
{
    int rc = 0;
    for (int32_t i = 0, n = v->n_cases; i < n && !rc; i++)
        if (v->cases[i].most_ns == INT64_MAX && v->cases[i].value < ceiling && v->cases[i].n_branches < MAX_QUESTIONS)
            rc = open_range(v, i, job, ceiling);
    return rc;
}

/* Solvers and first cases, where this is the first time; values at these prices on bytes. */
static int begin(pair_priced *v, const pair_priced_task *job)
{
    int rc = 0;
    if (!v->solver[0].master) {
        rc = open_priced(v);
        v->stamp = 0;
    }
    if (!rc)
        pair_priced_update(v, job);
    return rc;
}

int pair_priced_adopt(pair_priced *v, const pair_priced *from, const pair_priced_task *job)
{
    int rc = begin(v, job);
    if (rc || !from->n_cases)
        return rc;
    pair_priced other = *v;
    other.n_cases = 0;
    other.stamp = 0;
    other.case_capacity = (size_t)from->n_cases;
    other.cases = util_alloc(other.case_capacity, sizeof *other.cases);
    if (!other.cases)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < from->n_cases && !rc; i++)
        rc = copy_case(v, &other.cases[other.n_cases++], &from->cases[i]);
    if (!rc)
        pair_priced_update(&other, job);
    bool better = !rc && other.value > v->value;
    free_cases(better ? v : &other);
    if (better)
        *v = other;
    return rc;
}

typedef struct solving {
    pair_priced *v;
    const pair_priced_task *job;
    int32_t picked[PAIR_PRICED_SOLVERS], n;
} solving;

static int solve_picked(void *data, int32_t i)
{
    solving *x = data;
    return pair_priced_solve_case(x->v, i, &x->v->cases[x->picked[i]], x->job);
}

/* The weakest cases, divided as long as they are solved: none where the weakest of all is worth the ceiling or can't be
 * divided. */
static int pick_cases(solving *x, int64_t ceiling)
{
    int rc = 0;
    x->n = 0;
    while (x->n < PAIR_PRICED_SOLVERS && !rc) {
        int32_t index = weakest_but(x->v, x->picked, x->n);
        const pair_priced_case *c = index < 0 ? NULL : &x->v->cases[index];
        if (!c || c->value >= ceiling || c->most_ns == INT64_MAX)
            break;
        if (!c->solved)
            x->picked[x->n++] = index;
        else if (c->split.on == PRICING_NO_BRANCH || c->n_branches >= MAX_QUESTIONS)
            break;
        else
            rc = divide(x->v, index);
    }
    return rc;
}

int pair_priced_refine(pair_priced *v, const pair_priced_task *job)
{
    int64_t ceiling = job->ceiling ? job->ceiling : INT64_MAX;
    solving x = {.v = v, .job = job};
    int rc = begin(v, job);
    if (!rc && v->pair->lower_ns > DECOMPOSE_MOST_LENGTH / v->pair->block.unit) { /* nobody goes that way */
        v->solved = true;
        return 0;
    }
    rc = rc ? rc : open_ranges(v, job, ceiling);
    for (int32_t solves = 0; !rc && solves < job->solves && !util_stopped(&job->stop); solves += x.n) {
        rc = pick_cases(&x, ceiling);
        if (rc || !x.n)
            break;
        rc = util_pool_run(solve_picked, &x, x.n, job->threads);
        for (int32_t i = 0; i < x.n && !rc; i++)
            rc = share_prices(v, x.picked[i], job, ceiling);
    }
    if (!rc)
        take_least(v);
    v->solved = true;
    return rc;
}
