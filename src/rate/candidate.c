/* Candidates: loads, bytes, and the judgement of the simulator.
 *
 * No period is shorter than the largest load, but few plans reach theirs with few requests in flight: what decides is the stream (stream.c), with the
 * number of requests that was asked for. Where so many do not fit the memory, or take longer than the limit of latency, fewer are tried: "at most N in flight"
 * allows that. One request at a time needs no dispatcher, it is the plan itself: its period is the makespan. */
#include "rate/candidate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/schedule.h>

#include "util/util.h"

int rate_candidate_new(rate_candidate **out, const moirai_problem *p, const char *origin, int32_t n_copies)
{
    rate_candidate *c = *out = util_alloc(1, sizeof *c);
    size_t n = (size_t)n_copies;
    if (!c)
        return MOIRAI_EFAIL;
    c->origin = origin;
    c->kind = RATE_NO_KIND;
    c->device = util_alloc(n, sizeof *c->device);
    c->share = util_alloc(n, sizeof *c->share);
    c->slots = util_alloc(n, sizeof *c->slots);
    bool ok = c->device && c->share && c->slots;
    for (int32_t i = 0; ok && i < n_copies; i++) {
        c->device[c->n_copies++] = util_alloc((size_t)p->n_ops, sizeof **c->device);
        c->share[i] = 1;
        ok = c->device[i] != NULL;
    }
    if (ok)
        return 0;
    rate_candidate_free(c);
    *out = NULL;
    return MOIRAI_EFAIL;
}

int rate_candidate_of(rate_candidate **out, const moirai_problem *p, const char *origin, const int32_t *device)
{
    int rc = rate_candidate_new(out, p, origin, 1);
    if (!rc && p->n_ops > 0)
        memcpy((*out)->device[0], device, sizeof *device * (size_t)p->n_ops);
    return rc;
}

void rate_candidate_free(rate_candidate *c)
{
    if (!c)
        return;
    for (int32_t i = 0; c->device && i < c->n_copies; i++)
        free(c->device[i]);
    free(c->device);
    free(c->share);
    free(c->slots);
    moirai_plan_free(c->plan);
    free(c);
}

/* ---- loads and bytes ---- */

int64_t rate_loads(int64_t *load_ns, const relax_view *v, const rate_candidate *c, const int64_t *of_copy, int64_t all)
{
    size_t R = (size_t)v->n_resources;
    uint8_t *device = util_alloc((size_t)v->n, sizeof *device);
    int64_t *one = util_alloc(R, sizeof *one), most = device && one ? 0 : MOIRAI_EFAIL;
    __int128 *sum = util_alloc(R, sizeof *sum);
    most = sum ? most : MOIRAI_EFAIL;
    for (int32_t i = 0; i < c->n_copies && most == 0; i++) {
        memset(one, 0, sizeof *one * R);
        for (int32_t op = 0; op < v->n; op++)
            device[op] = (uint8_t)c->device[i][op];
        relax_loads(one, v, device);
        for (size_t r = 0; r < R; r++)
            sum[r] += (__int128)one[r] * of_copy[i];
    }
    for (size_t r = 0; r < R && most >= 0; r++) {
        load_ns[r] = (int64_t)((sum[r] + all - 1) / all);
        most = UTIL_MAX(most, load_ns[r]);
    }
    free(device);
    free(one);
    free(sum);
    return most;
}

int rate_static_bytes(int64_t *bytes, const moirai_problem *p, const rate_candidate *c)
{
    memset(bytes, 0, sizeof *bytes * (size_t)p->n_devices);
    uint64_t *there = util_alloc((size_t)p->n_ops, sizeof *there);
    if (!there)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops; i++) {
        for (int32_t copy = 0; copy < c->n_copies; copy++)
            there[i] |= UINT64_C(1) << c->device[copy][i];
        for (int32_t k = 0; k < p->n_devices; k++)
            bytes[k] += there[i] >> k & 1 ? p->op_memory_bytes[i] : 0;
    }
    for (int32_t w = 0; w < p->n_weights; w++) {
        uint64_t at = 0;
        for (int32_t i = p->weight_reader_off[w]; i < p->weight_reader_off[w + 1]; i++)
            at |= there[p->weight_reader[i]];
        for (int32_t k = 0; k < p->n_devices; k++)
            bytes[k] += at >> k & 1 ? p->weight_bytes[w] : 0;
    }
    free(there);
    return 0;
}

