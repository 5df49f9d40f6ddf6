/* From a plan of fused operators back to a plan of the operators that they stand for.
 *
 * Every member goes to the device of its fused operator. The tasks of the coarse plan, sorted by start, give the
 * order: a fused operator stands for its members in their order, a transfer for the transfer of the same tensor, which
 * coarsening leaves its name; with flow "edge" for one to each member that reads it. Replaying that order with the
 * times of the fine problem is the plan. The order respects precedence: what a member reads from outside, its fused
 * operator had to wait for as well. A bound on the coarse problem says nothing of the fine one: the expanded plan has
 * none.
 *
 * O((V+E) log V). */
#include <stdlib.h>
#include <string.h>

#include <moirai/coarsen.h>
#include <moirai/schedule.h>
#include "schedule/plan.h"
#include "schedule/plan_order.h"
#include "util/util.h"

typedef struct expander {
    const moirai_problem *fine, *coarse;
    const moirai_plan *plan;
    int32_t *member_off, *member; /* coarse operator -> fine operators, in their order */
    int32_t *owner;               /* fine operator -> coarse operator */
    int32_t *fine_device;         /* coarse device -> fine device */
    int32_t *op_device;           /* of the fine operators */
    schedule_timed_task *task;    /* of the coarse plan: an operator, or n_ops + the number of a transfer */
    moirai_task *order;
    size_t n_order, order_capacity;
} expander;

static int member_put(expander *x, int32_t *n, int32_t coarse_op, const char *name)
{
    int32_t op = moirai_problem_find_op(x->fine, name);

    if (op == MOIRAI_NONE)
        return moirai_error(MOIRAI_EINPUT, "problem '%s': no operator '%s', a member of '%s' of problem '%s'",
                            x->fine->name, name, x->coarse->op_name[coarse_op], x->coarse->name);
    if (x->owner[op] != MOIRAI_NONE)
        return moirai_error(MOIRAI_EINPUT, "problem '%s': operator '%s' belongs to both '%s' and '%s'", x->coarse->name,
                            name, x->coarse->op_name[x->owner[op]], x->coarse->op_name[coarse_op]);
    x->owner[op] = coarse_op;
    x->op_device[op] = x->fine_device[x->plan->op_device[coarse_op]];
    x->member[(*n)++] = op;
    return 0;
}

static int members_find(expander *x, const moirai_graph *g)
{
    int32_t n = 0;
    int rc = 0;

    for (int32_t i = 0; i < x->fine->n_ops; i++)
        x->owner[i] = MOIRAI_NONE;
    for (int32_t i = 0; i < x->coarse->n_ops && !rc; i++) {
        int32_t op = moirai_graph_find(g, x->coarse->op_name[i]);

        if (op == MOIRAI_NONE)
            return moirai_error(MOIRAI_EINPUT, "graph '%s': no operator '%s' of problem '%s'", g->name,
                                x->coarse->op_name[i], x->coarse->name);
        x->member_off[i] = n;
        if (g->op_member_off[op] == g->op_member_off[op + 1])
            rc = member_put(x, &n, i, x->coarse->op_name[i]);
        for (int32_t e = g->op_member_off[op]; e < g->op_member_off[op + 1] && !rc; e++)
            rc = member_put(x, &n, i, g->op_member[e]);
    }
    x->member_off[x->coarse->n_ops] = n;
    for (int32_t i = 0; i < x->fine->n_ops && !rc; i++)
        if (x->owner[i] == MOIRAI_NONE)
            rc = moirai_error(MOIRAI_EINPUT, "problem '%s': operator '%s' is in no operator of problem '%s'",
                              x->fine->name, x->fine->op_name[i], x->coarse->name);
    return rc;
}

static int devices_find(expander *x)
{
    for (int32_t d = 0; d < x->coarse->n_devices; d++) {
        x->fine_device[d] = moirai_problem_find_device(x->fine, x->coarse->device_name[d]);
        if (x->fine_device[d] == MOIRAI_NONE)
            return moirai_error(MOIRAI_EINPUT, "problem '%s': no device '%s' of problem '%s'", x->fine->name,
                                x->coarse->device_name[d], x->coarse->name);
    }
    for (int32_t i = 0; i < x->coarse->n_ops; i++)
        if (x->plan->op_device[i] < 0 || x->plan->op_device[i] >= x->coarse->n_devices)
            return moirai_error(MOIRAI_EINPUT, "plan of '%s': operator '%s' is on no device", x->coarse->name,
                                x->coarse->op_name[i]);
    return 0;
}

static int order_put(expander *x, moirai_task task)
{
    if (util_grow(&x->order, &x->order_capacity, x->n_order + 1, sizeof *x->order))
        return MOIRAI_EFAIL;
    x->order[x->n_order++] = task;
    return 0;
}

