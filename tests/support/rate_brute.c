#include "support/rate_brute.h"

#include <stdio.h>
#include <string.h>

#include "rate/candidate.h"
#include "util/util.h"

#define MOST_OPS 16
#define MOST_DEVICES 16
#define MOST_LOADS (MOST_DEVICES * (MOST_DEVICES + 3))

typedef struct hunt {
    const moirai_problem *p;
    uint64_t seed;
    int64_t n_all, n_orders;
    char *why;
    rate_brute_counts *counts;
} hunt;

static int64_t bound(const moirai_problem *p, int32_t in_flight, int64_t latency_ns)
{
    moirai_budget budget;
    moirai_budget_init(&budget);
    budget.threads = 1;
    int64_t lower = -1;
    return moirai_rate_bound(&lower, p, in_flight, latency_ns, &budget) ? -1 : lower;
}

static bool fail(const hunt *h, const char *what, double found, int64_t lower)
{
    snprintf(h->why, 256, "%s of %.3f ns, proven %lld", what, found, (long long)lower);
    return false;
}

static bool allowed(const moirai_problem *p, const int32_t *device)
{
    int64_t need[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (!(p->op_devices[i] >> device[i] & 1))
            return false;
        for (int32_t j = 0; j < i && p->op_group[i] != MOIRAI_NONE; j++)
            if (p->op_group[j] == p->op_group[i] && device[j] != device[i])
                return false;
        need[device[i]] += p->op_memory_bytes[i];
    }
    moirai_problem_add_weights(p, device, need);
    for (int32_t k = 0; k < p->n_devices; k++)
        if (need[k] > p->device_memory_bytes[k])
            return false;
    return true;
}

/* Assignment number a. */
static bool assign(int32_t *device, const moirai_problem *p, int64_t a)
{
    for (int32_t i = 0; i < p->n_ops; i++, a /= p->n_devices)
        device[i] = (int32_t)(a % p->n_devices);
    return allowed(p, device);
}

/* ---- loads, counted here anew ---- */

static void add_loads(double *load, const moirai_problem *p, const int32_t *device, double share)
{
    int32_t K = p->n_devices;
    for (int32_t i = 0; i < p->n_ops; i++)
        load[device[i]] += share * (double)moirai_op_ns(p, i, device[i]);
    for (int32_t e = 0; e < p->n_edges && p->congestion != MOIRAI_CONGESTION_NONE; e++) {
        int32_t t = p->edge_tensor[e], k = device[p->tensor_producer[t]], l = device[p->edge_reader[e]];
        bool again = k == l;
        for (int32_t f = p->tensor_edge_off[t]; f < e && p->flow == MOIRAI_FLOW_TENSOR; f++)
            again |= device[p->edge_reader[f]] == l;
        double ns = again ? 0 : share * (double)moirai_transfer_ns(p, t, k, l);
        bool held = p->congestion == MOIRAI_CONGESTION_DEVICE, port = p->congestion == MOIRAI_CONGESTION_PORT;
        load[held ? k : port ? K + k : K + k * K + l] += ns;
        if (held || port)
            load[held ? l : 2 * K + l] += ns;
    }
}

static double largest(const double *load, const moirai_problem *p)
{
    double most = 0;
    for (int32_t r = 0; r < p->n_devices * (p->n_devices + 3); r++)
        most = UTIL_MAX(most, load[r]);
    return most;
}

