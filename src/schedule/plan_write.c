/* moirai-plan files, writing (formats.md). */
#include <inttypes.h>
#include <stdio.h>

#include "graph/graph_read.h"
#include "schedule/plan.h"

static void write_head(util_writer *w, const moirai_plan *plan, const moirai_problem *p)
{
    char digest[32];
    snprintf(digest, sizeof digest, "%016" PRIx64, moirai_problem_digest(p));
    util_writer_pair_string(w, "problem", plan->problem);
    util_writer_pair_string(w, "problem_digest", digest);
    util_writer_pair_string(w, "placer", plan->placer);
    util_writer_key(w, "seed");
    util_writer_uint(w, plan->seed);
    util_writer_break(w);
    util_writer_pair_string(w, "status", moirai_plan_is_optimal(plan) ? "optimal" : "feasible");
    util_writer_pair_string(w, "verdict", moirai_plan_verdict(plan));
    util_writer_pair_int(w, "makespan_ns", plan->makespan_ns);
    util_writer_key(w, "lower_bound_ns");
    if (plan->lower_bound_ns == MOIRAI_UNKNOWN)
        util_writer_null(w);
    else
        util_writer_int(w, plan->lower_bound_ns);
    util_writer_key(w, "gap");
    if (plan->lower_bound_ns == MOIRAI_UNKNOWN)
        util_writer_null(w);
    else
        util_writer_real(w, moirai_plan_gap(plan));
    if (plan->certified_bound_ns != MOIRAI_UNKNOWN)
        util_writer_pair_int(w, "certified_bound_ns", plan->certified_bound_ns);
    if (plan->uncertified) {
        util_writer_pair_open(w, "uncertified_because", '[');
        for (int i = 0; i < MOIRAI_UNCERTIFIED_BITS; i++)
            if (plan->uncertified >> i & 1)
                util_writer_string(w, moirai_uncertified_text(1u << i));
        util_writer_close(w, ']');
    }
    if (plan->solver_bound_ns != MOIRAI_UNKNOWN)
        util_writer_pair_int(w, "solver_bound_ns", plan->solver_bound_ns);
    schedule_origin_write(w, &plan->origin);
    util_writer_pair_int(w, "generation_ns", plan->generation_ns);
}

static void write_ops(util_writer *w, const moirai_plan *plan, const moirai_problem *p)
{
    util_writer_break(w);
    util_writer_pair_open(w, "ops", '[');
    for (int32_t i = 0; i < plan->n_ops; i++) {
        if (plan->op_device[i] == MOIRAI_NONE)
            continue;
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", p->op_name[i]);
        util_writer_pair_string(w, "device", p->device_name[plan->op_device[i]]);
        util_writer_pair_int(w, "start_ns", plan->op_start_ns[i]);
        util_writer_pair_int(w, "finish_ns", plan->op_finish_ns[i]);
        util_writer_close(w, '}');
    }
    util_writer_break(w);
    util_writer_close(w, ']');
}

static void write_transfers(util_writer *w, const moirai_plan *plan, const moirai_problem *p)
{
    util_writer_break(w);
    util_writer_pair_open(w, "transfers", '[');
    for (int32_t j = 0; j < plan->n_transfers; j++) {
        const moirai_transfer *x = &plan->transfer[j];
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "tensor", p->tensor_name[x->tensor]);
        if (x->reader != MOIRAI_NONE)
            util_writer_pair_string(w, "consumer", p->op_name[x->reader]);
        util_writer_pair_string(w, "from", p->device_name[x->from]);
        util_writer_pair_string(w, "to", p->device_name[x->to]);
        util_writer_pair_int(w, "start_ns", x->start_ns);
        util_writer_pair_int(w, "finish_ns", x->finish_ns);
        util_writer_pair_int(w, "bytes", p->tensor_bytes[x->tensor]);
        util_writer_close(w, '}');
    }
    util_writer_break(w);
    util_writer_close(w, ']');
}

void schedule_plan_write_tasks(util_writer *w, const moirai_plan *plan, const moirai_problem *p)
{
    write_ops(w, plan, p);
    write_transfers(w, plan, p);
}

static void write_devices(util_writer *w, const moirai_plan *plan, const moirai_problem *p)
{
    util_writer_break(w);
    util_writer_pair_open(w, "devices", '[');
    for (int32_t k = 0; k < plan->n_devices; k++) {
        util_writer_break(w);
        util_writer_open(w, '{');
        util_writer_pair_string(w, "name", p->device_name[k]);
        if (plan->device_busy_ns[k] != MOIRAI_UNKNOWN)
            util_writer_pair_int(w, "busy_ns", plan->device_busy_ns[k]);
        if (plan->device_memory_bytes[k] != MOIRAI_UNKNOWN)
            util_writer_pair_int(w, "memory_bytes", plan->device_memory_bytes[k]);
        if (plan->device_peak_bytes[k] != MOIRAI_UNKNOWN)
            util_writer_pair_int(w, "peak_bytes", plan->device_peak_bytes[k]);
        util_writer_close(w, '}');
    }
    util_writer_break(w);
    util_writer_close(w, ']');
}

int moirai_plan_write(const moirai_plan *plan, const moirai_problem *p, const char *path)
{
    if (plan->n_ops != p->n_ops || plan->n_devices != p->n_devices)
        return moirai_error(MOIRAI_EUSAGE, "%s: a plan of %d operators and %d devices does not belong to problem '%s'",
                            path, plan->n_ops, plan->n_devices, p->name);
    util_writer w;
    util_writer_begin(&w, "moirai-plan");
    write_head(&w, plan, p);
    int rc = plan->rate ? schedule_rate_write(&w, plan, p) : 0;
    if (rc) {
        util_writer_free(&w);
        return rc;
    }
    graph_write_settings(&w, &(graph_settings){p->n_dims, p->n_shapes, p->n_assumed, p->dim, p->shape, p->assumed});
    if (p->n_uncosted)
        graph_write_texts(&w, "uncosted", p->n_uncosted, p->uncosted);
    schedule_plan_write_tasks(&w, plan, p);
    write_devices(&w, plan, p);
    util_writer_close(&w, '}');
    return util_writer_save(&w, path);
}
