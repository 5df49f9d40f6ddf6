/* A trace in the JSON format that Chrome and Perfetto read.
 *
 * One process per device, with a thread for its operators and one for each port; where a port carries several transfers
 * at once, one thread per lane, so that slices of a thread follow each other. A transfer is a slice on the sender's and
 * one on the receiver's port, with an arrow from the operator that made the tensor over the send slice to the operator
 * that waited for it. Memory is a counter. A measured run comes as further processes. Times are microseconds; three
 * decimals keep the nanoseconds. */
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/util.h"

enum { MEASURED = 1000, LANES = 1000 }; /* numbers of processes and threads: far apart */

typedef struct trace {
    report_text raw;
    bool any; /* an event was written */
    const moirai_analysis *a;
} trace;

/* Microseconds with three decimals: exact. yyjson's writer would round, so the text is put together by hand. */
static void put_us(trace *t, const char *key, int64_t ns)
{
    report_put(&t->raw, ", \"%s\": %s%" PRId64 ".%03d", key, ns < 0 ? "-" : "", (ns < 0 ? -ns : ns) / 1000,
               (int)((ns < 0 ? -ns : ns) % 1000));
}

static void put_string(trace *t, const char *text)
{
    report_put_json(&t->raw, text);
}

static void begin(trace *t, const char *phase, int32_t pid, int32_t tid)
{
    report_put(&t->raw, "%s{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d", t->any ? ",\n" : "", phase, pid, tid);
    t->any = true;
}

static void name_thing(trace *t, const char *what, int32_t pid, int32_t tid, const char *name, const char *more)
{
    begin(t, "M", pid, tid);
    report_put(&t->raw, ", \"name\": \"%s\", \"args\": {\"name\": ", what);
    char text[400];
    snprintf(text, sizeof text, "%.300s%s", name, more);
    put_string(t, text);
    report_put(&t->raw, "}}");
}

static void sort_index(trace *t, const char *what, int32_t pid, int32_t tid, int32_t index)
{
    begin(t, "M", pid, tid);
    report_put(&t->raw, ", \"name\": \"%s\", \"args\": {\"sort_index\": %d}}", what, index);
}

/* What a slice is and why it starts when it does. */
static void put_details(trace *t, int32_t task)
{
    const moirai_analysis *a = t->a;
    const moirai_delay *d = &a->delay[task];
    report_put(&t->raw, ", \"args\": {");
    if (report_is_transfer(a, task)) {
        const moirai_transfer *x = report_transfer(a, task);
        report_put(&t->raw, "\"bytes\": %" PRId64 ", \"from\": ", a->problem->tensor_bytes[x->tensor]);
        put_string(t, a->problem->device_name[x->from]);
        report_put(&t->raw, ", \"to\": ");
        put_string(t, a->problem->device_name[x->to]);
    } else {
        report_put(&t->raw, "\"type\": ");
        put_string(t, a->problem->op_type[task]);
    }
    if (!a->problem->partial)
        report_put(&t->raw,
                   ", \"ready_ns\": %" PRId64 ", \"waited_busy_ns\": %" PRId64 ", \"held_ns\": %" PRId64
                   ", \"critical\": %s",
                   d->ready_ns, d->busy_ns, d->held_ns, a->on_path[task] ? "true" : "false");
    report_put(&t->raw, "}}");
}

static void slice(trace *t, const char *name, int32_t pid, int32_t tid, const char *category, int64_t start_ns,
                  int64_t finish_ns)
{
    begin(t, "X", pid, tid);
    report_put(&t->raw, ", \"cat\": \"%s\", \"name\": ", category);
    put_string(t, name);
    put_us(t, "ts", start_ns);
    put_us(t, "dur", finish_ns - start_ns);
}

static void flow(trace *t, const char *phase, int32_t pid, int32_t tid, int64_t id, int64_t ns)
{
    begin(t, phase, pid, tid);
    report_put(&t->raw, ", \"cat\": \"transfer\", \"name\": \"transfer\", \"id\": %" PRId64 "%s", id,
               *phase == 'f' ? ", \"bp\": \"e\"" : "");
    put_us(t, "ts", ns);
    report_put(&t->raw, "}");
}

/* From the producer over the send slice to the first operator that reads it after it came. */
static void arrows(trace *t, int32_t task, int32_t tid)
{
    const moirai_analysis *a = t->a;
    const moirai_problem *p = a->problem;
    const moirai_transfer *x = report_transfer(a, task);
    int32_t producer = p->tensor_producer[x->tensor], reader = x->reader;
    if (p->partial)
        return;
    for (int32_t e = p->tensor_edge_off[x->tensor]; x->reader == MOIRAI_NONE && e < p->tensor_edge_off[x->tensor + 1];
         e++) {
        int32_t i = p->edge_reader[e];
        if (a->plan->op_device[i] == x->to &&
            (reader == MOIRAI_NONE || a->plan->op_start_ns[i] < a->plan->op_start_ns[reader]))
            reader = i;
    }
    flow(t, "s", x->from + 1, 1, task, a->plan->op_start_ns[producer]);
    flow(t, "t", x->from + 1, tid, task, x->start_ns);
    if (reader != MOIRAI_NONE)
        flow(t, "f", x->to + 1, 1, task, a->plan->op_start_ns[reader]);
}

