/* The search for the best rate with N requests in flight.
 *
 * Bounds first (bounds.c). Then plans, each kind from what the kinds before have found: the latency plan; contiguous stages; the relaxation's balanced devices; annealing of all of these at several prices of
 * sending; copies on groups of devices; mixtures by shares. What a plan is worth only the simulator of the stream can say, with the number of
 * requests that was asked for; a plan whose largest load is above the best period need not be simulated. One request at a time, by the latency plan, is always
 * among the candidates.
 *
 * Under a time limit rounds of annealing, groups and mixtures follow each other with twice the steps each time, until the gap is closed or the time is over;
 * without, their number is fixed, and the same seed and effort give the same plan whatever the threads. */
#include "rate/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rate/anneal.h"
#include "util/util.h"

#define FIRST_STEPS 30000 /* of annealing, and */
#define STEPS_PER_OP 100  /* more for every operator */
#define LEAST_PART 0.02   /* of these */

bool rate_by_loads(const rate_search *x)
{
    return x->o->kind && !strcmp(x->o->kind, "loads");
}

int rate_search_add(rate_search *x, rate_candidate *c)
{
    size_t bytes = sizeof **c->device * (size_t)x->p->n_ops;
    bool wanted = !x->o->kind || (!c->alone && (rate_by_loads(x) ? c->n_copies == 1 : !strcmp(x->o->kind, c->origin)));
    if (!wanted || (x->o->copies > 0 && c->n_copies > x->o->copies)) {
        rate_candidate_free(c);
        return 0;
    }
    for (int32_t i = 0; i < x->n_candidates; i++) {
        const rate_candidate *d = x->candidate[i];
        bool same = d->n_copies == c->n_copies && !d->alone &&
                    !memcmp(d->slots, c->slots, sizeof *c->slots * (size_t)c->n_copies) &&
                    !memcmp(d->share, c->share, sizeof *c->share * (size_t)c->n_copies);
        for (int32_t j = 0; j < c->n_copies && same; j++)
            same = !memcmp(d->device[j], c->device[j], bytes);
        if (same) {
            rate_candidate_free(c);
            return 0;
        }
    }
    if (util_grow(&x->candidate, &x->capacity, (size_t)x->n_candidates + 1, sizeof *x->candidate)) {
        rate_candidate_free(c);
        return MOIRAI_EFAIL;
    }
    x->candidate[x->n_candidates++] = c;
    if (c->n_copies > 1 && c->slots[0] > 0)
        return 0;
    int64_t *load = util_alloc((size_t)x->v.n_resources, sizeof *load), one = 1, all = 0;
    for (int32_t i = 0; i < c->n_copies; i++)
        all += c->n_copies > 1 ? c->share[i] : one;
    c->load_ns = load ? rate_loads(load, &x->v, c, c->n_copies > 1 ? c->share : &one, all) : MOIRAI_EFAIL;
    free(load);
    return c->load_ns < 0 ? MOIRAI_EFAIL : 0;
}

int rate_search_add_devices(rate_search *x, const char *origin, const int32_t *device)
{
    rate_candidate *c;
    int rc = rate_candidate_of(&c, x->p, origin, device);
    return rc ? rc : rate_search_add(x, c);
}

int64_t rate_search_steps(const rate_search *x, double part)
{
    double steps = part * x->o->budget.effort * (FIRST_STEPS + (double)STEPS_PER_OP * x->p->n_ops);
    return (int64_t)UTIL_MIN(steps, 1e12);
}

double rate_search_threads(const rate_search *x)
{
    return x->o->budget.threads > 0 ? x->o->budget.threads : util_own_cores();
}

void rate_search_close(rate_search *x)
{
    for (int32_t i = 0; i < x->n_candidates; i++)
        rate_candidate_free(x->candidate[i]);
    free(x->candidate);
    rate_columns_clear(&x->columns);
    rate_least_free(x->columns.least);
    moirai_plan_free(x->latency);
    relax_answer_clear(&x->relaxed);
    free(x->weight);
    free(x->eased);
    place_units_free(x->units);
    relax_view_close(&x->v);
}

static bool good_enough(const rate_search *x)
{
    return x->best &&
           (double)(x->best->outcome.period_ns - x->bound_ns) <= x->o->gap * (double)x->best->outcome.period_ns;
}

/* ---- rounds ---- */

#define ROUNDS 3 /* without a time limit */
#define ROUND_SHARE \
    0.15 /* of the time left, for the annealing of the first round: each has twice the steps of the one before */
#define MOST_PART 64.0
#define MIX_PART 4.0     /* at most, for mixtures of the first round: many plans do more for them than good ones */
#define TRIAL_STEPS 2000 /* at first, and twice as many */
#define MOST_TRIAL_STEPS (TRIAL_STEPS << 12)
#define TRIAL_SHARE 0.0025 /* until they take this part of the time: what other processes take is in it, too */
#define RUNS 30            /* of a round, at most */
#define LAST_SHARE 0.03    /* of the time: no round is begun in it */

