/* Lines of costs by step.
 *
 * A pricing is little else than these loops, a few hundred steps at a time. Costs are whole numbers of 64
 * bits, of which the oldest x86-64 can compare but one at a time; so each loop is there for newer instruction sets as well,
 * and the loader takes what the machine has. The numbers are the same everywhere. Running minima depend on what came
 * just before: four lines are taken side by side, so that their chains overlap. */
#include "pricing/lines.h"

#include "pricing/machines.h"
#include "pricing/pricer.h"
#include "util/util.h"

#define NONE PRICING_NONE

PRICING_FOR_EACH_MACHINE
void pricing_line_lower_sum(int64_t *restrict out, const int64_t *restrict a, const int64_t *restrict b, int64_t n)
{
    for (int64_t g = 0; g < n; g++) {
        int64_t sum = a[g] + b[g];
        out[g] = UTIL_MIN(out[g], sum);
    }
}

PRICING_FOR_EACH_MACHINE
void pricing_line_add(int64_t *restrict out, const int64_t *restrict a, int64_t n)
{
    for (int64_t g = 0; g < n; g++) {
        int64_t most = UTIL_MAX(out[g], a[g]), sum = out[g] + a[g];
        out[g] = most >= NONE ? NONE : sum;
    }
}

PRICING_FOR_EACH_MACHINE
void pricing_line_set(int64_t *restrict out, const int64_t *restrict a, int64_t flat, int64_t n)
{
    for (int64_t g = 0; g < n; g++)
        out[g] = a[g] >= NONE ? NONE : a[g] + flat;
}

PRICING_FOR_EACH_MACHINE
void pricing_line_fill(int64_t *out, int64_t value, int64_t n)
{
    for (int64_t g = 0; g < n; g++)
        out[g] = value;
}

PRICING_FOR_EACH_MACHINE
void pricing_line_ramp(int64_t *out, int64_t first, int64_t by, int64_t n)
{
    for (int64_t g = 0; g < n; g++, first += by)
        out[g] = first;
}

PRICING_FOR_EACH_MACHINE
int64_t pricing_line_least(const int64_t *a, int64_t n)
{
    int64_t least = INT64_MAX;
    for (int64_t g = 0; g < n; g++)
        least = UTIL_MIN(least, a[g]);
    return least;
}

PRICING_FOR_EACH_MACHINE
int64_t pricing_line_least_sum(const int64_t *restrict a, const int64_t *restrict b, int64_t n)
{
    int64_t least = NONE;
    for (int64_t g = 0; g < n; g++) {
        int64_t most = UTIL_MAX(a[g], b[g]), sum = a[g] + b[g];
        sum = most >= NONE ? NONE : sum;
        least = UTIL_MIN(least, sum);
    }
    return least;
}

PRICING_FOR_EACH_MACHINE
void pricing_line_sum(int64_t *restrict out, const int64_t *restrict a, const int64_t *restrict b, int64_t n)
{
    for (int64_t g = 0; g < n; g++)
        out[g] = a[g] + b[g];
}

/* From the beginning of step g, that of step g + 1, and such that the task ends with step g + whole. */
PRICING_FOR_EACH_MACHINE
void pricing_line_worth(int64_t *restrict out, const int64_t *restrict sum, const int64_t *restrict part, int64_t whole,
                        int64_t n)
{
    const int64_t *end = sum + whole, *end_part = part + whole;
    for (int64_t g = 0; g < n; g++) {
        int64_t begin = end[g] - sum[g] + end_part[g], more = UTIL_MIN(part[g], end_part[g + 1]);
        int64_t later = end[g + 1] - sum[g + 1] + more;
        out[g] = UTIL_MIN(begin, later);
    }
}

PRICING_FOR_EACH_MACHINE
void pricing_line_worth_whole(int64_t *restrict out, const int64_t *restrict sum, int64_t whole, int64_t n)
{
    const int64_t *end = sum + whole;
    for (int64_t g = 0; g < n; g++) {
        int64_t begin = end[g] - sum[g], later = end[g + 1] - sum[g + 1];
        out[g] = UTIL_MIN(begin, later);
    }
}

/* A division takes ten times as long as a product. With m = floor(2^64 / by) + 1 the upper half of a m is floor(a / by)
 * for all a < 2^64 / by: m exceeds 2^64 / by by at most 1, and so a m / 2^64 exceeds a / by by less than 1 / by. */
void pricing_line_divide(int64_t *line, int32_t by, int64_t n)
{
    uint64_t m = UINT64_MAX / (uint64_t)by + 1, most = UINT64_MAX / (uint64_t)by;
    for (int64_t g = 0; g < n && by > 1; g++) {
        uint64_t a = (uint64_t)line[g];
        line[g] = a < most ? (int64_t)((unsigned __int128)a * m >> 64) : line[g] / by;
    }
}

/* ---- running minima ---- */

static void least_before(int64_t *out, const int64_t *in, int64_t n)
{
    int64_t least = INT64_MAX;
    for (int64_t g = 0; g < n; g++)
        out[g] = least = UTIL_MIN(least, in[g]);
}

static void least_behind(int64_t *out, const int64_t *in, int64_t n)
{
    int64_t least = INT64_MAX;
    for (int64_t g = n - 1; g >= 0; g--)
        out[g] = least = UTIL_MIN(least, in[g]);
}

void pricing_lines_least_before(int64_t *out, const int64_t *in, int32_t lines, int64_t n)
{
    for (; lines >= 4; lines -= 4, in += 4 * n, out += 4 * n) {
        int64_t a = INT64_MAX, b = a, c = a, d = a;
        for (int64_t g = 0; g < n; g++) {
            out[g] = a = UTIL_MIN(a, in[g]);
            out[n + g] = b = UTIL_MIN(b, in[n + g]);
            out[2 * n + g] = c = UTIL_MIN(c, in[2 * n + g]);
            out[3 * n + g] = d = UTIL_MIN(d, in[3 * n + g]);
        }
    }
    for (; lines > 0; lines--, in += n, out += n)
        least_before(out, in, n);
}

void pricing_lines_least_behind(int64_t *out, const int64_t *in, int32_t lines, int64_t n)
{
    for (; lines >= 4; lines -= 4, in += 4 * n, out += 4 * n) {
        int64_t a = INT64_MAX, b = a, c = a, d = a;
        for (int64_t g = n - 1; g >= 0; g--) {
            out[g] = a = UTIL_MIN(a, in[g]);
            out[n + g] = b = UTIL_MIN(b, in[n + g]);
            out[2 * n + g] = c = UTIL_MIN(c, in[2 * n + g]);
            out[3 * n + g] = d = UTIL_MIN(d, in[3 * n + g]);
        }
    }
    for (; lines > 0; lines--, in += n, out += n)
        least_behind(out, in, n);
}
