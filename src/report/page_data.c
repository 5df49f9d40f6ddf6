/* Everything that the page shows, as JSON: whole numbers in arrays, one array per quantity, so that a network of 50,000
 * operators is a few megabytes. Quantities that mostly grow or follow their neighbour are written as differences:
 * starts from the start before, causes from the task itself. Names are the problem's; a tensor of the same name as its
 * producer has none of its own. The script that reads this is page.js. */
#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

enum { MEMORY_POINTS = 4000 }; /* of a device's curve; more are joined, peaks kept */

static void key(report_text *t, const char *name)
{
    char last = t->length ? t->data[t->length - 1] : '{';
    report_put(t, "%s\"%s\":", last == '{' || last == '[' ? "" : ",\n", name);
}

static void put_int(report_text *t, int64_t value)
{
    char last = t->length ? t->data[t->length - 1] : '[';
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    if (last != '[' && last != ':')
        report_put_bytes(t, ",", 1);
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    report_put_bytes(t, at, (size_t)(digits + sizeof digits - at));
}

static void pair(report_text *t, const char *name, int64_t value)
{
    key(t, name);
    put_int(t, value);
}

static void pair_string(report_text *t, const char *name, const char *text)
{
    key(t, name);
    report_put_json(t, text);
}

static void open_list(report_text *t, const char *name)
{
    key(t, name);
    report_put(t, "[");
}

static void put_list32(report_text *t, const char *name, const int32_t *value, int32_t n)
{
    open_list(t, name);
    for (int32_t i = 0; i < n; i++)
        put_int(t, value[i]);
    report_put(t, "]");
}

static void put_list64(report_text *t, const char *name, const int64_t *value, int32_t n)
{
    open_list(t, name);
    for (int32_t i = 0; i < n; i++)
        put_int(t, value[i]);
    report_put(t, "]");
}

static void put_names(report_text *t, const char *name, const char *const *text, int32_t n)
{
    open_list(t, name);
    for (int32_t i = 0; i < n; i++) {
        report_put(t, i ? "," : "");
        report_put_json(t, text[i]);
    }
    report_put(t, "]");
}

/* ---- the problem ---- */

static int put_types(report_text *t, const moirai_problem *p)
{
    const char **type = util_alloc((size_t)p->n_ops, sizeof *type);
    int32_t *number = util_alloc((size_t)p->n_ops, sizeof *number), n = 0;
    util_names *names = util_names_new(64);
    int rc = type && number && names ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; !rc && i < p->n_ops; i++) {
        number[i] = util_names_put(names, p->op_type[i], n);
        if (number[i] == n)
            type[n++] = p->op_type[i];
        rc = number[i] < 0 ? MOIRAI_EFAIL : 0;
    }
    if (!rc) {
        put_names(t, "types", type, n);
        put_list32(t, "opType", number, p->n_ops);
    }
    util_names_free(names);
    free(number);
    free(type);
    return rc;
}

static void put_tensors(report_text *t, const moirai_problem *p)
{
    open_list(t, "tensorName");
    for (int32_t i = 0; i < p->n_tensors; i++) {
        const char *producer = p->op_name[p->tensor_producer[i]];
        report_put(t, i ? "," : "");
        if (!p->partial && !strcmp(producer, p->tensor_name[i]))
            report_put(t, "0");
        else
            report_put_json(t, p->tensor_name[i]);
    }
    report_put(t, "]");
    put_list64(t, "tensorBytes", p->tensor_bytes, p->n_tensors);
    put_list32(t, "tensorProducer", p->tensor_producer, p->n_tensors);
    put_list32(t, "tensorEdges", p->tensor_edge_off, p->n_tensors + 1);
    put_list32(t, "edgeReader", p->edge_reader, p->n_edges);
}

