/* What the search found, as tasks in order and as a plan. The times are taken as they are: with memory `peak` a task
 * may wait on purpose, which a simulation of the order alone would undo. */
#include "exact/exact_search.h"
#include "schedule/plan.h"
#include "schedule/plan_order.h"

#include <stdlib.h>
#include <string.h>

void exact_result_clear(exact_result *r)
{
    util_release(&r->memory);
    free(r->tree);
    memset(r, 0, sizeof *r);
    r->makespan_ns = MOIRAI_UNKNOWN;
}

int exact_sort(const moirai_problem *p, exact_result *r)
{
    if (!r->found)
        return 0;
    size_t n = (size_t)p->n_ops + (size_t)r->n_transfers;
    schedule_timed_task *list = util_alloc(n, sizeof *list);
    if (!list)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops; i++)
        list[i] = schedule_timed_op(p, i, r->op_start_ns[i], r->op_start_ns[i] + moirai_op_ns(p, i, r->op_device[i]));
    for (int32_t a = 0; a < r->n_transfers; a++) {
        const exact_transfer *x = &r->transfer[a];
        int64_t slot = x->edge != MOIRAI_NONE ? x->edge : (int64_t)x->tensor * p->n_devices + x->to;
        list[p->n_ops + a] = schedule_timed_transfer(p, x->tensor, x->start_ns, x->finish_ns, p->n_ops + slot);
    }
    schedule_timed_sort(list, n);
    r->n_order = (int64_t)n;
    for (size_t a = 0; a < n; a++)
        r->order[a] = list[a].task;
    free(list);
    return 0;
}

/* The life of tensor t on device d in the plan; false where it never is there, or for no time. */
static bool life_of(const moirai_problem *p, const moirai_plan *plan, int32_t t, int32_t d, exact_life *life)
{
    int32_t j = p->tensor_producer[t], first = p->tensor_edge_off[t], last = p->tensor_edge_off[t + 1];
    bool is_producer = plan->op_device[j] == d;
    *life = (exact_life){is_producer ? plan->op_start_ns[j] : EXACT_NONE_NS, is_producer ? plan->op_finish_ns[j] : 0,
                         p->tensor_bytes[t], t};
    if (is_producer && first == last)
        life->end = plan->makespan_ns;
    for (int32_t e = first; e < last; e++)
        if (plan->op_device[p->edge_reader[e]] == d)
            life->end = UTIL_MAX(life->end, plan->op_finish_ns[p->edge_reader[e]]);
    for (int32_t a = 0; a < plan->n_transfers; a++) {
        const moirai_transfer *x = &plan->transfer[a];
        if (x->tensor != t)
            continue;
        if (x->from == d)
            life->end = UTIL_MAX(life->end, x->finish_ns);
        if (x->to == d)
            life->begin = UTIL_MIN(life->begin, x->start_ns);
    }
    return life->begin < life->end;
}

static void fill_peaks(const moirai_problem *p, moirai_plan *plan, exact_life *life)
{
    for (int32_t d = 0; d < p->n_devices; d++) {
        int32_t n = 0;
        int64_t most = 0;
        for (int32_t t = 0; t < p->n_tensors; t++)
            n += life_of(p, plan, t, d, &life[n]);
        for (int32_t a = 0; a < n; a++) {
            int64_t alive = 0;
            for (int32_t b = 0; b < n; b++)
                alive += life[b].begin <= life[a].begin && life[a].begin < life[b].end ? life[b].bytes : 0;
            most = UTIL_MAX(most, alive);
        }
        plan->device_peak_bytes[d] = plan->device_memory_bytes[d] + most;
    }
}

int exact_plan(moirai_plan **out, const moirai_problem *p, const exact_result *r)
{
    *out = NULL;
    if (!r->found)
        return moirai_error(MOIRAI_EUSAGE, "problem '%s': the exact search found no plan", p->name);
    moirai_plan *plan;
    int rc = schedule_plan_new(&plan, p->name, p->n_ops, r->n_transfers, p->n_devices);
    exact_life *life = !rc ? util_alloc((size_t)p->n_tensors, sizeof *life) : NULL;
    if (!life) {
        moirai_plan_free(plan);
        return MOIRAI_EFAIL;
    }
    plan->lower_bound_ns = r->lower_bound_ns;
    memset(plan->device_busy_ns, 0, (size_t)p->n_devices * sizeof *plan->device_busy_ns);
    memset(plan->device_memory_bytes, 0, (size_t)p->n_devices * sizeof *plan->device_memory_bytes);
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t k = r->op_device[i];
        plan->op_device[i] = k;
        plan->op_start_ns[i] = r->op_start_ns[i];
        plan->op_finish_ns[i] = r->op_start_ns[i] + moirai_op_ns(p, i, k);
        plan->makespan_ns = UTIL_MAX(plan->makespan_ns, plan->op_finish_ns[i]);
        plan->device_busy_ns[k] += moirai_op_ns(p, i, k);
        plan->device_memory_bytes[k] += p->op_memory_bytes[i];
    }
    moirai_problem_add_weights(p, plan->op_device, plan->device_memory_bytes);
    for (int32_t a = 0; a < r->n_transfers; a++) {
        const exact_transfer *x = &r->transfer[a];
        int32_t reader = x->edge != MOIRAI_NONE ? p->edge_reader[x->edge] : MOIRAI_NONE;
        plan->transfer[a] = (moirai_transfer){x->tensor, reader, x->from, x->to, x->start_ns, x->finish_ns};
    }
    schedule_plan_sort_transfers(plan);
    fill_peaks(p, plan, life);
    free(life);
    *out = plan;
    return 0;
}
