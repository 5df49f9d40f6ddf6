/* Memory that binds: the bound.
 *
 * Put a price u(k) >= 0 on every byte of device k. A plan that fits pays at most sum of u(k) * capacity(k), so
 *     makespan >= min over all plans of (makespan + sum of u(k) * bytes on k) - sum of u(k) * capacity(k)
 * (weak duality), and the minimum splits along the chain: cuts pay for their time and bytes, and a block between two
 * devices costs at least V = min over its plans of (length + price of its bytes), which value.c bounds. The best prices
 * are found by a master (Dantzig and Wolfe): every path met so far is a column with its time and its bytes, the
 * cheapest mix of paths that fits on average gives the next prices, and these the next path. A handful of rounds per
 * device that is full. Plans are in memory_plan.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/moirai/lp.h"
#include "place/moirai/memory_state.h"
#include "place/moirai/pool.h"
#include "util/util.h"

#define SETTLE_ROUNDS 12
#define PATH_REFINEMENTS 20 /* how often the bound's path may move to unpriced pairs within one round */

static void free_view(moirai_memory_view *v)
{
    moirai_value_free(&v->value);
    for (int32_t i = 0; i < v->n_options; i++)
        moirai_block_plan_free(&v->option[i].plan);
}

void moirai_memory_free(moirai_memory_prices *m)
{
    if (!m)
        return;
    for (int32_t i = 0; m->view && i < m->c->s->n_classes * m->K * m->K; i++)
        free_view(&m->view[i]);
    moirai_memory_mixer_free(&m->plans);
    moirai_memory_mixer_free(&m->cuts);
    free(m->view);
    free(m->twin);
    free(m->device);
    free(m->plan_device);
    free(m->plan);
    free(m->from);
    free(m->pair_cost);
    free(m->option_pick);
    free(m->picked);
    free(m);
}

int moirai_memory_new(moirai_memory_prices **out, moirai_chain *c)
{
    *out = NULL;
    moirai_memory_prices *m = moirai_alloc(1, sizeof *m);
    if (!m)
        return MOIRAI_EFAIL;
    size_t K = (size_t)c->K, blocks = (size_t)c->s->n_blocks, pairs = (size_t)c->s->n_classes * K * K;
    m->c = c;
    m->K = c->K;
    m->stamp = 1;
    m->view = moirai_alloc(pairs, sizeof *m->view);
    m->device = moirai_alloc(blocks, sizeof(int32_t));
    m->plan_device = moirai_alloc(blocks, sizeof(int32_t));
    m->plan = moirai_alloc(blocks, sizeof *m->plan);
    m->from = moirai_alloc(blocks * K, 1);
    m->pair_cost = moirai_alloc(pairs, sizeof(int64_t));
    m->option_pick = moirai_alloc(pairs, 1);
    m->picked = moirai_alloc(blocks, 1);
    if (moirai_memory_find_twins(m) || !m->view || !m->device || !m->plan_device || !m->plan || !m->from ||
        !m->pair_cost || !m->option_pick || !m->picked) {
        moirai_memory_free(m);
        return MOIRAI_EFAIL;
    }
    for (size_t i = 0; i < pairs; i++)
        m->view[i].value =
            (moirai_value){.pair = &c->pair[i], .entry_device = (int32_t)(i / K % K), .exit_device = (int32_t)(i % K)};
    *out = m;
    return MOIRAI_OK;
}

/* ---- paths ---- */

static int64_t cut_cost(const moirai_memory_prices *m, int32_t cut, int32_t k, const int64_t *price)
{
    const moirai_problem *p = m->c->p;
    return moirai_price_units(moirai_op_ns(p, cut, k)) + price[k] * p->op_memory_bytes[cut];
}

int64_t moirai_memory_pair_of(const moirai_memory_prices *m, int32_t block)
{
    const moirai_structure *s = m->c->s;
    int32_t a = block > 0 ? m->device[block - 1] : 0, b = block < s->n_cuts ? m->device[block] : 0;
    return ((int64_t)s->block_class[block] * m->K + a) * m->K + b;
}

