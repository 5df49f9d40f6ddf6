/* Plans of a pair at prices on bytes: block plans for bytes_plan.c.
 *
 * As in improve.c, the LP solution of the weakest case of each sending, at the prices at hand, is the start of a short
 * annealing of length plus bytes, and the best two of a long one. Pairs without cases are annealed from their own
 * plan. */
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_state.h"
#include "bytes/bytes_tuning.h"
#include "pair/anneal.h"
#include "util/pool.h"
#include "util/util.h"

static void plan_bytes(const decompose_block *b, bytes_block_plan *o)
{
    memset(o->bytes, 0, sizeof o->bytes);
    for (int32_t i = b->first; i < b->first + b->n_interior; i++)
        o->bytes[o->plan.device[i]] += b->problem.op_memory_bytes[i];
}

static bool same_plan(const bytes_prices *m, const bytes_block_plan *x, const bytes_block_plan *y)
{
    return x->plan.length_ns == y->plan.length_ns && !memcmp(x->bytes, y->bytes, sizeof *x->bytes * (size_t)m->K);
}

const int64_t *bytes_block_plan_at(const bytes_prices *m, int64_t pair, int32_t pick, int64_t *length_ns)
{
    bytes_pair *v = &m->pair[pair];
    const pair_state *x = pair_chain_get(m->c, pair);
    if (pick >= 0) {
        *length_ns = v->plans[pick].plan.length_ns;
        return v->plans[pick].bytes;
    }
    if (v->own_length_ns != x->plan.length_ns) {
        bytes_block_plan own = {.plan = x->plan};
        plan_bytes(&x->block, &own);
        memcpy(v->own_bytes, own.bytes, sizeof v->own_bytes);
        v->own_length_ns = x->plan.length_ns;
    }
    *length_ns = x->plan.length_ns;
    return v->own_bytes;
}

int64_t bytes_block_plan_cost(const bytes_prices *m, int64_t pair, const int64_t *price, int8_t *pick)
{
    int64_t best = INT64_MAX;
    if (!pair_chain_get(m->c, pair)->open || !pair_chain_get(m->c, pair)->plan.device)
        return best;
    for (int32_t i = -1; i < m->pair[pair].n_plans; i++) {
        int64_t length;
        const int64_t *bytes = bytes_block_plan_at(m, pair, i, &length);
        int64_t cost = pricing_units(m->c->s->unit, length);
        for (int32_t k = 0; k < m->K; k++)
            cost += price[k] * bytes[k];
        if (cost < best) {
            best = cost;
            *pick = (int8_t)i;
        }
    }
    return best;
}

/* ---- the search ---- */

typedef struct hints {
    pricing_chosen_column *column;
    int32_t n;
} hints;

typedef struct seeker {
    bytes_prices *m;
    const pair_state *pair;
    pair_priced *priced; /* of the pair */
    const bytes_plan_task *job;
    int64_t evaluations;
    uint64_t seed;
    pair_trial *t;  /* the pair's cases are solved side by side, and so are their LP solutions annealed */
    hints *of_case; /* by number of the case */
    int32_t first;  /* of those that are being solved */
} seeker;

static pair_anneal_task task_of(const seeker *x)
{
    return (pair_anneal_task){
        .memory_price = x->m->now.price, .evaluations = x->evaluations, .seed = x->seed, .stop = x->job->stop};
}

/* The weakest case of a sending that has an end, -1: none. */
static int32_t weakest_of(const pair_priced *v, int32_t sending)
{
    int32_t least = -1;
    for (int32_t i = 0; i < v->n_cases; i++)
        if (v->cases[i].sending == sending && v->cases[i].most_ns != INT64_MAX &&
            (least < 0 || v->cases[i].value < v->cases[least].value))
            least = i;
    return least;
}

/* The weakest cases of the sendings that promise most, by value; and, last, that of sending nothing (the first of all
 * sendings), whose plans keep the bytes on one device: bounds promise too much of the others. */
