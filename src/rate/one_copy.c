/* Plans of one copy: stages, and what annealing makes of several starts at several prices of sending. */
#include <stdlib.h>
#include <string.h>

#include "rate/anneal.h"
#include "rate/clusters.h"
#include "rate/cuts.h"
#include "rate/search.h"
#include "rate/stages.h"
#include "util/pool.h"
#include "util/sort.h"
#include "util/util.h"

#define MOST_STARTS 6
#define LEAST_ORDERS 6 /* depth first; more of small problems, whose cuts take a millisecond */
#define MOST_ORDERS 64
#define ORDERED_OPS 100000 /* operators of all orders together, between these */
#define ANNEAL_SHARE 0.6   /* of the time left, at most, for a round of it */
#define TIME_USED 0.85     /* of that, by what a few steps took */
#define LEAST_CLUSTERS 20  /* or twice, four or eight times as many */
#define CLUSTER_SIZES 4
#define CLUSTER_HEAT 0.1
#define CLUSTER_COST 8.0 /* units that a move of one run or the other may have in the mean for the same time */
#define CLUSTER_LAST_HEAT 1e-3
#define AFTER_HEAT 3e-3 /* for the operators of clusters: less, or all would be lost again */

static const double send_price[] = {0, 0.003, 0.01, 0.03, 0.1};
#define N_PRICES ((int32_t)(sizeof send_price / sizeof *send_price))
#define LATER_PRICES 2
#define KINDS \
    4 /* of runs: every other one begins with clusters, of units anywhere or of the same device; one is cool */
#define FEWEST_RUNS 2
#define LEAST_LATER_PART \
    4.0                   /* of the usual steps, for a run after the first round: rather fewer runs than shorter ones */
#define FAR 1.2           /* of the bound: what is further decides by its transfers where to cut, */
#define RUGGED_PART 0.125 /* and many short runs find more of such plans than few long ones */
#define COOL_HEAT 0.7     /* of a unit's part of the value: what one move of many changes */
#define COOL_LAST 0.1     /* of that */
#define MANY_UNITS 700    /* more: no run has the usual heat */

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

static bool read_by_none(const moirai_problem *p, int32_t op)
{
    for (int32_t o = p->op_out_off[op]; o < p->op_out_off[op + 1]; o++)
        if (p->tensor_edge_off[p->op_out[o]] < p->tensor_edge_off[p->op_out[o] + 1])
            return false;
    return true;
}

/* Depth first from the results, the inputs of each operator from a random one on, or with seed 0 from the first: a branch is walked to its end before the next begins, and what reads nothing, such as weights that are operators, stands before its
 * reader instead of before everything. */
static int order_deep(int32_t *order, const moirai_problem *p, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    size_t V = (size_t)p->n_ops;
    int32_t n = 0, *stack = util_alloc(V, sizeof *stack), *seen = util_alloc(V, sizeof *seen),
            *turn = util_alloc(V, sizeof *turn);
    int rc = stack && seen && turn ? 0 : MOIRAI_EFAIL; /* seen: inputs that were looked at, and one more */
    for (int32_t z = 0; z < p->n_ops && !rc; z++) {
        int32_t depth = 0;
        if (!read_by_none(p, p->topo[z]))
            continue;
        stack[depth++] = p->topo[z];
        seen[p->topo[z]] = 1;
        while (depth > 0) {
            int32_t op = stack[depth - 1], n_in = p->op_in_off[op + 1] - p->op_in_off[op], at = seen[op]++ - 1;
            if (at == n_in) {
                order[n++] = op;
                depth--;
                continue;
            }
            turn[op] = at == 0 && seed ? (int32_t)util_rng_below(&rng, (uint32_t)n_in) : turn[op];
            int32_t from = p->tensor_producer[p->op_in[p->op_in_off[op] + (at + turn[op]) % n_in]];
            if (!seen[from]) {
                seen[from] = 1;
                stack[depth++] = from;
            }
        }
    }
    free(stack);
    free(seen);
    free(turn);
    return rc;
}