/* One block of the recursion: `cost` by the device before it becomes `cost` by the device after. */
static void advance(moirai_memory_prices *m, int32_t block, uint64_t out, int64_t *cost)
{
    const moirai_chain *c = m->c;
    int64_t next[MOIRAI_MAX_DEVICES];
    for (int32_t l = 0; l < m->K; l++) {
        next[l] = INT64_MAX;
        for (int32_t k = 0; k < m->K && (out >> l & 1); k++) {
            int64_t pair = m->pair_cost[((int64_t)c->s->block_class[block] * m->K + k) * m->K + l];
            if (cost[k] == INT64_MAX || pair == INT64_MAX || cost[k] + pair >= next[l])
                continue;
            next[l] = cost[k] + pair;
            m->from[(int64_t)block * m->K + l] = (int8_t)k;
        }
    }
    memcpy(cost, next, sizeof *next * (size_t)m->K);
}

int64_t moirai_memory_cheapest_way(moirai_memory_prices *m, int32_t first, int32_t last, int32_t entry, int32_t exit,
                                   const int64_t *price)
{
    const moirai_structure *s = m->c->s;
    int64_t cost[MOIRAI_MAX_DEVICES];
    for (int32_t k = 0; k < MOIRAI_MAX_DEVICES; k++)
        cost[k] = k == entry ? 0 : INT64_MAX;
    for (int32_t i = first; i <= last; i++) {
        advance(m, i, i == last ? UINT64_C(1) << exit : moirai_chain_exit_mask(m->c, i), cost);
        for (int32_t l = 0; l < m->K && i < last; l++)
            if (cost[l] != INT64_MAX)
                cost[l] += cut_cost(m, s->cut[i], l, price);
    }
    if (cost[exit] == INT64_MAX)
        return INT64_MAX;
    for (int32_t i = last, l = exit; i > first; i--) {
        l = m->from[(int64_t)i * m->K + l];
        m->device[i - 1] = l;
    }
    return cost[exit];
}

static moirai_value_task value_task(const moirai_memory_prices *m, const moirai_memory_task *job)
{
    return (moirai_value_task){.byte_price = m->price,
                               .stamp = m->stamp,
                               .buckets = job->buckets,
                               .looks = job->looks,
                               .threads = job->threads,
                               .stop = job->stop};
}

int64_t moirai_memory_bound_path(moirai_memory_prices *m)
{
    moirai_value_task task = {.byte_price = m->price, .stamp = m->stamp};
    int32_t pairs = m->c->s->n_classes * m->K * m->K;
    for (int32_t i = 0; i < pairs; i++) {
        m->pair_cost[i] = 0; /* nothing known: nothing claimed */
        if (!m->c->pair[i].open)
            continue;
        moirai_value_update(&m->view[i].value, &task);
        m->pair_cost[i] = m->view[i].value.value;
    }
    return moirai_memory_cheapest_way(m, 0, m->c->s->n_blocks - 1, 0, 0, m->price);
}

typedef struct refining {
    moirai_memory_prices *m;
    moirai_value_task task;
    int64_t upper_ns;
    moirai_memory_batch batch;
    int32_t *times; /* per pair: how often the path takes it */
} refining;

/* Looks where there is something to gain: by what the class takes of the time at first, then by what is still open on
 * the path. */
static int32_t looks_for(const refining *x, int32_t pair, int64_t ceiling, bool first)
{
    const moirai_memory_prices *m = x->m;
    const moirai_value *v = &m->view[pair].value;
    double part = 10 * moirai_chain_share(m->c, pair / (m->K * m->K), x->upper_ns);
    if (!first && ceiling != INT64_MAX) {
        double open_ns = (double)(ceiling - v->value) / (double)MOIRAI_PRICE_UNIT * x->times[pair];
        part = fmax(0.2 * part, 200 * open_ns / (double)x->upper_ns);
    }
    return MOIRAI_MAX((int32_t)(x->task.looks * fmin(part, 1)), 5);
}

