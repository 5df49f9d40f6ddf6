/* Figures of a plan for many requests, and what it breaks of its rules.
 *
 * The checker counts loads and bytes of all copies anew, from the problem alone, and shares that with nobody; the period itself is what the simulator says, which
 * it asks again. */
#include <moirai/rate.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rate/candidate.h"
#include "util/util.h"

void moirai_rate_figures_clear(moirai_rate_figures *f)
{
    free(f->resource_load_ns);
    free(f->copy_requests);
    free(f->device_memory_bytes);
    free(f->device_peak_bytes);
    *f = (moirai_rate_figures){0};
}

void moirai_rate_resource(char *text, size_t size, const moirai_problem *p, int32_t resource)
{
    int32_t K = p->n_devices;
    if (resource < K)
        snprintf(text, size, "device %s", p->device_name[resource]);
    else if (p->congestion == MOIRAI_CONGESTION_CHANNEL)
        snprintf(text, size, "channel %s to %s", p->device_name[(resource - K) / K],
                 p->device_name[(resource - K) % K]);
    else if (resource < 2 * K)
        snprintf(text, size, "sending from %s", p->device_name[resource - K]);
    else
        snprintf(text, size, "receiving on %s", p->device_name[resource - 2 * K]);
}

/* ---- what is wrong ---- */

typedef struct checker {
    const moirai_problem *p;
    const moirai_plan *plan;
    const rate_candidate *simulated; /* or NULL */
    moirai_report_fn report;
    void *data;
    int broken;
    char first[300];
} checker;

static void complain(checker *x, const char *format, ...) MOIRAI_PRINTF(2, 3);
static void complain(checker *x, const char *format, ...)
{
    char line[300];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (!x->broken++)
        snprintf(x->first, sizeof x->first, "%s", line);
    if (x->report)
        x->report(x->data, line);
}

/* By what requests go to copies: without it there is no stream. */
static void check_shares(checker *x)
{
    const moirai_rate *r = x->plan->rate;
    int64_t sum = 0, slots = 0;
    int32_t with_slots = 0;
    for (int32_t c = 0; c < r->n_copies; c++) {
        sum += r->copy[c].share_ppm;
        slots += r->copy[c].slots;
        with_slots += r->copy[c].slots > 0;
    }
    if (llabs(sum - 1000000) > r->n_copies)
        complain(x, "shares of copies sum to %.6f, not to 1", (double)sum / 1e6);
    if (with_slots != 0 && with_slots != r->n_copies)
        complain(x, "%d of %d copies have slots: all have, or none", with_slots, r->n_copies);
    else if (with_slots && slots != r->in_flight)
        complain(x, "copies have %lld slots together, %d requests are in flight", (long long)slots, r->in_flight);
}

/* ---- figures ---- */

static int candidate_of(rate_candidate **out, const moirai_problem *p, const moirai_plan *plan)
{
    const moirai_rate *r = plan->rate;
    int rc = rate_candidate_new(out, p, "read", r->n_copies);
    if (rc)
        return rc;
    for (int32_t c = 0; c < r->n_copies; c++) {
        memcpy((*out)->device[c], r->copy[c].op_device, sizeof *r->copy[c].op_device * (size_t)p->n_ops);
        (*out)->slots[c] = r->copy[c].slots;
        (*out)->share[c] = r->copy[c].share_ppm;
    }
    (*out)->pace = r->pace;
    rc = moirai_plan_copy(&(*out)->plan, plan);
    if (rc)
        rate_candidate_free(*out);
    return rc;
}

