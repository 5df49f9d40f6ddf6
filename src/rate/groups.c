/* Replicas: devices fall into groups, and each group has a copy of the network of its own.
 *
 * Copies of different groups share nothing, so their rates add up. The simplest is a copy per device, which sends nothing at all. Where the weights do not fit one
 * device, or a device is of little use for some operators, groups of several devices do better. Beginning with single devices, the two groups whose union adds
 * most to the rate are joined, until one group is left; every partition on the way is a candidate.
 *
 * Requests in flight are slots that groups share out. With n slots a group has a rate of at most n / L, L being the latency of one request, and at most 1 / load: slots
 * go one by one to where that gains most, which for such concave rates is the best. What is left over goes to groups of several devices, since a pipeline needs
 * more than L / load. The simulator judges the whole. */
#include <stdlib.h>
#include <string.h>

#include <moirai/schedule.h>

#include "rate/anneal.h"
#include "rate/search.h"
#include "rate/stages.h"
#include "util/pool.h"
#include "util/util.h"

#define MOST_DEVICES 12 /* that are joined pair by pair; beyond, single devices alone */

typedef struct group {
    uint64_t devices;
    int32_t *device;    /* of its copy; NULL: none fits */
    int64_t load_ns;    /* the largest */
    int64_t latency_ns; /* of one request */
} group;

typedef struct groups {
    rate_search *s;
    double part;
    group now[MOIRAI_MASK_DEVICES];
    int32_t n;
    group *joined; /* [a * n + b], a < b: what joining a and b would give */
    int32_t round;
} groups;

/* ---- one group ---- */

static int make_group(group *g, const rate_search *s, double part, uint64_t seed)
{
    int64_t load = -1;
    int32_t *device = util_alloc((size_t)s->p->n_ops, sizeof *device);
    moirai_sim *sim = NULL;
    rate_stages_task stages = {.v = &s->v, .order = s->p->topo, .devices = g->devices, .stop = s->stop};
    int rc = device ? rate_stages(device, &load, &stages) : MOIRAI_EFAIL;
    if (!rc && load >= 0 && !relax_single(g->devices)) {
        rate_anneal_task job = {.v = &s->v,
                                .units = s->units,
                                .devices = g->devices,
                                .send_price = 0.01,
                                .steps = rate_search_steps(s, part),
                                .seed = seed,
                                .stop = s->stop};
        rc = rate_anneal(device, &load, &job);
    }
    if (!rc && load >= 0) {
        rc = moirai_sim_new(&sim, s->p);
        g->latency_ns = rc ? 0 : moirai_sim_dispatch(sim, device, NULL);
        moirai_sim_free(sim);
        g->load_ns = load;
    }
    if (!rc && load >= 0 && g->latency_ns >= 0)
        g->device = device;
    else
        free(device);
    return rc;
}

/* ---- slots ---- */

static double rate_of(const group *g, int32_t slots)
{
    if (!g->device || slots == 0)
        return 0;
    double by_latency = (double)UTIL_MAX(g->latency_ns, 1) / slots, load = (double)UTIL_MAX(g->load_ns, 1);
    return 1 / UTIL_MAX(by_latency, load);
}

/* Returns the rate of all. */
static double share_slots(int32_t *slots, const group *g, int32_t n, int32_t in_flight)
{
    double sum = 0;
    int32_t left = in_flight;
    memset(slots, 0, sizeof *slots * (size_t)n);
    for (; left > 0; left--) {
        int32_t best = MOIRAI_NONE;
        double most = 0;
        for (int32_t i = 0; i < n; i++) {
            double gain = rate_of(&g[i], slots[i] + 1) - rate_of(&g[i], slots[i]);
            if (gain > most) {
                most = gain;
                best = i;
            }
        }
        if (best == MOIRAI_NONE)
            break;
        slots[best]++;
    }
    for (int32_t i = 0; i < n; i++)
        sum += rate_of(&g[i], slots[i]);
    bool any = true;
    while (left > 0 && any) {
        any = false;
        for (int32_t i = 0; i < n && left > 0; i++)
            if (slots[i] > 0 && !relax_single(g[i].devices)) {
                slots[i]++;
                left--;
                any = true;
            }
    }
    return sum;
}

