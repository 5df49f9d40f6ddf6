/* Memory that binds: the bound (docs/theory.md, Theorem 34), by values of blocks from pair/priced.
 *
 * The best prices on bytes are found by a master (Dantzig and Wolfe): every path met so far is a column with its time and its bytes, the
 * cheapest combination of paths that fits on average gives the next prices, and these the next path. A handful of rounds per device that
 * is full. Plans are in bytes_plan.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_tuning.h"
#include "bytes/bytes_state.h"
#include "util/pool.h"
#include "util/util.h"

static void free_pair(bytes_pair *v)
{
    pair_priced_free(&v->priced);
    for (int32_t i = 0; i < v->n_plans; i++)
        pair_plan_free(&v->plans[i].plan);
}

void bytes_prices_free(bytes_prices *m)
{
    if (!m)
        return;
    for (int32_t i = 0; m->pair && i < m->c->s->n_classes * m->K * m->K; i++)
        free_pair(&m->pair[i]);
    bytes_master_free(&m->plans);
    bytes_master_free(&m->cuts);
    util_release(&m->memory);
    free(m);
}

int bytes_prices_new(bytes_prices **out, pair_chain *c)
{
    *out = NULL;
    bytes_prices *m = util_alloc(1, sizeof *m);
    if (!m)
        return MOIRAI_EFAIL;
    size_t K = (size_t)c->K, blocks = (size_t)c->s->n_blocks, pairs = (size_t)pair_chain_count(c);
    double most = BYTES_BOUND_MOST_BYTES + 8.0 * c->p->n_ops * c->K, rows = (double)pairs * sizeof *m->jump.ns;
    if ((double)pairs * sizeof *m->pair + rows > most) {
        free(m);
        return moirai_error(MOIRAI_ELIMIT, "'%s': too many pairs for prices on bytes", c->p->name);
    }
    m->c = c;
    m->K = c->K;
    m->now.stamp = 1;
    m->search.step = 1;
    for (int32_t i = 0; i < c->p->n_ops; i++)
        m->largest_bytes = UTIL_MAX(m->largest_bytes, c->p->op_memory_bytes[i]);
    UTIL_TAKE(&m->memory, m->pair, pairs);
    UTIL_TAKE(&m->memory, m->at.device, blocks);
    UTIL_TAKE(&m->memory, m->last.device, blocks);
    UTIL_TAKE(&m->memory, m->last.picked, blocks);
    UTIL_TAKE(&m->memory, m->best.device, blocks);
    UTIL_TAKE(&m->memory, m->best.picked, blocks);
    UTIL_TAKE(&m->memory, m->plan, blocks);
    UTIL_TAKE(&m->memory, m->work.from, blocks * K);
    UTIL_TAKE(&m->memory, m->work.pair_cost, pairs);
    UTIL_TAKE(&m->memory, m->work.plan_pick, pairs);
    UTIL_TAKE(&m->memory, m->at.picked, blocks);
    if (bytes_find_jumps(m, most / 8) || m->memory.failed) {
        bytes_prices_free(m);
        return MOIRAI_EFAIL;
    }
    for (size_t i = 0; i < pairs; i++)
        m->pair[i].priced = (pair_priced){.pair = c->pair[i]};
    *out = m;
    return 0;
}

/* ---- paths ---- */

static int update_pair(void *data, int32_t i)
{
    bytes_prices *m = data;
    pair_priced_task task = bytes_task(m);
    m->work.pair_cost[i] = 0; /* nothing known: nothing claimed */
    if (!pair_chain_get(m->c, i)->open)
        return 0;
    pair_priced_update(&m->pair[i].priced, &task);
    m->work.pair_cost[i] = m->pair[i].priced.value;
    return 0;
}

int64_t bytes_bound_path(bytes_prices *m, int32_t threads)
{
    m->jump.counted = false;                                                  /* no bound knows of them */
    util_pool_run(update_pair, m, m->c->s->n_classes * m->K * m->K, threads); /* no job fails */
    return bytes_cheapest_path(m, 0, m->c->s->n_blocks - 1);
}

static void path_bytes(const bytes_prices *m, double *use)
{
    const pair_chain *c = m->c;
    memset(use, 0, sizeof *use * MOIRAI_MASK_DEVICES);
    for (int32_t i = 0; i < c->s->n_blocks; i++) {
        const pair_priced *v = &m->pair[bytes_pair_of(m, i)].priced;
        for (int32_t k = 0; k < m->K; k++)
            use[k] += v->use[k];
        if (i < c->s->n_cuts)
            use[m->at.device[i]] += (double)c->p->op_memory_bytes[c->s->cut[i]];
    }
}

