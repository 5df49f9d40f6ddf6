/* Stages: several orders of the operators, each cut into parts for the devices. */
#include <stdlib.h>
#include <string.h>

#include "rate/cuts.h"
#include "rate/search.h"
#include "rate/stages.h"
#include "util/sort.h"
#include "util/util.h"

#define LEAST_ORDERS 6 /* depth first; more of small problems, whose cuts take a millisecond */
#define MOST_ORDERS 64
#define ORDERED_OPS 100000 /* operators of all orders together, between these */

/* Operators by their starts in a plan. */
static int order_of(int32_t *order, const moirai_problem *p, const moirai_plan *plan)
{
    size_t n = (size_t)p->n_ops;
    uint64_t *key = util_alloc(2 * n, sizeof *key);
    int32_t *spare = util_alloc(n, sizeof *spare);
    int rc = key && spare ? 0 : MOIRAI_EFAIL;
    for (int32_t z = 0; z < p->n_ops && !rc; z++) {
        order[z] = p->topo[z];
        key[z] = (uint64_t)plan->op_start_ns[p->topo[z]];
    }
    if (!rc)
        util_sort(key, order, key + n, spare, p->n_ops);
    free(key);
    free(spare);
    return rc;
}

static bool read_by_none(const moirai_problem *p, int32_t op)
{
    for (int32_t o = p->op_out_off[op]; o < p->op_out_off[op + 1]; o++)
        if (p->tensor_edge_off[p->op_out[o]] < p->tensor_edge_off[p->op_out[o] + 1])
            return false;
    return true;
}

/* Depth first from the results, the inputs of each operator from a random one on, or with seed 0 from the first: a branch is walked to its end before the next begins, and what reads nothing, such as weights that are operators, stands before its
 * reader instead of before everything. */
static int order_deep(int32_t *order, const moirai_problem *p, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    size_t V = (size_t)p->n_ops;
    int32_t n = 0, *stack = util_alloc(V, sizeof *stack), *seen = util_alloc(V, sizeof *seen),
            *turn = util_alloc(V, sizeof *turn);
    int rc = stack && seen && turn ? 0 : MOIRAI_EFAIL; /* seen: inputs that were looked at, and one more */
    for (int32_t z = 0; z < p->n_ops && !rc; z++) {
        int32_t depth = 0;
        if (!read_by_none(p, p->topo[z]))
            continue;
        stack[depth++] = p->topo[z];
        seen[p->topo[z]] = 1;
        while (depth > 0) {
            int32_t op = stack[depth - 1], n_in = p->op_in_off[op + 1] - p->op_in_off[op], at = seen[op]++ - 1;
            if (at == n_in) {
                order[n++] = op;
                depth--;
                continue;
            }
            turn[op] = at == 0 && seed ? (int32_t)util_rng_below(&rng, (uint32_t)n_in) : turn[op];
            int32_t from = p->tensor_producer[p->op_in[p->op_in_off[op] + (at + turn[op]) % n_in]];
            if (!seen[from]) {
                seen[from] = 1;
                stack[depth++] = from;
            }
        }
    }
    free(stack);
    free(seen);
    free(turn);
    return rc;
}

/* Cuts of an order, *load_ns -1 where there are none. */
static int cut_order(const rate_search *x, const int32_t *order, bool seats, int32_t *device, int64_t *load_ns)
{
    rate_cuts_task task = {.v = &x->v, .units = x->units, .order = order, .seats = seats, .stop = x->stop};
    bool found;
    *load_ns = -1;
    int rc = rate_cuts(device, &found, &task);
    if (rc || !found)
        return rc;
    rc = place_fit_assignment(x->p, x->units, x->p->device_memory_bytes, device); /* with weights that are shared */
    if (rc)
        return rc == MOIRAI_EINFEASIBLE ? 0 : rc;
    rate_candidate one = {.n_copies = 1, .device = &device};
    int64_t *load = util_alloc((size_t)x->v.n_resources, sizeof *load), all = 1;
    *load_ns = load ? rate_loads(load, &x->v, &one, &all, 1) : MOIRAI_EFAIL;
    free(load);
    return *load_ns < 0 ? MOIRAI_EFAIL : 0;
}

/* The better of the two, where groups are the rule. */
static int find_cuts(const rate_search *x, const int32_t *order, int32_t *device, int64_t *load_ns)
{
    int64_t seated_ns = -1;
    int rc = cut_order(x, order, false, device, load_ns);
    if (rc || 2 * x->units->n > x->p->n_ops)
        return rc;
    int32_t *seated = util_alloc((size_t)x->p->n_ops, sizeof *seated);
    rc = seated ? cut_order(x, order, true, seated, &seated_ns) : MOIRAI_EFAIL;
    if (!rc && seated_ns >= 0 && (*load_ns < 0 || seated_ns < *load_ns)) {
        memcpy(device, seated, sizeof *seated * (size_t)x->p->n_ops);
        *load_ns = seated_ns;
    }
    free(seated);
    return rc;
}

/* The best cuts of several orders depth first. */
static int add_deep(rate_search *x, int32_t *order, int32_t *device)
{
    size_t n = (size_t)x->p->n_ops;
    int64_t least = INT64_MAX, load;
    int32_t *best = util_alloc(n, sizeof *best);
    int rc = best ? 0 : MOIRAI_EFAIL;
    uint64_t n_orders = UTIL_MIN(UTIL_MAX(ORDERED_OPS / UTIL_MAX(n, 1), LEAST_ORDERS), MOST_ORDERS);
    for (uint64_t i = 0; i < n_orders && !rc && !util_stopped(&x->stop); i++) {
        rc = order_deep(order, x->p, i);
        rc = rc ? rc : find_cuts(x, order, device, &load);
        if (!rc && load >= 0 && load < least) {
            least = load;
            memcpy(best, device, sizeof *best * n);
        }
    }
    rc = rc || least == INT64_MAX ? rc : rate_search_add_devices(x, "stages", best);
    free(best);
    return rc;
}

static int add_stages(rate_search *x, const int32_t *order, int32_t *device)
{
    int64_t load = -1;
    rate_stages_task task = {.v = &x->v, .order = order, .devices = x->all_devices, .stop = x->stop};
    int rc = rate_stages(device, &load, &task);
    if (!rc && load >= 0)
        rc = rate_search_add_devices(x, "stages", device);
    rc = rc ? rc : find_cuts(x, order, device, &load);
    return rc || load < 0 ? rc : rate_search_add_devices(x, "stages", device);
}

int rate_add_stages(rate_search *x)
{
    size_t n = (size_t)x->p->n_ops;
    int32_t *order = util_alloc(n, sizeof *order), *device = util_alloc(n, sizeof *device);
    int rc = order && device ? add_stages(x, x->p->topo, device) : MOIRAI_EFAIL;
    rc = rc ? rc : order_of(order, x->p, x->latency);
    rc = rc ? rc : add_stages(x, order, device);
    rc = rc ? rc : add_deep(x, order, device);
    free(order);
    free(device);
    return rc;
}