/* Cuts of an order, *load_ns -1 where there are none. */
static int cut_order(const rate_search *x, const int32_t *order, bool seats, int32_t *device, int64_t *load_ns)
{
    rate_cuts_task task = {.v = &x->v, .units = x->units, .order = order, .seats = seats, .stop = x->stop};
    bool found;
    *load_ns = -1;
    int rc = rate_cuts(device, &found, &task);
    if (rc || !found)
        return rc;
    rc = place_fit_assignment(x->p, x->units, x->p->device_memory_bytes, device); /* with weights that are shared */
    if (rc)
        return rc == MOIRAI_EINFEASIBLE ? 0 : rc;
    rate_candidate one = {.n_copies = 1, .device = &device};
    int64_t *load = util_alloc((size_t)x->v.n_resources, sizeof *load), all = 1;
    *load_ns = load ? rate_loads(load, &x->v, &one, &all, 1) : MOIRAI_EFAIL;
    free(load);
    return *load_ns < 0 ? MOIRAI_EFAIL : 0;
}

/* The better of the two, where groups are the rule. */
static int find_cuts(const rate_search *x, const int32_t *order, int32_t *device, int64_t *load_ns)
{
    int64_t seated_ns = -1;
    int rc = cut_order(x, order, false, device, load_ns);
    if (rc || 2 * x->units->n > x->p->n_ops)
        return rc;
    int32_t *seated = util_alloc((size_t)x->p->n_ops, sizeof *seated);
    rc = seated ? cut_order(x, order, true, seated, &seated_ns) : MOIRAI_EFAIL;
    if (!rc && seated_ns >= 0 && (*load_ns < 0 || seated_ns < *load_ns)) {
        memcpy(device, seated, sizeof *seated * (size_t)x->p->n_ops);
        *load_ns = seated_ns;
    }
    free(seated);
    return rc;
}

/* The best cuts of several orders depth first. */
static int add_deep(rate_search *x, int32_t *order, int32_t *device)
{
    size_t n = (size_t)x->p->n_ops;
    int64_t least = INT64_MAX, load;
    int32_t *best = util_alloc(n, sizeof *best);
    int rc = best ? 0 : MOIRAI_EFAIL;
    uint64_t n_orders = UTIL_MIN(UTIL_MAX(ORDERED_OPS / UTIL_MAX(n, 1), LEAST_ORDERS), MOST_ORDERS);
    for (uint64_t i = 0; i < n_orders && !rc && !util_stopped(&x->stop); i++) {
        rc = order_deep(order, x->p, i);
        rc = rc ? rc : find_cuts(x, order, device, &load);
        if (!rc && load >= 0 && load < least) {
            least = load;
            memcpy(best, device, sizeof *best * n);
        }
    }
    rc = rc || least == INT64_MAX ? rc : rate_search_add_devices(x, "stages", best);
    free(best);
    return rc;
}

static int add_stages(rate_search *x, const int32_t *order, int32_t *device)
{
    int64_t load = -1;
    rate_stages_task task = {.v = &x->v, .order = order, .devices = x->all_devices, .stop = x->stop};
    int rc = rate_stages(device, &load, &task);
    if (!rc && load >= 0)
        rc = rate_search_add_devices(x, "stages", device);
    rc = rc ? rc : find_cuts(x, order, device, &load);
    return rc || load < 0 ? rc : rate_search_add_devices(x, "stages", device);
}

int rate_add_stages(rate_search *x)
{
    size_t n = (size_t)x->p->n_ops;
    int32_t *order = util_alloc(n, sizeof *order), *device = util_alloc(n, sizeof *device);
    int rc = order && device ? add_stages(x, x->p->topo, device) : MOIRAI_EFAIL;
    rc = rc ? rc : order_of(order, x->p, x->latency);
    rc = rc ? rc : add_stages(x, order, device);
    rc = rc ? rc : add_deep(x, order, device);
    free(order);
    free(device);
    return rc;
}

/* ---- annealing ---- */

typedef struct run {
    int32_t *device;
    double price;
    int64_t load_ns;
} run;

typedef struct batch {
    const rate_search *s;
    const rate_candidate *start[MOST_STARTS];
    int32_t n_starts, n_runs, round;
    double price[LATER_PRICES]; /* of sending, after the first round */
    double part;
    bool rugged;    /* transfers decide: the best plan so far is far from the bound */
    util_stop stop; /* earlier than the search's: what comes of it must still be judged */
    run run[MOST_STARTS * N_PRICES];
} batch;

