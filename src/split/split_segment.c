/* Segments: as few sub-models as the schedule allows.
 *
 * A device runs its operators in the plan's order. A run of them may become one sub-model [f..l] if that delays
 * nothing: a sub-model starts when everything that it reads has arrived, so each transfer into it must have finished,
 * in the plan, by the start of f; and its results leave when all of it is done, so each transfer out of it must start,
 * in the plan, no earlier than the finish of l. A part of such a run is such a run, too: taking as many operators as
 * possible from the left gives the least number of segments. O(operators + edges).
 *
 * Segments, and transfers in their sender's order, then wait for each other in the order of planned times, so nothing
 * can wait in a circle, except where times are equal: operators and transfers that take no time. Whether that has
 * happened is looked for; then segments end at every transfer, where the graph's own order excludes circles. */
#include "split/split_tasks.h"

#include <stdlib.h>

#include "util/util.h"

typedef struct limits {
    int64_t *arrives_ns; /* unit -> the last finish of a transfer that it waits for, or -1 */
    int64_t *leaves_ns;  /* unit -> the first start of a transfer of its results, or INT64_MAX */
} limits;

static void find_limits(const split_plan *p, limits *l)
{
    const moirai_graph *g = p->units;
    for (int32_t i = 0; i < g->n_ops; i++) {
        l->arrives_ns[i] = -1;
        l->leaves_ns[i] = INT64_MAX;
    }
    for (int32_t x = 0; x < p->n_transfers; x++) {
        const split_transfer *t = &p->transfer[x];
        int32_t maker = g->tensor_producer[t->tensor];
        l->leaves_ns[maker] = UTIL_MIN(l->leaves_ns[maker], t->start_ns);
        for (int32_t e = g->tensor_reader_off[t->tensor]; e < g->tensor_reader_off[t->tensor + 1]; e++) {
            int32_t reader = g->tensor_reader[e];
            if (p->unit_device[reader] == t->to)
                l->arrives_ns[reader] = UTIL_MAX(l->arrives_ns[reader], t->finish_ns);
        }
    }
}

static void open_segment(split_plan *p, int32_t device, int32_t at)
{
    split_segment *s = &p->segment[p->n_segments++];
    int32_t unit = p->order[at];
    *s = (split_segment){.device = device, .first = at, .start_ns = p->unit_start_ns[unit]};
}

static void add_unit(split_plan *p, int32_t unit)
{
    split_segment *s = &p->segment[p->n_segments - 1];
    s->n_units++;
    s->finish_ns = UTIL_MAX(s->finish_ns, p->unit_finish_ns[unit]);
    s->work_ns += p->unit_finish_ns[unit] - p->unit_start_ns[unit];
    p->unit_segment[unit] = p->n_segments - 1;
}

static void group(split_plan *p, const limits *l, bool careful)
{
    p->n_segments = 0;
    for (int32_t k = 0; k < p->n_devices; k++) {
        int64_t leaves_ns = INT64_MAX; /* the first departure from the open segment */
        for (int32_t at = p->device_off[k]; at < p->device_off[k + 1]; at++) {
            int32_t unit = p->order[at];
            bool cut = at == p->device_off[k];
            if (!cut && careful)
                cut = l->arrives_ns[unit] >= 0 || leaves_ns != INT64_MAX;
            else if (!cut)
                cut =
                    l->arrives_ns[unit] > p->segment[p->n_segments - 1].start_ns || leaves_ns < p->unit_finish_ns[unit];
            if (cut) {
                open_segment(p, k, at);
                leaves_ns = INT64_MAX;
            }
            add_unit(p, unit);
            leaves_ns = UTIL_MIN(leaves_ns, l->leaves_ns[unit]);
        }
    }
}

static int runs_through(bool *out, const split_plan *p)
{
    split_tasks x;
    double end_ns;
    int rc = split_tasks_init(&x, p);
    if (!rc)
        *out = split_tasks_play(&x, p->unit_segment, p->n_segments, 0, &end_ns);
    split_tasks_free(&x);
    return rc;
}

int split_segments(split_plan *p)
{
    size_t n = (size_t)p->units->n_ops;
    limits l = {util_alloc(n, sizeof *l.arrives_ns), util_alloc(n, sizeof *l.leaves_ns)};
    p->segment = util_alloc(n, sizeof *p->segment);
    p->unit_segment = util_alloc(n, sizeof *p->unit_segment);
    bool fine = true;
    int rc = l.arrives_ns && l.leaves_ns && p->segment && p->unit_segment ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        find_limits(p, &l);
        group(p, &l, false);
        rc = runs_through(&fine, p);
    }
    if (!rc && !fine) {
        group(p, &l, true);
        rc = runs_through(&fine, p);
    }
    if (!rc && !fine)
        rc = moirai_error(MOIRAI_EINPUT, "%s: the order of operators and transfers waits for itself", p->label);
    free(l.arrives_ns);
    free(l.leaves_ns);
    return rc;
}