static int fill(moirai_rate_figures *out, const relax_view *v, const rate_candidate *c)
{
    const moirai_problem *p = v->p;
    size_t K = (size_t)p->n_devices;
    out->n_resources = v->n_resources;
    out->resource_load_ns = util_alloc((size_t)v->n_resources, sizeof *out->resource_load_ns);
    out->copy_requests = util_alloc((size_t)c->n_copies, sizeof *out->copy_requests);
    out->device_memory_bytes = util_alloc(K, sizeof *out->device_memory_bytes);
    out->device_peak_bytes = util_alloc(K, sizeof *out->device_peak_bytes);
    if (!out->resource_load_ns || !out->copy_requests || !out->device_memory_bytes || !out->device_peak_bytes)
        return MOIRAI_EFAIL;
    memcpy(out->copy_requests, c->outcome.of_copy, sizeof *out->copy_requests * (size_t)c->n_copies);
    out->load_ns = rate_loads(out->resource_load_ns, v, c, c->outcome.of_copy, c->outcome.requests);
    for (int32_t r = 0; r < v->n_resources && out->load_ns >= 0; r++) /* above by the rounding of shares */
        out->resource_load_ns[r] = UTIL_MIN(out->resource_load_ns[r], c->outcome.period_ns);
    out->load_ns = UTIL_MIN(out->load_ns, c->outcome.period_ns);
    int rc = out->load_ns < 0 ? MOIRAI_EFAIL : rate_static_bytes(out->device_memory_bytes, p, c);
    for (size_t k = 0; k < K && !rc; k++)
        out->device_peak_bytes[k] = out->device_memory_bytes[k] + c->outcome.tensor_bytes[k];
    out->period_ns = c->outcome.period_ns;
    out->exact = c->outcome.steady;
    out->requests = c->outcome.requests;
    out->latency_ns = c->outcome.latency_ns;
    out->mean_latency_ns = c->outcome.mean_latency_ns;
    return rc;
}

/* Whether all that a stream depends on is the same: requests, pace, and of every copy its devices, the order of its operators (the first has it from the plan, the others from their devices) and its
 * slots or its share among all. */
static bool same_stream(const rate_candidate *a, const rate_candidate *b, int32_t n_ops)
{
    size_t n = (size_t)n_ops;
    __int128 all_a = 0, all_b = 0;
    if (a->n_copies != b->n_copies || a->in_flight != b->in_flight || a->pace != b->pace ||
        memcmp(a->plan->op_start_ns, b->plan->op_start_ns, sizeof *a->plan->op_start_ns * n))
        return false;
    for (int32_t c = 0; c < a->n_copies; c++) {
        all_a += a->share[c];
        all_b += b->share[c];
    }
    for (int32_t c = 0; c < a->n_copies; c++)
        if (memcmp(a->device[c], b->device[c], sizeof **a->device * n) || a->slots[c] != b->slots[c] ||
            (a->slots[c] == 0 && a->share[c] * all_b != b->share[c] * all_a))
            return false;
    return true;
}

/* What was simulated before stands where nothing has changed since: the same stream gives the same outcome. */
static int judge_plan(rate_candidate *c, const relax_view *v, const moirai_plan *plan, const rate_candidate *simulated)
{
    rate_judge_task task = {
        .v = v, .in_flight = plan->rate->in_flight, .latency_limit_ns = INT64_MAX, .most_tasks = RATE_STREAM_TASKS};
    c->in_flight = task.in_flight;
    if (!simulated || !simulated->judged || !same_stream(c, simulated, v->p->n_ops))
        return rate_judge_as_is(c, &task);
    c->outcome = simulated->outcome;
    return 0;
}

static int simulate(moirai_rate_figures *out, const moirai_problem *p, const moirai_plan *plan,
                    const rate_candidate *simulated)
{
    relax_view v = {0};
    rate_candidate *c = NULL;
    *out = (moirai_rate_figures){0};
    if (rate_check_devices(p))
        return MOIRAI_EUSAGE;
    if (!plan->rate || plan->n_ops != p->n_ops || plan->rate->n_copies > RATE_MOST_COPIES ||
        plan->rate->in_flight > MOIRAI_MOST_IN_FLIGHT)
        return moirai_error(MOIRAI_EUSAGE, "no plan of '%s' for at most %d requests in flight and %d copies", p->name,
                            MOIRAI_MOST_IN_FLIGHT, RATE_MOST_COPIES);
    checker x = {.p = p, .plan = plan};
    check_shares(&x);
    if (x.broken)
        return moirai_error(MOIRAI_EFAIL, "the plan of '%.200s' has no stream: %s", p->name, x.first);
    int rc = relax_view_open(&v, p, 100);
    rc = rc ? rc : candidate_of(&c, p, plan);
    rc = rc ? rc : judge_plan(c, &v, plan, simulated);
    rc = rc ? rc : fill(out, &v, c);
    rate_candidate_free(c);
    relax_view_close(&v);
    return rc;
}

