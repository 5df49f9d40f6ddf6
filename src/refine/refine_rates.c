/* Bandwidths from runs.
 *
 * `moirai probe` measures a channel while nothing else runs. In a run both ends compute meanwhile, copy tensors in and
 * out and share the memory, so that a byte takes longer. The transfers of the runs tell: of those that the receiver
 * waited for, the line through (bytes, time) by Theil and Sen has the time of a byte as its slope. It counts where the
 * data allow it: FEWEST transfers at least, sizes that differ by WIDE, bytes that make up a share of SHOWN of what the
 * largest took, and a bandwidth between 1/FAR and NEAR of what is known: what is further off has other reasons (a
 * receiver that looked late, another program). Elsewhere the known one stays. Latencies are found afterwards
 * (refine_links.c), as what these rates leave. */
#include "refine/refine.h"

#include <stdlib.h>

#include "util/util.h"

enum { FEWEST = 6, WIDE = 4 };
#define SHOWN 0.5
#define FAR 16.0
#define NEAR 1.25

/* The last finish on a device before `moment`, of segments that started before it; INT64_MIN if there is none. */
static int64_t busy_until(const refine_timeline *t, int32_t device, int64_t moment)
{
    int64_t last = INT64_MIN;
    for (size_t k = 0; k < t->n_segments; k++)
        if (t->segment[k].device == device && t->segment[k].start_ns < moment)
            last = UTIL_MAX(last, t->segment[k].finish_ns);
    return last;
}

bool refine_awaited(const refine_timeline *t, const refine_transfer *x)
{
    return busy_until(t, x->to, x->finish_ns) <= x->start_ns;
}

static size_t collect(refine_point *p, const refiner *r, int32_t from, int32_t to)
{
    size_t n = 0;
    for (int32_t i = 0; i < r->n; i++) {
        const refine_timeline *t = &r->t[i];
        for (size_t k = 0; k < t->n_transfers; k++) {
            const refine_transfer *x = &t->transfer[k];
            if (t->number[x->from] == from && t->number[x->to] == to && x->median_ns > 0 && refine_awaited(t, x))
                p[n++] = (refine_point){(double)x->bytes, (double)x->median_ns};
        }
    }
    return n;
}

/* The bandwidth that these transfers tell, or 0. */
static int rate_of(double *rate, refine_point *p, size_t n, double known)
{
    double slope, intercept, most = 0, least = 0, longest = 0;
    *rate = 0;
    for (size_t i = 0; i < n; i++) {
        least = i ? UTIL_MIN(least, p[i].x) : p[i].x;
        if (p[i].x > most) {
            most = p[i].x;
            longest = p[i].y;
        }
    }
    if (n < FEWEST || most < WIDE * least || !(most > 0))
        return 0;
    int rc = refine_line(&slope, &intercept, p, n);
    if (!rc && slope > 0 && slope * most >= SHOWN * longest && 1e9 / slope >= known / FAR &&
        1e9 / slope <= known * NEAR)
        *rate = 1e9 / slope;
    return rc;
}

int refine_rates(refiner *r)
{
    int32_t n = r->c->n_devices;
    size_t most = 0;
    for (int32_t i = 0; i < r->n; i++)
        most += r->t[i].n_transfers;
    refine_point *p = util_alloc(most, sizeof *p);
    int rc = p ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < n * n && !rc; i++) {
        double rate = 0;
        r->rate[i] = r->c->bytes_per_second[i];
        if (i / n != i % n)
            rc = rate_of(&rate, p, collect(p, r, i / n, i % n), (double)r->rate[i]);
        if (rate >= 1) {
            r->rate[i] = (int64_t)rate;
            r->n_rates++;
        }
    }
    free(p);
    return rc;
}
