/* A line through message times: time = latency + bytes / rate.
 *
 * Least squares of the relative differences, sum of ((latency + bytes * slope - t) / t)^2 over the medians of the sizes,
 * so that a wrong microsecond at 1 KiB weighs as much as a wrong millisecond at 16 MiB. Message times are no line: MPI
 * changes its protocol with the size, and a shaped link lets the first bytes pass at once. Sizes that are off therefore
 * lose weight as their difference grows (Huber's weights, iterated): the line follows the many. Neither latency nor slope
 * may be negative; where the best line wants that, the other is fitted alone. */
#include "run/rank_probe.h"

#include <math.h>

#include "util/util.h"

enum { ROUNDS = 20 };
#define HUBER 0.05 /* relative differences beyond this count linearly */
#define MOST_RATE 1e15

typedef struct line {
    double latency_ns, slope; /* ns, ns per byte */
} line;

static line solve(const probe_link *k, const double *weight)
{
    double a = 0, b = 0, c = 0, y = 0, z = 0; /* normal equations of the rows (1/t, s/t) . (latency, slope) = 1 */
    for (int32_t i = 0; i < k->n_sizes; i++) {
        double t = (double)MOIRAI_MAX(k->size[i].median_ns, 1), s = (double)k->size[i].bytes / t, one = 1 / t;
        a += weight[i] * one * one;
        b += weight[i] * one * s;
        c += weight[i] * s * s;
        y += weight[i] * one;
        z += weight[i] * s;
    }
    double det = a * c - b * b;
    line l = {0, c > 0 ? z / c : 0};
    if (det > 1e-12 * a * c)
        l = (line){(y * c - z * b) / det, (a * z - b * y) / det};
    if (l.latency_ns < 0)
        l = (line){0, c > 0 ? z / c : 0};
    if (l.slope < 0)
        l = (line){a > 0 ? y / a : 0, 0};
    return l;
}

static double difference(const probe_size *s, line l)
{
    double t = (double)MOIRAI_MAX(s->median_ns, 1);
    return fabs(l.latency_ns + l.slope * (double)s->bytes - t) / t;
}

void moirai_probe_fit(probe_link *k)
{
    double weight[PROBE_MAX_SIZES];
    line l = {0, 0};
    for (int32_t i = 0; i < k->n_sizes; i++)
        weight[i] = 1;
    for (int round = 0; round < ROUNDS; round++) {
        l = solve(k, weight);
        for (int32_t i = 0; i < k->n_sizes; i++) {
            double d = difference(&k->size[i], l);
            weight[i] = d > HUBER ? HUBER / d : 1;
        }
    }
    k->error = 0;
    for (int32_t i = 0; i < k->n_sizes; i++)
        k->error = fmax(k->error, difference(&k->size[i], l));
    double rate = l.slope > 1e9 / MOST_RATE ? 1e9 / l.slope : MOST_RATE;
    k->bytes_per_second = (int64_t)fmax(rate, 1);
    k->latency_ns = (int64_t)l.latency_ns;
}
