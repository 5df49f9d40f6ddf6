/* Memory that binds: plans.
 *
 * The prices of bytes_bound.c with plans in place of bounds: a path is the devices of the cuts and one plan per block, among block plans
 * that the annealing finds for each pair at the prices met (block_plans.c). The final combination of paths says which part of the layers
 * goes which way: the chain is cut into as many stretches as the LP solution has paths, each as long as its part, and the blocks where
 * two stretches meet take the pair of devices that joins them. That is wrong by up to a layer per stretch; so the path is annealed then
 * (bytes_polish.c). Times count what edges over a block are late where it changes the device (jumps.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_state.h"
#include "bytes/bytes_tuning.h"
#include "util/pool.h"
#include "util/util.h"

/* The cheapest path by plans at the present prices, into m->at.device and m->at.picked. False where there is none. */
static bool planned_path(bytes_prices *m)
{
    int32_t last = m->c->s->n_blocks - 1;
    if (bytes_cheapest_path(m, 0, last) == INT64_MAX)
        return false;
    bytes_pick_plans(m, 0, last);
    return true;
}

typedef struct enriching {
    bytes_prices *m;
    const bytes_plan_task *job;
    int32_t *pair, n;
} enriching;

static int enrich_one(void *data, int32_t i)
{
    const enriching *x = data;
    return bytes_block_plan_add(x->m, x->pair[i], x->job);
}

/* Pairs of the path at hand that were not searched at these prices. */
static void list_path(bytes_prices *m, enriching *x)
{
    for (int32_t i = 0; i < m->c->s->n_blocks; i++) {
        int64_t pair = bytes_pair_of(m, i);
        bytes_pair *v = &m->pair[pair];
        if (v->searched == m->now.stamp || pair_chain_get(m->c, pair)->block.n_interior == 0)
            continue;
        v->searched = m->now.stamp;
        x->pair[x->n++] = (int32_t)pair;
    }
}

/* New block plans for the pairs of the plans' path, and for those of the bound's: where they promise much more than
 * their plans do, they would never come to be on the former. */
static int enrich_path(bytes_prices *m, const bytes_plan_task *job)
{
    enriching x = {.m = m, .job = job};
    x.pair = util_alloc((size_t)m->c->s->n_classes * (size_t)m->K * (size_t)m->K, sizeof *x.pair);
    if (!x.pair)
        return MOIRAI_EFAIL;
    list_path(m, &x);
    if (m->search.best_ns) {
        bytes_bound_path(m, job->threads);
        list_path(m, &x);
    }
    int rc = util_pool_run(enrich_one, &x, x.n, job->threads);
    free(x.pair);
    return rc;
}

/* A column of the plans' master at these dual values, as if edges over blocks were free: these are the paths near which the
 * bound's prices are. */
static int plan_column(bytes_prices *m, bytes_master *x, const double *dual_ns, const bytes_plan_task *job,
                       int32_t round)
{
    bytes_set_duals(m, dual_ns);
    bytes_price_plans(m, false);
    if (!planned_path(m))
        return moirai_error(MOIRAI_EINFEASIBLE, "no path of block plans");
    int rc = round % 3 == 0 && round < 3 * job->searches ? enrich_path(m, job) : 0;
    if (rc)
        return rc;
    bytes_price_plans(m, false);
    planned_path(m);
    return bytes_master_add(x, m, bytes_measure_path(m), m->at.device, m->at.picked);
}

/* The LP solution as stretches of the chain, paths in the order of their number; where two meet, the joining pair's
 * cheapest block plan. */