/* Clusters first, and their operators after that, at less heat. */
static int anneal_clusters(run *r, rate_anneal_task *job, bool as_they_are, bool rugged)
{
    const relax_view *v = job->v;
    place_units *clusters;
    const place_units *units = job->units;
    util_rng rng;
    util_rng_seed(&rng, job->seed);
    rate_cluster_task task = {.v = v,
                              .units = units,
                              .wanted = LEAST_CLUSTERS << util_rng_below(&rng, CLUSTER_SIZES),
                              .most_ns = (0.15 + 0.5 * util_rng_real(&rng)) * (double)moirai_bound_load(v->p),
                              .as_they_are = as_they_are,
                              .seed = job->seed};
    int64_t steps = job->steps;
    int rc = rate_cluster(&clusters, r->device, &task);
    if (rc || !clusters)
        return rc;
    double cheap =
        UTIL_MIN(CLUSTER_COST * clusters->n / UTIL_MAX(units->n, 1), 1); /* a move is that of all its operators */
    job->units = clusters;
    job->steps = (int64_t)((double)steps / 3 * cheap);
    job->heat = CLUSTER_HEAT;
    job->last_heat = CLUSTER_LAST_HEAT;
    rc = rate_anneal(r->device, &r->load_ns, job);
    job->units = units;
    job->steps = steps - steps / 3;
    job->heat = rugged ? AFTER_HEAT : UTIL_MIN(AFTER_HEAT, COOL_HEAT / UTIL_MAX(units->n, 1));
    job->last_heat = 0;
    job->seed += UINT64_C(1) << 40;
    place_units_free(clusters);
    return rc;
}

/* Heat that suits the size: in a network of thousands of operators a move changes little, and at the usual heat all that the start has is lost before it cools down. With the bound's
 * prices as weights the norm asks for what the bound does: loads that are equal, although a nanosecond of one device is worth two of another's. A stream does not fill ports as it fills
 * devices, so that `eased` runs leave room there. Where transfers decide, a move changes much in a network of any size, and the usual heat is right. */
static void set_heat(rate_anneal_task *job, const batch *b, int32_t kind, bool eased)
{
    const rate_search *s = b->s;
    double cool = COOL_HEAT / UTIL_MAX(s->units->n, 1);
    if (b->rugged && kind != 2)
        return;
    if (kind % 2 == 0 && s->weight) {
        job->heat = kind == 0 ? 2 * cool : cool;
        job->last_heat = COOL_LAST * cool;
        job->weight = eased ? s->eased : s->weight;
    } else if (s->units->n > MANY_UNITS) {
        job->heat = 2 * cool;
    }
}

static int anneal_one(void *data, int32_t which)
{
    static const int32_t kinds[KINDS] = {2, 0, 1, 3}; /* where there are few runs, the next round has the others */
    batch *b = data;
    const rate_search *s = b->s;
    run *r = &b->run[which];
    if (util_stopped(&b->stop))
        return 0;
    r->device = util_alloc((size_t)s->p->n_ops, sizeof *r->device);
    if (!r->device)
        return MOIRAI_EFAIL;
    int32_t start = b->round == 0 ? which / N_PRICES : (which + which / KINDS) % b->n_starts;
    r->price = rate_by_loads(s) ? 0 : b->round == 0 ? send_price[which % N_PRICES] : b->price[which / KINDS];
    memcpy(r->device, b->start[start]->device[0], sizeof *r->device * (size_t)s->p->n_ops);
    rate_anneal_task job = {.v = &s->v,
                            .units = s->units,
                            .devices = s->all_devices,
                            .send_price = r->price,
                            .steps = rate_search_steps(s, b->part),
                            .seed = s->seed + (uint64_t)which,
                            .stop = b->stop};
    int32_t kind = kinds[(which + b->round * b->n_runs) % KINDS];
    set_heat(&job, b, kind, !rate_by_loads(s) && which % 2);
    int rc = kind % 2 && s->v.n_packets > 0 ? anneal_clusters(r, &job, kind == 3, b->rugged) : 0;
    return rc ? rc : rate_anneal(r->device, &r->load_ns, &job);
}

/* Whether two other stages have less load: others than stages are to be begun with, too. */
static bool lesser_stages(const rate_search *s, int32_t which)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_candidates && !strcmp(s->candidate[which]->origin, "stages"); i++)
        n += !strcmp(s->candidate[i]->origin, "stages") && s->candidate[i]->load_ns < s->candidate[which]->load_ns;
    return n >= 2;
}

