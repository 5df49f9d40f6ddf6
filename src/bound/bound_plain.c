/* Bounds that need no structure: the two plain ones (schedule/bound_plain.c) and the longest path with transfers.
 *
 * Longest path with transfers: head(i, k), the least start of operator i on device k, obeys
 *     head(i, k) >= max over inputs t of min over devices l of head(producer, l) + time(producer, l) + transfer(t, l, k),
 * each input coming from wherever it would be quickest. The makespan is at least the least finish of every operator. O(E K^2). */
#include <stdlib.h>

#include <moirai/schedule.h>

#include "bound/bounds.h"
#include "util/util.h"

static int find_critical_path(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    (void)budget;
    *lower_ns = moirai_bound_critical_path(p);
    return MOIRAI_OK;
}

static int find_load(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    (void)budget;
    *lower_ns = moirai_bound_load(p);
    return MOIRAI_OK;
}

static int64_t soonest_input(const moirai_problem *p, const int64_t *head, int32_t t, int32_t k)
{
    int32_t from = p->tensor_producer[t];
    int64_t soonest = INT64_MAX;
    for (int32_t l = 0; l < p->n_devices; l++)
        if (p->op_devices[from] >> l & 1) {
            int64_t there = head[(int64_t)from * p->n_devices + l] + moirai_op_ns(p, from, l) + moirai_transfer_ns(p, t, l, k);
            soonest = UTIL_MIN(soonest, there);
        }
    return soonest;
}

static int find_transfers(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    (void)budget;
    int32_t K = p->n_devices;
    int64_t *head = util_alloc((size_t)p->n_ops * (size_t)K, sizeof *head);
    if (!head)
        return MOIRAI_EFAIL;
    *lower_ns = 0;
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        int64_t least = INT64_MAX;
        for (int32_t k = 0; k < K; k++) {
            if (!(p->op_devices[i] >> k & 1))
                continue;
            int64_t ready = 0;
            for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++)
                ready = UTIL_MAX(ready, soonest_input(p, head, p->op_in[j], k));
            head[(int64_t)i * K + k] = ready;
            least = UTIL_MIN(least, ready + moirai_op_ns(p, i, k));
        }
        *lower_ns = UTIL_MAX(*lower_ns, least);
    }
    free(head);
    return MOIRAI_OK;
}

const moirai_bound bound_critical_path = {
    .name = "critical-path", .summary = "longest path, every operator at its least time", .find = find_critical_path};
const moirai_bound bound_load = {
    .name = "load", .summary = "all work shared out over the devices at best", .find = find_load};
const moirai_bound bound_transfers = {
    .name = "transfers", .summary = "longest path with the transfers between devices", .find = find_transfers};