static int add_candidate(groups *x)
{
    int32_t slots[MOIRAI_MASK_DEVICES], used = 0, at = 0;
    share_slots(slots, x->now, x->n, x->s->in_flight);
    for (int32_t i = 0; i < x->n; i++)
        used += slots[i] > 0;
    if (used < 2) /* one copy: others make these */
        return 0;
    rate_candidate *c;
    int rc = rate_candidate_new(&c, x->s->p, x->n == x->s->v.K ? "replicas" : "groups", used);
    for (int32_t i = 0; i < x->n && !rc; i++)
        if (slots[i] > 0) {
            memcpy(c->device[at], x->now[i].device, sizeof **c->device * (size_t)x->s->p->n_ops);
            c->slots[at++] = slots[i];
        }
    return rc ? rc : rate_search_add(x->s, c);
}

/* ---- joining ---- */

static int make_single(void *data, int32_t i)
{
    groups *x = data;
    return make_group(&x->now[i], x->s, x->part, x->s->seed + (uint64_t)i);
}

static int make_joined(void *data, int32_t which)
{
    groups *x = data;
    group *g = &x->joined[which];
    if (!g->devices || g->device || util_stopped(&x->s->stop))
        return 0;
    return make_group(g, x->s, x->part, x->s->seed + (uint64_t)(x->round * 4096 + which));
}

static void clear_joined(groups *x)
{
    for (int32_t i = 0; x->joined && i < x->n * x->n; i++)
        free(x->joined[i].device);
    free(x->joined);
    x->joined = NULL;
}

/* The rate of all groups with a and b joined. */
static double rate_joined(const groups *x, int32_t a, int32_t b)
{
    group g[MOIRAI_MASK_DEVICES];
    int32_t slots[MOIRAI_MASK_DEVICES], n = 0;
    for (int32_t i = 0; i < x->n; i++)
        if (i != a && i != b)
            g[n++] = x->now[i];
    g[n++] = x->joined[a * x->n + b];
    return share_slots(slots, g, n, x->s->in_flight);
}

/* Joins the two that gain most. */
static int join(groups *x)
{
    int32_t best_a = MOIRAI_NONE, best_b = 0;
    double most = -1;
    x->joined = util_alloc((size_t)(x->n * x->n), sizeof *x->joined);
    if (!x->joined)
        return MOIRAI_EFAIL;
    for (int32_t a = 0; a < x->n; a++)
        for (int32_t b = a + 1; b < x->n; b++)
            x->joined[a * x->n + b].devices = x->now[a].devices | x->now[b].devices;
    int rc = util_pool_run(make_joined, x, x->n * x->n, x->s->o->budget.threads);
    for (int32_t a = 0; a < x->n && !rc; a++)
        for (int32_t b = a + 1; b < x->n; b++) {
            double rate = rate_joined(x, a, b);
            if (rate > most) {
                most = rate;
                best_a = a;
                best_b = b;
            }
        }
    if (!rc) {
        group *won = &x->joined[best_a * x->n + best_b];
        group g = *won;
        won->device = NULL;
        clear_joined(x);
        free(x->now[best_a].device);
        free(x->now[best_b].device);
        x->now[best_a] = g;
        x->now[best_b] = x->now[--x->n];
    }
    return rc;
}

int rate_add_groups(rate_search *s, double part)
{
    groups x = {.s = s, .part = part, .n = s->v.K};
    for (int32_t k = 0; k < x.n; k++)
        x.now[k].devices = UINT64_C(1) << k;
    int rc = util_pool_run(make_single, &x, x.n, s->o->budget.threads);
    rc = rc ? rc : add_candidate(&x);
    while (!rc && !s->o->kind && x.n > 2 && s->v.K <= MOST_DEVICES && !util_stopped(&s->stop)) {
        rc = join(&x);
        rc = rc ? rc : add_candidate(&x);
        x.round++;
    }
    clear_joined(&x);
    for (int32_t i = 0; i < x.n; i++)
        free(x.now[i].device);
    s->seed += 1 << 20;
    return rc;
}
