/* Who is simulated, when, and with how many requests.
 *
 * A stream takes hundredths of a second where networks are small, and seconds where they have thousands of operators. So under a time limit it is foretold what one will take, by what a request
 * took in the streams before, and the search for plans ends earlier by that: the last stream is for the plan of least load. Where not even that fits, it has fewer requests in flight: N is what is
 * allowed. All streams are broken off at the limit, so that it holds however wrong the forecast was; a plan whose stream was broken off is not judged. One request at a time needs no stream, so there is always an answer. */
#include <stdlib.h>

#include "rate/search.h"
#include "util/pool.h"
#include "util/util.h"

#define JUDGE_BATCH 8     /* simulated side by side, against the same best */
#define LONG_BATCH 2      /* the same, where a stream takes long: the first may rule out the others */
#define JUDGE_SHARE 0.3   /* of the time left, after which no further batch is begun */
#define TIMING_SHARE 0.02 /* of the limit, for the beginning of a stream that says how long one takes */
#define MARGIN 1.2        /* of a forecast */
#define RESERVE_SHARE 0.5 /* of the limit, at most, for the last stream */
#define PACES 4           /* streams of the best at other paces, where it waits, */
#define PACES_SHARE 0.15  /* of the limit at most, for these */
#define MOST_PACED 4      /* plans that are tried at other paces */
#define USUAL_SENDS 0.5   /* transfers for every operator, before a plan is looked at */
#define FIRST_SHARE 0.15  /* of the time left, for the first stream of all */
#define FEW \
    4 /* requests of it, at least: forecasts are of streams that never come back to an earlier state, as short ones do */
#define LATE_SHARE 0.02 /* of the limit, that the search may end later */
#define TRIAL_SHARE 0.7 /* of the time left, for a stream of fewer requests where all do not fit: others follow */

typedef struct jury {
    rate_candidate *c[JUDGE_BATCH];
    rate_judge_task task;
} jury;

static bool limited(const rate_search *x)
{
    return x->o->budget.time_limit_s > 0;
}

/* ---- forecasts ---- */

/* What a stream of a plan with so many requests in flight takes; NULL: of any. */
static double stream_s(const rate_search *x, const rate_candidate *c, int32_t in_flight)
{
    double tasks = (1 + USUAL_SENDS) * x->p->n_ops;
    for (int32_t i = 0; c && i < c->n_copies; i++)
        tasks = UTIL_MAX(i ? tasks : 0, x->p->n_ops + (double)rate_count_sends(x->p, c->device[i]));
    return MARGIN * x->task_s * tasks * rate_stream_requests(x->p, in_flight);
}

/* As many requests in flight, halved as often as needed, as have a stream within these seconds. */
static int32_t fitting(const rate_search *x, const rate_candidate *c, double seconds)
{
    int32_t n = x->in_flight;
    while (n > 1 && stream_s(x, c, n) > seconds)
        n /= 2;
    return n;
}

/* Not from fewer in flight: their queues are shorter, and more of it is in the caches. */
static void learn(rate_search *x, const rate_candidate *c)
{
    if (c->outcome.task_s > 0 && c->tried >= x->timed_in_flight) {
        x->task_s = c->outcome.task_s;
        x->timed_in_flight = c->tried;
    }
}

void rate_search_reserve(rate_search *x)
{
    double limit = x->o->budget.time_limit_s;
    x->stop = x->end;
    if (!limited(x) || x->in_flight == 1)
        return;
    x->stop.deadline -= stream_s(x, NULL, fitting(x, NULL, RESERVE_SHARE * limit)) + LATE_SHARE * limit;
    if (x->best && x->best->in_flight > 1 && rate_waits(x->best))
        x->stop.deadline -= UTIL_MIN(PACES * stream_s(x, x->best, x->best->in_flight), PACES_SHARE * limit);
}

/* ---- judging ---- */

static rate_judge_task task_of(const rate_search *x, int32_t in_flight, const util_stop *stop)
{
    return (rate_judge_task){.v = &x->v,
                             .in_flight = in_flight,
                             .latency_limit_ns = x->o->latency_limit_ns > 0 ? x->o->latency_limit_ns : INT64_MAX,
                             .most_tasks = RATE_STREAM_TASKS,
                             .stop = *stop};
}

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

