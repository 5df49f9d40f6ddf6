/* Devices as plans: which order serves balanced loads.
 *
 * Loads are reached only if no resource waits. At a join it is the receive port that waits for work to arrive, so that what has to be
 * sent is computed first, by Johnson's rule for two machines in a row (1954), the device and the port: operators that take
 * less time than their transfers come first, the quickest first, then the others, those with the longest transfers
 * first; what stays on its device comes last. Branches of several operators must be gone through one after the other, or all of
 * them arrive at the end: depth first from the joins, in Johnson's order. In a graph of many layers both are wrong, and longest
 * remaining paths are right; or these without the operator's own time, where what follows decides. All are simulated, the best is
 * taken. */
#include <stdlib.h>
#include <string.h>

#include <moirai/schedule.h>

#include "relax/relax.h"
#include "relax/relax_tuning.h"
#include "schedule/sim.h"
#include "util/util.h"

/* The longest transfer of an operator's outputs from its device; 0: none leaves it. */
static int64_t sent_ns(const moirai_problem *p, const int32_t *device, int32_t op)
{
    int64_t most = 0;
    for (int32_t o = p->op_out_off[op]; o < p->op_out_off[op + 1]; o++)
        for (int32_t t = p->op_out[o], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
            most = UTIL_MAX(most, moirai_transfer_ns(p, t, device[op], device[p->edge_reader[e]]));
    return most;
}

/* What follows the operator's finish at least, on these devices. */
static void find_rests(int64_t *rest_ns, const moirai_problem *p, const int32_t *device)
{
    for (int32_t z = p->n_ops - 1; z >= 0; z--) {
        int32_t op = p->topo[z];
        rest_ns[op] = 0;
        for (int32_t o = p->op_out_off[op]; o < p->op_out_off[op + 1]; o++)
            for (int32_t t = p->op_out[o], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
                int32_t r = p->edge_reader[e];
                int64_t after = moirai_transfer_ns(p, t, device[op], device[r]) + moirai_op_ns(p, r, device[r]);
                rest_ns[op] = UTIL_MAX(rest_ns[op], after + rest_ns[r]);
            }
    }
}

/* Larger is sooner; what is sent is above what stays, whose priorities are negative. */
static void find_johnson(int64_t *priority, const moirai_problem *p, const int32_t *device)
{
    for (int32_t i = 0; i < p->n_ops; i++) {
        int64_t sent = sent_ns(p, device, i), own = moirai_op_ns(p, i, device[i]);
        int64_t far = INT64_MAX / 4;
        priority[i] = sent == 0 ? -far + own : own < sent ? far - own : sent;
    }
}

/* ---- depth first ---- */

typedef struct input {
    int64_t urgency;
    int32_t op;
} input;

static int less_urgent(const void *a, const void *b)
{
    const input *x = a, *y = b;
    if (x->urgency != y->urgency)
        return x->urgency < y->urgency ? -1 : 1;
    return x->op < y->op ? 1 : x->op > y->op ? -1 : 0;
}

/* Puts an operator's inputs on the stack, the most urgent last. */
static int32_t push_inputs(input *stack, int32_t n, const moirai_problem *p, const int64_t *urgency, const bool *seen,
                           int32_t op)
{
    int32_t first = n;
    for (int32_t i = p->op_in_off[op]; i < p->op_in_off[op + 1]; i++) {
        int32_t from = p->tensor_producer[p->op_in[i]];
        if (!seen[from])
            stack[n++] = (input){urgency[from], from};
    }
    qsort(stack + first, (size_t)(n - first), sizeof *stack, less_urgent);
    return n;
}

/* Priorities that finish what is before a join branch by branch; `urgency` is replaced by them. */
static int find_depth_first(int64_t *urgency, const moirai_problem *p)
{
    size_t n = (size_t)p->n_ops;
    util_memory m = {0};
    input *stack = util_take(&m, n + (size_t)p->n_edges + 1, sizeof *stack);
    bool *seen = util_take(&m, n, sizeof *seen), *done = util_take(&m, n, sizeof *done);
    int64_t *place = util_take(&m, n, sizeof *place), next = 0;
    int rc = util_taken_all(&m);
    for (int32_t z = 0; z < p->n_ops && !rc; z++) {
        int32_t size = 0;
        if (!done[p->topo[p->n_ops - 1 - z]])
            stack[size++] = (input){0, p->topo[p->n_ops - 1 - z]};
        while (size > 0) {
            int32_t op = stack[size - 1].op;
            if (!seen[op]) {
                seen[op] = true;
                size = push_inputs(stack, size, p, urgency, seen, op);
                continue;
            }
            size--;
            if (!done[op])
                place[op] = next++;
            done[op] = true;
        }
    }
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        urgency[i] = -place[i];
    util_release(&m);
    return rc;
}

/* Members of a group are where its first one is. */
static int read_devices(int32_t *device, const moirai_problem *p, const relax_choice *choice)
{
    int32_t *of_group = util_alloc((size_t)p->n_groups, sizeof *of_group);
    if (!of_group)
        return MOIRAI_EFAIL;
    for (int32_t g = 0; g < p->n_groups; g++)
        of_group[g] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t g = p->op_group[i];
        device[i] = g != MOIRAI_NONE && of_group[g] != MOIRAI_NONE ? of_group[g] : choice->device[i];
        if (g != MOIRAI_NONE)
            of_group[g] = device[i];
    }
    free(of_group);
    return 0;
}

/* The priorities of an order; false where it is like the one before. Of the first order there are none: longest remaining paths. */
static bool find_order(int64_t *priority, const moirai_problem *p, const int32_t *device, int32_t which, int *rc)
{
    *rc = 0;
    if (which == 1 || which == 2)
        find_johnson(priority, p, device);
    if (which == 2)
        *rc = find_depth_first(priority, p);
    if (which == 3)
        find_rests(priority, p, device);
    return !*rc && (which == 0 || p->n_edges > 0);
}

int relax_plan(moirai_plan **plan, const moirai_problem *p, const relax_choice *choice, bool has_other,
               const util_stop *stop)
{
    size_t n = (size_t)p->n_ops;
    int32_t *device = util_alloc(n, sizeof *device);
    int64_t *priority = util_alloc(n, sizeof *priority);
    moirai_sim *sim = NULL;
    *plan = NULL;
    int rc = device && priority ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    rc = rc ? rc : read_devices(device, p, choice);
    for (int32_t i = 0; i < RELAX_PLANS_ORDERS && !rc && (i == 0 || !util_stopped(stop)); i++) {
        schedule_sim_obey(sim, i > 0 || has_other ? stop : NULL);
        if (find_order(priority, p, device, i, &rc))
            rc = schedule_sim_take_better(plan, sim, moirai_sim_dispatch(sim, device, i == 0 ? NULL : priority));
    }
    moirai_sim_free(sim);
    free(device);
    free(priority);
    return rc;
}
