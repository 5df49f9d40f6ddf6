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

/* The priorities of an order; false where there is none of that number. NULL stands for longest remaining paths. */
static bool find_order(int64_t *priority, const moirai_problem *p, const int32_t *device, const relax_choice *choice,
                       int32_t which, int *rc)
{
    *rc = 0;
    if (which == 1 || which == 2)
        find_johnson(priority, p, device);
    if (which == 2)
        *rc = find_depth_first(priority, p);
    if (which == 3)
        find_rests(priority, p, device);
    for (int32_t i = 0; i < p->n_ops && which == 4 && choice->start_ns; i++)
        priority[i] = -choice->start_ns[i];
    return !*rc && (which == 0 || p->n_edges > 0) && (which < 4 || choice->start_ns);
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
        if (find_order(priority, p, device, choice, i, &rc))
            rc = schedule_sim_take_better(plan, sim, moirai_sim_dispatch(sim, device, i == 0 ? NULL : priority));
    }
    moirai_sim_free(sim);
    free(device);
    free(priority);
    return rc;
}

/* ---- better devices ---- */

typedef struct polish {
    const moirai_problem *p;
    moirai_sim *sim;
    int32_t *device;
    int64_t *priority, *start_ns; /* start_ns: of the best */
    uint8_t *best_device;
    int64_t best_ns;
    int32_t order;
} polish;

static void keep_best(polish *x, int64_t length_ns)
{
    x->best_ns = length_ns;
    for (int32_t i = 0; i < x->p->n_ops; i++)
        x->best_device[i] = (uint8_t)x->device[i];
    memcpy(x->start_ns, moirai_sim_op_start(x->sim), sizeof *x->start_ns * (size_t)x->p->n_ops);
}

static int64_t length_of(polish *x)
{
    int64_t length = moirai_sim_dispatch(x->sim, x->device, x->order == 0 ? NULL : x->priority);
    return length < 0 || moirai_sim_memory_excess(x->sim, NULL) > 0 ? INT64_MAX : length;
}

/* Another device for one operator, or two operators exchange theirs; what it was before in was[]. */
static int32_t change(polish *x, util_rng *rng, const bool *keep, int32_t *op, int32_t *was)
{
    const moirai_problem *p = x->p;
    int32_t n = util_rng_below(rng, 3) == 0 ? 2 : 1;
    for (int32_t i = 0; i < 2; i++) {
        op[i] = (int32_t)util_rng_below(rng, (uint32_t)p->n_ops);
        was[i] = x->device[op[i]];
    }
    int32_t to = n == 2 ? was[1] : (int32_t)util_rng_below(rng, (uint32_t)p->n_devices);
    bool can = !keep[op[0]] && to != was[0] && p->op_devices[op[0]] >> to & 1 && p->op_group[op[0]] == MOIRAI_NONE;
    can &= n == 1 || (!keep[op[1]] && p->op_devices[op[1]] >> was[0] & 1 && p->op_group[op[1]] == MOIRAI_NONE);
    if (!can)
        return 0;
    x->device[op[0]] = to;
    if (n == 2)
        x->device[op[1]] = was[0];
    return n;
}

static void search(polish *x, const bool *keep, int32_t evaluations, util_rng *rng, const util_stop *stop)
{
    int64_t now = x->best_ns;
    for (int32_t i = 0; i < evaluations && !util_stopped(stop); i++) {
        int32_t op[2], was[2], n = change(x, rng, keep, op, was);
        if (n == 0)
            continue;
        double heat = RELAX_PLANS_HOT * (1 - (double)i / evaluations) * (double)x->best_ns;
        int64_t length = length_of(x), most = now + (int64_t)(heat * util_rng_real(rng) * util_rng_real(rng));
        if (length < x->best_ns)
            keep_best(x, length);
        if (length <= most) {
            now = length;
            continue;
        }
        for (int32_t j = 0; j < n; j++)
            x->device[op[j]] = was[j];
    }
}

/* The order that is best for these devices is kept for all that follow. */
static int begin(polish *x, const relax_choice *choice)
{
    int32_t best = 0;
    int rc = 0;
    for (int32_t i = 0; i < RELAX_PLANS_ORDERS && !rc; i++)
        if (find_order(x->priority, x->p, x->device, choice, i, &rc)) {
            x->order = i;
            int64_t length = length_of(x);
            if (length < x->best_ns) {
                keep_best(x, length);
                best = i;
            }
        }
    x->order = best;
    if (!rc)
        find_order(x->priority, x->p, x->device, choice, best, &rc);
    return rc;
}

int relax_polish(relax_choice *choice, int64_t *length_ns, const moirai_problem *p, const bool *keep,
                 int32_t evaluations, uint64_t seed, const util_stop *stop)
{
    size_t n = (size_t)p->n_ops;
    polish x = {.p = p, .best_ns = INT64_MAX};
    util_rng rng;
    util_rng_seed(&rng, seed);
    util_memory memory = {0};
    UTIL_TAKE(&memory, x.device, n);
    UTIL_TAKE(&memory, x.priority, n);
    UTIL_TAKE(&memory, x.best_device, n);
    x.start_ns = util_alloc(n, sizeof *x.start_ns); /* the choice's, in the end */
    int rc = x.start_ns && !memory.failed ? moirai_sim_new(&x.sim, p) : MOIRAI_EFAIL;
    rc = rc ? rc : read_devices(x.device, p, choice);
    rc = rc ? rc : begin(&x, choice);
    if (!rc && x.best_ns < INT64_MAX) {
        search(&x, keep, evaluations, &rng, stop);
        memcpy(choice->device, x.best_device, sizeof *choice->device * n);
        free(choice->start_ns);
        choice->start_ns = x.start_ns;
        x.start_ns = NULL;
    }
    *length_ns = x.best_ns;
    moirai_sim_free(x.sim);
    free(x.start_ns);
    util_release(&memory);
    return rc;
}
