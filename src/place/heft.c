/* heft: Heterogeneous Earliest Finish Time (Topcuoglu, Hariri, Wu 2002), what an engineer would try first.
 *
 * Operators by falling upward rank: mean time plus the longest (mean transfer + rank) among the readers. Each goes to the device
 * where it finishes first, into the earliest gap that holds it.
 *
 * Changed to fit model.md: transfers are inserted into gaps of both ports (or of the channel), in order of
 * availability, before the operator is tried; with flow tensor a tensor that is already there is not sent again;
 * devices without room or that cannot run the operator are left out; a group follows its first member. If nobody has
 * room the device is chosen as if there were, and the plan is repaired at the end (fit_plan.c). The paper does not compare to HEFT.
 * O(V log V + E K (log V + gaps passed)). */
#include "place/list.h"
#include "place/placers.h"
#include "place/timeline.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

typedef struct sending {
    int32_t slot, from;
    int64_t start_ns, ns;
} sending;

typedef struct heft {
    const moirai_problem *p;
    moirai_list *list;
    int64_t *rank;
    int32_t *order;
    moirai_timeline *device;       /* per device */
    moirai_timeline *line;         /* ports: send k at k, receive k at K + k; channels: from * K + to */
    moirai_timeline *tried;        /* transfers of the operator on trial: one for a port, one per sender for channels */
    sending *now, *best;           /* transfers on trial, and of the best device so far */
    int32_t n_now, n_best;
} heft;

/* ---- ranks ---- */

static int64_t mean_op_ns(const moirai_problem *p, int32_t op)
{
    int64_t sum = 0, n = 0;
    for (uint64_t open = p->op_devices[op]; open != 0; open &= open - 1, n++)
        sum += moirai_op_ns(p, op, __builtin_ctzll(open));
    return n > 0 ? sum / n : 0;
}

static int64_t mean_class_ns(const moirai_problem *p, int32_t class)
{
    int64_t K = p->n_devices, sum = 0;
    const int64_t *table = p->class_transfer_ns + class * K * K;
    for (int64_t j = 0; j < K * K; j++)
        sum += table[j];
    return K > 1 ? sum / (K * (K - 1)) : 0;
}

static int by_rank(const void *left, const void *right, void *data)
{
    const heft *h = data;
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    if (h->rank[a] != h->rank[b])
        return h->rank[a] > h->rank[b] ? -1 : 1;
    return h->p->topo_rank[a] < h->p->topo_rank[b] ? -1 : 1;
}

static int rank_ops(heft *h)
{
    const moirai_problem *p = h->p;
    int64_t *mean = moirai_alloc((size_t)p->n_classes, sizeof *mean);
    if (mean == NULL)
        return MOIRAI_EFAIL;
    for (int32_t c = 0; c < p->n_classes; c++)
        mean[c] = mean_class_ns(p, c);
    for (int32_t r = p->n_ops - 1; r >= 0; r--) {
        int32_t op = p->topo[r];
        int64_t rest = 0;
        for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
            int32_t t = p->op_out[j];
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
                rest = MOIRAI_MAX(rest, mean[p->tensor_class[t]] + h->rank[p->edge_reader[e]]);
        }
        h->rank[op] = rest + mean_op_ns(p, op);
        h->order[r] = op;
    }
    qsort_r(h->order, (size_t)p->n_ops, sizeof *h->order, by_rank, h);
    free(mean);
    return 0;
}

/* ---- one operator on one device ---- */

/* The earliest moment from `at` on when a transfer finds its resources free, those on trial included. */
static int64_t find_sending(const heft *h, int32_t from, int32_t to, int64_t at, int64_t ns)
{
    int32_t K = h->p->n_devices;
    if (ns == 0 || h->p->congestion == MOIRAI_CONGESTION_NONE)
        return at;
    bool port = h->p->congestion == MOIRAI_CONGESTION_PORT;
    const moirai_timeline *first = port ? &h->line[from] : &h->line[from * K + to];
    const moirai_timeline *second = port ? &h->line[K + to] : NULL;
    const moirai_timeline *third = &h->tried[port ? 0 : from];
    for (;;) {
        int64_t begun = at;
        at = moirai_timeline_next(first, at, ns);
        if (second != NULL)
            at = moirai_timeline_next(second, at, ns);
        at = moirai_timeline_next(third, at, ns);
        if (at == begun)
            return at;
    }
}

/* Arrival of one input on device k; a new transfer joins those on trial. Negative: out of memory. */
static int64_t bring(heft *h, int32_t j, int32_t k)
{
    const moirai_problem *p = h->p;
    moirai_list *l = h->list;
    int32_t t = p->op_in[j], producer = p->tensor_producer[t], from = l->device[producer];
    if (from == k)
        return l->finish_ns[producer];
    int32_t slot = moirai_list_slot(l, j, k);
    if (l->arrival_ns[slot] != MOIRAI_UNKNOWN)
        return l->arrival_ns[slot];
    int64_t ns = moirai_transfer_ns(p, t, from, k);
    int64_t start = find_sending(h, from, k, l->finish_ns[producer], ns);
    h->now[h->n_now++] = (sending){slot, from, start, ns};
    if (ns > 0 && p->congestion != MOIRAI_CONGESTION_NONE &&
        moirai_timeline_take(&h->tried[p->congestion == MOIRAI_CONGESTION_PORT ? 0 : from], start, ns) != 0)
        return -1;
    return start + ns;
}

