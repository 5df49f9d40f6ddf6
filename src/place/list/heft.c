/* heft: Heterogeneous Earliest Finish Time (Topcuoglu, Hariri, Wu 2002), what an engineer would try first.
 *
 * Operators by falling upward rank: mean time plus the longest (mean transfer + rank) among the readers. Each goes to
 * the device where it finishes first, into the earliest gap that holds it.
 *
 * Changed to fit model.md: transfers are inserted into gaps of both ports (or of the channel), in order of
 * availability, before the operator is tried; with flow tensor a tensor that is already there is not sent again;
 * devices without room or that cannot run the operator are left out; a group follows its first member. If nobody has
 * room the device is chosen as if there were, and the plan is repaired at the end (fit_plan.c). The paper does not
 * compare to HEFT. O(V log V + E K (log V + gaps passed)). */
#include "place/list/insert.h"
#include "place/placers.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

#define MANY_INPUTS 1000 /* of an operator: the time is looked at between its devices */

typedef struct heft {
    const moirai_problem *p;
    place_insert *insert;
    int64_t *rank;
    int32_t *order;
    const util_stop *stop;
} heft;

/* ---- ranks ---- */

static int64_t mean_op_ns(const moirai_problem *p, int32_t op)
{
    __int128 sum = 0;
    int32_t n = 0;
    for (int32_t k = 0; k < p->n_devices; k++)
        if (moirai_op_may(p, op, k)) {
            sum += moirai_op_ns(p, op, k);
            n++;
        }
    return n > 0 ? (int64_t)(sum / n) : 0;
}

static int64_t mean_class_ns(const moirai_problem *p, int32_t class)
{
    int64_t K = p->n_devices;
    __int128 sum = 0;
    const int64_t *table = p->class_transfer_ns + class * K * K;
    for (int64_t j = 0; j < K * K; j++)
        sum += table[j];
    return K > 1 ? (int64_t)(sum / (K * (K - 1))) : 0;
}

static int rank_ops(heft *h)
{
    const moirai_problem *p = h->p;
    int64_t *mean = util_alloc((size_t)p->n_classes, sizeof *mean);
    if (!mean)
        return MOIRAI_EFAIL;
    for (int32_t c = 0; c < p->n_classes; c++)
        mean[c] = mean_class_ns(p, c);
    for (int32_t r = p->n_ops - 1; r >= 0; r--) {
        int32_t op = p->topo[r];
        int64_t rest = 0;
        for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
            int32_t t = p->op_out[j];
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
                rest = UTIL_MAX(rest, mean[p->tensor_class[t]] + h->rank[p->edge_reader[e]]);
        }
        h->rank[op] = rest + mean_op_ns(p, op);
        h->order[r] = op;
    }
    place_list_by_rank(h->order, h->rank, p);
    free(mean);
    return 0;
}

/* The j-th. */
static int place_op(heft *h, int32_t j)
{
    int32_t best = MOIRAI_NONE, op = h->order[j];
    int64_t best_start = 0, best_finish = INT64_MAX;
    bool many = h->p->op_in_off[op + 1] - h->p->op_in_off[op] > MANY_INPUTS;
    device_set open = place_list_devices(h->insert->list, op);
    DEVICE_SET_EACH(k, &open) {
        if (best_finish < INT64_MAX && many && util_stopped(h->stop))
            break; /* what reads a hundred thousand tensors takes long on every device */
        int64_t start = place_insert_try(h->insert, op, k, best_finish);
        if (start < 0)
            return MOIRAI_EFAIL;
        if (start == INT64_MAX || start + moirai_op_ns(h->p, op, k) >= best_finish)
            continue;
        best = k;
        best_start = start;
        best_finish = start + moirai_op_ns(h->p, op, k);
        place_insert_keep(h->insert);
    }
    return best == MOIRAI_NONE ? place_list_late(h->p, j) : place_insert_commit(h->insert, op, best, best_start);
}

static int place(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o)
{
    util_stop stop = util_stop_of(&o->budget);
    heft h = {.p = p, .stop = &stop};
    h.rank = util_alloc((size_t)p->n_ops, sizeof *h.rank);
    h.order = util_alloc((size_t)p->n_ops, sizeof *h.order);
    int rc = h.rank && h.order ? place_insert_new(&h.insert, p) : MOIRAI_EFAIL;
    rc = rc ? rc : rank_ops(&h);
    if (!rc)
        h.insert->enough = stop.interrupt;
    for (int32_t j = 0; j < p->n_ops && !rc; j++)
        rc = util_stopped(&stop) ? place_list_late(p, j) : place_op(&h, j);
    rc = rc ? rc : place_list_plan(out, h.insert->list, &stop);
    place_insert_free(h.insert);
    free(h.rank);
    free(h.order);
    return rc;
}

const moirai_placer place_heft = {
    .name = "heft",
    .summary = "heterogeneous earliest finish time, with insertion into gaps",
    .place = place,
};