/* The part of the usual steps that the first round has time for. */
static int first_part(rate_search *x, double *part)
{
    *part = 1;
    double left = util_stop_left_s(&x->stop);
    if (!(x->o->budget.time_limit_s > 0) || x->n_candidates < 2)
        return 0;
    const rate_candidate *c = x->candidate[x->n_candidates - 1];
    int32_t *device = util_alloc((size_t)x->p->n_ops, sizeof *device);
    int64_t load;
    if (!device)
        return MOIRAI_EFAIL;
    int rc = 0;
    double taken;
    int64_t steps = TRIAL_STEPS;
    do {
        memcpy(device, c->device[0], sizeof *device * (size_t)x->p->n_ops);
        rate_anneal_task job = {
            .v = &x->v, .units = x->units, .devices = x->all_devices, .steps = steps, .seed = 1, .stop = x->stop};
        double begun = util_seconds();
        rc = rate_anneal(device, &load, &job);
        taken = util_seconds() - begun;
        x->steps_per_s = rate_search_threads(x) * (double)steps / fmax(taken, 1e-9);
        steps *= 2;
    } while (!rc && taken < TRIAL_SHARE * x->o->budget.time_limit_s && steps <= MOST_TRIAL_STEPS &&
             !util_stopped(&x->stop));
    double seconds = (double)rate_search_steps(x, 1) * RUNS / x->steps_per_s;
    *part = fmin(fmax(ROUND_SHARE * left / fmax(seconds, 1e-9), LEAST_PART), MOST_PART);
    free(device);
    return rc;
}

/* Annealing alone, until the least load is near the bound: nothing is simulated. */
static int run_by_loads(rate_search *x, double part)
{
    const moirai_budget *b = &x->o->budget;
    bool limited = b->time_limit_s > 0, near = false;
    int rc = 0;
    for (int32_t round = 0; !rc && !near && (limited || round < ROUNDS); round++, part *= 2) {
        if (util_stopped(&x->stop) || (limited && util_stop_left_s(&x->stop) < LAST_SHARE * b->time_limit_s))
            break;
        rc = rate_add_annealed(x, part, round);
        for (int32_t i = 0; i < x->n_candidates && !near; i++)
            near = (double)(x->candidate[i]->load_ns - x->bound_ns) <= x->o->gap * (double)x->candidate[i]->load_ns;
    }
    return rc;
}

/* Groups and plans of one copy. */
static int add_others(rate_search *x, double part, int32_t round)
{
    int rc = 0;
    if (x->o->copies != 1) {
        rc = rate_add_groups(x, part / 2);
        rc = rc ? rc : rate_search_judge(x);
    }
    rc = rc ? rc : rate_add_annealed(x, part, round);
    rc = rc ? rc : rate_search_judge(x);
    rc = rc ? rc : rate_add_polished(x, UTIL_MIN(part, (double)(1 << UTIL_MIN(round, 20))));
    return rc ? rc : rate_search_judge(x);
}

static int search(rate_search *x)
{
    double part = 1;
    bool limited = x->o->budget.time_limit_s > 0;
    if (x->o->kind && !strcmp(x->o->kind, "replicas")) {
        int rc = rate_add_groups(x, LEAST_PART);
        return rc ? rc : rate_search_judge(x);
    }
    if (x->in_flight == 1 || x->p->n_ops == 0 || (x->o->kind && !rate_by_loads(x)))
        return rate_search_judge(x);
    int rc = first_part(x, &part);
    if (!rc && rate_by_loads(x))
        return run_by_loads(x, part);
    bool late = limited && rate_stream_is_long(x->p, x->in_flight); /* what annealing begins with will be ruled out */
    if (!rc && x->columns.least)                                    /* nothing that comes later makes them better */
        rc = rate_add_mixtures(x, part);
    for (int32_t round = 0; !rc && (limited || round < ROUNDS); round++, part *= 2) {
        rc = late && round == 0 && !x->columns.least ? 0 : rate_search_judge(x);
        if (rc || good_enough(x) || util_stopped(&x->stop) ||
            (limited && util_stop_left_s(&x->stop) < LAST_SHARE * x->o->budget.time_limit_s))
            break;
        if (x->columns.least || !(round % 2 && x->best && !strcmp(x->best->origin, "mixture"))) /* these go on */
            rc = add_others(x, part, round);
        rc = rc || x->o->copies == 1 || x->columns.least
                 ? rc
                 : rate_add_mixtures(x, UTIL_MIN(part, MIX_PART * (1 << UTIL_MIN(round, 20))));
        rc = rc ? rc : rate_search_judge(x);
    }
    return rc;
}

int rate_search_run(rate_search *x)
{
    int rc = search(x);
    return rc ? rc : rate_search_judge_last(x);
}

int rate_search_again(rate_search *x, int32_t in_flight)
{
    x->in_flight = in_flight;
    x->timed_in_flight = UTIL_MIN(x->timed_in_flight, in_flight);
    x->best = NULL;
    rate_set_bound(x);
    rate_search_reserve(x);
    for (int32_t i = 0; i < x->n_candidates; i++) {
        x->candidate[i]->judged = x->candidate[i]->fits = x->candidate[i]->paced = false;
        x->candidate[i]->tried = 0;
    }
    int rc = in_flight > 1 && x->o->copies != 1 ? rate_add_groups(x, LEAST_PART) : 0;
    rc = rc || rate_by_loads(x) ? rc : rate_search_judge(x);
    return rc ? rc : rate_search_judge_last(x);
}