/* Earliest start of `op` on k, or INT64_MAX once it is sure to finish no sooner than `limit_ns`; -1: out of memory. */
static int64_t try_device(heft *h, int32_t op, int32_t k, const int32_t *input, int32_t n_inputs, int64_t limit_ns)
{
    const moirai_problem *p = h->p;
    int64_t ns = moirai_op_ns(p, op, k), ready = 0;
    h->n_now = 0;
    for (int32_t a = 0; a < p->n_devices; a++)
        h->tried[a].n = 0;
    for (int32_t j = 0; j < n_inputs; j++) {
        int64_t arrival = bring(h, input[j], k);
        if (arrival < 0)
            return -1;
        ready = MOIRAI_MAX(ready, arrival);
        if (ready + ns >= limit_ns)
            return INT64_MAX;
    }
    return ns > 0 ? moirai_timeline_next(&h->device[k], ready, ns) : ready;
}

static int commit(heft *h, int32_t op, int32_t k, int64_t start_ns)
{
    const moirai_problem *p = h->p;
    int32_t K = p->n_devices;
    int rc = 0;
    for (int32_t j = 0; j < h->n_best && rc == 0; j++) {
        const sending *s = &h->best[j];
        moirai_list_place_transfer(h->list, s->slot, s->start_ns, s->ns);
        if (s->ns == 0 || p->congestion == MOIRAI_CONGESTION_NONE)
            continue;
        bool port = p->congestion == MOIRAI_CONGESTION_PORT;
        rc = moirai_timeline_take(port ? &h->line[s->from] : &h->line[s->from * K + k], s->start_ns, s->ns);
        if (rc == 0 && port)
            rc = moirai_timeline_take(&h->line[K + k], s->start_ns, s->ns);
    }
    int64_t ns = moirai_op_ns(p, op, k);
    if (rc == 0 && ns > 0)
        rc = moirai_timeline_take(&h->device[k], start_ns, ns);
    moirai_list_place_op(h->list, op, k, start_ns);
    return rc;
}

static int place_op(heft *h, int32_t op)
{
    int32_t n_inputs = h->p->op_in_off[op + 1] - h->p->op_in_off[op], best = MOIRAI_NONE;
    const int32_t *input = moirai_list_inputs(h->list, op);
    int64_t best_start = 0, best_finish = INT64_MAX;
    for (uint64_t open = moirai_list_devices(h->list, op); open != 0; open &= open - 1) {
        int32_t k = __builtin_ctzll(open);
        int64_t start = try_device(h, op, k, input, n_inputs, best_finish);
        if (start < 0)
            return MOIRAI_EFAIL;
        if (start == INT64_MAX || start + moirai_op_ns(h->p, op, k) >= best_finish)
            continue;
        best = k;
        best_start = start;
        best_finish = start + moirai_op_ns(h->p, op, k);
        sending *spare = h->best;
        h->best = h->now;
        h->n_best = h->n_now;
        h->now = spare;
    }
    return commit(h, op, best, best_start);
}

/* ---- set-up ---- */

static size_t n_lines(const moirai_problem *p)
{
    size_t K = (size_t)p->n_devices;
    return p->congestion == MOIRAI_CONGESTION_CHANNEL ? K * K : 2 * K;
}

static bool allocate(heft *h)
{
    const moirai_problem *p = h->p;
    size_t K = (size_t)p->n_devices, widest = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        widest = MOIRAI_MAX(widest, (size_t)(p->op_in_off[i + 1] - p->op_in_off[i]));
    h->rank = moirai_alloc((size_t)p->n_ops, sizeof *h->rank);
    h->order = moirai_alloc((size_t)p->n_ops, sizeof *h->order);
    h->device = moirai_alloc(K, sizeof *h->device);
    h->line = moirai_alloc(n_lines(p), sizeof *h->line);
    h->tried = moirai_alloc(K, sizeof *h->tried);
    h->now = moirai_alloc(widest, sizeof *h->now);
    h->best = moirai_alloc(widest, sizeof *h->best);
    return h->rank && h->order && h->device && h->line && h->tried && h->now && h->best;
}

static void clear_all(moirai_timeline *line, size_t n)
{
    for (size_t j = 0; line != NULL && j < n; j++)
        moirai_timeline_clear(&line[j]);
    free(line);
}

static void release(heft *h)
{
    clear_all(h->device, (size_t)h->p->n_devices);
    clear_all(h->line, n_lines(h->p));
    clear_all(h->tried, (size_t)h->p->n_devices);
    free(h->rank);
    free(h->order);
    free(h->now);
    free(h->best);
    moirai_list_free(h->list);
}

static int place_heft(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    (void)o;
    heft h = {.p = p};
    int rc = moirai_list_new(&h.list, p);
    if (rc == 0 && !allocate(&h))
        rc = MOIRAI_EFAIL;
    if (rc == 0)
        rc = rank_ops(&h);
    for (int32_t j = 0; j < p->n_ops && rc == 0; j++)
        rc = place_op(&h, h.order[j]);
    if (rc == 0)
        rc = moirai_list_plan(out, h.list);
    release(&h);
    return rc;
}

const moirai_placer moirai_placer_heft = {
    .name = "heft",
    .summary = "heterogeneous earliest finish time, with insertion into gaps",
    .place = place_heft,
};
