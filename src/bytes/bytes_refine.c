/* Which pairs are refined at the present prices on bytes, and how far: those of the bound's path, and of the paths of the
 * last LP solution. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_state.h"
#include "bytes/bytes_tuning.h"
#include "util/pool.h"
#include "util/util.h"

static pair_priced_task priced_task(const bytes_prices *m, const bytes_bound_task *job)
{
    pair_priced_task task = bytes_task(m);
    task.buckets = job->buckets;
    task.solves = job->solves;
    task.threads = job->threads;
    task.stop = job->stop;
    return task;
}

typedef struct refining {
    bytes_prices *m;
    pair_priced_task task;
    int64_t upper_ns;
    int32_t *pair, n;
    double *times; /* per pair: how often the path takes it, or the LP solution over paths */
} refining;

/* Solves go where there is something to gain: by what the class takes of the time at first, then by what is still open on
 * the path. */
static int32_t solves_for(const refining *x, int32_t pair, int64_t ceiling, bool first)
{
    const bytes_prices *m = x->m;
    const pair_priced *v = &m->pair[pair].priced;
    double part = 10 * pair_chain_share(m->c, pair / (m->K * m->K), x->upper_ns);
    if (!first && ceiling != INT64_MAX) {
        double open_ns = (double)(ceiling - v->value) / (double)m->c->s->unit * x->times[pair];
        part = fmax(0.2 * part, 200 * open_ns / (double)x->upper_ns);
    }
    return UTIL_MAX((int32_t)(x->task.solves * fmin(part, first ? 1 : BYTES_REFINE_MOST_PART)), 5);
}

static int refine_one(void *data, int32_t i)
{
    refining *x = data;
    int32_t pair = x->pair[i];
    int8_t pick;
    int64_t ceiling = bytes_block_plan_cost(x->m, pair, x->m->now.price, &pick);
    pair_priced *v = &x->m->pair[pair].priced;
    pair_priced_task task = x->task;
    bool first = !v->solver[0].master;
    task.solves = solves_for(x, pair, ceiling, first);
    const pair_state *known = pair_chain_get(x->m->c, pair);
    if (task.solves <= 5) /* little to gain */
        task.buckets = UTIL_MIN(task.buckets, BYTES_REFINE_FEW_BUCKETS);
    if (first &&
        known->level == 0) { /* nothing is known of it: every sending once, roughly; the path tells what next */
        task.buckets = UTIL_MIN(task.buckets, BYTES_REFINE_FIRST_BUCKETS);
        task.solves = known->sending.n_first + 2;
    }
    task.ceiling = ceiling == INT64_MAX ? 0 : ceiling;
    int rc = pair_priced_refine(v, &task);
    if (rc == MOIRAI_ELIMIT) { /* too large for prices: its length and cheapest bytes stand */
        v->solved = true;
        rc = 0;
    }
    return rc;
}

/* A pair that is not open has no block to price: the time was over before its turn, and nothing is claimed of it. */
static void count_pair(refining *x, int64_t pair, double part)
{
    if (!pair_chain_get(x->m->c, pair)->open)
        return;
    if (x->times[pair] == 0 && !x->m->pair[pair].priced.solved)
        x->pair[x->n++] = (int32_t)pair;
    x->times[pair] += part;
}

/* Pairs of the paths of the bound's last LP solution: near its prices they all cost the same, and raising one of them only
 * moves the path to the next. */
static void count_solution(refining *x)
{
    const bytes_prices *m = x->m;
    const decompose_cuts *s = m->c->s;
    for (size_t j = 0; j < m->cuts.n; j++) {
        const bytes_path *path = &m->cuts.path[j];
        for (int32_t i = 0; i < s->n_blocks && path->part > BYTES_LEAST_PART; i++)
            count_pair(x, pair_chain_on_path(m->c, i, path->device), path->part);
    }
}

int bytes_refine_path(bytes_prices *m, const bytes_bound_task *job, bool solution, bool *any)
{
    refining x = {.m = m, .task = priced_task(m, job), .upper_ns = job->upper_ns};
    size_t pairs = (size_t)m->c->s->n_classes * (size_t)m->K * (size_t)m->K;
    x.pair = util_alloc(pairs, sizeof *x.pair);
    x.times = util_alloc(pairs, sizeof *x.times);
    int rc = x.pair && x.times ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < m->c->s->n_blocks && !rc; i++)
        count_pair(&x, bytes_pair_of(m, i), 1);
    if (solution && !rc)
        count_solution(&x);
    *any = x.n > 0;
    m->search.refined += *any;
    rc = rc ? rc : util_pool_run(refine_one, &x, x.n, job->threads);
    free(x.pair);
    free(x.times);
    return rc;
}
