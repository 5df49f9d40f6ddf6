/* The search for the best rate with N requests in flight.
 *
 * Bounds first: the relaxation of loads, ports and bytes (relax/cases.c, without heads and tails), and the bound of one request's latency, of which N take turns. Then plans,
 * each kind from what the kinds before have found: the latency plan; contiguous stages; the relaxation's balanced devices; annealing of all of these at several prices of
 * sending; copies on groups of devices; mixtures by shares. What a plan is worth only the simulator of the stream can say, with the number of
 * requests that was asked for; a plan whose largest load is above the best period need not be simulated. One request at a time, by the latency plan, is always
 * among the candidates.
 *
 * Under a time limit rounds of annealing, groups and mixtures follow each other with twice the steps each time, until the gap is closed or the time is over;
 * without, their number is fixed, and the same seed and effort give the same plan whatever the threads. */
#include "rate/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/schedule.h>

#include "rate/anneal.h"
#include "util/pool.h"
#include "util/util.h"

#define JUDGE_BATCH 8     /* simulated side by side, against the same best */
#define LONG_BATCH 2      /* the same, where a stream takes long: the first may rule out the others */
#define JUDGE_SHARE 0.3   /* of the time left, after which no further batch is begun */
#define FIRST_STEPS 30000 /* of annealing, and */
#define STEPS_PER_OP 100  /* more for every operator */
#define LEAST_PART 0.02   /* of these */
#define WORTH_A_LOOK 0.9  /* of the best period: a load that small is simulated even if the time is over */

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

/* ---- judging ---- */

typedef struct jury {
    rate_candidate *c[JUDGE_BATCH];
    rate_judge_task task;
} jury;

static int judge_one(void *data, int32_t i)
{
    jury *j = data;
    int rc = rate_judge(j->c[i], &j->task);
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* not simulated: not judged */
}

static void tell(const rate_search *x)
{
    const moirai_budget *b = &x->o->budget;
    moirai_progress news = {.seconds = util_seconds() - x->begun,
                            .letter = x->best->origin[0],
                            .makespan_ns = x->best->outcome.period_ns,
                            .lower_bound_ns = x->bound_ns,
                            .work = x->n_candidates,
                            .note = x->best->origin};
    if (b->progress)
        b->progress(b->progress_data, &news);
}

/* Not judged yet, and not worse by its load alone. */
static bool promising(const rate_search *x, const rate_candidate *c)
{
    bool known = !c->alone && (c->n_copies == 1 || c->slots[0] == 0);
    return !c->judged && !(known && x->best && c->load_ns >= x->best->outcome.period_ns);
}

static int by_load(const void *a, const void *b)
{
    const rate_candidate *x = *(rate_candidate *const *)a, *y = *(rate_candidate *const *)b;
    return x->load_ns != y->load_ns ? (x->load_ns < y->load_ns ? -1 : 1) : 0;
}

/* Those that may still be better, the least loads first: with many requests in flight the first of them rules out the others. */
static int list_promising(rate_candidate ***out, int32_t *n, const rate_search *x)
{
    *n = 0;
    *out = util_alloc((size_t)x->n_candidates, sizeof **out);
    if (!*out)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < x->n_candidates; i++)
        if (promising(x, x->candidate[i]))
            (*out)[(*n)++] = x->candidate[i];
    qsort(*out, (size_t)*n, sizeof **out, by_load);
    return 0;
}

int rate_search_judge(rate_search *x)
{
    jury j = {.task = {.v = &x->v,
                       .in_flight = x->in_flight,
                       .latency_limit_ns = x->o->latency_limit_ns > 0 ? x->o->latency_limit_ns : INT64_MAX,
                       .most_tasks = RATE_STREAM_TASKS,
                       .stop = x->stop}};
    rate_candidate **list;
    int32_t n_list, most = rate_stream_is_long(x->p, x->in_flight) ? LONG_BATCH : JUDGE_BATCH;
    util_stop share =
        x->o->budget.time_limit_s > 0 ? util_stop_within(&x->stop, JUDGE_SHARE * util_stop_left_s(&x->stop)) : x->stop;
    int rc = list_promising(&list, &n_list, x);
    for (int32_t at = 0; at < n_list && !rc;) {
        int32_t n = 0, batch = at == 0 ? 1 : most;
        for (; at < n_list && n < batch; at++)
            if (promising(x, list[at]))
                j.c[n++] = list[at];
        rc = util_pool_run(judge_one, &j, n, x->o->budget.threads);
        for (int32_t i = 0; i < n && !rc; i++)
            if (rate_better(j.c[i], x->best)) {
                x->best = j.c[i];
                tell(x);
            }
        if (x->best && util_stopped(&share))
            break;
    }
    free(list);
    return rc;
}

