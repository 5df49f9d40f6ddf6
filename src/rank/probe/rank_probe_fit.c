/* A line through message times: time = latency + bytes / rate.
 *
 * Message times are no line: MPI changes its protocol with the size, caches end, and a shaped link lets the first
 * kilobytes of every message pass at once. Least squares through all sizes is then wrong where it matters most, at the
 * two ends: on a link of 1 Gbit/s with a bucket of 64 KiB it says 3 Gbit/s. So each number comes from the sizes that
 * show it:
 *
 *   latency  what an empty message takes
 *   rate     the median of bytes / (time - latency) over the largest size and those down to 1/16 of it
 *
 * What the sizes between say against the line is reported as its error. Of each size
 * the first quartile counts: whatever else runs on the machine makes messages slower and never faster, so that the
 * median of a busy machine is its own. */
#include "rank/probe/probe_link.h"

#include <math.h>

#include "util/util.h"

enum { SHARE_OF_LARGEST = 16 };
#define MOST_RATE 1e15

/* ns per byte */
static double fit_slope(const probe_link *k)
{
    double slope[PROBE_MAX_SIZES];
    int64_t least = UTIL_MAX(k->size[k->n_sizes - 1].bytes / SHARE_OF_LARGEST, 1);
    int n = 0;
    for (int32_t i = 0; i < k->n_sizes; i++) {
        if (k->size[i].bytes < least)
            continue;
        double x = fmax((double)(k->size[i].quartile_ns - k->latency_ns), 0) / (double)k->size[i].bytes;
        int at = n++;
        for (; at > 0 && slope[at - 1] > x; at--)
            slope[at] = slope[at - 1];
        slope[at] = x;
    }
    return n ? (slope[n / 2] + slope[(n - 1) / 2]) / 2 : 0;
}

void rank_probe_fit(probe_link *k)
{
    k->latency_ns = k->n_sizes && k->size[0].bytes == 0 ? k->size[0].quartile_ns : 0;
    double slope = k->n_sizes ? fit_slope(k) : 0;
    if (k->n_sizes) {
        /* Empty messages that something else held up would make the rate absurd: half of what the largest message took
         * is its transfer at least. */
        const probe_size *largest = &k->size[k->n_sizes - 1];
        slope = fmax(slope, 0.5 * (double)largest->quartile_ns / (double)UTIL_MAX(largest->bytes, 1));
    }
    k->error = 0;
    for (int32_t i = 0; i < k->n_sizes; i++) {
        double t = (double)UTIL_MAX(k->size[i].quartile_ns, 1);
        k->error = fmax(k->error, fabs((double)k->latency_ns + slope * (double)k->size[i].bytes - t) / t);
    }
    k->bytes_per_second = (int64_t)fmax(slope > 1e9 / MOST_RATE ? 1e9 / slope : MOST_RATE, 1);
}
