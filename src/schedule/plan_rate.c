/* What a plan has for many requests in flight: as a value, and as keys of its file (formats.md).
 *
 * A plan file with these keys is still the plan of one request: its first, or only, copy. Readers that know nothing of rates read that. */
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include <moirai/schedule.h>

#include "schedule/plan.h"
#include "util/util.h"

#define MOST_COPIES 1024
#define MOST_IN_FLIGHT 1000000
#define WHOLE_PPM 1000000

moirai_rate *schedule_rate_new(int32_t n_copies, int32_t n_ops)
{
    moirai_rate *r = util_alloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->period_bound_ns = r->period_certified_ns = r->alone_ns = MOIRAI_UNKNOWN;
    r->copy = util_alloc((size_t)n_copies, sizeof *r->copy);
    bool ok = r->copy != NULL;
    for (int32_t c = 0; ok && c < n_copies; c++) {
        int32_t *device = util_alloc((size_t)n_ops, sizeof *device);
        r->copy[r->n_copies++].op_device = device;
        ok = device != NULL;
        for (int32_t i = 0; ok && i < n_ops; i++)
            device[i] = MOIRAI_NONE;
    }
    if (ok)
        return r;
    schedule_rate_free(r);
    return NULL;
}

void schedule_rate_free(moirai_rate *r)
{
    if (!r)
        return;
    for (int32_t c = 0; r->copy && c < r->n_copies; c++)
        free(r->copy[c].op_device);
    free(r->copy);
    free(r);
}

moirai_rate *schedule_rate_copy(const moirai_rate *r, int32_t n_ops)
{
    moirai_rate *out = schedule_rate_new(r->n_copies, n_ops);
    if (!out)
        return NULL;
    moirai_copy *copies = out->copy;
    *out = *r;
    out->copy = copies;
    for (int32_t c = 0; c < r->n_copies; c++) {
        int32_t *device = copies[c].op_device;
        memcpy(device, r->copy[c].op_device, sizeof *device * (size_t)n_ops);
        copies[c] = r->copy[c];
        copies[c].op_device = device;
    }
    return out;
}

/* ---- writing ---- */

/* One request alone on a copy, in the order that the simulator of many requests has for it (rate/stream/route.c): what a runtime
 * needs to carry it out without the problem. */
static int write_tasks(util_writer *w, const moirai_copy *copy, const moirai_problem *p)
{
    moirai_sim *sim = NULL;
    moirai_plan *alone = NULL;
    int rc = moirai_sim_new(&sim, p);
    if (!rc && moirai_sim_dispatch(sim, copy->op_device, NULL) < 0)
        rc = moirai_error(MOIRAI_EFAIL, "a copy of '%s' is where its operators may not be", p->name);
    rc = rc ? rc : moirai_sim_plan(&alone, sim);
    if (!rc) {
        util_writer_pair_int(w, "makespan_ns", alone->makespan_ns);
        schedule_plan_write_tasks(w, alone, p);
    }
    moirai_plan_free(alone);
    moirai_sim_free(sim);
    return rc;
}

static int write_copy(util_writer *w, const moirai_rate *r, int32_t c, const moirai_problem *p)
{
    int rc = 0;
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_key(w, "share");
    util_writer_real(w, (double)r->copy[c].share_ppm / WHOLE_PPM);
    if (r->copy[c].slots > 0)
        util_writer_pair_int(w, "slots", r->copy[c].slots);
    util_writer_pair_open(w, "placement", '{');
    for (int32_t i = 0; i < p->n_ops; i++)
        util_writer_pair_string(w, p->op_name[i], p->device_name[r->copy[c].op_device[i]]);
    util_writer_close(w, '}');
    if (c > 0) /* the first has those of the plan */
        rc = write_tasks(w, &r->copy[c], p);
    util_writer_close(w, '}');
    return rc;
}

int schedule_rate_write(util_writer *w, const moirai_plan *plan, const moirai_problem *p)
{
    int rc = 0;
    const moirai_rate *r = plan->rate;
    util_writer_break(w);
    util_writer_pair_string(w, "objective", "rate");
    util_writer_pair_int(w, "in_flight", r->in_flight);
    if (r->pace > 0)
        util_writer_pair_int(w, "pace", r->pace);
    util_writer_pair_int(w, "period_ns", r->period_ns);
    util_writer_key(w, "period_bound_ns");
    if (r->period_bound_ns == MOIRAI_UNKNOWN)
        util_writer_null(w);
    else
        util_writer_int(w, r->period_bound_ns);
    if (r->period_certified_ns != MOIRAI_UNKNOWN)
        util_writer_pair_int(w, "period_certified_ns", r->period_certified_ns);
    util_writer_pair_int(w, "latency_ns", r->latency_ns);
    if (r->alone_ns != MOIRAI_UNKNOWN)
        util_writer_pair_int(w, "alone_ns", r->alone_ns);
    if (r->n_copies == 1)
        return 0;
    util_writer_break(w);
    util_writer_pair_open(w, "copies", '[');
    for (int32_t c = 0; c < r->n_copies && !rc; c++)
        rc = write_copy(w, r, c, p);
    util_writer_break(w);
    util_writer_close(w, ']');
    return rc;
}

/* ---- reading ---- */