/* ---- the judge ---- */

/* All requests together, and one alone, which is the plan that is written. */
static bool has_room(const moirai_problem *p, const int64_t *bytes, const rate_candidate *c)
{
    bool peak = p->memory == MOIRAI_MEMORY_PEAK;
    for (int32_t k = 0; k < p->n_devices; k++) {
        int64_t most = p->device_memory_bytes[k];
        if (bytes[k] + (peak ? c->outcome.tensor_bytes[k] : 0) > most || (peak && c->plan->device_peak_bytes[k] > most))
            return false;
    }
    return true;
}

/* One request on the first copy, in the order that it has in the stream as well. */
static int make_plan(rate_candidate *c, const moirai_problem *p)
{
    moirai_sim *sim = NULL;
    if (c->plan)
        return 0;
    int rc = moirai_sim_new(&sim, p);
    if (!rc && moirai_sim_dispatch(sim, c->device[0], NULL) < 0)
        rc = moirai_error(MOIRAI_EFAIL, "a copy of '%s' is where its operators may not be", p->name);
    rc = rc ? rc : moirai_sim_plan(&c->plan, sim);
    moirai_sim_free(sim);
    return rc;
}

/* One request at a time: the plan. */
static int judge_alone(rate_candidate *c, const rate_judge_task *task)
{
    const moirai_problem *p = task->v->p;
    c->in_flight = 1;
    c->outcome = (rate_outcome){.period_ns = c->plan->makespan_ns, .latency_ns = c->plan->makespan_ns};
    c->outcome.mean_latency_ns = c->plan->makespan_ns;
    c->outcome.steady = true;
    c->outcome.requests = c->outcome.of_copy[0] = 1;
    for (int32_t k = 0; k < p->n_devices; k++)
        c->outcome.tensor_bytes[k] = UTIL_MAX(c->plan->device_peak_bytes[k] - c->plan->device_memory_bytes[k], 0);
    return 0;
}

/* Slots of all copies, so that they are n together: taken away from the largest. */
static void set_slots(int32_t *slots, const rate_candidate *c, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < c->n_copies; i++)
        sum += slots[i] = c->slots[i];
    for (; sum > n; sum--) {
        int32_t most = 0;
        for (int32_t i = 1; i < c->n_copies; i++)
            most = slots[i] >= slots[most] ? i : most;
        slots[most]--;
    }
}

/* Whether no two copies share a device. */
static bool strangers(const rate_candidate *c, int32_t n_ops)
{
    uint64_t seen = 0;
    for (int32_t i = 0; i < c->n_copies; i++) {
        uint64_t own = 0;
        for (int32_t op = 0; op < n_ops; op++)
            own |= UINT64_C(1) << c->device[i][op];
        if (seen & own)
            return false;
        seen |= own;
    }
    return true;
}

#define PARTS INT64_C(1000000000) /* in which requests are counted where there is no common number of them */

