/* The augmented DAG of equation (3): links become nodes that take time of their own.
 *
 * Flow edge has one such node per (tensor, reader), as in the paper; flow tensor one per (tensor, destination device),
 * which the paper does not have: it exists where a reader is there and the producer is not.
 *
 * Differences from the paper: successors are bits, one row of words per operator, instead of sets; all times are
 * divided by their greatest common divisor, because every left-shifted plan's makespan is a sum of times and so a
 * multiple of it: that makes a bound from floating point exact when rounded up to the next multiple.
 * O(V E / 64) for reach; windows: milp_window.c. */
#include "place/milp/milp.h"
#include "schedule/paths.h"

#include <stdlib.h>
#include <string.h>

static int64_t gcd64(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

int64_t milp_grid_ns(const moirai_problem *p)
{
    int64_t g = 0, n = (int64_t)p->n_ops * p->n_devices, kk = (int64_t)p->n_devices * p->n_devices;
    for (int64_t i = 0; i < n; i++)
        if (p->op_time_ns[i] > 0)
            g = gcd64(p->op_time_ns[i], g);
    for (int64_t i = 0; i < p->n_classes * kk; i++)
        if (p->class_transfer_ns[i] > 0)
            g = gcd64(p->class_transfer_ns[i], g);
    return g > 0 ? g : 1;
}

/* A horizon that any order of any placement fits: everything after everything else. */
static int horizon(int64_t *out, const moirai_problem *p)
{
    int64_t sum = 0;
    bool fits = true;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int64_t most = 0;
        for (int32_t k = 0; k < p->n_devices; k++)
            most = UTIL_MAX(most, moirai_op_ns(p, i, k));
        fits = fits && util_add64(&sum, sum, most);
    }
    int64_t kk = (int64_t)p->n_devices * p->n_devices;
    for (int32_t e = 0; e < p->n_edges; e++) {
        const int64_t *table = p->class_transfer_ns + p->tensor_class[p->edge_tensor[e]] * kk;
        int64_t most = 0;
        for (int64_t i = 0; i < kk; i++)
            most = UTIL_MAX(most, table[i]);
        fits = fits && util_add64(&sum, sum, most);
    }
    if (!fits || sum > SCHEDULE_NEVER_NS / 8)
        return moirai_error(MOIRAI_EINPUT, "problem '%s': all its times together do not fit 64 bits", p->name);
    *out = sum;
    return 0;
}

static void compute_reach(milp_dag *d)
{
    const moirai_problem *p = d->p;
    for (int32_t r = p->n_ops - 1; r >= 0; r--) {
        int32_t i = p->topo[r];
        uint64_t *mine = d->reach + (int64_t)i * d->words;
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++) {
            int32_t t = p->op_out[o];
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
                int32_t j = p->edge_reader[e];
                const uint64_t *its = d->reach + (int64_t)j * d->words;
                for (int32_t w = 0; w < d->words; w++)
                    mine[w] |= its[w];
                mine[j / 64] |= UINT64_C(1) << (j % 64);
            }
        }
    }
}

bool milp_op_before(const milp_dag *d, int32_t i, int32_t j)
{
    return d->reach[(int64_t)i * d->words + j / 64] >> (j % 64) & 1;
}

bool milp_flow_before(const milp_dag *d, int32_t q, int32_t r)
{
    const milp_flow *a = &d->flow[q], *b = &d->flow[r];
    if (a->reader != MOIRAI_NONE)
        return a->reader == b->producer || milp_op_before(d, a->reader, b->producer);
    /* Flow tensor: whichever reader makes q exist must come before r's producer. */
    const moirai_problem *p = d->p;
    for (int32_t e = p->tensor_edge_off[a->tensor]; e < p->tensor_edge_off[a->tensor + 1]; e++) {
        int32_t j = p->edge_reader[e];
        if (milp_allowed(d, j, a->to) && j != b->producer && !milp_op_before(d, j, b->producer))
            return false;
    }
    return true;
}