int moirai_rate_simulate(moirai_rate_figures *out, const moirai_problem *p, const moirai_plan *plan)
{
    return simulate(out, p, plan, NULL);
}

/* ---- the check ---- */

/* `of_group`: working memory, the device of each. */
static void check_devices(checker *x, int32_t c, int32_t *of_group)
{
    const moirai_problem *p = x->p;
    const int32_t *device = x->plan->rate->copy[c].op_device;
    for (int32_t g = 0; g < p->n_groups; g++)
        of_group[g] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t g = p->op_group[i];
        if (device[i] < 0 || device[i] >= p->n_devices || moirai_op_ns(p, i, device[i]) == MOIRAI_NEVER)
            complain(x, "copy %d: operator '%.80s' can't run on its device", c, p->op_name[i]);
        else if (g != MOIRAI_NONE && of_group[g] != MOIRAI_NONE && of_group[g] != device[i])
            complain(x, "copy %d: group '%.80s' is divided", c, p->group_name[g]);
        else if (g != MOIRAI_NONE)
            of_group[g] = device[i];
    }
}

/* Every copy's operators, once per device. */
static void check_bytes(checker *x)
{
    const moirai_problem *p = x->p;
    const moirai_rate *r = x->plan->rate;
    for (int32_t k = 0; k < p->n_devices; k++) {
        int64_t need = 0;
        for (int32_t i = 0; i < p->n_ops; i++) {
            bool here = false;
            for (int32_t c = 0; c < r->n_copies && !here; c++)
                here = r->copy[c].op_device[i] == k;
            need += here ? p->op_memory_bytes[i] : 0;
        }
        for (int32_t w = 0; w < p->n_weights; w++) {
            bool here = false;
            for (int32_t a = p->weight_reader_off[w]; a < p->weight_reader_off[w + 1] && !here; a++)
                for (int32_t c = 0; c < r->n_copies && !here; c++)
                    here = r->copy[c].op_device[p->weight_reader[a]] == k;
            need += here ? p->weight_bytes[w] : 0;
        }
        if (need > p->device_memory_bytes[k])
            complain(x, "device '%.80s' holds %lld bytes of all copies, more than its %lld", p->device_name[k],
                     (long long)need, (long long)p->device_memory_bytes[k]);
    }
}

/* Whether some reader of edges first .. end - 1 is on device l. */
static bool read_on(const moirai_problem *p, const int32_t *device, int32_t first, int32_t end, int32_t l)
{
    for (int32_t e = first; e < end; e++)
        if (device[p->edge_reader[e]] == l)
            return true;
    return false;
}

/* A copy's work and transfers per request, added with its share. */
static void add_loads(double *load, const moirai_problem *p, const int32_t *device, double share)
{
    int32_t K = p->n_devices;
    for (int32_t i = 0; i < p->n_ops; i++)
        load[device[i]] += share * (double)moirai_op_ns(p, i, device[i]);
    for (int32_t t = 0; t < p->n_tensors && p->congestion != MOIRAI_CONGESTION_NONE; t++) {
        int32_t k = device[p->tensor_producer[t]], end = p->tensor_edge_off[t + 1];
        int32_t step = p->flow == MOIRAI_FLOW_EDGE ? 1 : end - p->tensor_edge_off[t];
        for (int32_t e = p->tensor_edge_off[t]; e < end; e += step)
            for (int32_t l = 0; l < K; l++) {
                if (l == k || !read_on(p, device, e, e + step, l))
                    continue;
                double ns = share * (double)moirai_transfer_ns(p, t, k, l);
                if (p->congestion == MOIRAI_CONGESTION_CHANNEL) {
                    load[K + k * K + l] += ns;
                } else if (p->congestion == MOIRAI_CONGESTION_DEVICE) {
                    load[k] += ns;
                    load[l] += ns;
                } else {
                    load[K + k] += ns;
                    load[2 * K + l] += ns;
                }
            }
    }
}

#define PART \
    1e-6 /* shares are whole parts of a million: each is so much off at most, and the first one by all of these */
#define ROUNDING 1e-9 /* of the sums */