static int judge_all(rate_search *x, jury *j, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        j->c[i]->tried = UTIL_MAX(j->c[i]->tried, j->task.in_flight);
    int rc = util_pool_run(judge_one, j, n, x->o->budget.threads);
    for (int32_t i = 0; i < n && !rc; i++) {
        learn(x, j->c[i]);
        if (rate_better(j->c[i], x->best)) {
            x->best = j->c[i];
            tell(x);
        }
    }
    return rc;
}

static int judge(rate_search *x, rate_candidate *c, int32_t in_flight, const util_stop *stop)
{
    jury j = {.c = {c}, .task = task_of(x, in_flight, stop)};
    return judge_all(x, &j, 1);
}

int rate_search_time_streams(rate_search *x)
{
    rate_candidate *c;
    if (!limited(x) || x->in_flight == 1)
        return 0;
    int rc = rate_candidate_of(&c, x->p, "latency", x->latency->op_device);
    if (rc)
        return rc;
    util_stop soon = util_stop_within(&x->end, TIMING_SHARE * x->o->budget.time_limit_s);
    jury j = {.c = {c}, .task = task_of(x, x->in_flight, &soon)};
    rc = judge_one(&j, 0);
    c->tried = x->in_flight;
    learn(x, c);
    rate_candidate_free(c);
    rate_search_reserve(x);
    return rc;
}

/* Copies with slots have the loads that their stream gives them. */
static bool load_is_known(const rate_candidate *c)
{
    return !c->alone && (c->n_copies == 1 || c->slots[0] == 0);
}

/* Not judged yet, and not worse by its load alone. */
static bool promising(const rate_search *x, const rate_candidate *c)
{
    return !c->judged && !(load_is_known(c) && x->best && c->load_ns >= x->best->outcome.period_ns);
}

static int by_load(const void *a, const void *b)
{
    const rate_candidate *x = *(rate_candidate *const *)a, *y = *(rate_candidate *const *)b;
    if (x->alone != y->alone)
        return x->alone ? -1 : 1;
    return x->load_ns != y->load_ns ? (x->load_ns < y->load_ns ? -1 : 1) : 0;
}

/* Those that may still be better, the least loads first: with many requests in flight the first of them rules out the others. Before them what needs no stream. */
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
    jury j = {.task = task_of(x, x->in_flight, &x->end)};
    rate_candidate **list;
    int32_t n_list, most = rate_stream_is_long(x->p, x->in_flight) ? LONG_BATCH : JUDGE_BATCH;
    util_stop share = limited(x) ? util_stop_part(&x->end, JUDGE_SHARE) : x->end;
    int rc = list_promising(&list, &n_list, x);
    for (int32_t at = 0; at < n_list && !rc;) {
        int32_t n = 0, batch = at == 0 ? 1 : most;
        for (; at < n_list && n < batch; at++)
            if (promising(x, list[at]))
                j.c[n++] = list[at];
        bool late =
            util_stopped(&x->end) || (limited(x) && stream_s(x, j.c[0], x->in_flight) > util_stop_left_s(&x->end));
        if (n > 0 && !j.c[0]->alone && late)
            break;
        rc = judge_all(x, &j, n);
        if (x->best && util_stopped(&share))
            break;
    }
    free(list);
    rate_search_reserve(x);
    return rc;
}

/* ---- the last ones ---- */

/* Of those that wait, and have so little load that they need not, what has the shortest period; NULL: none. */
static rate_candidate *next_to_pace(const rate_search *x)
{
    rate_candidate *next = NULL;
    for (int32_t i = 0; i < x->n_candidates; i++) {
        rate_candidate *c = x->candidate[i];
        if (c->judged && c->fits && !c->paced && c->in_flight > 1 && rate_waits(c) &&
            (c == x->best || c->load_ns < x->best->outcome.period_ns) && rate_better(c, next))
            next = c;
    }
    return next;
}

/* Other paces for the best ones, as far as there is time. */
static int pace_best(rate_search *x)
{
    int rc = 0;
    rate_candidate *c;
    for (int32_t i = 0; i < MOST_PACED && x->best && !rc && (c = next_to_pace(x)); i++) {
        rate_judge_task task = task_of(x, c->in_flight, &x->end);
        int64_t before = x->best->outcome.period_ns;
        if (util_stopped(&x->end) || (limited(x) && stream_s(x, c, c->in_flight) > util_stop_left_s(&x->end)))
            break;
        c->paced = true;
        rc = rate_judge_paces(c, &task);
        x->best = rate_better(c, x->best) ? c : x->best;
        if (x->best->outcome.period_ns < before)
            tell(x);
    }
    return rc;
}