/* The bound that the present prices give, in whole ns rounded down; 0 where there is no path. */
static int64_t lagrangian_ns(const bytes_prices *m, int64_t path_cost)
{
    __int128 value = path_cost == INT64_MAX ? 0 : path_cost;
    for (int32_t k = 0; k < m->K; k++)
        value -= (__int128)m->now.price[k] * m->c->p->device_memory_bytes[k];
    if (value <= 0)
        return 0;
    return (int64_t)(value / m->c->s->unit);
}

void bytes_set_duals(bytes_prices *m, const double *dual_ns)
{
    int64_t best[MOIRAI_MASK_DEVICES];
    m->now.stamp++;
    bytes_prices_at(m, dual_ns, m->now.price);
    bytes_prices_at(m, m->search.best_dual_ns, best);
    m->now.centre = !m->search.best_ns || !memcmp(m->now.price, best, sizeof *best * (size_t)m->K);
}

/* The cheapest path at these dual values, its pairs solved; the bound that it gives. */
static int price_path(bytes_prices *m, const double *dual_ns, const bytes_bound_task *job, int64_t *bound,
                      bytes_path *out)
{
    bytes_set_duals(m, dual_ns);
    int64_t cost = bytes_bound_path(m, job->threads);
    bool any = true;
    int rc = 0;
    for (int32_t i = 0; i < BYTES_BOUND_PATH_REFINEMENTS && any && !rc; i++) {
        rc = bytes_refine_path(m, job, i == 0, &any);
        if (any && !rc)
            cost = bytes_bound_path(m, job->threads);
    }
    *bound = lagrangian_ns(m, cost);
    *out = (bytes_path){.refined = m->search.refined};
    memcpy(out->dual_ns, dual_ns, sizeof *dual_ns * (size_t)m->K);
    path_bytes(m, out->use);
    bytes_path_set_time(m, (double)cost, m->now.price, out);
    return rc;
}

/* Paths that the LP solution is made of may have been met when less was known of their pairs: they promise less than there
 * is by now, and hold the prices where they are. *any: there were such. */
static int measure_solution_again(bytes_prices *m, int32_t threads, bool *any)
{
    int rc = 0;
    *any = false;
    for (size_t i = 0; !rc && i < m->cuts.n; i++) {
        bytes_path *x = &m->cuts.path[i];
        if (x->refined < 0 || x->refined == m->search.refined || x->part < 1e-9)
            continue;
        double before = x->time_ns;
        rc = bytes_measure_again(m, x, threads);
        *any |= fabs(x->time_ns - before) > 1e-6 * before;
    }
    return rc;
}

/* The path at hand as a column, and paths of plans in the LP solution by what is known of their pairs: these were refined,
 * too, and the LP solution should know what came of it. */
static int add_cuts(bytes_prices *m, int32_t threads, const bytes_path *found)
{
    size_t n = m->cuts.n;
    int rc = bytes_master_add(&m->cuts, m, *found, m->at.device, NULL);
    for (size_t i = 0; i < n && !rc; i++) {
        bytes_path *x = &m->cuts.path[i], twin = *found;
        if (x->refined >= 0 || x->twin || x->part < BYTES_LEAST_PART)
            continue;
        x->twin = true;
        twin.part = 0;
        rc = bytes_master_add(&m->cuts, m, twin, x->device, NULL);
        rc = rc ? rc : bytes_measure_again(m, &m->cuts.path[m->cuts.n - 1], threads);
    }
    return rc;
}

/* What a component pays must stay well below what the pricing takes for "does not fit": prices go up to a few units per
 * ns. Units are chosen such that only times of months do not. */
static bool units_fit(const bytes_prices *m, const bytes_bound_task *job)
{
    return job->upper_ns <= DECOMPOSE_MOST_LENGTH / m->c->s->unit;
}

/* Paths of plans as columns: they are a few percent from the truth everywhere, and so are the prices that come of
 * them. */
static int take_plans(bytes_prices *m)
{
    int rc = 0;
    for (; m->n_plans_taken < m->plans.n && !rc; m->n_plans_taken++) {
        bytes_path path = m->plans.path[m->n_plans_taken];
        path.refined = -1;
        path.part = 0;
        path.time_ns -= path.jump_ns;
        rc = bytes_master_add(&m->cuts, m, path, path.device, NULL);
    }
    return rc;
}

/* Prices of the plans' master, if they are others than those looked at by the last round; dual_ns is left alone if not.
 * Plans are a few percent from the truth everywhere, while hardly anything is known of some pairs: an LP solution over
 * paths of the bound goes there. *any: they are. */
