/* The bound of a pair: branch and bound over cases.
 *
 * A case says how the shared tensor is sent, between which times it arrives where, and in which ranges some numbers lie
 * (how many components of a kind have operator i on device k: a whole number, which the master does not know). A pair's
 * bound is the least over its cases.
 *
 * A solve of a case puts the length that is wanted (that of the pair's plan, or what the chain needs) to the master. If
 * its prices exclude it, the case is closed. If not, the prices exclude a part of it; as prices per time hardly depend
 * on the length, that part estimates what they can prove, mostly within a few parts in a thousand. The case of least
 * estimate is split in two, at what the master's LP solution does that no plan could: a number that is not whole, or a
 * tensor that is read before it arrives. One solve per case is all it takes; that is best-first branch and bound.
 *
 * At the end the least estimate is put to every open case, beginning with the prices of its solve: that is the proof,
 * and it mostly costs one pricing. Where the estimate promised too much, a little less is tried. */
#include "pair/cases.h"
#include "pair/climb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem/equal_devices.h"
#include "util/pool.h"
#include "util/util.h"

#define ATTEMPTS 6

int pair_bound_solver(pair_bound_task *r, int32_t solver)
{
    pair_state *x = r->pair;
    int rc = r->pricer[solver] ? 0 : pricing_pricer_new(&r->pricer[solver], &x->block, PAIR_CASE_STEPS + 2);
    if (!rc && !x->master[solver])
        rc = pricing_master_new(&x->master[solver], &x->block, r->entry_device, r->exit_device, PAIR_CASE_STEPS);
    return rc;
}

void pair_bound_clear(pair_bound_task *r)
{
    for (int32_t i = 0; i < PAIR_SOLVERS; i++)
        pricing_pricer_free(r->pricer[i]);
}

int pair_cases_first(pair_state *x)
{
    if (util_grow(&x->cases, &x->case_capacity, (size_t)x->n_first_sendings, sizeof *x->cases))
        return MOIRAI_EFAIL;
    x->n_cases = x->n_first_sendings;
    for (int32_t i = 0; i < x->n_first_sendings; i++)
        x->cases[i] = (pair_case){
            .sending = i, .proven_ns = x->path_ns, .estimate_ns = x->path_ns, .split = {.on = PRICING_NO_BRANCH}};
    return 0;
}

int32_t pair_cases_weakest(const pair_state *x)
{
    int32_t weakest = 0;
    for (int32_t i = 1; i < x->n_cases; i++)
        if (x->cases[i].proven_ns < x->cases[weakest].proven_ns)
            weakest = i;
    return weakest;
}

