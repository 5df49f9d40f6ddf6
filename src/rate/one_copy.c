/* Plans of one copy: stages, and what annealing makes of several starts at several prices of sending. */
#include <stdlib.h>
#include <string.h>

#include "rate/anneal.h"
#include "rate/search.h"
#include "rate/stages.h"
#include "util/pool.h"
#include "util/sort.h"
#include "util/util.h"

#define MOST_STARTS 6
#define ANNEAL_SHARE 0.6 /* of the time left, at most, for a round of it */

static const double send_price[] = {0, 0.003, 0.01, 0.03, 0.1};
#define N_PRICES ((int32_t)(sizeof send_price / sizeof *send_price))

/* Operators by their starts in a plan. */
static int order_of(int32_t *order, const moirai_problem *p, const moirai_plan *plan)
{
    size_t n = (size_t)p->n_ops;
    uint64_t *key = util_alloc(2 * n, sizeof *key);
    int32_t *spare = util_alloc(n, sizeof *spare);
    int rc = key && spare ? 0 : MOIRAI_EFAIL;
    for (int32_t z = 0; z < p->n_ops && !rc; z++) {
        order[z] = p->topo[z];
        key[z] = (uint64_t)plan->op_start_ns[p->topo[z]];
    }
    if (!rc)
        util_sort(key, order, key + n, spare, p->n_ops);
    free(key);
    free(spare);
    return rc;
}

int rate_add_stages(rate_search *x)
{
    size_t n = (size_t)x->p->n_ops;
    int32_t *order = util_alloc(n, sizeof *order), *device = util_alloc(n, sizeof *device);
    int rc = order && device ? order_of(order, x->p, x->latency) : MOIRAI_EFAIL;
    for (int32_t i = 0; i < 2 && !rc; i++) {
        int64_t load = -1;
        rate_stages_task task = {
            .v = &x->v, .order = i ? order : x->p->topo, .devices = x->all_devices, .stop = x->stop};
        rc = rate_stages(device, &load, &task);
        if (!rc && load >= 0)
            rc = rate_search_add_devices(x, "stages", device);
    }
    free(order);
    free(device);
    return rc;
}

/* ---- annealing ---- */

typedef struct run {
    int32_t *device;
    int64_t load_ns;
} run;

typedef struct batch {
    const rate_search *s;
    const rate_candidate *start[MOST_STARTS];
    int32_t n_starts;
    double part;
    util_stop stop; /* earlier than the search's: what comes of it must still be judged */
    run run[MOST_STARTS * N_PRICES];
} batch;

static int anneal_one(void *data, int32_t which)
{
    batch *b = data;
    const rate_search *s = b->s;
    run *r = &b->run[which];
    if (util_stopped(&b->stop))
        return 0;
    r->device = util_alloc((size_t)s->p->n_ops, sizeof *r->device);
    if (!r->device)
        return MOIRAI_EFAIL;
    memcpy(r->device, b->start[which / N_PRICES]->device[0], sizeof *r->device * (size_t)s->p->n_ops);
    rate_anneal_task job = {.v = &s->v,
                            .units = s->units,
                            .devices = s->all_devices,
                            .send_price = send_price[which % N_PRICES],
                            .steps = rate_search_steps(s, b->part),
                            .seed = s->seed + (uint64_t)which,
                            .stop = b->stop};
    return rate_anneal(r->device, &r->load_ns, &job);
}

/* The first round begins with all plans of one copy; later ones with the best by load, by period, and the newest. */
static void choose_starts(batch *b, int32_t round)
{
    const rate_search *s = b->s;
    const rate_candidate *by_load = NULL, *by_period = NULL, *stages = NULL;
    for (int32_t i = 0; i < s->n_candidates; i++) {
        const rate_candidate *c = s->candidate[i];
        if (c->n_copies != 1)
            continue;
        if (round == 0 && b->n_starts < MOST_STARTS)
            b->start[b->n_starts++] = c;
        if (!strcmp(c->origin, "stages") && (!stages || c->load_ns < stages->load_ns))
            stages = c;
        by_load = !by_load || c->load_ns < by_load->load_ns ? c : by_load;
        by_period = rate_better(c, by_period) ? c : by_period;
    }
    if (round == 0)
        return;
    const rate_candidate *all[] = {by_load, by_period, round % 2 ? NULL : stages};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] && (b->n_starts == 0 || all[i] != b->start[b->n_starts - 1]))
            b->start[b->n_starts++] = all[i];
}

int rate_add_annealed(rate_search *x, double part, int32_t round)
{
    batch b = {.s = x, .part = part, .stop = x->stop};
    if (x->o->budget.time_limit_s > 0)
        b.stop = util_stop_within(&x->stop, ANNEAL_SHARE * util_stop_left_s(&x->stop));
    choose_starts(&b, round);
    int32_t n = b.n_starts * N_PRICES;
    int rc = util_pool_run(anneal_one, &b, n, x->o->budget.threads);
    for (int32_t i = 0; i < n; i++) {
        if (!rc && b.run[i].device && b.run[i].load_ns >= 0)
            rc = rate_search_add_devices(x, "annealed", b.run[i].device);
        free(b.run[i].device);
    }
    x->seed += (uint64_t)n;
    return rc;
}
