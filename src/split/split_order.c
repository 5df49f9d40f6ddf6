/* The order in which units run and transfers start.
 *
 * By start; ties by the graph's order, a transfer just after its producer: so every task comes after all that it waits
 * for, whatever takes no time. */
#include "split/split_read.h"

#include <stdlib.h>

#include "util/util.h"

static int64_t unit_compare(const split_plan *p, int32_t a, int32_t b)
{
    if (p->unit_start_ns[a] != p->unit_start_ns[b])
        return p->unit_start_ns[a] < p->unit_start_ns[b] ? -1 : 1;
    return (int64_t)p->units->topo_rank[a] - p->units->topo_rank[b];
}

static int order_compare(const void *x, const void *y, void *data)
{
    const split_plan *p = data;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    if (p->unit_device[a] != p->unit_device[b])
        return p->unit_device[a] < p->unit_device[b] ? -1 : 1;
    int64_t c = unit_compare(p, a, b);
    return c < 0 ? -1 : c > 0;
}

static int transfer_compare(const void *x, const void *y, void *data)
{
    const moirai_graph *g = ((const split_plan *)data)->units;
    const split_transfer *a = x, *b = y;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    int32_t ra = g->topo_rank[g->tensor_producer[a->tensor]], rb = g->topo_rank[g->tensor_producer[b->tensor]];
    if (ra != rb)
        return ra < rb ? -1 : 1;
    if (a->tensor != b->tensor)
        return a->tensor < b->tensor ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

/* With flow "edge" a tensor goes to a device once per reader: the runtime sends it once, at the first time. */
static int drop_repeats(split_plan *p)
{
    int32_t kept = 0, n_devices = p->n_devices;
    char *seen = util_alloc((size_t)p->units->n_tensors * (size_t)n_devices, 1);
    if (!seen)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_transfers; i++) {
        split_transfer *x = &p->transfer[i];
        int64_t key = (int64_t)x->tensor * n_devices + x->to;
        if (seen[key])
            continue;
        seen[key] = 1;
        p->transfer[kept++] = *x;
    }
    p->n_transfers = kept;
    free(seen);
    return 0;
}

int split_order(split_plan *p)
{
    int32_t n = p->units->n_ops;
    p->order = util_alloc((size_t)n, sizeof *p->order);
    p->device_off = util_alloc((size_t)p->n_devices + 1, sizeof *p->device_off);
    if (!p->order || !p->device_off)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < n; i++) {
        p->order[i] = i;
        p->device_off[p->unit_device[i] + 1]++;
    }
    for (int32_t k = 0; k < p->n_devices; k++)
        p->device_off[k + 1] += p->device_off[k];
    qsort_r(p->order, (size_t)n, sizeof *p->order, order_compare, p);
    qsort_r(p->transfer, (size_t)p->n_transfers, sizeof *p->transfer, transfer_compare, p);
    return drop_repeats(p);
}
