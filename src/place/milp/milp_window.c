/* Windows: what the best known plan leaves of each operator's devices and times.
 *
 * Heads and tails are longest paths with a choice of device (schedule/paths.h), groups kept together. A pair (i, k)
 * with head + time + tail beyond the best known plan is never used by a plan as good; dropping it can only lengthen
 * other heads, so the two passes repeat until nothing is dropped. O(E K^2) per pass. */
#include "place/milp/milp.h"
#include "schedule/paths.h"

/* Every time is a multiple of the grid, so every path is. */
static void measure(milp_dag *d)
{
    const schedule_paths x = {.p = d->p, .devices = d->devices, .groups = true};
    int64_t n = (int64_t)d->p->n_ops * d->p->n_devices;
    schedule_heads(d->head, &x);
    schedule_tails(d->tail, &x);
    for (int64_t i = 0; i < n; i++) {
        d->head[i] /= d->grid_ns;
        d->tail[i] /= d->grid_ns;
    }
}

/* Drop what does not fit below `upper`; a device dropped for one operator of a group is dropped for all. */
static bool prune(milp_dag *d)
{
    const moirai_problem *p = d->p;
    int32_t K = p->n_devices;
    bool changed = false;
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t k = 0; k < K; k++) {
            int64_t at = (int64_t)i * K + k;
            if (!milp_allowed(d, i, k) || d->head[at] + milp_op_units(d, i, k) + d->tail[at] <= d->upper)
                continue;
            changed = true;
            d->devices[i] &= ~(UINT64_C(1) << k);
            for (int32_t j = 0; p->op_group[i] != MOIRAI_NONE && j < p->n_ops; j++)
                if (milp_same_group(p, i, j))
                    d->devices[j] &= ~(UINT64_C(1) << k);
        }
    return changed;
}

static int operator_windows(milp_dag *d)
{
    const moirai_problem *p = d->p;
    for (int32_t i = 0; i < p->n_ops; i++) {
        d->first_start[i] = d->first_finish[i] = INT64_MAX;
        d->last_start[i] = d->last_finish[i] = -1;
        for (int32_t k = 0; k < p->n_devices; k++) {
            int64_t at = (int64_t)i * p->n_devices + k, time = milp_op_units(d, i, k);
            if (!milp_allowed(d, i, k))
                continue;
            d->first_start[i] = UTIL_MIN(d->first_start[i], d->head[at]);
            d->first_finish[i] = UTIL_MIN(d->first_finish[i], d->head[at] + time);
            d->last_start[i] = UTIL_MAX(d->last_start[i], d->upper - d->tail[at] - time);
            d->last_finish[i] = UTIL_MAX(d->last_finish[i], d->upper - d->tail[at]);
        }
        if (d->last_finish[i] < 0)
            return moirai_error(MOIRAI_EINFEASIBLE, "operator '%s': no device lets a plan end within %lld ns",
                                p->op_name[i], (long long)(d->upper * d->grid_ns));
    }
    return 0;
}

int milp_windows(milp_dag *d, bool prune_devices)
{
    if (prune_devices)
        do {
            measure(d);
        } while (prune(d));
    return operator_windows(d);
}
