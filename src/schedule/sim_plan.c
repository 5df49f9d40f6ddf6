/* From a simulation to its tasks in order of their starts and to a plan, and from a plan back through the simulator ("tighten"). */
#include "schedule/plan.h"
#include "schedule/plan_order.h"
#include "schedule/sim.h"
#include "util/sort.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

#define AHEAD 16 /* so many transfers are fetched before their turn */

/* ---- the order of starts: a radix sort, no comparison, no allocation ---- */

/* The log respects precedence; a stable sort by (start, takes time) keeps that among tasks of one start: an empty
 * task never waits for one that takes time and starts at the same moment. */
void schedule_sim_sort_log(moirai_sim *sim)
{
    if (sim->log_sorted)
        return;
    int32_t n = (int32_t)sim->n_log, V = sim->p->n_ops;
    for (int32_t j = 0; j < n; j++) {
        moirai_task task = sim->log[j];
        int64_t ns, start;
        if (task < V) {
            start = sim->start_ns[task];
            ns = sim->finish_ns[task] - start;
        } else {
            schedule_sent_task x = schedule_sim_sent(sim, task);
            ns = moirai_transfer_ns(sim->p, x.tensor, sim->device[sim->p->tensor_producer[x.tensor]], x.to);
            start = sim->arrival_ns[x.room] - ns;
        }
        sim->key[j] = (uint64_t)start << 1 | (ns > 0);
        sim->item[j] = j;
    }
    util_sort(sim->key, sim->item, sim->key_spare, sim->item_spare, n);
    for (int32_t j = 0; j < n; j++)
        sim->log_spare[j] = sim->log[sim->item[j]];
    moirai_task *old = sim->log;
    sim->log = sim->log_spare;
    sim->log_spare = old;
    sim->log_sorted = true;
}

int64_t moirai_sim_order(moirai_sim *sim, const moirai_task **order)
{
    schedule_sim_sort_log(sim);
    *order = sim->log;
    return sim->n_log;
}

/* ---- a plan ---- */

static moirai_transfer transfer_at(const moirai_sim *sim, int32_t room, int32_t tensor, int32_t from, int32_t to)
{
    const moirai_problem *p = sim->p;
    int64_t finish = sim->arrival_ns[room];
    return (moirai_transfer){tensor, sim->per_edge ? p->edge_reader[room] : MOIRAI_NONE, from,
                             to,     finish - moirai_transfer_ns(p, tensor, from, to),   finish};
}

/* Those of a tensor of a complete simulation, which are where it is read but not made; how many. */
static int32_t sent_of(moirai_transfer *out, const moirai_sim *sim, int32_t t)
{
    const moirai_problem *p = sim->p;
    int32_t home = sim->device[p->tensor_producer[t]], room = p->tensor_edge_off[t], n = 0,
            words = moirai_device_words(p);
    for (; sim->per_edge && room < p->tensor_edge_off[t + 1]; room++)
        if (sim->device[p->edge_reader[room]] != home)
            out[n++] = transfer_at(sim, room, t, home, sim->device[p->edge_reader[room]]);
    for (int32_t w = 0; w < words && !sim->per_edge; w++)
        for (uint64_t left = sim->tensor_to[(int64_t)t * words + w]; left; left &= left - 1)
            out[n++] = transfer_at(sim, room++, t, home, w * 64 + __builtin_ctzll(left));
    return n;
}

/* Transfers in order of their starts, by a radix sort: tensor by tensor, where all that tells of them is side by side, and then each to
 * its place. */
static int fill_transfers(moirai_plan *plan, moirai_sim *sim)
{
    int32_t n = 0;
    moirai_transfer *sent = util_alloc((size_t)plan->n_transfers, sizeof *sent);
    if (!sent)
        return MOIRAI_EFAIL;
    for (int32_t t = 0; t < sim->p->n_tensors; t++)
        n += sent_of(&sent[n], sim, t);
    for (int32_t j = 0; j < n; j++) {
        sim->key[j] = (uint64_t)sent[j].start_ns;
        sim->item[j] = j;
    }
    util_sort(sim->key, sim->item, sim->key_spare, sim->item_spare, n);
    for (int32_t j = 0; j < n; j++) {
        __builtin_prefetch(&sent[sim->item[UTIL_MIN(j + AHEAD, n - 1)]]);
        plan->transfer[j] = sent[sim->item[j]];
    }
    free(sent);
    schedule_plan_sort_transfers(plan);
    return 0;
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
    rc = rc ? rc : fill_transfers(plan, sim);
    if (rc) {
        moirai_plan_free(plan);
        return rc;
    }
    plan->makespan_ns = sim->makespan_ns;
    memset(plan->device_busy_ns, 0, (size_t)p->n_devices * sizeof *plan->device_busy_ns);
    for (int32_t i = 0; i < p->n_ops; i++) {
        plan->op_device[i] = sim->device[i];
        plan->op_start_ns[i] = sim->start_ns[i];
        plan->op_finish_ns[i] = sim->finish_ns[i];
        plan->device_busy_ns[sim->device[i]] += sim->finish_ns[i] - sim->start_ns[i];
    }
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
    memcpy(sim->device, plan->op_device, (size_t)p->n_ops * sizeof *sim->device);
    schedule_sim_find_sent(sim);
    for (int32_t i = 0; i < p->n_ops; i++) {
        sim->start_ns[i] = plan->op_start_ns[i];
        sim->finish_ns[i] = plan->op_finish_ns[i];
        plan->device_busy_ns[sim->device[i]] += sim->finish_ns[i] - sim->start_ns[i];
    }
    for (int32_t j = 0; j < plan->n_transfers; j++) {
        const moirai_transfer *x = &plan->transfer[j];
        int32_t edge = sim->per_edge ? find_edge(p, x->tensor, x->reader) : MOIRAI_NONE;
        sim->arrival_ns[schedule_sim_room(sim, edge, x->tensor, x->to)] = x->finish_ns;
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