static int32_t list_trials(const pair_priced *v, int64_t ceiling, pair_trial *t)
{
    int32_t n = 0, nothing = weakest_of(v, 0);
    for (int32_t s = 1; s < v->pair->sending.n_first; s++) {
        int32_t least = weakest_of(v, s);
        if (least >= 0 && v->cases[least].value < ceiling)
            n = pair_trials_add(t, n, BYTES_BLOCK_PLANS_TRIALS - 1, least, v->cases[least].value);
    }
    if (nothing >= 0 && v->cases[nothing].value < ceiling)
        t[n++].index = nothing;
    return n;
}

static int solve_trial(void *data, int32_t i)
{
    seeker *x = data;
    int32_t index = x->t[x->first + i].index;
    pair_priced_task solve = bytes_task(x->m);
    solve.buckets = 10;
    solve.stop = x->job->stop;
    int rc = pair_priced_solve_case(x->priced, i, &x->priced->cases[index], &solve);
    if (rc)
        return rc;
    x->of_case[index].column = pricing_master_solution(x->priced->solver[i].master, &x->of_case[index].n);
    return x->of_case[index].column ? 0 : MOIRAI_EFAIL;
}

static int anneal_trial(void *data, int32_t i)
{
    const seeker *x = data;
    const hints *h = &x->of_case[x->t[i].index];
    pair_anneal_task task = task_of(x);
    task.column = h->column;
    task.n_columns = h->n;
    task.solution_only = true;
    return h->n ? pair_anneal(&x->t[i].plan, &x->pair->block, &task) : 0;
}

static int run_trials(seeker *x, int32_t n)
{
    int threads = x->job->threads, rc = 0;
    int64_t evaluations = x->evaluations;
    for (x->first = 0; x->first < n && !rc; x->first += PAIR_PRICED_SOLVERS)
        rc = util_pool_run(solve_trial, x, UTIL_MIN(n - x->first, PAIR_PRICED_SOLVERS), threads);
    x->evaluations = evaluations / 4;
    rc = rc ? rc : util_pool_run(anneal_trial, x, n, threads);
    pair_trials_sort(x->t, n);
    x->evaluations = evaluations;
    rc = rc ? rc : util_pool_run(anneal_trial, x, UTIL_MIN(n, BYTES_BLOCK_PLANS_FINALISTS), threads);
    return rc;
}

static int from_cases(seeker *x, int64_t ceiling, pair_plan *plan)
{
    pair_priced_task task = bytes_task(x->m);
    pair_priced_update_cases(x->priced, &task);
    x->t = util_alloc((size_t)x->pair->sending.n_first, sizeof *x->t);
    x->of_case = util_alloc((size_t)x->priced->n_cases, sizeof *x->of_case);
    int32_t n = x->t && x->of_case ? list_trials(x->priced, ceiling, x->t) : 0;
    int rc = x->t && x->of_case ? run_trials(x, n) : MOIRAI_EFAIL;
    for (int32_t i = 0; i < n; i++) {
        free(x->of_case[x->t[i].index].column);
        if (!rc && x->t[i].plan.device && (!plan->device || x->t[i].plan.cost < plan->cost)) {
            pair_plan_free(plan);
            *plan = x->t[i].plan;
        } else {
            pair_plan_free(&x->t[i].plan);
        }
    }
    free(x->t);
    free(x->of_case);
    return rc;
}

/* Takes the plan if it is a new one and there is room for it, or frees it. */
static void keep_plan(bytes_prices *m, int32_t pair, pair_plan *plan)
{
    bytes_pair *v = &m->pair[pair];
    bytes_block_plan o = {.plan = *plan};
    bool known = !plan->device || v->n_plans == BYTES_BLOCK_PLANS;
    if (!known)
        plan_bytes(&pair_chain_get(m->c, pair)->block, &o);
    for (int32_t j = 0; j < v->n_plans && !known; j++)
        known = same_plan(m, &o, &v->plans[j]);
    if (known)
        pair_plan_free(plan);
    else
        v->plans[v->n_plans++] = o;
}