/* A stream that is simulated even if the time is over: it takes as long as the check of the plan that is handed out. */
static int judge_late(rate_search *x, rate_candidate *c)
{
    moirai_budget endless = x->o->budget;
    endless.time_limit_s = 0;
    rate_judge_task task = {.v = &x->v,
                            .in_flight = x->in_flight,
                            .latency_limit_ns = x->o->latency_limit_ns > 0 ? x->o->latency_limit_ns : INT64_MAX,
                            .most_tasks = RATE_STREAM_TASKS,
                            .stop = util_stop_of(&endless)};
    int rc = rate_judge(c, &task);
    if (rc == MOIRAI_ELIMIT)
        return 0;
    if (!rc && rate_better(c, x->best)) {
        x->best = c;
        tell(x);
    }
    return rc;
}

/* The time may be over before any plan of a round is simulated: then the one of the least load is, all the same, where it promises much more than the best has. */
static int judge_last(rate_search *x)
{
    rate_candidate *least = NULL;
    for (int32_t i = 0; i < x->n_candidates; i++) {
        rate_candidate *c = x->candidate[i];
        if (promising(x, c) && c->n_copies == 1 && !c->alone && (!least || c->load_ns < least->load_ns))
            least = c;
    }
    if (!least || !x->best || (double)least->load_ns > WORTH_A_LOOK * (double)x->best->outcome.period_ns)
        return 0;
    return judge_late(x, least);
}

/* The least load that keeps memory and latency in a stream. */
static int judge_by_loads(rate_search *x)
{
    int32_t n;
    rate_candidate **list;
    int rc = list_promising(&list, &n, x);
    if (rc)
        return rc;
    qsort(list, (size_t)n, sizeof *list, by_load);
    for (int32_t i = 0; i < n && !rc && !x->best; i++)
        rc = judge_late(x, list[i]);
    free(list);
    return rc;
}

static bool good_enough(const rate_search *x)
{
    return x->best &&
           (double)(x->best->outcome.period_ns - x->bound_ns) <= x->o->gap * (double)x->best->outcome.period_ns;
}

/* ---- bounds and first plans ---- */

#define LATENCY_SHARE 0.2 /* of the time for the plan of one request, where few of them take turns */
#define FEW_IN_FLIGHT 8
#define LATENCY_EFFORT 0.2
#define BOUND_SHARE 0.25
#define ONE_COPY_CASES 200
#define LEAST_WEIGHT 0.005 /* of what the bound has no price for */
#define EASE 300.0         /* of a port: at 0.84 of a load it counts as that of the dearest device (300^(1/32) = 1.2) */

static int find_latency(rate_search *x)
{
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget = util_stop_rest(&x->stop, &x->o->budget);
    if (x->o->budget.time_limit_s > 0)
        o.budget.time_limit_s =
            (x->in_flight <= FEW_IN_FLIGHT ? LATENCY_SHARE : LATENCY_SHARE / 2) * x->o->budget.time_limit_s;
    o.budget.effort = LATENCY_EFFORT * x->o->budget.effort;
    o.gap = x->o->gap;
    o.start = x->o->start;
    return moirai_place(&x->latency, x->p, moirai_placer_find("moirai") ? "moirai" : "heft", &o);
}

static int find_bound(rate_search *x)
{
    double effort = UTIL_MIN(x->o->budget.effort, 100);
    relax_task job = {.goal_ns = INT64_MAX / 4,
                      .cases = 1,
                      .rounds = 2 + (int32_t)(RATE_BOUND_ROUNDS * effort),
                      .rate = true,
                      .plans = true,
                      .threads = x->o->budget.threads,
                      .stop = x->stop};
    if (x->o->budget.time_limit_s > 0)
        job.stop = util_stop_within(&x->stop, BOUND_SHARE * x->o->budget.time_limit_s);
    int rc = relax_solve(&x->relaxed, x->p, &job);
    if (rc == MOIRAI_ELIMIT) { /* too many resources for its master */
        relax_answer_clear(&x->relaxed);
        rc = 0;
    }
    return rc;
}

