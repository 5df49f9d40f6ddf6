/* Slices of a track side by side: where a model lets a port carry several transfers at once (congestion channel or
 * none, or a measured run), a track falls into lanes, and within a lane nothing overlaps. Interval colouring: by start,
 * the lowest free lane. That needs as many lanes as slices overlap anywhere, and no more. */
#include "report/report.h"

#include <stdlib.h>

#include "util/util.h"

static int compare(const void *a, const void *b)
{
    const report_slice *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->finish_ns != y->finish_ns)
        return x->finish_ns < y->finish_ns ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

int32_t report_lanes(report_slice *slice, int32_t n)
{
    int32_t lanes = 0;
    int64_t *end = util_alloc((size_t)n, sizeof *end); /* per lane */
    if (!end)
        return MOIRAI_NONE;
    qsort(slice, (size_t)n, sizeof *slice, compare);
    for (int32_t i = 0; i < n; i++) {
        int32_t lane = 0;
        while (lane < lanes && end[lane] > slice[i].start_ns)
            lane++;
        lanes = UTIL_MAX(lanes, lane + 1);
        end[lane] = slice[i].finish_ns;
        slice[i].lane = lane;
    }
    free(end);
    return lanes;
}

static bool on_track(int32_t from, int32_t to, int32_t device, report_track track)
{
    return device == (track == REPORT_SEND ? from : to);
}

static int32_t planned(report_slice *s, const moirai_analysis *a, int32_t device, report_track track)
{
    int32_t n = 0;
    for (int32_t i = 0; track == REPORT_COMPUTE && i < a->n_ops; i++)
        if (a->plan->op_device[i] == device)
            s[n++] = (report_slice){a->plan->op_start_ns[i], a->plan->op_finish_ns[i], i, 0};
    for (int32_t x = 0; track != REPORT_COMPUTE && x < a->n_transfers; x++) {
        const moirai_transfer *t = &a->plan->transfer[x];
        if (on_track(t->from, t->to, device, track))
            s[n++] = (report_slice){t->start_ns, t->finish_ns, a->n_ops + x, 0};
    }
    return n;
}

static int32_t measured_slices(report_slice *s, const moirai_measured *t, int32_t device, report_track track)
{
    int32_t n = 0;
    for (int32_t i = 0; track == REPORT_COMPUTE && i < t->n_segments; i++)
        if (t->segment[i].device == device)
            s[n++] = (report_slice){t->segment[i].start_ns, t->segment[i].finish_ns, i, 0};
    for (int32_t x = 0; track != REPORT_COMPUTE && x < t->n_transfers; x++)
        if (on_track(t->transfer[x].from, t->transfer[x].to, device, track))
            s[n++] = (report_slice){t->transfer[x].start_ns, t->transfer[x].finish_ns, x, 0};
    return n;
}

int report_track_slices(report_slice **slice, int32_t *n, int32_t *n_lanes, const moirai_analysis *a, int32_t device,
                        report_track track, bool measured)
{
    size_t most = (size_t)(track == REPORT_COMPUTE ? a->n_ops : a->n_transfers);
    if (measured)
        most = (size_t)(track == REPORT_COMPUTE ? a->timeline->n_segments : a->timeline->n_transfers);
    *slice = util_alloc(most, sizeof **slice);
    if (!*slice)
        return MOIRAI_EFAIL;
    *n = measured ? measured_slices(*slice, a->timeline, device, track) : planned(*slice, a, device, track);
    *n_lanes = report_lanes(*slice, *n);
    if (*n_lanes >= 0)
        return 0;
    free(*slice);
    return MOIRAI_EFAIL;
}