static int put_problem(report_text *t, const moirai_analysis *a)
{
    const moirai_problem *p = a->problem;
    key(t, "problem");
    report_put(t, "{");
    pair_string(t, "name", p->name);
    pair_string(t, "flow", moirai_flow_name(p->flow));
    pair_string(t, "congestion", moirai_congestion_name(p->congestion));
    pair_string(t, "memory", moirai_memory_name(p->memory));
    pair(t, "partial", p->partial);
    put_names(t, "devices", p->device_name, p->n_devices);
    put_names(t, "deviceTypes", p->device_type, p->n_devices);
    put_list64(t, "deviceBytes", p->device_memory_bytes, p->n_devices);
    put_list64(t, "launchNs", p->device_launch_ns, p->n_devices);
    put_list64(t, "segmentNs", p->device_segment_ns, p->n_devices);
    put_list64(t, "rates", p->bytes_per_second, p->partial ? 0 : p->n_devices * p->n_devices);
    put_list64(t, "latencies", p->latency_ns, p->partial ? 0 : p->n_devices * p->n_devices);
    put_names(t, "assumed", p->assumed, p->n_assumed);
    open_list(t, "colours");
    for (int32_t k = 0; k < p->n_devices; k++)
        report_put(t, "%s\"%s\"", k ? "," : "", report_colour(k));
    report_put(t, "]");
    put_names(t, "ops", p->op_name, p->n_ops);
    put_list64(t, "opBytes", p->op_memory_bytes, p->n_ops);
    put_list32(t, "opLevel", a->op_level, a->n_ops);
    int rc = put_types(t, p);
    put_tensors(t, p);
    report_put(t, "}");
    return rc;
}

/* ---- a plan ---- */

static void put_tasks(report_text *t, const moirai_analysis *a)
{
    int32_t n = a->n_ops + a->n_transfers;
    put_list32(t, "opDevice", a->plan->op_device, a->n_ops);
    open_list(t, "start"); /* differences */
    for (int32_t i = 0; i < n; i++)
        put_int(t, moirai_task_start(a, i) - (i ? moirai_task_start(a, i - 1) : 0));
    report_put(t, "]");
    open_list(t, "lasts");
    for (int32_t i = 0; i < n; i++)
        put_int(t, moirai_task_finish(a, i) - moirai_task_start(a, i));
    report_put(t, "]");
    if (a->problem->partial)
        return;
    open_list(t, "busy");
    for (int32_t i = 0; i < n; i++)
        put_int(t, a->delay[i].busy_ns);
    report_put(t, "]");
    open_list(t, "held");
    for (int32_t i = 0; i < n; i++)
        put_int(t, a->delay[i].held_ns);
    report_put(t, "]");
    open_list(t, "cause"); /* 0: none; otherwise task - cause, which never is 0 */
    for (int32_t i = 0; i < n; i++)
        put_int(t, a->delay[i].cause == MOIRAI_NONE ? 0 : i - a->delay[i].cause);
    report_put(t, "]");
    open_list(t, "behind");
    for (int32_t i = 0; i < n; i++)
        put_int(t, a->delay[i].behind == MOIRAI_NONE ? 0 : i - a->delay[i].behind);
    report_put(t, "]");
    put_list32(t, "path", a->step, a->n_steps);
    put_list64(t, "shares", a->share_ns, MOIRAI_SHARES);
}

static int put_lanes(report_text *t, const moirai_analysis *a, report_track track, const char *name)
{
    int32_t *lane = util_alloc((size_t)a->n_transfers, sizeof *lane), most = 0;
    int rc = lane ? 0 : MOIRAI_EFAIL;
    for (int32_t k = 0; !rc && k < a->n_devices; k++) {
        report_slice *s;
        int32_t n, lanes;
        rc = report_track_slices(&s, &n, &lanes, a, k, track, false);
        for (int32_t i = 0; !rc && i < n; i++)
            lane[s[i].item - a->n_ops] = s[i].lane;
        most = !rc && lanes > most ? lanes : most;
        free(rc ? NULL : s);
    }
    if (!rc)
        put_list32(t, name, lane, most > 1 ? a->n_transfers : 0);
    free(lane);
    return rc;
}

