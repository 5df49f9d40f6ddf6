/* Plans of one copy: what annealing makes of several starts at several prices of sending. */
#include <stdlib.h>
#include <string.h>

#include "rate/anneal.h"
#include "rate/clusters.h"
#include "rate/search.h"
#include "util/pool.h"
#include "util/util.h"

#define MOST_STARTS 6
#define ANNEAL_SHARE 0.6  /* of the time left, at most, for a round of it */
#define TIME_USED 0.85    /* of that, by what a few steps took */
#define LEAST_CLUSTERS 20 /* or twice, four or eight times as many */
#define CLUSTER_SIZES 4
#define CLUSTER_HEAT 0.1
#define CLUSTER_COST 8.0 /* units that a move of one run or the other may have in the mean for the same time */
#define CLUSTER_LAST_HEAT 1e-3
#define AFTER_HEAT 3e-3 /* for the operators of clusters: less, or all would be lost again */

static const double send_price[] = {0, 0.003, 0.01, 0.03, 0.1};
#define N_PRICES ((int32_t)(sizeof send_price / sizeof *send_price))
#define FREE_PER_DEVICE \
    16 /* requests in flight, from which on sending has no price at first; one more for each half of them */
#define LATER_PRICES 2
#define KINDS \
    4 /* of runs: every other one begins with clusters, of units anywhere or of the same device; one is cool */
#define EASED KINDS /* added to it: that leaves room on ports */
#define FEWEST_RUNS 2
#define LEAST_LATER_PART \
    4.0                   /* of the usual steps, for a run after the first round: rather fewer runs than shorter ones */
#define FAR 1.2           /* of the bound: what is further decides by its transfers where to cut, */
#define RUGGED_PART 0.125 /* and many short runs find more of such plans than few long ones */
#define COOL_HEAT 0.7     /* of a unit's part of the value: what one move of many changes */
#define COOL_LAST 0.1     /* of that */
#define MANY_UNITS 700    /* more: no run has the usual heat */

typedef struct run {
    int32_t *device, kind;
    double price;
    int64_t load_ns;
    double steps, seconds; /* of a run that was not broken off */
} run;

typedef struct batch {
    const rate_search *s;
    const rate_candidate *start[MOST_STARTS];
    int32_t n_starts, n_runs, round;
    double price[LATER_PRICES]; /* of sending, after the first round */
    int32_t kind;               /* of the run that made the best so far; RATE_NO_KIND: none did */
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

/* The price of sending that suits the requests in flight: 0 with many of them. */
static int32_t first_price(const rate_search *s)
{
    int32_t first = 0;
    for (int64_t n = s->in_flight; n < (int64_t)FREE_PER_DEVICE * s->p->n_devices && first < N_PRICES - 1; n *= 2)
        first++;
    return first;
}

/* Every kind in turns: where there are few runs, the next round has the others. There, and where loads alone count, every other run is of the kind that has made the best so far. Every other one of
 * the rest leaves room on ports, and where few requests are in flight all of the first ones: they wait at a port that is nearly full. */
static int32_t kind_of(const batch *b, int32_t which)
{
    static const int32_t kinds[KINDS] = {2, 0, 1, 3};
    bool loads = rate_by_loads(b->s), known = b->kind != RATE_NO_KIND && (loads || b->n_runs < KINDS);
    if (known && which % 2)
        return b->kind;
    int32_t i = known ? which / 2 + b->round * ((b->n_runs + 1) / 2) : which + b->round * b->n_runs;
    bool few = first_price(b->s) > 0, eased = !loads && (few ? which / KINDS % 2 == 0 : which % 2);
    return kinds[i % KINDS] | (eased ? EASED : 0);
}

/* The first round goes through all prices of a start, and then to the next. Where loads alone count there is one price, and starts take turns. */
static int32_t start_of(const batch *b, int32_t which)
{
    bool by_price = b->round == 0 && !rate_by_loads(b->s);
    return by_price ? which / N_PRICES : (which + which / KINDS) % b->n_starts;
}

/* The prices of sending, what suits the requests in flight first: with few of them a plan that sends little waits less, and where there is time for few runs the others do not come. */
static double price_of(const rate_search *s, int32_t which)
{
    int32_t first = first_price(s);
    int32_t below = UTIL_MIN(first, N_PRICES - 1 - first); /* on both sides in turns as long as there are both */
    which %= N_PRICES;
    if (which <= 2 * below)
        return send_price[which % 2 ? first - (which + 1) / 2 : first + which / 2];
    return send_price[first == below ? which : N_PRICES - 1 - which];
}

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
    double begun = util_seconds();
    r->price = rate_by_loads(s) ? 0 : b->round == 0 ? price_of(s, which) : b->price[which / KINDS];
    memcpy(r->device, b->start[start_of(b, which)]->device[0], sizeof *r->device * (size_t)s->p->n_ops);
    rate_anneal_task job = {.v = &s->v,
                            .units = s->units,
                            .devices = s->all_devices,
                            .send_price = r->price,
                            .steps = rate_search_steps(s, b->part),
                            .seed = s->seed + (uint64_t)which,
                            .stop = b->stop};
    r->kind = kind_of(b, which);
    int32_t kind = r->kind % KINDS;
    set_heat(&job, b, kind, r->kind & EASED);
    int rc = kind % 2 && s->v.n_packets > 0 ? anneal_clusters(r, &job, kind == 3, b->rugged) : 0;
    rc = rc ? rc : rate_anneal(r->device, &r->load_ns, &job);
    if (!util_stopped(&b->stop)) {
        r->steps = (double)rate_search_steps(s, b->part);
        r->seconds = util_seconds() - begun;
    }
    return rc;
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
    const rate_candidate *best = rate_by_loads(s) ? by_load : by_period;
    b->kind = best ? best->kind : RATE_NO_KIND;
    b->price[0] = by_period ? by_period->send_price : 0;
    b->price[1] = price_of(s, round - 1);
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

/* How fast annealing is now: other processes come and go, and a run that is too long for its time is lost. */
static void learn_speed(rate_search *x, const batch *b)
{
    double steps = 0, seconds = 0;
    for (int32_t i = 0; i < b->n_runs; i++) {
        steps += b->run[i].steps;
        seconds += b->run[i].seconds;
    }
    if (x->steps_per_s > 0 && b->n_runs > 0)
        x->steps_per_s = seconds > 0 ? steps / seconds * rate_search_threads(x) : x->steps_per_s / 2;
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
    batch b = {.s = x, .round = round, .kind = RATE_NO_KIND, .stop = x->stop};
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
        if (x->n_candidates > before) {
            x->candidate[before]->send_price = b.run[i].price;
            x->candidate[before]->kind = b.run[i].kind;
        }
        free(b.run[i].device);
    }
    learn_speed(x, &b);
    x->seed += (uint64_t)b.n_runs;
    return rc;
}