static int plan_duals(bytes_prices *m, const bytes_bound_task *job, double *dual_ns, bool *any)
{
    double found[MOIRAI_MASK_DEVICES];
    memcpy(found, dual_ns, sizeof found);
    *any = false;
    int rc = m->plans.n ? bytes_master_solve(m, &m->plans, 1, 4 * (double)job->upper_ns, found) : MOIRAI_ELIMIT;
    for (int32_t k = 0; k < m->K && !rc; k++)
        *any |= fabs(found[k] - dual_ns[k]) > BYTES_BOUND_LEAST_MOVE * (double)job->upper_ns;
    if (*any)
        memcpy(dual_ns, found, sizeof found);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

/* The next prices to look at: the best so far once more, whose pairs can be refined further; then those of the plans, as
 * long as little is proven; then towards those of the LP solution: all the way at first, less where that led astray, since
 * hardly anything is known of pairs far from all prices that were looked at. */
static int next_duals(bytes_prices *m, bytes_master *x, const bytes_bound_task *job, int32_t round, double *dual_ns)
{
    if (m->search.best_ns && round == 0) {
        memcpy(dual_ns, m->search.best_dual_ns, sizeof m->search.best_dual_ns);
        return 0;
    }
    bool any = false, first = m->search.best_ns && round == 1 &&
                              (double)m->search.best_ns < BYTES_BOUND_FAR_BELOW * (double)job->upper_ns;
    int rc = first ? plan_duals(m, job, dual_ns, &any) : 0;
    if (rc || any)
        return rc;
    any = x->n > 0;
    for (int32_t i = 0; i < BYTES_BOUND_MEASURES && any && !rc; i++) {
        rc = bytes_master_solve(m, x, 1, 4 * (double)job->upper_ns, dual_ns);
        rc = rc ? rc : measure_solution_again(m, job->threads, &any);
    }
    if (rc)
        return rc;
    double part = round % 2 ? m->search.step : m->search.step / 2;
    for (int32_t k = 0; k < m->K && m->search.best_ns; k++)
        dual_ns[k] = m->search.best_dual_ns[k] + part * (dual_ns[k] - m->search.best_dual_ns[k]);
    return rc;
}

/* After some rounds, of which the best away from centre has reached `most`. A single one says little: its path is a column
 * from then on, and the next LP solution another. */
static void set_step(bytes_prices *m, int64_t most)
{
    if (most == m->search.best_ns)
        m->search.step = fmin(2 * m->search.step, 1);
    else if (most > 0 && (double)most < BYTES_BOUND_BACK * (double)m->search.best_ns)
        m->search.step = fmax(m->search.step / 2, BYTES_BOUND_LEAST_STEP);
}

int bytes_bound(int64_t *lower_ns, bytes_prices *m, const bytes_bound_task *job)
{
    double dual_ns[MOIRAI_MASK_DEVICES] = {0}, before[MOIRAI_MASK_DEVICES];
    bytes_master *x = &m->cuts;
    int64_t most = 0;
    *lower_ns = m->search.best_ns;
    if (!units_fit(m, job))
        return 0;
    int rc = take_plans(m);
    for (int32_t round = 0; round < job->rounds && !rc && !util_stopped(&job->stop); round++) {
        int64_t bound;
        bytes_path found;
        rc = next_duals(m, x, job, round, dual_ns);
        if (rc == MOIRAI_ELIMIT) { /* the LP gave up: what is proven so far stays */
            rc = 0;
            break;
        }
        if (rc || (round && !memcmp(dual_ns, before, sizeof dual_ns)))
            break; /* nothing new to learn */
        memcpy(before, dual_ns, sizeof dual_ns);
        rc = price_path(m, dual_ns, job, &bound, &found);
        if (rc)
            break;
        most = round ? UTIL_MAX(most, bound) : most;
        if (bound > m->search.best_ns) {
            m->search.best_ns = bound;
            memcpy(m->search.best_dual_ns, dual_ns, sizeof dual_ns);
        }
        rc = add_cuts(m, job->threads, &found);
    }
    set_step(m, most);
    *lower_ns = m->search.best_ns;
    return rc;
}

/* ---- evidence for a certificate ---- */

int bytes_settle(bytes_prices *m, const bytes_bound_task *job)
{
    int64_t bound = 0;
    bytes_path found;
    int rc = 0;
    /* Prices found since then for other prices on bytes may serve these less: look until it is proven again. */
    for (int32_t i = 0; i < BYTES_BOUND_SETTLE_ROUNDS && !rc && bound < m->search.best_ns && units_fit(m, job); i++)
        rc = price_path(m, m->search.best_dual_ns, job, &bound, &found);
    return rc;
}

const int64_t *bytes_prices_per_byte(const bytes_prices *m)
{
    return m->now.price;
}

pair_priced *bytes_priced_at(bytes_prices *m, int32_t pair)
{
    return &m->pair[pair].priced;
}

int64_t bytes_proven_ns(bytes_prices *m, const int64_t *value)
{
    memcpy(m->work.pair_cost, value, sizeof *value * (size_t)(m->c->s->n_classes * m->K * m->K));
    m->jump.counted = false;
    return lagrangian_ns(m, bytes_cheapest_path(m, 0, m->c->s->n_blocks - 1));
}