/* Each assignment, and its mixture with the one before it. */
static bool check_loads(hunt *h, bool *any)
{
    const moirai_problem *p = h->p;
    int32_t device[MOST_OPS], before[MOST_OPS];
    int64_t lower = bound(p, 1024, 0);
    for (int64_t a = 0; a < h->n_all; a++) {
        double load[MOST_LOADS] = {0}, mixed[MOST_LOADS] = {0}, share = (double)(1 + a % 7) / 8;
        if (!assign(device, p, a))
            continue;
        add_loads(load, p, device, 1);
        if (largest(load, p) < (double)lower - 1e-6)
            return fail(h, "a load", largest(load, p), lower);
        if (*any) {
            add_loads(mixed, p, device, share);
            add_loads(mixed, p, before, 1 - share);
            if (largest(mixed, p) <= (double)lower - 1)
                return fail(h, "a mixture", largest(mixed, p), lower);
            h->counts->mixtures++;
        }
        memcpy(before, device, sizeof before);
        *any = true;
        h->counts->assignments++;
    }
    h->counts->raised += *any && lower > moirai_bound_load(p);
    return true;
}

/* ---- streams ---- */

/* Priorities of order number `which`, by its digits in mixed radix. */
static void priorities(int64_t *priority, int32_t n, int64_t which)
{
    int32_t left[MOST_OPS];
    for (int32_t i = 0; i < n; i++)
        left[i] = i;
    for (int32_t i = n; i > 0; which /= i, i--) {
        int32_t at = (int32_t)(which % i);
        priority[left[at]] = i;
        left[at] = left[i - 1];
    }
}

/* With n requests in flight, in the long run; -1: out of memory. */
static int64_t period(const moirai_problem *p, const int32_t *device, const int64_t *priority, int32_t n)
{
    relax_view v = {0};
    rate_candidate *c = NULL;
    moirai_sim *sim = NULL;
    int64_t found = -1;
    int rc = relax_view_open(&v, p, 100);
    rc = rc ? rc : rate_candidate_of(&c, p, "test", device);
    rc = rc ? rc : moirai_sim_new(&sim, p);
    if (!rc && moirai_sim_dispatch(sim, device, priority) >= 0)
        rc = moirai_sim_plan(&c->plan, sim);
    rate_judge_task task = {.v = &v, .in_flight = n, .latency_limit_ns = INT64_MAX, .most_tasks = 20000};
    if (!rc && !rate_judge_as_is(c, &task))
        found = c->outcome.period_ns;
    moirai_sim_free(sim);
    rate_candidate_free(c);
    relax_view_close(&v);
    return found;
}

static bool check_streams(hunt *h, int64_t most)
{
    const moirai_problem *p = h->p;
    int32_t device[MOST_OPS], in_flight = 1 + (int32_t)(h->seed % 5);
    int64_t priority[MOST_OPS], all = h->n_all * h->n_orders, least = INT64_MAX;
    int64_t lower = bound(p, in_flight, moirai_bound_critical_path(p));
    util_rng rng;
    util_rng_seed(&rng, h->seed);
    for (int64_t i = 0; i < UTIL_MIN(all, most); i++) {
        int64_t which = all <= most ? i : (int64_t)util_rng_below(&rng, (uint32_t)all);
        if (!assign(device, p, which % h->n_all))
            continue;
        priorities(priority, p->n_ops, which / h->n_all);
        int64_t found = period(p, device, priority, in_flight);
        if (found < 0)
            return fail(h, "no memory: a period", -1, lower);
        if (found < lower)
            return fail(h, "a period", (double)found, lower);
        least = UTIL_MIN(least, found);
        h->counts->streams++;
    }
    h->counts->met += least == lower;
    return true;
}

bool rate_brute_check(const moirai_problem *p, uint64_t seed, int64_t most_assignments, int64_t most_streams,
                      rate_brute_counts *counts, char why[256])
{
    hunt h = {.p = p, .seed = seed, .n_all = 1, .n_orders = 1, .why = why, .counts = counts};
    bool any = false;
    for (int32_t i = 0; i < p->n_ops && h.n_all <= most_assignments; i++) {
        h.n_all *= p->n_devices;
        h.n_orders *= i + 1;
    }
    if (h.n_all > most_assignments || p->n_ops > 12 || p->n_devices > MOST_DEVICES)
        return true;
    if (!check_loads(&h, &any) || (any && !check_streams(&h, most_streams)))
        return false;
    counts->problems += any;
    return true;
}
