/* What a cut costs, from a run: the latencies of channels and the price of a segment.
 *
 * Between the finish of a segment and the start of one that waits for its result lie more than the message that
 * `moirai probe` measured: the communication thread must see that a result is there, the message goes, the waiting
 * thread must wake, and the new segment's session has a price of its own before its first operator starts. None of it
 * grows with the bytes, and all of it is paid once per cut; the model has one number of that kind, the channel's
 * latency. So latency(a, b) = what messages took beyond their bytes + a's time to send + b's time to wake + b's price
 * of a segment, each the median over the run. Pairs that sent nothing get what the others gained, in the median.
 *
 * The price of a segment on a device is the intercept of the line through (predicted sum of operators, measured time)
 * of its segments: slope by Theil and Sen (median of the slopes between every two), intercept by the median of the
 * rest; robust against the few segments that are off. It is never above the shortest segment. */
#include "run/refine.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_build.h"
#include "util/json.h"
#include "util/util.h"

enum { FEWEST_SEGMENTS = 4, MOST_SEGMENTS = 500 }; /* of one device; the first ones where there are more */

int64_t moirai_refine_segment_cost(const refine_timeline *t, int32_t device, const double *predicted_ns)
{
    const refine_segment *list[MOST_SEGMENTS];
    double x[MOST_SEGMENTS], left[MOST_SEGMENTS], least = 0;
    size_t n = 0, n_slopes = 0;
    for (size_t i = 0; i < t->n_segments && n < MOST_SEGMENTS; i++)
        if (t->segment[i].device == device && t->segment[i].median_ns > 0) {
            x[n] = predicted_ns[i];
            list[n++] = &t->segment[i];
        }
    double *slope = n < FEWEST_SEGMENTS ? NULL : moirai_alloc(n * (n - 1) / 2, sizeof *slope);
    if (!slope)
        return 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (x[i] != x[k])
                slope[n_slopes++] = (double)(list[i]->median_ns - list[k]->median_ns) / (x[i] - x[k]);
    double a = moirai_refine_median(slope, n_slopes);
    free(slope);
    for (size_t i = 0; i < n; i++) {
        left[i] = (double)list[i]->median_ns - a * x[i];
        least = i ? MOIRAI_MIN(least, (double)list[i]->median_ns) : (double)list[i]->median_ns;
    }
    return (int64_t)MOIRAI_MAX(MOIRAI_MIN(moirai_refine_median(left, n), least), 0);
}

/* From the last finish of a segment on a device to the start of a send from there. */
static double time_to_send(const refine_timeline *t, int32_t device, double *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_transfers; i++) {
        int64_t ready = INT64_MIN;
        if (t->transfer[i].from != device)
            continue;
        for (size_t k = 0; k < t->n_segments; k++)
            if (t->segment[k].device == device && t->segment[k].finish_ns <= t->transfer[i].start_ns)
                ready = MOIRAI_MAX(ready, t->segment[k].finish_ns);
        if (ready != INT64_MIN)
            scratch[n++] = (double)t->transfer[i].start_ns - (double)ready;
    }
    return moirai_refine_median(scratch, n);
}

/* From the last arrival at a device to the start of a segment that was waiting: one that did not follow another at
 * once. */
static double time_to_wake(const refine_timeline *t, int32_t device, double *scratch)
{
    size_t n = 0;
    for (size_t k = 0; k < t->n_segments; k++) {
        const refine_segment *s = &t->segment[k];
        int64_t arrived = INT64_MIN, before = INT64_MIN;
        if (s->device != device)
            continue;
        if (k && t->segment[k - 1].device == device)
            before = t->segment[k - 1].finish_ns;
        for (size_t i = 0; i < t->n_transfers; i++)
            if (t->transfer[i].to == device && t->transfer[i].finish_ns <= s->start_ns)
                arrived = MOIRAI_MAX(arrived, t->transfer[i].finish_ns);
        if (arrived > before)
            scratch[n++] = (double)s->start_ns - (double)arrived;
    }
    return moirai_refine_median(scratch, n);
}

static double message_time(const refine_timeline *t, int32_t from, int32_t to, double rate, double *scratch, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < t->n_transfers; i++) {
        const refine_transfer *x = &t->transfer[i];
        if (x->from == from && x->to == to)
            scratch[(*n)++] = MOIRAI_MAX((double)x->median_ns - (double)x->bytes * 1e9 / rate, 0);
    }
    return moirai_refine_median(scratch, *n);
}

static int find_devices(int32_t *out, const moirai_cluster *c, const refine_timeline *t, const char *label)
{
    for (int32_t k = 0; k < t->n_devices; k++) {
        out[k] = moirai_cluster_find(c, t->device[k]);
        if (out[k] < 0)
            return moirai_error(MOIRAI_EINPUT, "%s: device '%.200s' is not in cluster '%.200s'", label, t->device[k],
                                c->name);
    }
    return 0;
}

int moirai_refine_latencies(int64_t *latency_ns, const moirai_cluster *c, const refine_timeline *t,
                            const int64_t *segment_ns, const char *label)
{
    int32_t at[MOIRAI_MAX_DEVICES], n = c->n_devices;
    double send[MOIRAI_MAX_DEVICES], wake[MOIRAI_MAX_DEVICES], gain[MOIRAI_MAX_DEVICES * MOIRAI_MAX_DEVICES];
    size_t n_gains = 0, sent;
    int rc = find_devices(at, c, t, label);
    double *scratch = rc ? NULL : moirai_alloc(MOIRAI_MAX(t->n_transfers, t->n_segments), sizeof *scratch);
    if (!scratch)
        return rc ? rc : MOIRAI_EFAIL;
    for (int32_t i = 0; i < n * n; i++)
        latency_ns[i] = -1;
    for (int32_t k = 0; k < t->n_devices; k++) {
        send[k] = time_to_send(t, k, scratch);
        wake[k] = time_to_wake(t, k, scratch);
    }
    for (int32_t a = 0; a < t->n_devices; a++)
        for (int32_t b = 0; b < t->n_devices; b++) {
            int32_t pair = at[a] * n + at[b];
            double ns = a == b ? 0 : message_time(t, a, b, (double)c->bytes_per_second[pair], scratch, &sent);
            if (a == b || !sent)
                continue;
            ns = MOIRAI_MAX(ns + send[a] + wake[b] + (double)segment_ns[b], 0);
            latency_ns[pair] = (int64_t)MOIRAI_MIN(ns, (double)MOIRAI_MAX_LATENCY_NS);
            gain[n_gains++] = (double)(latency_ns[pair] - c->latency_ns[pair]);
        }
    int64_t usual = (int64_t)moirai_refine_median(gain, n_gains);
    for (int32_t i = 0; i < n * n; i++)
        if (latency_ns[i] < 0)
            latency_ns[i] = MOIRAI_MIN(MOIRAI_MAX(c->latency_ns[i] + usual, 0), MOIRAI_MAX_LATENCY_NS);
    free(scratch);
    return 0;
}

void moirai_refine_links_set(moirai_cluster *c, const int64_t *latency_ns)
{
    c->n_links = 0;
    for (int32_t a = 0; a < c->n_devices; a++)
        for (int32_t b = 0; b < c->n_devices; b++) {
            int32_t pair = a * c->n_devices + b;
            if (a == b)
                continue;
            c->latency_ns[pair] = latency_ns[pair];
            c->link[c->n_links++] = (moirai_link){a, b, c->bytes_per_second[pair], latency_ns[pair]};
        }
}