static int32_t thread_of(report_track track, int32_t lane)
{
    return 1 + (int32_t)track * LANES + lane;
}

static void name_track(trace *t, int32_t pid, report_track track, int32_t lanes)
{
    static const char *const names[REPORT_TRACKS] = {"computes", "sends", "receives"};
    char more[40];
    for (int32_t lane = 0; lane < UTIL_MAX(lanes, 1); lane++) {
        *more = '\0';
        if (lane)
            snprintf(more, sizeof more, " (%d)", lane + 1);
        name_thing(t, "thread_name", pid, thread_of(track, lane), names[track], more);
        sort_index(t, "thread_sort_index", pid, thread_of(track, lane), thread_of(track, lane));
    }
}

static int planned_track(trace *t, int32_t device, report_track track)
{
    report_slice *s;
    int32_t n, lanes, pid = device + 1;
    int rc = report_track_slices(&s, &n, &lanes, t->a, device, track, false);
    if (rc)
        return rc;
    name_track(t, pid, track, lanes);
    for (int32_t i = 0; i < n; i++) {
        int32_t tid = thread_of(track, s[i].lane);
        slice(t, moirai_task_name(t->a, s[i].item), pid, tid, track == REPORT_COMPUTE ? "operator" : "transfer",
              s[i].start_ns, s[i].finish_ns);
        put_details(t, s[i].item);
        if (track == REPORT_SEND)
            arrows(t, s[i].item, tid);
    }
    free(s);
    return 0;
}

static int measured_track(trace *t, int32_t device, report_track track)
{
    const moirai_measured *m = t->a->timeline;
    report_slice *s;
    int32_t n, lanes, pid = MEASURED + device + 1;
    char name[80];
    int rc = report_track_slices(&s, &n, &lanes, t->a, device, track, true);
    if (rc)
        return rc;
    name_track(t, pid, track, lanes);
    for (int32_t i = 0; i < n; i++) {
        int32_t ops = track == REPORT_COMPUTE ? m->segment[s[i].item].n_ops : 0;
        snprintf(name, sizeof name, "segment of %d operators", ops);
        slice(t, track == REPORT_COMPUTE ? name : m->transfer[s[i].item].tensor, pid, thread_of(track, s[i].lane),
              "measured", s[i].start_ns, s[i].finish_ns);
        if (track == REPORT_COMPUTE && ops) {
            report_put(&t->raw, ", \"args\": {\"first\": ");
            put_string(t, t->a->problem->op_name[m->op[m->segment[s[i].item].first_op]]);
            report_put(&t->raw, ", \"last\": ");
            put_string(t, t->a->problem->op_name[m->op[m->segment[s[i].item].first_op + ops - 1]]);
            report_put(&t->raw, "}");
        }
        report_put(&t->raw, "}");
    }
    free(s);
    return 0;
}

static void counters(trace *t, int32_t device)
{
    const moirai_analysis *a = t->a;
    for (int32_t j = a->memory_off[device]; j < a->memory_off[device + 1]; j++) {
        begin(t, "C", device + 1, 0);
        report_put(&t->raw, ", \"name\": \"memory\", \"args\": {\"bytes\": %" PRId64 "}", a->memory_bytes[j]);
        put_us(t, "ts", a->memory_ns[j]);
        report_put(&t->raw, "}");
    }
}

static int write_trace(char **out, size_t *length, const moirai_analysis *a, const moirai_export_options *o)
{
    (void)o;
    trace t = {.a = a};
    int rc = 0;
    report_put(&t.raw,
               "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"made by\": \"moirai\"},\n \"traceEvents\": [\n");
    for (int32_t k = 0; k < a->n_devices && !rc; k++) {
        for (int m = 0; m < (a->timeline ? 2 : 1) && !rc; m++) {
            int32_t pid = (m ? MEASURED : 0) + k + 1;
            name_thing(&t, "process_name", pid, 0, a->problem->device_name[k], m ? " (measured)" : "");
            sort_index(&t, "process_sort_index", pid, 0, 2 * k + m);
            for (int track = 0; track < REPORT_TRACKS && !rc; track++)
                rc = m ? measured_track(&t, k, track) : planned_track(&t, k, track);
        }
        counters(&t, k);
    }
    report_put(&t.raw, "\n]}\n");
    if (!rc)
        return report_take(out, length, &t.raw);
    free(t.raw.data);
    return rc;
}

const moirai_exporter report_export_trace = {
    .name = "trace",
    .summary = "for Perfetto (ui.perfetto.dev) and chrome://tracing",
    .write = write_trace,
};
