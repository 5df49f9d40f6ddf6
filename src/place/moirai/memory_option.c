/* Plans of a pair at prices on bytes: options for memory_plan.c.
 *
 * As in improve.c, the mix of the weakest case of each sending, at the prices at hand, is the start of a short
 * annealing of length plus bytes, and the best two of a long one. Pairs without cases are annealed from their own
 * plan. */
#include <stdlib.h>
#include <string.h>

#include "place/moirai/memory_state.h"
#include "util/util.h"

#define TRIALS 5
#define SMALL_SHARE 0.02
#define FINALISTS 2

static void option_bytes(const moirai_block *b, moirai_memory_option *o)
{
    memset(o->bytes, 0, sizeof o->bytes);
    for (int32_t i = b->first; i < b->first + b->n_interior; i++)
        o->bytes[o->plan.device[i]] += b->problem.op_memory_bytes[i];
}

static bool same_option(const moirai_memory_prices *m, const moirai_memory_option *x, const moirai_memory_option *y)
{
    return x->plan.length_ns == y->plan.length_ns && !memcmp(x->bytes, y->bytes, sizeof *x->bytes * (size_t)m->K);
}

static int64_t priced(const moirai_memory_prices *m, int64_t length_ns, const int64_t *bytes, const int64_t *price)
{
    int64_t cost = length_ns * MOIRAI_PRICE_UNIT;
    for (int32_t k = 0; k < m->K; k++)
        cost += price[k] * bytes[k];
    return cost;
}

const int64_t *moirai_memory_option_at(const moirai_memory_prices *m, int64_t pair, int32_t pick, int64_t *length_ns)
{
    moirai_memory_view *v = &m->view[pair];
    const moirai_pair *x = &m->c->pair[pair];
    if (pick >= 0) {
        *length_ns = v->option[pick].plan.length_ns;
        return v->option[pick].bytes;
    }
    if (v->own_length_ns != x->plan.length_ns) {
        moirai_memory_option own = {.plan = x->plan};
        option_bytes(&x->block, &own);
        memcpy(v->own_bytes, own.bytes, sizeof v->own_bytes);
        v->own_length_ns = x->plan.length_ns;
    }
    *length_ns = x->plan.length_ns;
    return v->own_bytes;
}

int64_t moirai_memory_option_cost(const moirai_memory_prices *m, int64_t pair, const int64_t *price, int8_t *pick)
{
    int64_t best = INT64_MAX;
    if (!m->c->pair[pair].open || !m->c->pair[pair].plan.device)
        return best;
    for (int32_t i = -1; i < m->view[pair].n_options; i++) {
        int64_t length, cost;
        const int64_t *bytes = moirai_memory_option_at(m, pair, i, &length);
        cost = priced(m, length, bytes, price);
        if (cost < best) {
            best = cost;
            *pick = (int8_t)i;
        }
    }
    return best;
}

/* ---- the search ---- */

typedef struct seeker {
    moirai_memory_prices *m;
    int32_t pair;
    const moirai_memory_search *job;
    moirai_sim *sim;
} seeker;

static moirai_search_task task_of(const seeker *x, int64_t evaluations)
{
    const moirai_memory_prices *m = x->m;
    return (moirai_search_task){.entry_device = x->pair / m->K % m->K, .exit_device = x->pair % m->K,
                                .memory_price = m->price, .evaluations = evaluations,
                                .seed = x->job->seed + (uint64_t)m->view[x->pair].n_options, .stop = x->job->stop};
}

static int from_plan(const seeker *x, moirai_block_plan *plan)
{
    moirai_search_task task = task_of(x, x->job->evaluations);
    task.start_device = x->m->c->pair[x->pair].plan.device;
    return moirai_block_search(plan, &x->m->c->pair[x->pair].block, x->sim, &task);
}