/* Copies that share nothing have each a stream of its own, and their rates add up. Together they would hardly ever come back to an earlier state. */
static int stream_apart(rate_outcome *out, const moirai_problem *p, const rate_stream_task *job)
{
    long double rate[RATE_MOST_COPIES], sum = 0;
    double latency = 0;
    *out = (rate_outcome){.steady = true};
    for (int32_t i = 0; i < job->n_copies; i++) {
        rate_stream_task own = {
            .n_copies = 1, .in_flight = job->slots[i], .most_tasks = job->most_tasks, .stop = job->stop};
        rate_outcome one;
        own.pace = (int32_t)((int64_t)job->pace * job->slots[i] / job->in_flight);
        own.route[0] = job->route[i];
        own.share[0] = 1;
        int rc = rate_stream(&one, p, &own);
        out->task_s = UTIL_MAX(out->task_s, one.task_s);
        if (rc)
            return rc;
        sum += rate[i] = (long double)one.requests / (long double)UTIL_MAX(one.span_ns, 1);
        latency += (double)(rate[i] * (long double)one.mean_latency_ns);
        out->steady &= one.steady;
        out->latency_ns = UTIL_MAX(out->latency_ns, one.latency_ns);
        for (int32_t k = 0; k < p->n_devices; k++)
            out->tensor_bytes[k] += one.tensor_bytes[k];
    }
    out->period_ns = (int64_t)ceill(1 / sum * (1 - 1e-16L)); /* whole numbers stay what they are */
    out->mean_latency_ns = (int64_t)((long double)latency / sum + 0.5L);
    out->requests = PARTS;
    out->span_ns = (int64_t)(PARTS / sum);
    int64_t left = PARTS;
    for (int32_t i = job->n_copies - 1; i > 0; i--)
        left -= out->of_copy[i] = (int64_t)(PARTS * (rate[i] / sum));
    out->of_copy[0] = left;
    return 0;
}

static int judge_stream(rate_candidate *c, const rate_judge_task *task, int32_t in_flight,
                        const rate_route *const *route)
{
    const moirai_problem *p = task->v->p;
    rate_stream_task job = {.n_copies = c->n_copies,
                            .in_flight = in_flight,
                            .pace = c->pace,
                            .most_tasks = task->most_tasks,
                            .stop = task->stop};
    for (int32_t i = 0; i < c->n_copies; i++) {
        job.route[i] = route[i];
        job.share[i] = c->share[i];
    }
    if (c->slots[0] > 0) {
        set_slots(job.slots, c, in_flight);
        job.in_flight = 0;
        for (int32_t i = 0; i < c->n_copies; i++)
            job.in_flight += job.slots[i];
    }
    int rc = job.slots[0] > 0 && strangers(c, p->n_ops) ? stream_apart(&c->outcome, p, &job)
                                                        : rate_stream(&c->outcome, p, &job);
    if (!rc) {
        c->in_flight = job.in_flight;
        memcpy(c->slots, job.slots, sizeof *c->slots * (size_t)c->n_copies);
    }
    return rc;
}

/* A mean begins and ends somewhere, and may be below what a resource can do: the load is not. By turns, that is the load of the shares: those that a mean has seen may be others. */
static int correct(rate_candidate *c, const rate_judge_task *task)
{
    bool turns = c->slots[0] == 0 && c->n_copies > 1;
    int64_t *load_ns = util_alloc((size_t)task->v->n_resources, sizeof *load_ns), all = 0;
    for (int32_t i = 0; i < c->n_copies && turns; i++)
        all += c->share[i];
    int64_t most = !load_ns ? MOIRAI_EFAIL
                   : turns  ? rate_loads(load_ns, task->v, c, c->share, all)
                            : rate_loads(load_ns, task->v, c, c->outcome.of_copy, c->outcome.requests);
    free(load_ns);
    if (most < 0)
        return MOIRAI_EFAIL;
    if (!c->outcome.steady)
        c->outcome.period_ns = UTIL_MAX(c->outcome.period_ns, most);
    c->load_ns = UTIL_MIN(most, c->outcome.period_ns); /* it may be above by the rounding of shares */
    return 0;
}

static int judge_with(rate_candidate *c, const rate_judge_task *task, int32_t in_flight, const rate_route *const *route)
{
    int64_t bytes[MOIRAI_MASK_DEVICES];
    int rc = in_flight == 1 && c->n_copies == 1 ? judge_alone(c, task) : judge_stream(c, task, in_flight, route);
    rc = rc ? rc : rate_static_bytes(bytes, task->v->p, c);
    rc = rc ? rc : correct(c, task);
    c->judged = !rc;
    c->fits = !rc && has_room(task->v->p, bytes, c) && c->outcome.latency_ns <= task->latency_limit_ns;
    return rc;
}