static int transfer_put(expander *x, const moirai_transfer *t)
{
    const moirai_problem *fine = x->fine;
    int32_t tensor = moirai_problem_find_tensor(fine, x->coarse->tensor_name[t->tensor]);

    if (tensor == MOIRAI_NONE)
        return moirai_error(MOIRAI_EINPUT, "problem '%s': no tensor '%s' of problem '%s'", fine->name,
                            x->coarse->tensor_name[t->tensor], x->coarse->name);
    if (fine->flow == MOIRAI_FLOW_TENSOR)
        return order_put(x, fine->n_ops + (moirai_task)tensor * fine->n_devices + x->fine_device[t->to]);
    for (int32_t e = fine->tensor_edge_off[tensor]; e < fine->tensor_edge_off[tensor + 1]; e++)
        if (t->reader == MOIRAI_NONE || x->owner[fine->edge_reader[e]] == t->reader)
            if (order_put(x, fine->n_ops + (moirai_task)e))
                return MOIRAI_EFAIL;
    return 0;
}

static int tasks_sort(expander *x)
{
    const moirai_problem *p = x->coarse;
    int64_t n = 0;

    for (int32_t i = 0; i < p->n_ops; i++)
        x->task[n++] = schedule_timed_op(p, i, x->plan->op_start_ns[i], x->plan->op_finish_ns[i]);
    for (int32_t i = 0; i < x->plan->n_transfers; i++) {
        const moirai_transfer *t = &x->plan->transfer[i];

        if (t->tensor < 0 || t->tensor >= p->n_tensors || t->to < 0 || t->to >= p->n_devices)
            return moirai_error(MOIRAI_EINPUT, "plan of '%s': transfer %d names no tensor or device of it", p->name, i);
        x->task[n++] = schedule_timed_transfer(p, t->tensor, t->start_ns, t->finish_ns, p->n_ops + (moirai_task)i);
    }
    schedule_timed_sort(x->task, (size_t)n);
    return 0;
}

static int order_make(expander *x)
{
    int64_t n = (int64_t)x->coarse->n_ops + x->plan->n_transfers;
    int rc = tasks_sort(x);

    for (int64_t i = 0; i < n && !rc; i++) {
        moirai_task t = x->task[i].task;

        if (t >= x->coarse->n_ops) {
            rc = transfer_put(x, &x->plan->transfer[t - x->coarse->n_ops]);
            continue;
        }
        for (int32_t k = x->member_off[t]; k < x->member_off[t + 1] && !rc; k++)
            rc = order_put(x, x->member[k]);
    }
    return rc;
}

static int replay(moirai_plan **out, const expander *x)
{
    moirai_sim *sim;
    int32_t device;
    int64_t excess;
    int rc = moirai_sim_new(&sim, x->fine);

    if (rc)
        return rc;
    if (moirai_sim_replay(sim, x->op_device, x->order, (int64_t)x->n_order) < 0)
        rc = moirai_error(MOIRAI_EINFEASIBLE, "problem '%s': a device of the plan of '%s' can't run all members",
                          x->fine->name, x->coarse->name);
    excess = rc ? 0 : moirai_sim_memory_excess(sim, &device);
    if (excess > 0)
        rc = moirai_error(MOIRAI_EINFEASIBLE,
                          "problem '%s': the expanded plan needs %lld bytes more than device '%s' has", x->fine->name,
                          (long long)excess, x->fine->device_name[device]);
    rc = rc ? rc : moirai_sim_plan(out, sim);
    moirai_sim_free(sim);
    return rc;
}

static int expand(moirai_plan **out, expander *x, const moirai_graph *g)
{
    int rc = devices_find(x);

    rc = rc ? rc : members_find(x, g);
    rc = rc ? rc : order_make(x);
    rc = rc ? rc : replay(out, x);
    if (rc)
        return rc;
    if (schedule_plan_keep_origin(*out, x->plan)) {
        moirai_plan_free(*out);
        *out = NULL;
        return MOIRAI_EFAIL;
    }
    (*out)->lower_bound_ns = (*out)->certified_bound_ns = (*out)->solver_bound_ns = MOIRAI_UNKNOWN;
    (*out)->uncertified = 0;
    schedule_origin_clear(&(*out)->origin);
    return 0;
}

int moirai_plan_expand(moirai_plan **out, const moirai_problem *fine, const moirai_problem *coarse,
                       const moirai_graph *coarse_graph, const moirai_plan *coarse_plan)
{
    expander x = {.fine = fine, .coarse = coarse, .plan = coarse_plan};
    size_t n_fine = (size_t)fine->n_ops, n_coarse = (size_t)coarse->n_ops;
    int rc = MOIRAI_EFAIL;

    *out = NULL;
    if (coarse_plan->n_ops != coarse->n_ops)
        return moirai_error(MOIRAI_EINPUT, "plan of '%s': %d operators, the problem has %d", coarse->name,
                            coarse_plan->n_ops, coarse->n_ops);
    x.member_off = util_alloc(n_coarse + 1, sizeof *x.member_off);
    x.member = util_alloc(n_fine, sizeof *x.member);
    x.owner = util_alloc(n_fine, sizeof *x.owner);
    x.fine_device = util_alloc((size_t)coarse->n_devices, sizeof *x.fine_device);
    x.op_device = util_alloc(n_fine, sizeof *x.op_device);
    x.task = util_alloc(n_coarse + (size_t)coarse_plan->n_transfers, sizeof *x.task);
    if (x.member_off && x.member && x.owner && x.fine_device && x.op_device && x.task)
        rc = expand(out, &x, coarse_graph);
    free(x.member_off);
    free(x.member);
    free(x.owner);
    free(x.fine_device);
    free(x.op_device);
    free(x.task);
    free(x.order);
    return rc;
}
