/* What the pool of all devices begins with: who waits for whom. */
#include "pair/pool_input.h"

#include <stdlib.h>

#include "util/util.h"

/* The least time from the start of an edge's producer to that of its reader. */
static pair_pool_arc arc_of(const moirai_problem *q, int32_t e)
{
    int32_t t = q->edge_tensor[e], i = q->tensor_producer[t], j = q->edge_reader[e];
    pair_pool_arc arc = {i, j, INT64_MAX};
    for (int32_t k = 0; k < q->n_devices; k++)
        for (int32_t l = 0; l < q->n_devices; l++)
            if (q->op_devices[i] >> k & 1 && q->op_devices[j] >> l & 1)
                arc.ns = UTIL_MIN(arc.ns, moirai_op_ns(q, i, k) + moirai_transfer_ns(q, t, k, l));
    return arc;
}

static void sort_arcs(pair_pool_arcs *x, int32_t n_ops)
{
    for (int32_t e = 0; e < x->n; e++) {
        x->out_off[x->arc[e].from + 1]++;
        x->in_off[x->arc[e].to + 1]++;
    }
    for (int32_t i = 0; i < n_ops; i++) {
        x->out_off[i + 1] += x->out_off[i];
        x->in_off[i + 1] += x->in_off[i];
    }
    for (int32_t e = x->n - 1; e >= 0; e--) { /* offsets run back to the beginnings */
        x->out[--x->out_off[x->arc[e].from + 1]] = e;
        x->in[--x->in_off[x->arc[e].to + 1]] = e;
    }
    for (int32_t i = 0; i < n_ops; i++) {
        x->out_off[i] = x->out_off[i + 1];
        x->in_off[i] = x->in_off[i + 1];
    }
    x->out_off[n_ops] = x->in_off[n_ops] = x->n;
}

int pair_pool_find_arcs(pair_pool_arcs *x, const moirai_problem *q, const pair_pool_task *job)
{
    size_t n = (size_t)q->n_ops, E = (size_t)q->n_edges + (size_t)job->n_arcs;
    x->n = (int32_t)E;
    UTIL_TAKE(&x->memory, x->arc, E);
    UTIL_TAKE(&x->memory, x->in_off, n + 1);
    UTIL_TAKE(&x->memory, x->out_off, n + 1);
    UTIL_TAKE(&x->memory, x->in, E);
    UTIL_TAKE(&x->memory, x->out, E);
    if (x->memory.failed)
        return MOIRAI_EFAIL;
    for (int32_t e = 0; e < q->n_edges; e++)
        x->arc[e] = arc_of(q, e);
    for (int32_t e = 0; e < job->n_arcs; e++)
        x->arc[q->n_edges + e] = job->arc[e];
    sort_arcs(x, q->n_ops);
    return 0;
}