#define PACE \
    0.9 /* of the requests in flight: rather a few that wait at the entrance than a device that waits for one */

bool rate_waits(const rate_candidate *c)
{
    return (double)(c->outcome.period_ns - c->load_ns) > RATE_NO_WAITING * (double)c->load_ns;
}

/* At a pace, and, where requests wait or do not fit so, with the oldest first: what is better. */
static int judge_paced(rate_candidate *c, const rate_judge_task *task, int32_t in_flight,
                       const rate_route *const *route)
{
    c->pace = (int32_t)(PACE * in_flight);
    int rc = judge_with(c, task, in_flight, route);
    if (rc || c->pace == 0 || (c->fits && !rate_waits(c)))
        return rc;
    rate_candidate paced = *c;
    c->pace = 0;
    rc = judge_with(c, task, in_flight, route);
    if (rc == MOIRAI_ELIMIT || (!rc && !rate_better(c, &paced))) {
        *c = paced;
        rc = 0;
    }
    return rc;
}

/* With so many requests, or half, a quarter ... but no fewer than `least`; `as_is`: at its own pace. */
static int judge_down_to(rate_candidate *c, const rate_judge_task *task, int32_t least, bool as_is)
{
    const moirai_problem *p = task->v->p;
    const rate_route *route[RATE_MOST_COPIES] = {0};
    int rc = c->n_copies <= RATE_MOST_COPIES ? make_plan(c, p) : MOIRAI_EFAIL;
    for (int32_t i = 0; i < c->n_copies && !rc; i++) {
        rate_route *one = NULL;
        rc =
            i == 0 ? rate_route_new(&one, p, c->device[0], c->plan->op_start_ns) : rate_route_of(&one, p, c->device[i]);
        route[i] = one;
    }
    for (int32_t n = c->alone ? 1 : task->in_flight; n >= least && !rc; n /= 2) {
        rc = as_is ? judge_with(c, task, n, route) : judge_paced(c, task, n, route);
        if (c->fits || rc)
            break;
    }
    for (int32_t i = 0; i < c->n_copies; i++)
        rate_route_free((rate_route *)route[i]);
    return rc;
}

int rate_judge(rate_candidate *c, const rate_judge_task *task)
{
    return judge_down_to(c, task, c->slots[0] > 0 ? c->n_copies : 1, false);
}

int rate_judge_as_is(rate_candidate *c, const rate_judge_task *task)
{
    return judge_down_to(c, task, task->in_flight, true);
}

/* Few requests that keep to their frames either meet at a device or do not, and which of it they do hangs on the pace: gpt3-13B with 16 in flight has plans whose period is 4 % above the load at 14, and the load at 18. */
int rate_judge_paces(rate_candidate *c, const rate_judge_task *task)
{
    static const double part[] = {1, 1.125, 0.75, 1.25}; /* of the requests in flight */
    rate_judge_task own = *task;
    int rc = 0;
    own.in_flight = c->in_flight;
    for (size_t i = 0; i < sizeof part / sizeof *part && !rc && rate_waits(c); i++) {
        rate_candidate before = *c;
        c->pace = (int32_t)UTIL_MIN(part[i] * own.in_flight, MOIRAI_MOST_IN_FLIGHT);
        if (c->pace == before.pace || c->pace == (int32_t)(PACE * own.in_flight)) {
            *c = before;
            continue;
        }
        rc = rate_judge_as_is(c, &own);
        if (rc || !rate_better(c, &before))
            *c = before;
    }
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

bool rate_better(const rate_candidate *a, const rate_candidate *b)
{
    if (!a->judged || !a->fits)
        return false;
    if (!b || !b->fits)
        return true;
    if (a->outcome.period_ns != b->outcome.period_ns)
        return a->outcome.period_ns < b->outcome.period_ns;
    if (a->outcome.latency_ns != b->outcome.latency_ns)
        return a->outcome.latency_ns < b->outcome.latency_ns;
    return a->n_copies < b->n_copies;
}