static int refine_one(void *data, int32_t i)
{
    refining *x = data;
    int32_t pair = x->batch.pair[x->batch.first + i];
    int8_t pick;
    int64_t ceiling = moirai_memory_option_cost(x->m, pair, x->m->price, &pick), twin = moirai_memory_twin(x->m, pair);
    moirai_value *v = &x->m->view[pair].value;
    moirai_value_task task = x->task;
    bool first = !v->solver[0].master;
    int result = twin < 0 ? MOIRAI_OK : moirai_value_adopt(v, &x->m->view[twin].value, &task);
    task.looks = looks_for(x, pair, ceiling, first);
    if (task.looks <= 5) /* little to gain */
        task.buckets = MOIRAI_MIN(task.buckets, 8);
    return result ? result : moirai_value_refine(v, &task, ceiling);
}

int64_t moirai_memory_twin(const moirai_memory_prices *m, int64_t pair)
{
    int64_t cells = (int64_t)m->K * m->K, twin = m->twin[pair / cells];
    return twin < 0 || !m->c->pair[twin * cells + pair % cells].open ? -1 : twin * cells + pair % cells;
}

int moirai_memory_run_batch(const moirai_memory_prices *m, moirai_memory_batch *x, moirai_job_fn job, void *data,
                            int threads)
{
    int32_t leaders = 0;
    for (int32_t i = 0; i < x->n; i++)
        if (moirai_memory_twin(m, x->pair[i]) < 0) {
            int32_t leader = x->pair[i];
            memmove(x->pair + leaders + 1, x->pair + leaders, sizeof *x->pair * (size_t)(i - leaders));
            x->pair[leaders++] = leader;
        }
    x->first = 0;
    int result = moirai_pool_run(job, data, leaders, threads);
    x->first = leaders;
    return result ? result : moirai_pool_run(job, data, x->n - leaders, threads);
}

/* Refine the pairs of the path that are not refined at these prices; true in *any if there was one. */
static int refine_path(moirai_memory_prices *m, const moirai_memory_task *job, bool *any)
{
    refining x = {.m = m, .task = value_task(m, job), .upper_ns = job->upper_ns};
    size_t pairs = (size_t)m->c->s->n_classes * (size_t)m->K * (size_t)m->K;
    x.batch.pair = moirai_alloc(2 * pairs, sizeof *x.batch.pair);
    if (!x.batch.pair)
        return MOIRAI_EFAIL;
    x.times = x.batch.pair + pairs;
    for (int32_t i = 0; i < m->c->s->n_blocks; i++) {
        int64_t pair = moirai_memory_pair_of(m, i);
        if (!x.times[pair]++ && !m->view[pair].value.solved)
            x.batch.pair[x.batch.n++] = (int32_t)pair;
    }
    *any = x.batch.n > 0;
    int result = moirai_memory_run_batch(m, &x.batch, refine_one, &x, job->threads);
    free(x.batch.pair);
    return result;
}

static void path_bytes(const moirai_memory_prices *m, double *use)
{
    const moirai_chain *c = m->c;
    memset(use, 0, sizeof *use * MOIRAI_MAX_DEVICES);
    for (int32_t i = 0; i < c->s->n_blocks; i++) {
        const moirai_value *v = &m->view[moirai_memory_pair_of(m, i)].value;
        for (int32_t k = 0; k < m->K; k++)
            use[k] += v->use[k];
        if (i < c->s->n_cuts)
            use[m->device[i]] += (double)c->p->op_memory_bytes[c->s->cut[i]];
    }
}

/* The bound that the present prices give, in whole ns rounded down; 0 where there is no path. */
static int64_t lagrangian_ns(const moirai_memory_prices *m, int64_t path_cost)
{
    __int128 value = path_cost == INT64_MAX ? 0 : path_cost;
    for (int32_t k = 0; k < m->K; k++)
        value -= (__int128)m->price[k] * m->c->p->device_memory_bytes[k];
    if (value <= 0)
        return 0;
    return (int64_t)(value / MOIRAI_PRICE_UNIT);
}