static int put_transfers(report_text *t, const moirai_analysis *a)
{
    static const char *const names[] = {"tensor", "from", "to", "reader"};
    for (int field = 0; field < 4; field++) {
        open_list(t, names[field]);
        for (int32_t x = 0; x < a->n_transfers; x++) {
            const moirai_transfer *y = &a->plan->transfer[x];
            put_int(t, field == 0 ? y->tensor : field == 1 ? y->from : field == 2 ? y->to : y->reader);
        }
        report_put(t, "]");
    }
    int rc = put_lanes(t, a, REPORT_SEND, "sendLane");
    return rc ? rc : put_lanes(t, a, REPORT_RECEIVE, "receiveLane");
}

/* A curve of many points in as many slices of time; a slice keeps its largest value, which is what must fit. */
static void put_curve(report_text *t, const moirai_analysis *a, int32_t k)
{
    int32_t first = a->memory_off[k], n = a->memory_off[k + 1] - first;
    int64_t slice = n > MEMORY_POINTS ? a->plan->makespan_ns / MEMORY_POINTS + 1 : 0;
    report_text bytes = {0};
    report_put(&bytes, "[");
    report_put(t, "{\"at\":[");
    for (int32_t j = 0, i; j < n; j = i) {
        int64_t from = a->memory_ns[first + j], most = a->memory_bytes[first + j];
        for (i = j + 1; i < n && slice && a->memory_ns[first + i] < (from / slice + 1) * slice; i++)
            most = UTIL_MAX(most, a->memory_bytes[first + i]);
        put_int(t, from);
        put_int(&bytes, most);
    }
    report_put(&bytes, "]");
    report_put(t, "],\"bytes\":");
    if (bytes.failed)
        t->failed = true;
    else
        report_put_bytes(t, bytes.data, bytes.length);
    report_put(t, "}");
    free(bytes.data);
}

static void put_devices(report_text *t, const moirai_analysis *a)
{
    put_list32(t, "ops", a->device_ops, a->n_devices);
    put_list64(t, "computes", a->busy_ns, a->n_devices);
    put_list64(t, "sends", a->send_busy_ns, a->n_devices);
    put_list64(t, "receives", a->receive_busy_ns, a->n_devices);
    put_list64(t, "resident", a->resident_bytes, a->n_devices);
    put_list64(t, "peak", a->peak_bytes, a->n_devices);
    open_list(t, "memory");
    for (int32_t k = 0; k < a->n_devices && !a->problem->partial; k++) {
        report_put(t, k ? "," : "");
        put_curve(t, a, k);
    }
    report_put(t, "]");
}

static int put_measured_track(report_text *t, const moirai_analysis *a, report_track track, const char *name)
{
    open_list(t, name); /* device, lane, item, start, length of each */
    for (int32_t k = 0; k < a->n_devices; k++) {
        report_slice *s;
        int32_t n, lanes;
        int rc = report_track_slices(&s, &n, &lanes, a, k, track, true);
        if (rc)
            return rc;
        for (int32_t i = 0; i < n; i++) {
            put_int(t, k);
            put_int(t, s[i].lane);
            put_int(t, s[i].item);
            put_int(t, s[i].start_ns);
            put_int(t, s[i].finish_ns - s[i].start_ns);
        }
        free(s);
    }
    report_put(t, "]");
    return 0;
}

static int put_measured(report_text *t, const moirai_analysis *a)
{
    const moirai_measured *m = a->timeline;
    key(t, "measured");
    report_put(t, "{");
    pair(t, "latency", m->latency_ns);
    open_list(t, "segmentOps"); /* first and last operator, number of operators */
    for (int32_t i = 0; i < m->n_segments; i++) {
        const moirai_measured_segment *s = &m->segment[i];
        put_int(t, s->n_ops ? m->op[s->first_op] : MOIRAI_NONE);
        put_int(t, s->n_ops ? m->op[s->first_op + s->n_ops - 1] : MOIRAI_NONE);
        put_int(t, s->n_ops);
    }
    report_put(t, "]");
    open_list(t, "tensor");
    for (int32_t x = 0; x < m->n_transfers; x++) {
        report_put(t, x ? "," : "");
        report_put_json(t, m->transfer[x].tensor);
    }
    report_put(t, "]");
    open_list(t, "transferEnds"); /* from, to, bytes */
    for (int32_t x = 0; x < m->n_transfers; x++) {
        put_int(t, m->transfer[x].from);
        put_int(t, m->transfer[x].to);
        put_int(t, m->transfer[x].bytes);
    }
    report_put(t, "]");
    int rc = put_measured_track(t, a, REPORT_COMPUTE, "segments");
    rc = rc ? rc : put_measured_track(t, a, REPORT_SEND, "sends");
    rc = rc ? rc : put_measured_track(t, a, REPORT_RECEIVE, "receives");
    report_put(t, "}");
    return rc;
}