/* Prices of the bound as weights. */
static int take_weights(rate_search *x)
{
    const relax_proof *proof = &x->relaxed.proof;
    int64_t most = 0;
    for (int32_t r = 0; proof->n_leaves > 0 && r < x->v.n_resources; r++)
        most = UTIL_MAX(most, proof->leaf[0].price[r]);
    if (most == 0)
        return 0;
    x->weight = util_alloc((size_t)x->v.n_resources, sizeof *x->weight);
    x->eased = util_alloc((size_t)x->v.n_resources, sizeof *x->eased);
    for (int32_t r = 0; x->weight && x->eased && r < x->v.n_resources; r++) {
        x->weight[r] = fmax((double)proof->leaf[0].price[r] / (double)most, LEAST_WEIGHT);
        x->eased[r] = r < x->v.K ? x->weight[r] : EASE;
    }
    return x->weight && x->eased ? 0 : MOIRAI_EFAIL;
}

/* What holds for plans of one copy alone: an operator on which many transfers hang is on one device then, which are cases. */
static int find_bound_of_one(rate_search *x)
{
    double effort = UTIL_MIN(x->o->budget.effort, 100);
    relax_answer answer = {0};
    relax_task job = {.goal_ns = INT64_MAX / 4,
                      .cases = ONE_COPY_CASES,
                      .rounds = 2 + (int32_t)(RATE_BOUND_ROUNDS / 2 * effort),
                      .rate = true,
                      .one_copy = true,
                      .threads = x->o->budget.threads,
                      .stop = x->stop};
    if (x->o->copies != 1 || x->v.n_packets == 0)
        return 0;
    if (x->o->budget.time_limit_s > 0)
        job.stop = util_stop_within(&x->stop, BOUND_SHARE / 2 * x->o->budget.time_limit_s);
    int rc = relax_solve(&answer, x->p, &job);
    x->one_copy_ns = rc ? 0 : answer.lower_ns;
    relax_answer_clear(&answer);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

/* The bound for the requests in flight of now. */
static void set_bound(rate_search *x)
{
    int64_t latency = UTIL_MAX(x->latency->lower_bound_ns, 0), turns = (latency + x->in_flight - 1) / x->in_flight;
    x->bound_ns = UTIL_MAX(UTIL_MAX(UTIL_MAX(x->relaxed.lower_ns, x->one_copy_ns), moirai_bound_load(x->p)), turns);
}

/* The relaxation knows nothing of groups and shared weights: its devices are mended. */
static int add_relaxed(rate_search *x)
{
    int32_t *device = util_alloc((size_t)x->p->n_ops, sizeof *device);
    int rc = device ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < x->relaxed.n_choices && !rc; i++) {
        for (int32_t op = 0; op < x->p->n_ops; op++)
            device[op] = x->relaxed.choice[i].device[op];
        for (int32_t op = 0; op < x->p->n_ops; op++) /* the first of a group decides, where all of it may go there */
            device[op] = device[x->units->op[x->units->off[x->units->of_op[op]]]];
        int fit = place_fit_assignment(x->p, x->units, x->p->device_memory_bytes, device);
        if (!fit)
            rc = rate_search_add_devices(x, "relaxed", device);
        else if (fit != MOIRAI_EINFEASIBLE)
            rc = fit;
    }
    free(device);
    return rc;
}

static int add_latency(rate_search *x, bool alone)
{
    rate_candidate *c;
    int rc = rate_candidate_of(&c, x->p, "latency", x->latency->op_device);
    if (rc)
        return rc;
    c->alone = alone;
    rc = moirai_plan_copy(&c->plan, x->latency);
    if (rc) {
        rate_candidate_free(c);
        return rc;
    }
    return rate_search_add(x, c);
}

