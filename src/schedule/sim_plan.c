/* From a simulation to a plan, and from a plan back through the simulator ("tighten"). */
#include "schedule/plan.h"
#include "schedule/plan_order.h"
#include "schedule/sim.h"
#include "util/sort.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

#define AHEAD 16 /* so many transfers are fetched before their turn */

static void fill_transfer(moirai_transfer *out, const moirai_sim *sim, int32_t slot)
{
    const moirai_problem *p = sim->p;
    if (sim->per_edge) {
        out->tensor = p->edge_tensor[slot];
        out->reader = p->edge_reader[slot];
        out->to = sim->device[out->reader];
    } else {
        out->tensor = slot / p->n_devices;
        out->reader = MOIRAI_NONE;
        out->to = slot % p->n_devices;
    }
    out->from = sim->device[p->tensor_producer[out->tensor]];
    out->finish_ns = sim->arrival_ns[slot];
    out->start_ns = out->finish_ns - moirai_transfer_ns(p, out->tensor, out->from, out->to);
}

/* What tells of a transfer is anywhere: it is fetched before its turn, and where that is before. */
static void fetch_transfer(const moirai_sim *sim, int64_t late, int64_t soon)
{
    const moirai_problem *p = sim->p;
    if (late >= 0 && !sim->per_edge) {
        __builtin_prefetch(&sim->arrival_ns[late]);
        __builtin_prefetch(&p->tensor_producer[late / p->n_devices]);
        __builtin_prefetch(&p->tensor_class[late / p->n_devices]);
    }
    if (soon >= 0 && !sim->per_edge)
        __builtin_prefetch(&sim->device[p->tensor_producer[soon / p->n_devices]]);
}

/* Transfers in order of their starts, by a radix sort. */
static void fill_transfers(moirai_plan *plan, moirai_sim *sim)
{
    int32_t V = sim->p->n_ops, n = 0;
    int64_t last = sim->n_log - 1;
    for (int64_t j = 0; j <= last; j++) {
        fetch_transfer(sim, sim->log[UTIL_MIN(j + 2 * AHEAD, last)] - V, sim->log[UTIL_MIN(j + AHEAD, last)] - V);
        if (sim->log[j] < V)
            continue;
        int32_t slot = (int32_t)(sim->log[j] - V);
        sim->key[n] = (uint64_t)(sim->arrival_ns[slot] - schedule_sim_transfer_ns(sim, slot));
        sim->item[n++] = slot;
    }
    util_sort(sim->key, sim->item, sim->key_spare, sim->item_spare, n);
    for (int32_t j = 0; j < n; j++) {
        fetch_transfer(sim, sim->item[UTIL_MIN(j + 2 * AHEAD, n - 1)], sim->item[UTIL_MIN(j + AHEAD, n - 1)]);
        fill_transfer(&plan->transfer[j], sim, sim->item[j]);
    }
    schedule_plan_sort_transfers(plan);
}

/* Without `peaks` those that nobody has asked for yet stay unknown. */
static int sim_plan(moirai_plan **out, moirai_sim *sim, bool peaks)
{
    const moirai_problem *p = sim->p;
    *out = NULL;
    if (!sim->complete)
        return moirai_error(MOIRAI_EUSAGE, "problem '%s': no simulation to make a plan of", p->name);
    moirai_plan *plan;
    int rc = schedule_plan_new(&plan, p->name, p->n_ops, (int32_t)(sim->n_log - p->n_ops), p->n_devices);
    if (rc)
        return rc;
    plan->makespan_ns = sim->makespan_ns;
    memset(plan->device_busy_ns, 0, (size_t)p->n_devices * sizeof *plan->device_busy_ns);
    for (int32_t i = 0; i < p->n_ops; i++) {
        plan->op_device[i] = sim->device[i];
        plan->op_start_ns[i] = sim->start_ns[i];
        plan->op_finish_ns[i] = sim->finish_ns[i];
        plan->device_busy_ns[sim->device[i]] += sim->finish_ns[i] - sim->start_ns[i];
    }
    fill_transfers(plan, sim);
    schedule_sim_need(sim, plan->device_memory_bytes, false);
    if (sim->peak_known) /* by whoever asked whether it fits */
        memcpy(plan->device_peak_bytes, sim->need_bytes, (size_t)p->n_devices * sizeof *sim->need_bytes);
    else if (peaks)
        schedule_sim_need(sim, plan->device_peak_bytes, true);
    *out = plan;
    return 0;
}

int moirai_sim_plan(moirai_plan **out, const moirai_sim *sim)
{
    return sim_plan(out, (moirai_sim *)sim, true); /* memory accounting uses its working memory, not its results */
}

/* ---- tighten ---- */

/* By the tensor's readers or by the reader's inputs, whichever are fewer. */
static int32_t find_edge(const moirai_problem *p, int32_t tensor, int32_t reader)
{
    if (reader < 0 || reader >= p->n_ops)
        return MOIRAI_NONE;
    int32_t in = p->op_in_off[reader], in_end = p->op_in_off[reader + 1];
    if (in_end - in < p->tensor_edge_off[tensor + 1] - p->tensor_edge_off[tensor]) {
        while (in < in_end && p->op_in[in] != tensor)
            in++;
        return in < in_end ? p->op_in_edge[in] : MOIRAI_NONE;
    }
    for (int32_t e = p->tensor_edge_off[tensor]; e < p->tensor_edge_off[tensor + 1]; e++)
        if (p->edge_reader[e] == reader)
            return e;
    return MOIRAI_NONE;
}