static void put_events(report_text *t, const moirai_report_plan *plan)
{
    open_list(t, "events"); /* milliseconds, makespan, bound; -1: none */
    for (int32_t i = 0; i < plan->n_events; i++) {
        put_int(t, (int64_t)(plan->event[i].seconds * 1e3 + 0.5));
        put_int(t, plan->event[i].makespan_ns);
        put_int(t, plan->event[i].lower_bound_ns);
    }
    report_put(t, "]");
}

/* Who found the plan and the bound; name, calls, processor time (-1: not known) and gains of every step. */
static void put_origin(report_text *t, const moirai_plan_origin *origin)
{
    pair_string(t, "planBy", origin->plan_by ? origin->plan_by : "");
    pair_string(t, "boundBy", origin->bound_by ? origin->bound_by : "");
    open_list(t, "stepName");
    for (int32_t i = 0; i < origin->n_steps; i++) {
        report_put(t, i ? "," : "");
        report_put_json(t, origin->step[i].name);
    }
    report_put(t, "]");
    open_list(t, "stepFigures");
    for (int32_t i = 0; i < origin->n_steps; i++) {
        const moirai_search_step *step = &origin->step[i];
        put_int(t, step->calls);
        put_int(t, step->cpu_ns);
        put_int(t, step->plan_gain_ns);
        put_int(t, step->bound_gain_ns);
    }
    report_put(t, "]");
}

static int put_plan(report_text *t, const moirai_report_plan *plan)
{
    const moirai_analysis *a = plan->analysis;
    report_put(t, "{");
    pair_string(t, "label", plan->label ? plan->label : a->plan->placer);
    pair_string(t, "placer", a->plan->placer);
    key(t, "seed");
    report_put(t, "\"%" PRIu64 "\"", a->plan->seed);
    pair(t, "makespan", a->plan->makespan_ns);
    pair(t, "bound", a->plan->lower_bound_ns);
    pair_string(t, "state", moirai_plan_verdict(a->plan));
    pair(t, "generation", a->plan->generation_ns);
    pair(t, "single", a->problem->n_uncosted ? MOIRAI_UNKNOWN : a->single_ns); /* the verdict says why */
    pair(t, "singleDevice", a->single_device);
    report_put_rate(t, a->plan->rate);
    pair(t, "sentBytes", a->sent_bytes);
    pair(t, "cutEdges", a->n_cut_edges);
    open_list(t, "verdict");
    for (int i = 0; i < a->n_verdict; i++) {
        report_put(t, i ? "," : "");
        report_put_json(t, a->verdict[i]);
    }
    report_put(t, "]");
    put_devices(t, a);
    put_tasks(t, a);
    int rc = put_transfers(t, a);
    if (!rc && a->timeline)
        rc = put_measured(t, a);
    put_events(t, plan);
    put_origin(t, &a->plan->origin);
    report_put(t, "}");
    return rc;
}

int report_put_data(report_text *t, const moirai_report_plan *plan, int32_t n_plans)
{
    report_put(t, "{");
    int rc = put_problem(t, plan[0].analysis);
    open_list(t, "shareNames");
    for (int s = 0; s < MOIRAI_SHARES; s++)
        report_put(t, "%s\"%s\"", s ? "," : "", moirai_share_name(s));
    report_put(t, "]");
    open_list(t, "plans");
    for (int32_t i = 0; i < n_plans && !rc; i++) {
        report_put(t, i ? ",\n" : "");
        rc = put_plan(t, &plan[i]);
    }
    report_put(t, "]}");
    return rc;
}