static int least_load_first(const void *a, const void *b)
{
    const rate_candidate *x = *(const rate_candidate *const *)a, *y = *(const rate_candidate *const *)b;
    return x->load_ns != y->load_ns ? (x->load_ns < y->load_ns ? -1 : 1) : strcmp(x->origin, y->origin);
}

/* The first round begins with all plans of one copy, at all prices: many short runs. Later ones begin with the best by load and by period, at the price that was best and at
 * one more, and are as long together: a run of a tenth of the steps ends several per cent above. */
static void choose_starts(batch *b, int32_t round)
{
    const rate_search *s = b->s;
    const rate_candidate *by_load = NULL, *by_period = NULL, *stages = NULL;
    for (int32_t i = 0; i < s->n_candidates; i++) {
        const rate_candidate *c = s->candidate[i];
        if (c->n_copies != 1)
            continue;
        if (round == 0 && b->n_starts < MOST_STARTS && !lesser_stages(s, i))
            b->start[b->n_starts++] = c;
        if (!strcmp(c->origin, "stages") && (!stages || c->load_ns < stages->load_ns))
            stages = c;
        by_load = !by_load || c->load_ns < by_load->load_ns ? c : by_load;
        by_period = rate_better(c, by_period) ? c : by_period;
    }
    if (round == 0) {
        qsort(b->start, (size_t)b->n_starts, sizeof *b->start, least_load_first);
        return;
    }
    const rate_candidate *all[] = {by_load, by_period, round % 2 ? NULL : stages};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] && (b->n_starts == 0 || all[i] != b->start[b->n_starts - 1]))
            b->start[b->n_starts++] = all[i];
    b->price[0] = by_period ? by_period->send_price : 0;
    b->price[1] = send_price[(round - 1) % N_PRICES];
}

/* Runs that end in the time that there is: one that is broken off has cooled down at no point. Where there is less time than `least_part` for each run, as with
 * thousands of operators, there are fewer of them. */
static void fit_time(batch *b, double seconds, double least_part)
{
    const rate_search *s = b->s;
    double most = seconds * s->steps_per_s / (double)UTIL_MAX(rate_search_steps(s, 1), 1),
           all = UTIL_MIN(b->part * b->n_runs, most);
    if (!(s->steps_per_s > 0) || b->n_runs == 0)
        return;
    if (all < least_part * b->n_runs)
        b->n_runs = UTIL_MIN(b->n_runs, UTIL_MAX(FEWEST_RUNS, (int32_t)(all / least_part)));
    b->part = all / b->n_runs;
}

static bool is_rugged(const batch *b)
{
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < b->n_starts; i++)
        least = UTIL_MIN(least, b->start[i]->load_ns);
    return (double)least > FAR * (double)b->s->bound_ns;
}

int rate_add_annealed(rate_search *x, double part, int32_t round)
{
    batch b = {.s = x, .round = round, .stop = x->stop};
    if (x->o->budget.time_limit_s > 0)
        b.stop = util_stop_within(&x->stop, ANNEAL_SHARE * util_stop_left_s(&x->stop));
    choose_starts(&b, round);
    b.rugged = is_rugged(&b);
    b.n_runs = round == 0 ? b.n_starts * N_PRICES : b.n_starts > 0 ? KINDS * LATER_PRICES : 0;
    b.part = round == 0 ? part : part * MOST_STARTS * N_PRICES / (KINDS * LATER_PRICES);
    fit_time(&b, TIME_USED * ANNEAL_SHARE * util_stop_left_s(&x->stop),
             (round == 0 ? 1 : LEAST_LATER_PART) * (b.rugged ? RUGGED_PART : 1));
    int rc = util_pool_run(anneal_one, &b, b.n_runs, x->o->budget.threads);
    for (int32_t i = 0; i < b.n_runs; i++) {
        int32_t before = x->n_candidates;
        if (!rc && b.run[i].device && b.run[i].load_ns >= 0)
            rc = rate_search_add_devices(x, "annealed", b.run[i].device);
        if (x->n_candidates > before)
            x->candidate[before]->send_price = b.run[i].price;
        free(b.run[i].device);
    }
    x->seed += (uint64_t)b.n_runs;
    return rc;
}