void pair_cases_weights(const pair_state *x, const pricing_master *m, const int64_t *price, double *weight)
{
    const pricing_grid *grid = pricing_master_grid(m);
    int32_t resources = pricing_resource_count(&x->block.problem);
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

void pair_case_free(pair_case *c)
{
    free(c->proof.price);
    free(c->duals.price);
    free(c->branch);
}

/* ---- where to split ---- */

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
static void choose_arrival(choice *best, const pricing_sending *how, const pricing_master *m, const double *weight)
{
    for (int32_t j = 0; how->fixed && j < how->n_receivers; j++) {
        double mean, early = pricing_master_early(m, j, &mean) * weight[how->receiver[j]];
        int64_t first = pricing_master_arrival(m, j), split = first + ((int64_t)mean - first) / 2;
        if (early > best->score && split - first > pricing_master_grid(m)->length_ns / 200)
            *best = (choice){{PRICING_ARRIVAL, 0, 0, how->receiver[j], split, split + 1}, early};
    }
}

pricing_branch pair_cases_branch_on(const pair_state *x, int32_t sending, const pricing_master *m, const int64_t *price)
{
    choice best = {.split = {.on = PRICING_NO_BRANCH}};
    double *weight = util_alloc((size_t)pricing_resource_count(&x->block.problem), sizeof *weight);
    if (weight) {
        pair_cases_weights(x, m, price, weight);
        choose_number(&best, &x->block, m, weight);
        choose_arrival(&best, &x->sending[sending], m, weight);
    }
    free(weight);
    return best.split;
}

void pair_cases_children(const decompose_block *b, pricing_branch split, pricing_branch *below, pricing_branch *above)
{
    *below = *above = split;
    below->least = 0;
    below->most = split.least;
    above->least = split.most;
    above->most = split.on == PRICING_NUMBER ? b->kind_count[split.kind] : INT64_MAX;
}

static int copy_prices(const pair_state *x, pricing_duals *to, const pricing_duals *from)
{
    return pricing_duals_set(to, &x->block.problem, &from->grid, from->price, from->n_branches);
}

int pair_case_halves(const pair_state *x, pair_case *c, pair_case *d)
{
    pricing_branch *grown = util_resize(c->branch, (size_t)c->n_branches + 1, sizeof *grown);
    if (!grown)
        return MOIRAI_EFAIL;
    c->branch = grown;
    *d = *c;
    d->proof.price = d->duals.price = NULL;
    d->branch = util_alloc((size_t)c->n_branches + 1, sizeof *d->branch);
    if (!d->branch || copy_prices(x, &d->proof, &c->proof) || copy_prices(x, &d->duals, &c->duals)) {
        pair_case_free(d);
        return MOIRAI_EFAIL;
    }
    memcpy(d->branch, c->branch, sizeof *d->branch * (size_t)c->n_branches);
    pair_cases_children(&x->block, c->split, &c->branch[c->n_branches], &d->branch[d->n_branches]);
    c->n_branches++;
    d->n_branches++;
    c->seen = d->seen = false;
    return 0;
}

static int split_case(pair_state *x, int32_t index)
{
    if (util_grow(&x->cases, &x->case_capacity, (size_t)x->n_cases + 1, sizeof *x->cases))
        return MOIRAI_EFAIL;
    int rc = pair_case_halves(x, &x->cases[index], &x->cases[x->n_cases]);
    x->n_cases += !rc;
    return rc;
}

/* ---- receivers ---- */

uint64_t pair_may_receive(const pair_state *x)
{
    const moirai_problem *q = &x->block.problem;
    int32_t shared = decompose_block_shared_tensor(&x->block);
    uint64_t mask = 0;
    for (int32_t e = q->tensor_edge_off[shared]; e < q->tensor_edge_off[shared + 1]; e++)
        mask |= q->op_devices[q->edge_reader[e]];
    return mask & ~q->op_devices[x->block.entry];
}

int pair_sending(int32_t *number, pair_state *x, const pricing_sending *how)
{
    for (*number = 0; *number < x->n_sendings; ++*number)
        if (pricing_same_sending(&x->sending[*number], how))
            return 0;
    pricing_sending *grown = util_resize(x->sending, (size_t)x->n_sendings + 1, sizeof *grown);
    if (!grown)
        return MOIRAI_EFAIL;
    x->sending = grown;
    x->sending[x->n_sendings++] = *how;
    return 0;
}

/* Devices that may be next to receive: one of several equal ones that are not listed, whose plans are images of each
 * other's. */
static uint64_t next_receivers(const pair_state *x, const pricing_sending *how)
{
    uint64_t left = pair_may_receive(x), next = 0, seen = 0;
    int32_t least[MOIRAI_MAX_DEVICES];
    problem_equal_devices(&x->block.problem, least);
    for (int32_t j = 0; j < how->n_receivers; j++)
        left &= ~(UINT64_C(1) << how->receiver[j]);
    for (; left; left &= left - 1) {
        int32_t k = __builtin_ctzll(left);
        if (!(seen >> least[k] & 1))
            next |= UINT64_C(1) << k;
        seen |= UINT64_C(1) << least[k];
    }
    return next;
}

/* A case as one part of `whole`, which has no branches yet, with another sending. Prices of the whole may prove less of
 * it, so they are a start and no proof. */
static int part_of_case(const pair_state *x, pair_case *out, const pair_case *whole, int32_t sending)
{
    *out = (pair_case){.sending = sending,
                       .proven_ns = x->path_ns,
                       .estimate_ns = whole->estimate_ns,
                       .split = {.on = PRICING_NO_BRANCH}};
    return copy_prices(x, &out->duals, &whole->duals);
}

/* Nobody else receives the shared tensor, or one of these next: the last takes the place of the case. */
static int split_receivers(pair_state *x, int32_t index)
{
    pricing_sending how = x->sending[x->cases[index].sending];
    uint64_t next = next_receivers(x, &how);
    int32_t all = __builtin_popcountll(pair_may_receive(x)), n = how.n_receivers, sending;
    if (util_grow(&x->cases, &x->case_capacity, (size_t)(x->n_cases + __builtin_popcountll(next)), sizeof *x->cases))
        return MOIRAI_EFAIL;
    int rc = 0;
    for (; next && !rc; next &= next - 1) {
        how.receiver[n] = (int8_t)__builtin_ctzll(next);
        how.n_receivers = (int8_t)(n + 1);
        how.open = n + 1 < all;
        rc = pair_sending(&sending, x, &how);
        rc = rc ? rc : part_of_case(x, &x->cases[x->n_cases], &x->cases[index], sending);
        x->n_cases += !rc;
    }
    how.n_receivers = (int8_t)n;
    how.open = false;
    rc = rc ? rc : pair_sending(&sending, x, &how);
    if (rc)
        return rc;
    pair_case *c = &x->cases[index], old = *c;
    rc = part_of_case(x, c, &old, sending);
    if (rc)
        *c = old;
    else
        pair_case_free(&old);
    return rc;
}

/* Who receives is asked first: it says most. */
static pricing_branch choose_split(const pair_bound_task *r, int32_t solver, const pair_case *c, const int64_t *price)
{
    const pair_state *x = r->pair;
    const pricing_sending *how = &x->sending[c->sending];
    if (how->fixed && how->open)
        return (pricing_branch){.on = PRICING_RECEIVER};
    return pair_cases_branch_on(x, c->sending, x->master[solver], price);
}

/* ---- looking ---- */

static bool is_sent(const pair_bound_task *r, const pair_case *c)
{
    return pricing_is_sent(&r->pair->sending[c->sending]);
}

static int32_t buckets_of(const pair_bound_task *r, const pair_case *c)
{
    return is_sent(r, c) ? r->sent_buckets : r->buckets;
}

/* How a length is put to a master. */
typedef struct question {
    bool ask;                  /* whether it is excluded, no more (master.h) */
    double open;               /* else: near enough */
    const pricing_duals *from; /* prices to begin with; NULL: those at which the solver has just stopped */
} question;

static int put(pair_bound_task *r, int32_t solver, const pair_case *c, int64_t length_ns, question q,
               pricing_master_result *found)
{
    int rc = pair_bound_solver(r, solver);
    if (rc)
        return rc;
    pricing_master_task task = {.pricer = r->pricer[solver],
                                .how = &r->pair->sending[c->sending],
                                .form = PRICING_LENGTH_FORM,
                                .length_ns = length_ns,
                                .buckets = buckets_of(r, c),
                                .n_branches = c->n_branches,
                                .branch = c->branch,
                                .max_rounds = r->rounds,
                                .ask = q.ask,
                                .converge = !q.ask,
                                .open = q.open,
                                .stop = r->stop};
    if (q.from) {
        task.start_grid = &q.from->grid;
        task.start_price = q.from->price;
        task.n_start_branches = q.from->n_branches;
    }
    return pricing_master_solve(found, r->pair->master[solver], &task);
}

int pair_case_sound(pair_bound_task *r, int32_t solver, const pair_case *c, int64_t length_ns,
                    pricing_master_result *found)
{
    return put(r, solver, c, length_ns, (question){0}, found);
}

int pair_case_ask(pair_bound_task *r, int32_t solver, const pair_case *c, int64_t length_ns, bool go_on,
                  pricing_master_result *found)
{
    question q = {.ask = true, .from = go_on ? NULL : c->proof.price ? &c->proof : &c->duals};
    return put(r, solver, c, length_ns, q, found);
}

/* From the prices of the case's last solve on, as far as it takes to split the case next. */
static int solve(pair_bound_task *r, int32_t solver, const pair_case *c, int64_t length_ns,
                 pricing_master_result *found)
{
    return put(r, solver, c, length_ns, (question){.open = is_sent(r, c) ? r->open : 0, .from = &c->duals}, found);
}

int pair_case_store(pair_bound_task *r, int32_t solver, const pair_case *c, const pricing_master_result *found,
                    pricing_duals *to)
{
    const pricing_grid *grid = pricing_master_grid(r->pair->master[solver]);
    return pricing_duals_set(to, &r->pair->block.problem, grid, found->price, c->n_branches);
}

/* Put a length to the case; it is closed if that is all that is wanted. */
static int solve_case(pair_bound_task *r, int32_t solver, pair_case *c, int64_t length_ns, int64_t ceiling)
{
    pricing_master_result found;
    int rc = solve(r, solver, c, length_ns - 1, &found);
    pricing_branch split = rc || found.proven ? c->split : choose_split(r, solver, c, found.price);
    if (!rc && !found.proven && is_sent(r, c) && r->open > 0 && split.on != PRICING_ARRIVAL) {
        rc = pair_case_sound(r, solver, c, length_ns - 1, &found);
        split = rc || found.proven ? split : choose_split(r, solver, c, found.price);
    }
    if (rc)
        return rc;
    c->seen = !found.proven; /* else where to split it is not known */
    c->buckets = buckets_of(r, c);
    c->split = split;
    if (found.proven) {
        c->estimate_ns = length_ns < ceiling ? length_ns : INT64_MAX;
        c->proven_ns = length_ns;
        return pair_case_store(r, solver, c, &found, &c->proof);
    }
    int64_t estimate = (int64_t)((double)length_ns * found.proven_part);
    if (estimate < c->estimate_ns && c->duals.price)
        return 0; /* older prices are better: a solve that was cut short */
    c->estimate_ns = UTIL_MAX(estimate, c->estimate_ns);
    return pair_case_store(r, solver, c, &found, &c->duals);
}

/* The case of least estimate that is not among the first n of `picked`; -1: none. */
static int32_t least_estimate_but(const pair_state *x, const int32_t *picked, int32_t n)
{
    int32_t least = -1;
    for (int32_t i = 0; i < x->n_cases; i++)
        if (!pair_is_picked(picked, n, i) && (least < 0 || x->cases[i].estimate_ns < x->cases[least].estimate_ns))
            least = i;
    return least;
}

typedef struct looking {
    pair_bound_task *r;
    int64_t length_ns, ceiling;
    int32_t picked[PAIR_SOLVERS], n;
} looking;

static int look_at_one(void *data, int32_t i)
{
    looking *k = data;
    return solve_case(k->r, i, &k->r->pair->cases[k->picked[i]], k->length_ns, k->ceiling);
}

/* The cases of least estimate, split as long as they have been seen; none where the least of all is worth the length or
 * stuck: its LP solution is whole. */
static int pick_cases(looking *k, int64_t most)
{
    pair_state *x = k->r->pair;
    int rc = 0;
    for (k->n = 0; !rc && k->n < UTIL_MIN(most, k->r->solvers);) {
        int32_t index = least_estimate_but(x, k->picked, k->n);
        const pair_case *c = index < 0 ? NULL : &x->cases[index];
        if (!c || c->estimate_ns >= k->length_ns)
            break;
        if (!c->seen)
            k->picked[k->n++] = index;
        else if (c->split.on == PRICING_NO_BRANCH || c->n_branches >= PAIR_MAX_SPLITS)
            break;
        else
            rc = c->split.on == PRICING_RECEIVER ? split_receivers(x, index) : split_case(x, index);
    }
    return rc;
}

/* Looks and splits until `last` solves are done or there is nothing left to gain. */
static int branch(pair_bound_task *r, int64_t length_ns, int64_t ceiling, int64_t last)
{
    pair_state *x = r->pair;
    looking k = {.r = r, .length_ns = length_ns, .ceiling = ceiling};
    int rc = 0;
    while (!rc && x->solves < last && !util_stopped(&r->stop)) {
        rc = pick_cases(&k, last - x->solves);
        if (!k.n)
            break;
        rc = rc ? rc : util_pool_run(look_at_one, &k, k.n, r->threads);
        x->solves += k.n;
    }
    return rc;
}

/* ---- proving ---- */

/* Prove a length from the prices of the last solve on. Where the estimate promised too much it is lowered, the case open
 * again, and *missed raised. */
static int prove(pair_bound_task *r, int32_t solver, pair_case *c, int64_t length, int64_t *missed)
{
    pricing_master_result found;
    if (length < c->proven_ns)
        return 0;
    int rc = solve(r, solver, c, length, &found);
    if (rc)
        return rc;
    if (found.proven) {
        c->proven_ns = length + 1;
        return pair_case_store(r, solver, c, &found, &c->proof);
    }
    ++*missed;
    c->seen = true;
    c->buckets = buckets_of(r, c);
    c->estimate_ns = UTIL_MAX((int64_t)((double)length * UTIL_MIN(found.proven_part, 0.999)), c->proven_ns);
    c->split = choose_split(r, solver, c, found.price);
    return pair_case_store(r, solver, c, &found, &c->duals);
}

typedef struct proving {
    pair_bound_task *r;
    int64_t length_ns, missed[PAIR_SOLVERS];
} proving;

/* Each solver has the same cases on any number of threads, and so the same columns. */
static int prove_some(void *data, int32_t solver)
{
    proving *k = data;
    pair_state *x = k->r->pair;
    int rc = 0;
    for (int32_t i = solver; i < x->n_cases && !rc; i += k->r->solvers)
        rc = prove(k->r, solver, &x->cases[i], k->length_ns, &k->missed[solver]);
    return rc;
}

/* The least estimate, put to all cases; less and less where it does not hold. `known_ns` is proven already. */
static int prove_all(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    pair_state *x = r->pair;
    int rc = 0;
    for (int32_t attempt = 0; attempt < ATTEMPTS && !rc && !util_stopped(&r->stop); attempt++) {
        int64_t least = x->cases[least_estimate_but(x, NULL, 0)].estimate_ns, target = UTIL_MIN(least, ceiling);
        if (target <= known_ns || x->cases[pair_cases_weakest(x)].proven_ns >= target - target / 1000)
            break;
        proving k = {.r = r, .length_ns = target - target / 4000 - 1};
        rc = util_pool_run(prove_some, &k, r->solvers, r->threads);
        for (int32_t i = 0; i < r->solvers; i++)
            x->solves += k.missed[i];
    }
    return rc;
}

/* Estimates are better from near by: later solves are halfway between what is proven and what is wanted. Where solves end
 * early, cases that have been seen are split where their LP solution says, but for those that it left whole. */
static int branch_and_prove(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    static const double share[] = {0.4, 0.6, 0.8, 1};
    pair_state *x = r->pair;
    int64_t begun = x->solves, length_ns = ceiling;
    int rc = 0;
    for (size_t i = 0; i < sizeof share / sizeof *share && !rc; i++) {
        for (int32_t j = 0; j < x->n_cases; j++)
            x->cases[j].seen = x->cases[j].seen && r->open > 0 && x->cases[j].split.on != PRICING_NO_BRANCH;
        rc = branch(r, length_ns, ceiling, begun + (int64_t)(r->solves * share[i]));
        rc = rc ? rc : prove_all(r, ceiling, known_ns);
        int64_t proven = UTIL_MAX(x->cases[pair_cases_weakest(x)].proven_ns, known_ns);
        length_ns = proven + (ceiling - proven + 1) / 2;
    }
    return rc;
}

/* Target by target; or, where receivers are asked for one by one and with one price per resource, best first. */
static int raise_cases(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    bool open = r->pair->sending[0].fixed && r->pair->sending[0].open;
    return r->by_targets && !open ? pair_climb(r, known_ns, ceiling) : branch_and_prove(r, ceiling, known_ns);
}

/* The search goes on where it was: what was enough then may not be now, and finer buckets may show more of a case. */
static int go_on(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    pair_state *x = r->pair;
    for (int32_t i = 0; i < x->n_cases; i++) {
        pair_case *c = &x->cases[i];
        c->seen = c->seen && c->estimate_ns != INT64_MAX && c->buckets == buckets_of(r, c);
        if (c->estimate_ns == INT64_MAX)
            c->estimate_ns = c->proven_ns;
    }
    return raise_cases(r, ceiling, known_ns);
}

/* Cases anew from the sendings, which are kept if they prove as much as the old ones. */
static int begin_anew(pair_bound_task *r, int64_t ceiling, int64_t known_ns)
{
    pair_state *x = r->pair, old = *x;
    x->cases = NULL;
    x->n_cases = 0;
    x->case_capacity = 0;
    x->case_buckets = r->sent_buckets;
    x->room_ns = 0;
    int rc = pair_cases_first(x);
    rc = rc ? rc : raise_cases(r, ceiling, known_ns);
    bool better = !rc && x->cases[pair_cases_weakest(x)].proven_ns >= known_ns;
    if (!better) {
        pair_case *cases = x->cases;
        int32_t n = x->n_cases;
        x->cases = old.cases;
        x->n_cases = old.n_cases;
        x->case_capacity = old.case_capacity;
        x->case_buckets = old.case_buckets;
        old.cases = cases;
        old.n_cases = n;
    }
    pair_cases_free(old.cases, old.n_cases);
    return rc;
}

int pair_cases_solve(pair_bound_task *r)
{
    pair_state *x = r->pair;
    int64_t known_ns = x->cases[pair_cases_weakest(x)].proven_ns, ceiling = UTIL_MIN(r->need_ns, x->plan.length_ns);
    int rc = (x->case_buckets == r->sent_buckets ? go_on : begin_anew)(r, ceiling, known_ns);
    x->lower_ns = UTIL_MAX(x->lower_ns, x->cases[pair_cases_weakest(x)].proven_ns);
    return rc;
}

void pair_cases_free(pair_case *cases, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        pair_case_free(&cases[i]);
    free(cases);
}

pricing_branch pair_cases_halve_arrival(const pricing_sending *how, const pricing_master *m, int64_t parts)
{
    for (int32_t j = 0; how->fixed && j < how->n_receivers; j++) {
        int64_t first = pricing_master_arrival(m, j), last = pricing_master_arrived(m, j);
        int64_t middle = first + (last - first) / 2;
        if (last - first > pricing_master_grid(m)->length_ns / parts)
            return (pricing_branch){PRICING_ARRIVAL, 0, 0, how->receiver[j], middle, middle + 1};
    }
    return (pricing_branch){.on = PRICING_NO_BRANCH};
}

int32_t pair_cases_numbers(int32_t n, const pricing_branch *branch)
{
    int32_t found = 0;
    for (int32_t i = 0; i < n; i++)
        found += branch[i].on == PRICING_NUMBER;
    return found;
}