void moirai_memory_set_worth(moirai_memory_prices *m, const double *worth)
{
    m->stamp++;
    for (int32_t k = 0; k < m->K; k++) {
        double capacity = (double)MOIRAI_MAX(m->c->p->device_memory_bytes[k], 1);
        double price = worth[k] / capacity * (double)MOIRAI_PRICE_UNIT;
        /* All devices full are worth less than half of what the pricing takes for "does not fit". */
        m->price[k] = (int64_t)fmin(fmax(price, 0), 1e18 / fmax(m->K, 4) / fmax(capacity, 1e3));
    }
}

/* ---- the master over paths ---- */

void moirai_memory_mixer_free(moirai_memory_mixer *x)
{
    for (size_t i = 0; i < x->n; i++) {
        free(x->route[i].device);
        free(x->route[i].pick);
    }
    free(x->route);
    free(x->part);
}

int moirai_memory_mix(const moirai_memory_prices *m, moirai_memory_mixer *x, double room, double dear_ns, double *worth)
{
    double lower[MOIRAI_MAX_DEVICES + 1], upper[MOIRAI_MAX_DEVICES + 1], dual[MOIRAI_MAX_DEVICES + 1],
        value[MOIRAI_MAX_DEVICES + 1];
    int32_t row[MOIRAI_MAX_DEVICES + 1];
    for (int32_t k = 0; k <= m->K; k++) {
        row[k] = k;
        lower[k] = k < m->K ? -HUGE_VAL : 1;
        upper[k] = k < m->K ? room : 1;
    }
    moirai_lp *lp;
    int result = moirai_grow(&x->part, &x->part_capacity, x->n + (size_t)m->K, sizeof *x->part);
    if (!result)
        result = moirai_lp_new(&lp, m->K + 1, lower, upper);
    if (result)
        return result;
    for (size_t i = 0; i < x->n && !result; i++) {
        for (int32_t k = 0; k < m->K; k++)
            value[k] = x->route[i].use[k] / (double)MOIRAI_MAX(m->c->p->device_memory_bytes[k], 1);
        value[m->K] = 1;
        result = moirai_lp_add_column(lp, x->route[i].time_ns, m->K + 1, row, value);
    }
    for (int32_t k = 0; k < m->K && !result; k++) { /* overflow, at a price that no good mix pays */
        double out = -1;
        result = moirai_lp_add_column(lp, dear_ns, 1, &row[k], &out);
    }
    double objective;
    if (!result)
        result = moirai_lp_solve(lp, &objective, dual, x->part);
    for (int32_t k = 0; k < m->K && !result; k++)
        worth[k] = fmax(-dual[k], 0);
    moirai_lp_free(lp);
    return result;
}

int moirai_memory_add_route(moirai_memory_mixer *x, const moirai_memory_route *route)
{
    if (moirai_grow(&x->route, &x->capacity, x->n + 1, sizeof *x->route))
        return MOIRAI_EFAIL;
    x->route[x->n++] = *route;
    return MOIRAI_OK;
}

/* The cheapest path at these worths, its pairs solved; the bound that it gives. */
static int price_path(moirai_memory_prices *m, const double *worth, const moirai_memory_task *job, int64_t *bound,
                      moirai_memory_route *out)
{
    moirai_memory_set_worth(m, worth);
    int64_t cost = moirai_memory_bound_path(m);
    bool any = true;
    int result = MOIRAI_OK;
    for (int32_t i = 0; i < PATH_REFINEMENTS && any && !result; i++) {
        result = refine_path(m, job, &any);
        if (any && !result)
            cost = moirai_memory_bound_path(m);
    }
    *bound = lagrangian_ns(m, cost);
    *out = (moirai_memory_route){0};
    path_bytes(m, out->use);
    out->time_ns = (double)cost / (double)MOIRAI_PRICE_UNIT;
    for (int32_t k = 0; k < m->K; k++)
        out->time_ns -= (double)m->price[k] / (double)MOIRAI_PRICE_UNIT * out->use[k];
    return result;
}

/* What a component pays must stay well below what the pricing takes for "does not fit": prices go up to a few units per
 * ns. */
static bool units_fit(const moirai_memory_prices *m, const moirai_memory_task *job)
{
    const int64_t most = INT64_C(1) << 36;
    bool good = job->upper_ns <= most;
    for (int32_t i = 0; i < m->c->s->n_classes * m->K * m->K && good; i++)
        good = m->c->pair[i].plan.length_ns <= most && m->c->pair[i].lower_ns <= most;
    return good;
}