static int collect(schedule_timed_task *task, const moirai_problem *p, const moirai_plan *plan)
{
    int64_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        task[n++] = schedule_timed_op(p, i, plan->op_start_ns[i], plan->op_finish_ns[i]);
    for (int32_t j = 0; j < plan->n_transfers; j++) {
        const moirai_transfer *x = &plan->transfer[j];
        if (x->tensor < 0 || x->tensor >= p->n_tensors || x->to < 0 || x->to >= p->n_devices)
            return moirai_error(MOIRAI_EINPUT, "plan of '%s': transfer %d names no tensor or device of it", p->name, j);
        moirai_task number = p->n_ops + (moirai_task)x->tensor * p->n_devices + x->to;
        if (p->flow == MOIRAI_FLOW_EDGE) {
            int32_t e = find_edge(p, x->tensor, x->reader);
            if (e == MOIRAI_NONE)
                return moirai_error(MOIRAI_EINPUT, "plan of '%s': transfer %d of tensor '%s' has no such consumer",
                                    p->name, j, p->tensor_name[x->tensor]);
            number = p->n_ops + (moirai_task)e;
        }
        task[n++] = schedule_timed_transfer(p, x->tensor, x->start_ns, x->finish_ns, number);
    }
    return 0;
}

int schedule_plan_account(moirai_plan *plan, const moirai_problem *p)
{
    moirai_sim *sim;
    int rc = moirai_sim_new(&sim, p);
    if (rc)
        return rc;
    memset(plan->device_busy_ns, 0, (size_t)p->n_devices * sizeof *plan->device_busy_ns);
    for (int32_t i = 0; i < p->n_ops; i++) {
        sim->device[i] = plan->op_device[i];
        sim->start_ns[i] = plan->op_start_ns[i];
        sim->finish_ns[i] = plan->op_finish_ns[i];
        plan->device_busy_ns[sim->device[i]] += sim->finish_ns[i] - sim->start_ns[i];
    }
    for (int32_t j = 0; j < plan->n_transfers; j++) {
        const moirai_transfer *x = &plan->transfer[j];
        int32_t slot = sim->per_edge ? find_edge(p, x->tensor, x->reader) : x->tensor * p->n_devices + x->to;
        sim->arrival_ns[slot] = x->finish_ns;
    }
    sim->makespan_ns = plan->makespan_ns;
    sim->n_log = p->n_ops + plan->n_transfers;
    schedule_sim_need(sim, plan->device_memory_bytes, false);
    schedule_sim_need(sim, plan->device_peak_bytes, true);
    moirai_sim_free(sim);
    return 0;
}

/* With peak memory an earlier start can be a start too early for the memory: then the plan stays as it is. */
static int tightened(moirai_plan **out, moirai_sim *sim, const moirai_plan *plan, bool peaks)
{
    if (sim->p->memory == MOIRAI_MEMORY_PEAK && moirai_sim_memory_excess(sim, NULL) > 0)
        return moirai_plan_copy(out, plan);
    int rc = sim_plan(out, sim, peaks);
    if (!rc && (rc = schedule_plan_keep_origin(*out, plan))) {
        moirai_plan_free(*out);
        *out = NULL;
    }
    return rc;
}

int schedule_plan_order(moirai_task **out, int64_t *n_order, const moirai_problem *p, const moirai_plan *plan)
{
    *out = NULL;
    if (plan->n_ops != p->n_ops)
        return moirai_error(MOIRAI_EINPUT, "plan of '%s' has %d operators, the problem %d", p->name, plan->n_ops,
                            p->n_ops);
    size_t n = (size_t)p->n_ops + (size_t)plan->n_transfers;
    schedule_timed_task *task = util_alloc(n, sizeof *task);
    moirai_task *order = util_alloc(n, sizeof *order);
    int rc = task && order ? collect(task, p, plan) : MOIRAI_EFAIL;
    if (!rc) {
        schedule_timed_sort(task, n);
        for (size_t j = 0; j < n; j++)
            order[j] = task[j].task;
        *out = order;
        *n_order = (int64_t)n;
        order = NULL;
    }
    free(order);
    free(task);
    return rc;
}

int moirai_plan_tighten(moirai_plan **out, const moirai_problem *p, const moirai_plan *plan)
{
    return schedule_plan_tighten(out, p, plan, NULL);
}

int schedule_plan_tighten(moirai_plan **out, const moirai_problem *p, const moirai_plan *plan,
                          const moirai_interrupt *hurry)
{
    *out = NULL;
    moirai_task *order = NULL;
    moirai_sim *sim = NULL;
    int64_t n = 0;
    int rc = schedule_plan_order(&order, &n, p, plan);
    rc = rc ? rc : moirai_sim_new(&sim, p);
    if (!rc && moirai_sim_replay(sim, plan->op_device, order, n) < 0)
        rc = moirai_error(MOIRAI_EINPUT, "plan of '%s': its devices or its order of starts are not allowed", p->name);
    rc = rc ? rc : tightened(out, sim, plan, !moirai_interrupt_raised(hurry));
    moirai_sim_free(sim);
    free(order);
    return rc;
}

int64_t schedule_sim_replay_closed(moirai_sim *sim, const int32_t *op_device, const moirai_task *order, int64_t n)
{
    int64_t length = moirai_sim_replay(sim, op_device, order, n);
    for (int32_t i = 0; i < 2 && length >= 0; i++) {
        n = moirai_sim_order(sim, &order);
        length = moirai_sim_replay(sim, op_device, order, n);
    }
    return length;
}

int schedule_sim_take_better(moirai_plan **plan, moirai_sim *sim, int64_t length_ns)
{
    if (length_ns < 0 || (*plan && (*plan)->makespan_ns <= length_ns) || moirai_sim_memory_excess(sim, NULL) > 0)
        return 0;
    moirai_plan *better;
    int rc = moirai_sim_plan(&better, sim);
    if (rc)
        return rc;
    moirai_plan_free(*plan);
    *plan = better;
    return 0;
}
