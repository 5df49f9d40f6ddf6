/* What a cut costs, from runs: the latencies of channels.
 *
 * Between the finish of a segment and the start of one that waits for its result lie more than the message that
 * `moirai probe` measured: the send must start, the message goes, the waiting thread must see it, and the new segment
 * has a price of its own before its first operator starts. None of it grows with the bytes, and all of it is paid once
 * per cut; the model has one number of that kind, the channel's latency. So latency(a, b) = what messages took beyond
 * their bytes + a's time to send + b's time to start + b's price of a segment, over all timelines: the median, of
 * messages the first quartile (large ones are slower than the bandwidth says, and latencies are for all). Only messages
 * count that the receiver waited for: others are noted when it next looks, and may have been there for long. Where
 * there are only such, the fastest counts. Other pairs get what these gained, in the median. */
#include "refine/refine.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_build.h"
#include "util/util.h"

/* Numbers of one kind, over all timelines. */
typedef struct sample {
    const refiner *r;
    double *value;
    size_t n;
} sample;

/* From the last finish of a segment on a device to the start of a send from there. */
static void times_to_send(sample *out, const refine_timeline *t, int32_t device)
{
    for (size_t i = 0; i < t->n_transfers; i++) {
        int64_t ready = INT64_MIN;
        if (t->transfer[i].from != device)
            continue;
        for (size_t k = 0; k < t->n_segments; k++)
            if (t->segment[k].device == device && t->segment[k].finish_ns <= t->transfer[i].start_ns)
                ready = UTIL_MAX(ready, t->segment[k].finish_ns);
        if (ready != INT64_MIN)
            out->value[out->n++] = (double)t->transfer[i].start_ns - (double)ready;
    }
}

/* From the last arrival at a device to the start of a segment that was waiting: one that did not follow another at
 * once. */
static void times_to_start(sample *out, const refine_timeline *t, int32_t device)
{
    for (size_t k = 0; k < t->n_segments; k++) {
        const refine_segment *s = &t->segment[k];
        int64_t arrived = INT64_MIN, before = INT64_MIN;
        if (s->device != device)
            continue;
        if (k && t->segment[k - 1].device == device)
            before = t->segment[k - 1].finish_ns;
        for (size_t i = 0; i < t->n_transfers; i++)
            if (t->transfer[i].to == device && t->transfer[i].finish_ns <= s->start_ns)
                arrived = UTIL_MAX(arrived, t->transfer[i].finish_ns);
        if (arrived > before)
            out->value[out->n++] = (double)s->start_ns - (double)arrived;
    }
}

static double median_of(sample *s, int32_t device, void add(sample *, const refine_timeline *, int32_t))
{
    s->n = 0;
    for (int32_t i = 0; i < s->r->n; i++)
        for (int32_t k = 0; k < s->r->t[i].n_devices; k++)
            if (s->r->t[i].number[k] == device)
                add(s, &s->r->t[i], k);
    return refine_median(s->value, s->n);
}

static double message_time(sample *s, int32_t from, int32_t to, bool awaited)
{
    double rate = (double)s->r->rate[from * s->r->c->n_devices + to];
    s->n = 0;
    for (int32_t i = 0; i < s->r->n; i++) {
        const refine_timeline *t = &s->r->t[i];
        for (size_t k = 0; k < t->n_transfers; k++) {
            const refine_transfer *x = &t->transfer[k];
            if (t->number[x->from] == from && t->number[x->to] == to && (!awaited || refine_awaited(t, x)))
                s->value[s->n++] = UTIL_MAX((double)x->median_ns - (double)x->bytes * 1e9 / rate, 0);
        }
    }
    refine_median(s->value, s->n); /* sorts */
    return s->n ? s->value[awaited ? s->n / 4 : 0] : 0;
}

/* Of a device with too few segments to tell: what others have, in the median. */
static double segment_price(const refiner *r, int32_t device)
{
    double known[MOIRAI_MASK_DEVICES];
    size_t n = 0;
    for (int32_t k = 0; k < r->g->n_time_keys; k++) {
        if (r->segment_ns[k] < 0)
            continue;
        if (!strcmp(r->g->time_key[k], r->c->device[device].name))
            return (double)r->segment_ns[k];
        if (n < MOIRAI_MASK_DEVICES)
            known[n++] = (double)r->segment_ns[k];
    }
    return refine_median(known, n);
}

static void find_latencies(refiner *r, sample *s)
{
    int32_t n = r->c->n_devices;
    double send[MOIRAI_MASK_DEVICES], start[MOIRAI_MASK_DEVICES], gain[MOIRAI_MASK_DEVICES * MOIRAI_MASK_DEVICES];
    size_t n_gains = 0;
    for (int32_t k = 0; k < n; k++) {
        send[k] = median_of(s, k, times_to_send);
        start[k] = median_of(s, k, times_to_start);
    }
    for (int32_t i = 0; i < n * n; i++)
        r->latency_ns[i] = -1;
    for (int awaited = 1; awaited >= 0 && !n_gains; awaited--)
        for (int32_t i = 0; i < n * n; i++) {
            int32_t from = i / n, to = i % n;
            double ns = from == to ? 0 : message_time(s, from, to, awaited);
            if (from == to || !s->n)
                continue;
            ns = UTIL_MAX(ns + send[from] + start[to] + segment_price(r, to), 0);
            r->latency_ns[i] = (int64_t)UTIL_MIN(ns, (double)CLUSTER_MAX_LATENCY_NS);
            gain[n_gains++] = (double)(r->latency_ns[i] - r->c->latency_ns[i]);
        }
    r->cuts_seen = n_gains > 0;
    int64_t usual = (int64_t)refine_median(gain, n_gains);
    for (int32_t i = 0; i < n * n; i++)
        if (r->latency_ns[i] < 0)
            r->latency_ns[i] = UTIL_MIN(UTIL_MAX(r->c->latency_ns[i] + usual, 0), CLUSTER_MAX_LATENCY_NS);
}

int refine_latencies(refiner *r)
{
    size_t most = 0;
    for (int32_t i = 0; i < r->n; i++)
        most += r->t[i].n_transfers + r->t[i].n_segments;
    sample s = {.r = r, .value = util_alloc(most, sizeof *s.value)};
    if (!s.value)
        return MOIRAI_EFAIL;
    find_latencies(r, &s);
    free(s.value);
    return 0;
}

void refine_links_set(moirai_cluster *c, const int64_t *latency_ns, const int64_t *rate)
{
    c->n_links = 0;
    for (int32_t a = 0; a < c->n_devices; a++)
        for (int32_t b = 0; b < c->n_devices; b++) {
            int32_t pair = a * c->n_devices + b;
            if (a == b)
                continue;
            c->latency_ns[pair] = latency_ns[pair];
            c->bytes_per_second[pair] = rate[pair];
            c->link[c->n_links++] = (moirai_link){a, b, rate[pair], latency_ns[pair]};
        }
}