static int from_case(const seeker *x, moirai_value_case *c, moirai_block_plan *plan, int64_t evaluations)
{
    moirai_value *v = &x->m->view[x->pair].value;
    moirai_value_task solve = {.byte_price = x->m->price, .stamp = x->m->stamp, .buckets = 10, .stop = x->job->stop};
    int result = moirai_value_solve_case(v, c, &solve);
    moirai_search_task task = task_of(x, evaluations);
    moirai_kept_pattern *hints = moirai_master_mix(v->master, &task.n_patterns);
    if (!hints)
        return MOIRAI_EFAIL;
    task.pattern = hints;
    task.mix_only = true;
    if (!result && task.n_patterns)
        result = moirai_block_search(plan, &v->pair->block, x->sim, &task);
    free(hints);
    return result;
}

/* The weakest cases of the sendings that promise most. */
static int32_t list_trials(const moirai_value *v, int64_t ceiling, moirai_trial *t)
{
    int32_t n = 0;
    for (int32_t s = 0; s < v->pair->n_sendings; s++) {
        int32_t least = -1;
        for (int32_t i = 0; i < v->n_cases; i++)
            if (v->cases[i].sending == s && v->cases[i].most_ns != INT64_MAX &&
                (least < 0 || v->cases[i].value < v->cases[least].value))
                least = i;
        if (least < 0 || v->cases[least].value >= ceiling)
            continue;
        int32_t at = n < TRIALS ? n++ : TRIALS; /* by value, the best so many */
        for (; at > 0 && v->cases[t[at - 1].index].value > v->cases[least].value; at--)
            if (at < TRIALS)
                t[at].index = t[at - 1].index;
        if (at < TRIALS)
            t[at].index = least;
    }
    return n;
}

static int from_cases(const seeker *x, moirai_block_plan *plan)
{
    moirai_value *v = &x->m->view[x->pair].value;
    moirai_value_task task = {.byte_price = x->m->price, .stamp = x->m->stamp};
    moirai_trial *t = moirai_alloc((size_t)v->pair->n_sendings, sizeof *t);
    if (!t)
        return MOIRAI_EFAIL;
    moirai_value_update(v, &task);
    int32_t n = list_trials(v, x->m->pair_cost[x->pair], t);
    int result = MOIRAI_OK;
    for (int32_t i = 0; i < n && !result; i++)
        result = from_case(x, &v->cases[t[i].index], &t[i].plan, x->job->evaluations / 4);
    moirai_trials_sort(t, n);
    for (int32_t i = 0; i < n; i++) {
        if (!result && i < FINALISTS && t[i].plan.device)
            result = from_case(x, &v->cases[t[i].index], &t[i].plan, x->job->evaluations);
        if (!result && t[i].plan.device && (!plan->device || t[i].plan.cost < plan->cost)) {
            moirai_block_plan_free(plan);
            *plan = t[i].plan;
        } else {
            moirai_block_plan_free(&t[i].plan);
        }
    }
    free(t);
    return result;
}

/* A plan of the pair at the present prices, if it is a new one. */
int moirai_memory_add_option(moirai_memory_prices *m, int32_t pair, const moirai_memory_search *job)
{
    moirai_memory_view *v = &m->view[pair];
    const moirai_block *b = &m->c->pair[pair].block;
    moirai_memory_search less = *job; /* for classes that take little of the time */
    if (moirai_chain_share(m->c, pair / (m->K * m->K), job->upper_ns) < SMALL_SHARE)
        less.evaluations /= 6;
    seeker x = {.m = m, .pair = pair, .job = &less};
    if (v->n_options == MOIRAI_MEMORY_OPTIONS)
        return MOIRAI_OK;
    if (moirai_sim_new(&x.sim, &b->problem))
        return MOIRAI_EFAIL;
    moirai_memory_option *o = &v->option[v->n_options];
    *o = (moirai_memory_option){0};
    int result = v->value.n_cases ? from_cases(&x, &o->plan) : MOIRAI_OK;
    if (!result && !o->plan.device)
        result = from_plan(&x, &o->plan);
    bool known = !o->plan.device;
    if (!known)
        option_bytes(b, o);
    for (int32_t j = 0; j < v->n_options && !known; j++)
        known = same_option(m, o, &v->option[j]);
    if (known || result)
        moirai_block_plan_free(&o->plan);
    else
        v->n_options++;
    moirai_sim_free(x.sim);
    return result;
}