static int find_flows(milp_dag *d)
{
    const moirai_problem *p = d->p;
    bool edge = p->flow == MOIRAI_FLOW_EDGE;
    int64_t most = edge ? p->n_edges : (int64_t)p->n_tensors * p->n_devices;
    if (most > INT32_MAX / 2)
        return moirai_error(MOIRAI_ELIMIT, "milp: %lld flows are too many", (long long)most);
    d->flow = util_alloc((size_t)most, sizeof *d->flow);
    if (!d->flow)
        return MOIRAI_EFAIL;
    for (int32_t e = 0; edge && e < p->n_edges; e++) {
        int32_t t = p->edge_tensor[e];
        d->flow[d->n_flows++] = (milp_flow){t, p->tensor_producer[t], p->edge_reader[e], MOIRAI_NONE, e};
    }
    for (int32_t t = 0; !edge && t < p->n_tensors; t++)
        for (int32_t k = 0; k < p->n_devices; k++) {
            bool needed = false;
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
                needed = needed || (milp_allowed(d, p->edge_reader[e], k) &&
                                    !milp_same_group(p, p->edge_reader[e], p->tensor_producer[t]));
            if (needed)
                d->flow[d->n_flows++] = (milp_flow){t, p->tensor_producer[t], MOIRAI_NONE, k, t * p->n_devices + k};
        }
    return 0;
}

static int allocate(milp_dag *d)
{
    size_t n = (size_t)d->p->n_ops, nk = n * (size_t)d->p->n_devices;
    d->words = (d->p->n_ops + 63) / 64;
    d->reach = util_alloc(n * (size_t)d->words, sizeof *d->reach);
    d->devices = util_alloc(n, sizeof *d->devices);
    d->head = util_alloc(nk, sizeof *d->head);
    d->tail = util_alloc(nk, sizeof *d->tail);
    d->first_start = util_alloc(n, sizeof *d->first_start);
    d->last_start = util_alloc(n, sizeof *d->last_start);
    d->first_finish = util_alloc(n, sizeof *d->first_finish);
    d->last_finish = util_alloc(n, sizeof *d->last_finish);
    d->device_class = util_alloc((size_t)d->p->n_devices, sizeof *d->device_class);
    d->twin = util_alloc(n, sizeof *d->twin);
    return d->reach && d->devices && d->head && d->tail && d->first_start && d->last_start && d->first_finish &&
                   d->last_finish && d->device_class && d->twin
               ? 0
               : MOIRAI_EFAIL;
}

static int fill(milp_dag *d, int64_t upper_ns, bool windows)
{
    const moirai_problem *p = d->p;
    int64_t wide = 0;
    int rc = horizon(&wide, p);
    if (rc)
        return rc;
    d->grid_ns = milp_grid_ns(p);
    d->upper = (upper_ns >= 0 ? upper_ns : wide) / d->grid_ns;
    if ((rc = allocate(d)))
        return rc;
    compute_reach(d);
    memcpy(d->devices, p->op_devices, (size_t)p->n_ops * sizeof *d->devices);
    if ((rc = milp_windows(d, windows)))
        return rc;
    milp_symmetry(d);
    return find_flows(d);
}

int milp_dag_new(milp_dag **out, const moirai_problem *p, int64_t upper_ns, bool windows)
{
    *out = NULL;
    milp_dag *d = util_alloc(1, sizeof *d);
    if (!d)
        return MOIRAI_EFAIL;
    d->p = p;
    int rc = fill(d, upper_ns, windows);
    if (rc) {
        milp_dag_free(d);
        return rc;
    }
    *out = d;
    return 0;
}

void milp_dag_free(milp_dag *d)
{
    if (!d)
        return;
    free(d->flow);
    free(d->reach);
    free(d->devices);
    free(d->head);
    free(d->tail);
    free(d->first_start);
    free(d->last_start);
    free(d->first_finish);
    free(d->last_finish);
    free(d->device_class);
    free(d->twin);
    free(d);
}