static int check_loads(checker *x)
{
    const moirai_problem *p = x->p;
    const moirai_rate *r = x->plan->rate;
    int32_t K = p->n_devices, R = p->congestion == MOIRAI_CONGESTION_CHANNEL ? K + K * K : 3 * K;
    double *load = util_alloc((size_t)R, sizeof *load), *slack = util_alloc((size_t)R, sizeof *slack);
    if (!load || !slack) {
        free(load);
        free(slack);
        return MOIRAI_EFAIL;
    }
    for (int32_t c = 0; c < r->n_copies; c++) {
        add_loads(load, p, r->copy[c].op_device, (double)r->copy[c].share_ppm / 1e6);
        add_loads(slack, p, r->copy[c].op_device, r->n_copies == 1 ? 0 : PART * (c ? 1 : r->n_copies));
    }
    for (int32_t i = 0; i < R; i++)
        if (load[i] * (1 - ROUNDING) - slack[i] > (double)r->period_ns) {
            char name[160];
            moirai_rate_resource(name, sizeof name, p, i);
            complain(x, "%s has %.0f ns to do for every request, the period is %lld ns", name, load[i],
                     (long long)r->period_ns);
        }
    free(load);
    free(slack);
    return 0;
}

static int check_figures(checker *x, moirai_rate_figures *figures)
{
    const moirai_rate *r = x->plan->rate;
    moirai_rate_figures f;
    int rc = simulate(&f, x->p, x->plan, x->simulated);
    if (!rc && f.period_ns > r->period_ns)
        complain(x, "the period is %lld ns, simulated %lld ns", (long long)r->period_ns, (long long)f.period_ns);
    if (!rc && f.latency_ns > r->latency_ns)
        complain(x, "the latency is %lld ns, simulated %lld ns", (long long)r->latency_ns, (long long)f.latency_ns);
    for (int32_t k = 0; k < x->p->n_devices && !rc && x->p->memory == MOIRAI_MEMORY_PEAK; k++)
        if (f.device_peak_bytes[k] > x->p->device_memory_bytes[k])
            complain(x, "device '%.80s' needs %lld bytes with %d requests in flight, more than its %lld",
                     x->p->device_name[k], (long long)f.device_peak_bytes[k], r->in_flight,
                     (long long)x->p->device_memory_bytes[k]);
    if (rc || x->broken || !figures)
        moirai_rate_figures_clear(&f);
    else
        *figures = f;
    return rc;
}

static int check_all(checker *x, moirai_rate_figures *figures)
{
    const moirai_rate *r = x->plan->rate;
    if (!r)
        return 0;
    if (rate_check_devices(x->p))
        return MOIRAI_EUSAGE;
    int32_t *of_group = util_alloc((size_t)x->p->n_groups, sizeof *of_group);
    int rc = of_group ? 0 : MOIRAI_EFAIL;
    for (int32_t c = 0; c < r->n_copies && !rc; c++)
        check_devices(x, c, of_group);
    free(of_group);
    check_shares(x);
    if (r->period_bound_ns > r->period_ns)
        complain(x, "the bound of %lld ns is above the period of %lld ns", (long long)r->period_bound_ns,
                 (long long)r->period_ns);
    if (r->period_certified_ns > UTIL_MAX(r->period_bound_ns, 0))
        complain(x, "%lld ns are said to be certified, the bound is %lld ns", (long long)r->period_certified_ns,
                 (long long)r->period_bound_ns);
    if (!rc && !x->broken) { /* what follows counts on devices that may be used */
        check_bytes(x);
        rc = check_loads(x);
        rc = rc ? rc : check_figures(x, figures);
    }
    return rc ? rc : x->broken ? moirai_error(MOIRAI_EFAIL, "%s", x->first) : 0;
}

int moirai_rate_check(const moirai_problem *p, const moirai_plan *plan, moirai_report_fn report, void *data)
{
    checker x = {.p = p, .plan = plan, .report = report, .data = data};
    return check_all(&x, NULL);
}

int rate_check_written(const moirai_problem *p, const moirai_plan *plan, const rate_candidate *simulated,
                       moirai_rate_figures *figures)
{
    checker x = {.p = p, .plan = plan, .simulated = simulated};
    return check_all(&x, figures);
}
