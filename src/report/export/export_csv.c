/* Tasks as a table: a line per operator, then one per transfer. */
#include "report/report.h"

#include <inttypes.h>

static void put_times(report_text *t, const moirai_analysis *a, int32_t task)
{
    const moirai_delay *d = &a->delay[task];
    report_put(t, ",%" PRId64 ",%" PRId64 ",", moirai_task_start(a, task), moirai_task_finish(a, task));
    if (a->problem->partial)
        report_put(t, ",,,,\n");
    else
        report_put(t, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,", d->ready_ns, d->busy_ns, d->held_ns, a->on_path[task]);
    if (!a->problem->partial) {
        if (d->cause != MOIRAI_NONE)
            report_put_csv(t, moirai_task_name(a, d->cause));
        report_put(t, "\n");
    }
}

static int write_csv(char **out, size_t *length, const moirai_analysis *a, const moirai_export_options *o)
{
    (void)o;
    const moirai_problem *p = a->problem;
    report_text t = {0};
    report_put(&t,
               "kind,name,type,device,to,bytes,start_ns,finish_ns,ready_ns,waited_busy_ns,held_ns,critical,after\n");
    for (int32_t i = 0; i < a->n_ops; i++) {
        report_put(&t, "operator,");
        report_put_csv(&t, p->op_name[i]);
        report_put(&t, ",");
        report_put_csv(&t, p->op_type[i]);
        report_put(&t, ",");
        report_put_csv(&t, p->device_name[a->plan->op_device[i]]);
        report_put(&t, ",,%" PRId64, p->op_memory_bytes[i]);
        put_times(&t, a, i);
    }
    for (int32_t x = 0; x < a->n_transfers; x++) {
        const moirai_transfer *y = &a->plan->transfer[x];
        report_put(&t, "transfer,");
        report_put_csv(&t, p->tensor_name[y->tensor]);
        report_put(&t, ",,");
        report_put_csv(&t, p->device_name[y->from]);
        report_put(&t, ",");
        report_put_csv(&t, p->device_name[y->to]);
        report_put(&t, ",%" PRId64, p->tensor_bytes[y->tensor]);
        put_times(&t, a, a->n_ops + x);
    }
    return report_take(out, length, &t);
}

const moirai_exporter report_export_csv = {
    .name = "csv",
    .summary = "a line per operator and transfer, with its waits",
    .write = write_csv,
};
