/* Plans of a pair at prices on bytes: block plans for bytes_plan.c, by annealing of length plus bytes from the LP solutions of the pair's
 * cases (pair/improve.c), or from a plan alone where there are none. */
#include <string.h>

#include "bytes/bytes_state.h"
#include "bytes/bytes_tuning.h"
#include "pair/anneal.h"
#include "pair/improve.h"
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

/* Length plus bytes, both by their prices. */
static pair_anneal_task task_of(const bytes_prices *m, const bytes_plan_task *job, int64_t evaluations)
{
    return (pair_anneal_task){
        .memory_price = m->now.price, .evaluations = evaluations, .seed = job->seed, .stop = job->stop};
}

/* Takes the plan if it is a new one and there is room for it, or frees it. */
static void keep_plan(bytes_prices *m, int32_t pair, pair_plan *plan)
{
    bytes_pair *v = &m->pair[pair];
    bytes_block_plan o = {.plan = *plan}, own = {0};
    bool known = !plan->device || v->n_plans == BYTES_BLOCK_PLANS;
    if (!known) {
        plan_bytes(&pair_chain_get(m->c, pair)->block, &o);
        memcpy(own.bytes, bytes_block_plan_at(m, pair, -1, &own.plan.length_ns), sizeof own.bytes);
        known = same_plan(m, &o, &own);
    }
    for (int32_t j = 0; j < v->n_plans && !known; j++)
        known = same_plan(m, &o, &v->plans[j]);
    if (known)
        pair_plan_free(plan);
    else
        v->plans[v->n_plans++] = o;
}

/* A plan that sends nothing of the entry's but results: its bytes are on one device, and no small move leads there. */
static int add_home_plan(bytes_prices *m, int32_t pair, pair_anneal_task task)
{
    pair_plan plan = {0};
    task.keep_readers = true;
    int rc = pair_anneal(&plan, &pair_chain_get(m->c, pair)->block, &task);
    if (rc)
        pair_plan_free(&plan);
    keep_plan(m, pair, &plan);
    return rc == MOIRAI_EINFEASIBLE ? 0 : rc; /* not allowed here: there are others */
}

/* From the cheapest plan at these prices on. */
static int add_plan(bytes_prices *m, int32_t pair, const bytes_plan_task *job, pair_anneal_task task)
{
    bytes_pair *v = &m->pair[pair];
    const pair_state *x = pair_chain_get(m->c, pair);
    int8_t pick = -1;
    pair_plan plan = {0};
    int64_t cost = bytes_block_plan_cost(m, pair, m->now.price, &pick);
    int rc = pair_plan_copy(&plan, pick < 0 ? &x->plan : &v->plans[pick].plan, x->block.problem.n_ops);
    plan.cost = cost;
    task.start_device = plan.device;
    pair_cases_task update = bytes_task(m);
    if (!rc && v->priced.n) {
        pair_cases_update_all(&v->priced, &update);
        rc = pair_improve_from_cases(&plan, &v->priced,
                                     &(pair_improve_task){.evaluations = task.evaluations,
                                                          .seed = task.seed,
                                                          .buckets = BYTES_BLOCK_PLANS_BUCKETS,
                                                          .threads = job->threads,
                                                          .stop = job->stop});
    } else if (!rc) {
        rc = pair_anneal(&plan, &x->block, &task);
    }
    if (rc)
        pair_plan_free(&plan);
    else
        keep_plan(m, pair, &plan);
    return rc;
}

int bytes_block_plan_add(bytes_prices *m, int32_t pair, const bytes_plan_task *job)
{
    bytes_pair *v = &m->pair[pair];
    if (v->n_plans == BYTES_BLOCK_PLANS)
        return 0;
    pair_anneal_task task = task_of(m, job, job->evaluations);
    if (pair_chain_share(m->c, pair / (m->K * m->K), job->upper_ns) < BYTES_BLOCK_PLANS_SMALL_SHARE)
        task.evaluations /= 6; /* for classes that take little of the time */
    int rc = !v->n_plans && pair_chain_get(m->c, pair)->sending.n_first > 1 ? add_home_plan(m, pair, task) : 0;
    task.seed += (uint64_t)v->n_plans;
    return rc ? rc : add_plan(m, pair, job, task);
}

/* ---- along the path at hand ---- */

void bytes_pick_plans(bytes_prices *m, int32_t first, int32_t last)
{
    for (int32_t i = first; i <= last; i++)
        m->at.picked[i] = m->work.plan_pick[bytes_pair_of(m, i)];
}

void bytes_price_plans(bytes_prices *m)
{
    int32_t pairs = m->c->s->n_classes * m->K * m->K;
    for (int32_t i = 0; i < pairs; i++)
        m->work.pair_cost[i] = bytes_block_plan_cost(m, i, m->now.price, &m->work.plan_pick[i]);
}

bytes_path bytes_measure(const bytes_prices *m, int32_t first, int32_t last)
{
    const pair_chain *c = m->c;
    bytes_path out = {0};
    for (int32_t i = first; i <= last; i++) {
        int64_t length, pair = bytes_pair_of(m, i);
        const int64_t *bytes = bytes_block_plan_at(m, pair, m->at.picked[i], &length);
        out.time_ns += (double)length;
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