int rate_search_open(rate_search *x)
{
    const moirai_problem *p = x->p;
    x->begun = util_seconds();
    x->stop = util_stop_of(&x->o->budget);
    x->seed = x->o->budget.seed * UINT64_C(0x9e3779b97f4a7c15);
    x->all_devices = p->n_devices == 64 ? UINT64_MAX : (UINT64_C(1) << p->n_devices) - 1;
    int rc = relax_view_open(&x->v, p, 100);
    rc = rc ? rc : moirai_problem_check_memory(p);
    rc = rc ? rc : place_units_new(&x->units, p);
    rc = rc ? rc : find_latency(x);
    rc = rc ? rc : find_bound(x);
    rc = rc ? rc : take_weights(x);
    rc = rc ? rc : find_bound_of_one(x);
    if (rc)
        return rc;
    set_bound(x);
    rc = add_latency(x, true);
    rc = rc ? rc : rate_search_judge(x);
    rc = rc ? rc : add_latency(x, false);
    rc = rc ? rc : x->in_flight > 1 ? rate_add_stages(x) : 0;
    rc = rc ? rc : x->in_flight > 1 ? add_relaxed(x) : 0;
    if (!rc && x->in_flight > 1 && x->o->copies != 1 && !x->o->kind)
        rc = relax_least_new(&x->columns.least, &x->v, x->units->of_op, x->units->n, &x->stop);
    return rc;
}

void rate_search_close(rate_search *x)
{
    for (int32_t i = 0; i < x->n_candidates; i++)
        rate_candidate_free(x->candidate[i]);
    free(x->candidate);
    rate_columns_clear(&x->columns);
    relax_least_free(x->columns.least);
    moirai_plan_free(x->latency);
    relax_answer_clear(&x->relaxed);
    free(x->weight);
    free(x->eased);
    place_units_free(x->units);
    relax_view_close(&x->v);
}

/* ---- rounds ---- */

#define ROUNDS 3 /* without a time limit */
#define ROUND_SHARE \
    0.15 /* of the time left, for the annealing of the first round: each has twice the steps of the one before */
#define MOST_PART 64.0
#define MIX_PART 4.0 /* at most, for mixtures of the first round: many plans do more for them than good ones */
#define TRIAL_STEPS 2000
#define RUNS 30         /* of a round, at most */
#define LAST_SHARE 0.03 /* of the time: no round is begun in it */

/* The part of the usual steps that the first round has time for. */
static int first_part(rate_search *x, double *part)
{
    *part = 1;
    double left = util_stop_left_s(&x->stop),
           threads = x->o->budget.threads > 0 ? x->o->budget.threads : util_own_cores();
    if (!(x->o->budget.time_limit_s > 0) || x->n_candidates < 2)
        return 0;
    const rate_candidate *c = x->candidate[x->n_candidates - 1];
    int32_t *device = util_alloc((size_t)x->p->n_ops, sizeof *device);
    int64_t load;
    if (!device)
        return MOIRAI_EFAIL;
    memcpy(device, c->device[0], sizeof *device * (size_t)x->p->n_ops);
    rate_anneal_task job = {
        .v = &x->v, .units = x->units, .devices = x->all_devices, .steps = TRIAL_STEPS, .seed = 1, .stop = x->stop};
    double begun = util_seconds();
    int rc = rate_anneal(device, &load, &job);
    x->steps_per_s = threads * TRIAL_STEPS / fmax(util_seconds() - begun, 1e-9);
    double seconds = (double)rate_search_steps(x, 1) * RUNS / x->steps_per_s;
    *part = fmin(fmax(ROUND_SHARE * left / fmax(seconds, 1e-9), LEAST_PART), MOST_PART);
    free(device);
    return rc;
}

/* Annealing alone, until the least load is near the bound. */
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
    return rc ? rc : judge_by_loads(x);
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

int rate_search_run(rate_search *x)
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
    return rc || !limited ? rc : judge_last(x);
}

int rate_search_again(rate_search *x, int32_t in_flight)
{
    x->in_flight = in_flight;
    x->best = NULL;
    set_bound(x);
    for (int32_t i = 0; i < x->n_candidates; i++)
        x->candidate[i]->judged = x->candidate[i]->fits = false;
    int rc = in_flight > 1 && x->o->copies != 1 ? rate_add_groups(x, LEAST_PART) : 0;
    return rc ? rc : rate_search_judge(x);
}