static void lay_out(bytes_prices *m, const bytes_master *x)
{
    const decompose_cuts *s = m->c->s;
    double total = 0, reached;
    size_t at = 0;
    for (size_t i = 0; i < x->n; i++)
        total += x->path[i].part;
    while (at + 1 < x->n && x->path[at].part < 1e-9)
        at++;
    reached = x->path[at].part;
    const bytes_path *before = &x->path[at];
    for (int32_t i = 0; i < s->n_blocks; i++) {
        while ((double)i / s->n_blocks * total >= reached && at + 1 < x->n)
            reached += x->path[++at].part;
        const bytes_path *now = &x->path[at];
        if (i < s->n_cuts)
            m->at.device[i] = now->device[i];
        int32_t a = i > 0 ? m->at.device[i - 1] : 0, b = i < s->n_cuts ? m->at.device[i] : 0;
        bool same = now == before || (i > 0 && now->device[i - 1] == a);
        m->at.picked[i] = same ? now->pick[i] : m->work.plan_pick[bytes_pair_at(m, i, a, b)];
        before = now;
    }
}

/* Goes on from the shortest path of all calls where this one has found none that is shorter: there are new block plans by
 * now. What this call has found stays where nothing comes of it, since it may turn out to be the better plan. */
static void improve_best(bytes_prices *m, const double *dual_ns, const bytes_plan_task *job, int64_t *length_ns)
{
    int64_t length = m->best_plan_ns;
    if (length && length <= *length_ns) {
        bytes_choose(m, &m->at, &m->best);
        bytes_polish(m, dual_ns, BYTES_PLAN_WARM, job, &length);
        *length_ns = length < m->best_plan_ns ? length : *length_ns;
    }
    if (m->best_plan_ns && *length_ns >= m->best_plan_ns)
        return;
    m->best_plan_ns = *length_ns == INT64_MAX ? 0 : *length_ns;
    bytes_choose(m, &m->best, &m->last);
}

/* Lay out LP solutions with more or less room to spare, and polish each. */
static int fit_solution(bytes_prices *m, bytes_master *x, const bytes_plan_task *job, double overflow_ns,
                        int64_t *length_ns)
{
    static const double fill[] = {0.9, 0.97, 0.99, 0.995, 0.998, 1};
    double dual_ns[MOIRAI_MASK_DEVICES];
    int rc = 0;
    for (size_t i = 0; i < sizeof fill / sizeof *fill && !rc; i++) {
        rc = bytes_master_solve(m, x, fill[i], overflow_ns, dual_ns);
        if (rc == MOIRAI_ELIMIT) { /* the LP gave up: another part of the memory may do */
            rc = 0;
            continue;
        }
        if (rc)
            break;
        lay_out(m, x);
        bytes_polish(m, dual_ns, BYTES_PLAN_HOT, job, length_ns);
        if (fill[i] == 1)
            improve_best(m, dual_ns, job, length_ns);
    }
    return rc;
}

int bytes_plan_find(int64_t *length_ns, const int32_t **cut_device, const pair_plan *const **block_plan,
                    bytes_prices *m, const bytes_plan_task *job)
{
    double dual_ns[MOIRAI_MASK_DEVICES], next[MOIRAI_MASK_DEVICES], overflow_ns = 0;
    bytes_master *x = &m->plans;
    int rc = 0;
    *length_ns = INT64_MAX;
    *cut_device = m->last.device;
    *block_plan = m->plan;
    memcpy(dual_ns, m->search.best_dual_ns, sizeof dual_ns);
    for (int32_t round = 0; round < job->rounds && !rc && !util_stopped(&job->stop); round++) {
        rc = plan_column(m, x, dual_ns, job, round);
        if (!rc && !overflow_ns)
            overflow_ns = 8 * x->path[0].time_ns;
        rc = rc ? rc : bytes_master_solve(m, x, 1, overflow_ns, next);
        if (rc == MOIRAI_ELIMIT) {
            rc = 0;
            break;
        }
        for (int32_t k = 0; k < m->K && !rc; k++)
            dual_ns[k] = round % 2 || !m->search.best_ns ? next[k] : 0.5 * (next[k] + m->search.best_dual_ns[k]);
    }
    if (!rc && x->n)
        rc = fit_solution(m, x, job, overflow_ns, length_ns);
    return rc;
}