/* Paths of plans as columns: they are a few percent from the truth everywhere, and so are the prices that come of
 * them. */
static int take_plans(moirai_memory_prices *m)
{
    int result = MOIRAI_OK;
    for (; m->n_plans_taken < m->plans.n && !result; m->n_plans_taken++) {
        moirai_memory_route route = m->plans.route[m->n_plans_taken];
        route.device = route.pick = NULL;
        result = moirai_memory_add_route(&m->cuts, &route);
    }
    return result;
}

/* What was claimed of older paths has been raised since: they would lead the mix astray. */
static int forget_cuts(moirai_memory_prices *m)
{
    moirai_memory_mixer_free(&m->cuts);
    m->cuts = (moirai_memory_mixer){0};
    m->n_plans_taken = 0;
    return take_plans(m);
}

/* The next prices to look at: the best so far once more, whose pairs can be refined further; then those of the mix, and
 * between. */
static int next_worth(moirai_memory_prices *m, moirai_memory_mixer *x, const moirai_memory_task *job, int32_t round,
                      double *worth)
{
    if (m->best_ns && round == 0) {
        memcpy(worth, m->best_worth, sizeof m->best_worth);
        return MOIRAI_OK;
    }
    int result = x->n ? moirai_memory_mix(m, x, 1, 4 * (double)job->upper_ns, worth) : MOIRAI_OK;
    for (int32_t k = 0; k < m->K && round % 2 == 0 && m->best_ns; k++)
        worth[k] = 0.5 * (worth[k] + m->best_worth[k]);
    return result;
}

int moirai_memory_bound(int64_t *lower_ns, moirai_memory_prices *m, const moirai_memory_task *job)
{
    double worth[MOIRAI_MAX_DEVICES] = {0}, before[MOIRAI_MAX_DEVICES];
    moirai_memory_mixer *x = &m->cuts;
    *lower_ns = m->best_ns;
    if (!moirai_lp_available() || !units_fit(m, job))
        return MOIRAI_OK;
    int result = take_plans(m);
    for (int32_t round = 0; round < job->rounds && !result && !moirai_stopped(&job->stop); round++) {
        int64_t bound;
        moirai_memory_route found;
        result = next_worth(m, x, job, round, worth);
        if (result || (round && !memcmp(worth, before, sizeof worth)))
            break; /* nothing new to learn */
        memcpy(before, worth, sizeof worth);
        result = price_path(m, worth, job, &bound, &found);
        if (!result && round == 0 && bound - m->best_ns > m->best_ns / 1000)
            result = forget_cuts(m);
        if (result)
            break;
        if (bound > m->best_ns) {
            m->best_ns = bound;
            memcpy(m->best_worth, worth, sizeof worth);
        }
        result = moirai_memory_add_route(x, &found);
    }
    *lower_ns = m->best_ns;
    return result;
}

/* ---- evidence for a certificate ---- */

int moirai_memory_settle(moirai_memory_prices *m, const moirai_memory_task *job)
{
    int64_t bound = 0;
    moirai_memory_route found;
    int result = MOIRAI_OK;
    /* Prices found since then for other prices on bytes may serve these less: look until it is proven again. */
    for (int32_t i = 0; i < SETTLE_ROUNDS && !result && bound < m->best_ns && units_fit(m, job); i++)
        result = price_path(m, m->best_worth, job, &bound, &found);
    return result;
}

const int64_t *moirai_memory_byte_prices(const moirai_memory_prices *m)
{
    return m->price;
}

moirai_value *moirai_memory_value(moirai_memory_prices *m, int32_t pair)
{
    return &m->view[pair].value;
}

int64_t moirai_memory_proven_ns(moirai_memory_prices *m, const int64_t *value)
{
    memcpy(m->pair_cost, value, sizeof *value * (size_t)(m->c->s->n_classes * m->K * m->K));
    return lagrangian_ns(m, moirai_memory_cheapest_way(m, 0, m->c->s->n_blocks - 1, 0, 0, m->price));
}