/* Of those that may be better than the best, what has the least load above that of `last`; NULL: the least of all. Mixtures need many requests: not before there is a plan for several. */
static rate_candidate *next_promising(const rate_search *x, const rate_candidate *last)
{
    rate_candidate *next = NULL;
    for (int32_t i = 0; i < x->n_candidates; i++) {
        rate_candidate *c = x->candidate[i];
        if (load_is_known(c) && (c->n_copies == 1 || (x->best && x->best->in_flight > 1)) &&
            (!last || c->load_ns > last->load_ns) && (!x->best || c->load_ns < x->best->outcome.period_ns) &&
            (!next || c->load_ns < next->load_ns))
            next = c;
    }
    return next;
}

/* With more requests than before: what was known of it stands, unless it is better so. */
static int judge_again(rate_search *x, rate_candidate *c, int32_t n)
{
    rate_candidate before = *c;
    bool was_best = c == x->best;
    c->judged = c->fits = c->paced = false;
    int rc = judge(x, c, n, &x->end);
    bool better = !rc && rate_better(c, &before);
    if (!rc && before.judged && !better) {
        before.plan = c->plan;
        before.tried = c->tried;
        *c = before;
    }
    if (better && was_best)
        tell(x);
    return rc;
}

/* With the fewest requests that a plan can have, whatever the time: one that goes alone needs no stream, copies that share nothing a short one each. */
static int judge_alone(rate_search *x, rate_candidate *c)
{
    return judge(x, c, c->slots[0] > 0 ? c->n_copies : 1, &(util_stop){0});
}

static int judge_at_any_rate(rate_search *x)
{
    rate_candidate **list;
    int32_t n;
    int rc = list_promising(&list, &n, x);
    for (int32_t i = 0; i < n && !rc && !x->best; i++)
        rc = judge_alone(x, list[i]);
    free(list);
    return rc;
}

/* How many requests the next stream has, of which so many seconds are left: all of them where they fit. Before there is any plan for several requests, a few, so that there is one, however long
 * others take. */
static int32_t trial(const rate_search *x, const rate_candidate *c, double left)
{
    if (!x->best || x->best->in_flight == 1)
        return UTIL_MIN(UTIL_MAX(fitting(x, c, FIRST_SHARE * left), FEW), x->in_flight);
    int32_t n = stream_s(x, c, x->in_flight) <= left ? x->in_flight : fitting(x, c, TRIAL_SHARE * left);
    return UTIL_MAX(n, UTIL_MIN(2 * c->tried, x->in_flight)); /* it has nothing to lose but its time */
}

/* The period of the least load that keeps memory and latency, and of no other: one with more load may wait less. */
static int judge_least_load(rate_search *x)
{
    int32_t n_list;
    rate_candidate **list;
    int rc = list_promising(&list, &n_list, x);
    for (int32_t i = 0; i < n_list && !rc && !x->best; i++) {
        rate_candidate *c = list[i];
        for (int32_t n = 0; !rc && !util_stopped(&x->end); rc = judge_again(x, c, n)) {
            n = trial(x, c, util_stop_left_s(&x->end));
            if (n <= c->tried)
                break;
        }
        if (!rc && !c->judged)
            rc = judge_alone(x, c);
    }
    free(list);
    return rc;
}

int rate_search_judge_last(rate_search *x)
{
    if (rate_by_loads(x))
        return judge_least_load(x);
    int rc = pace_best(x);
    for (bool more = limited(x); more && !rc && !util_stopped(&x->end);) {
        more = false;
        for (rate_candidate *c = NULL; !more && !rc && (c = next_promising(x, c));) {
            int32_t n = trial(x, c, util_stop_left_s(&x->end));
            more = n > 1 && n > c->tried;
            rc = more ? judge_again(x, c, n) : 0;
        }
    }
    rc = rc ? rc : pace_best(x);
    return rc || x->best ? rc : judge_at_any_rate(x);
}