/* A plan that sends nothing of the entry's but results: its bytes are on one device, and no small move leads there. */
static int home_plan(const seeker *x, pair_plan *plan)
{
    pair_anneal_task task = task_of(x);
    task.keep_readers = true;
    int rc = pair_anneal(plan, &x->pair->block, &task);
    if (rc)
        pair_plan_free(plan);
    return rc == MOIRAI_EINFEASIBLE ? 0 : rc; /* not allowed here: there are others */
}

int bytes_block_plan_add(bytes_prices *m, int32_t pair, const bytes_plan_task *job)
{
    bytes_pair *v = &m->pair[pair];
    seeker x = {
        .m = m, .pair = pair_chain_get(m->c, pair), .priced = &v->priced, .job = job, .evaluations = job->evaluations};
    if (pair_chain_share(m->c, pair / (m->K * m->K), job->upper_ns) < BYTES_BLOCK_PLANS_SMALL_SHARE)
        x.evaluations /= 6; /* for classes that take little of the time */
    if (v->n_plans == BYTES_BLOCK_PLANS)
        return 0;
    pair_plan home = {0}, plan = {0};
    x.seed = job->seed + (uint64_t)v->n_plans;
    int rc = !v->n_plans && x.pair->sending.n_first > 1 ? home_plan(&x, &home) : 0;
    keep_plan(m, pair, &home);
    x.seed = job->seed + (uint64_t)v->n_plans;
    if (!rc && v->priced.n_cases)
        rc = from_cases(&x, m->work.pair_cost[pair], &plan);
    pair_anneal_task own = task_of(&x);
    own.start_device = x.pair->plan.device;
    if (!rc && !plan.device)
        rc = pair_anneal(&plan, &x.pair->block, &own);
    if (!rc)
        keep_plan(m, pair, &plan);
    else
        pair_plan_free(&plan);
    return rc;
}

/* ---- along the path at hand ---- */

void bytes_pick_plans(bytes_prices *m, int32_t first, int32_t last)
{
    for (int32_t i = first; i <= last; i++)
        m->at.picked[i] = m->work.plan_pick[bytes_pair_of(m, i)];
}

void bytes_price_plans(bytes_prices *m, bool jumps)
{
    int32_t pairs = m->c->s->n_classes * m->K * m->K;
    m->jump.counted = jumps;
    for (int32_t i = 0; i < pairs; i++)
        m->work.pair_cost[i] = bytes_block_plan_cost(m, i, m->now.price, &m->work.plan_pick[i]);
}

bytes_path bytes_measure(const bytes_prices *m, int32_t first, int32_t last)
{
    const pair_chain *c = m->c;
    bytes_path out = {0};
    for (int32_t i = first; i <= last; i++) {
        int64_t length, pair = bytes_pair_of(m, i);
        int64_t late = bytes_late_ns(m, i, (int32_t)(pair / m->K % m->K), (int32_t)(pair % m->K));
        const int64_t *bytes = bytes_block_plan_at(m, pair, m->at.picked[i], &length);
        out.time_ns += (double)(length + late);
        out.jump_ns += (double)late;
        for (int32_t k = 0; k < m->K; k++)
            out.use[k] += (double)bytes[k];
        if (i < c->s->n_cuts) {
            out.time_ns += (double)moirai_op_ns(c->p, c->s->cut[i], m->at.device[i]);
            out.use[m->at.device[i]] += (double)c->p->op_memory_bytes[c->s->cut[i]];
        }
    }
    return out;
}

bytes_path bytes_measure_path(const bytes_prices *m)
{
    return bytes_measure(m, 0, m->c->s->n_blocks - 1);
}