static int read_placement(int32_t *op_device, const moirai_problem *p, const util_json_at *at, yyjson_val *copy)
{
    yyjson_val *placement = yyjson_obj_get(copy, "placement"), *key, *value;
    size_t index, n;
    if (!yyjson_is_obj(placement))
        return util_json_fail(at, "placement: expected an object of operators and devices");
    yyjson_obj_foreach(placement, index, n, key, value) {
        const char *name = yyjson_get_str(key), *device = NULL;
        int32_t op = moirai_problem_find_op(p, name);
        int rc = util_json_value_string(&device, NULL, at, value, name);
        if (rc)
            return rc;
        if (op == MOIRAI_NONE)
            return util_json_fail(at, "placement: '%s' is not an operator of problem '%s'", name, p->name);
        op_device[op] = moirai_problem_find_device(p, device);
        if (op_device[op] == MOIRAI_NONE)
            return util_json_fail(at, "placement: '%s': '%s' is not a device of problem '%s'", name, device, p->name);
    }
    for (int32_t i = 0; i < p->n_ops; i++)
        if (op_device[i] == MOIRAI_NONE)
            return util_json_fail(at, "placement: operator '%s' is missing", p->op_name[i]);
    return 0;
}

static int read_copy(moirai_copy *out, const moirai_problem *p, const char *label, yyjson_val *value, size_t index)
{
    util_json_at at = {label, "copy", NULL, index};
    double share = 0;
    int64_t slots = 0;
    int rc = util_json_object(&at, value);
    rc = rc ? rc : util_json_real(&share, &at, value, "share", true);
    rc = rc ? rc : util_json_int64(&slots, &at, value, "slots", false, 1);
    if (!rc && !(share >= 0 && share <= 1))
        rc = util_json_fail(&at, "share is %g, expected 0 .. 1", share);
    if (!rc && slots > MOST_IN_FLIGHT)
        rc = util_json_fail(&at, "slots is %lld, expected at most %d", (long long)slots, MOST_IN_FLIGHT);
    out->share_ppm = (int64_t)(share * WHOLE_PPM + 0.5);
    out->slots = (int32_t)slots;
    return rc ? rc : read_placement(out->op_device, p, &at, value);
}

int schedule_rate_read(moirai_plan *plan, const moirai_problem *p, const util_json_at *at, yyjson_val *root)
{
    const char *objective = NULL;
    yyjson_val *copies = NULL, *value;
    size_t index, n;
    int64_t in_flight = 0, pace = 0;
    int rc = util_json_string(&objective, NULL, at, root, "objective", false);
    if (rc || !objective || !strcmp(objective, "latency"))
        return rc;
    if (strcmp(objective, "rate"))
        return util_json_fail(at, "objective is \"%.40s\", expected \"rate\" or \"latency\"", objective);
    rc = util_json_array(&copies, at, root, "copies", false);
    if (!rc && copies && (yyjson_arr_size(copies) < 1 || yyjson_arr_size(copies) > MOST_COPIES))
        rc = util_json_fail(at, "%zu copies, expected 1 .. %d", yyjson_arr_size(copies), MOST_COPIES);
    if (rc)
        return rc;
    plan->rate = schedule_rate_new(copies ? (int32_t)yyjson_arr_size(copies) : 1, p->n_ops);
    rc = plan->rate ? util_json_int64(&in_flight, at, root, "in_flight", true, 1) : MOIRAI_EFAIL;
    if (!rc && in_flight > MOST_IN_FLIGHT)
        rc = util_json_fail(at, "in_flight is %lld, expected at most %d", (long long)in_flight, MOST_IN_FLIGHT);
    rc = rc ? rc : util_json_int64(&pace, at, root, "pace", false, 0);
    if (!rc && pace > MOST_IN_FLIGHT)
        rc = util_json_fail(at, "pace is %lld, expected at most %d", (long long)pace, MOST_IN_FLIGHT);
    rc = rc ? rc : util_json_int64(&plan->rate->period_ns, at, root, "period_ns", true, 0);
    rc = rc ? rc : util_json_int64(&plan->rate->period_bound_ns, at, root, "period_bound_ns", false, 0);
    rc = rc ? rc : util_json_int64(&plan->rate->period_certified_ns, at, root, "period_certified_ns", false, 0);
    rc = rc ? rc : util_json_int64(&plan->rate->latency_ns, at, root, "latency_ns", false, 0);
    rc = rc ? rc : util_json_int64(&plan->rate->alone_ns, at, root, "alone_ns", false, 0);
    if (rc)
        return rc;
    plan->rate->in_flight = (int32_t)in_flight;
    plan->rate->pace = (int32_t)pace;
    plan->rate->copy[0].share_ppm = WHOLE_PPM;
    yyjson_arr_foreach(copies, index, n, value) {
        rc = rc ? rc : read_copy(&plan->rate->copy[index], p, at->label, value, index);
    }
    return rc;
}

int schedule_rate_finish(moirai_plan *plan, const moirai_problem *p, const util_json_at *at)
{
    if (!plan->rate)
        return 0;
    int32_t *first = plan->rate->copy[0].op_device;
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (plan->rate->n_copies > 1 && first[i] != plan->op_device[i])
            return util_json_fail(at, "copy 0 has operator '%s' on '%s', the plan has not", p->op_name[i],
                                  p->device_name[first[i]]);
        first[i] = plan->op_device[i];
    }
    return 0;
}
