/* Lines of costs by step.
 *
 * A pricing is little else than these loops, a few hundred steps at a time. Costs are whole numbers of 64
 * bits, of which the oldest x86-64 can compare but one at a time; so each loop is there for newer instruction sets as well,
 * and the loader takes what the machine has. The numbers are the same everywhere. Running minima depend on what came
 * just before: four lines are taken side by side, so that their chains overlap. */
#include "pricing/lines.h"

#include "lp/machines.h"
#include "pricing/pricer.h"
#include "util/util.h"

#define NONE PRICING_NONE
#define PIECE 8 /* numbers that a loop takes at a time */

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
    int64_t more[PIECE], g = 0;
    for (int64_t j = 0; j < PIECE; j++)
        more[j] = j * by;
    for (; g + PIECE <= n; g += PIECE, first += PIECE * by)
        for (int64_t j = 0; j < PIECE; j++)
            out[g + j] = first + more[j];
    for (; g < n; g++, first += by)
        out[g] = first;
}

/* A minimum waits for the one before: PIECE of them side by side do not wait for each other. */
PRICING_FOR_EACH_MACHINE
int64_t pricing_line_least(const int64_t *a, int64_t n)
{
    int64_t least[PIECE], g = 0;
    for (int64_t j = 0; j < PIECE; j++)
        least[j] = INT64_MAX;
    for (; g + PIECE <= n; g += PIECE)
        for (int64_t j = 0; j < PIECE; j++)
            least[j] = UTIL_MIN(least[j], a[g + j]);
    for (; g < n; g++)
        least[0] = UTIL_MIN(least[0], a[g]);
    for (int64_t j = 1; j < PIECE; j++)
        least[0] = UTIL_MIN(least[0], least[j]);
    return least[0];
}

PRICING_FOR_EACH_MACHINE
int64_t pricing_line_least_sum(const int64_t *restrict a, const int64_t *restrict b, int64_t n)
{
    int64_t least = NONE;
    for (int64_t g = 0; g < n; g++) {
        int64_t most = UTIL_MAX(a[g], b[g]), sum = most >= NONE ? NONE : a[g] + b[g];
        least = UTIL_MIN(least, sum);
    }
    return least;
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

/* From step `from` on, forwards (by 1) or backwards (by -1). */
static inline void least_along(int64_t *out, const int64_t *in, int32_t lines, int64_t n, int64_t from, int64_t by)
{
    for (; lines >= 4; lines -= 4, in += 4 * n, out += 4 * n) {
        int64_t a = INT64_MAX, b = a, c = a, d = a;
        for (int64_t i = 0, g = from; i < n; i++, g += by) {
            out[g] = a = UTIL_MIN(a, in[g]);
            out[n + g] = b = UTIL_MIN(b, in[n + g]);
            out[2 * n + g] = c = UTIL_MIN(c, in[2 * n + g]);
            out[3 * n + g] = d = UTIL_MIN(d, in[3 * n + g]);
        }
    }
    for (; lines > 0; lines--, in += n, out += n) {
        int64_t least = INT64_MAX;
        for (int64_t i = 0, g = from; i < n; i++, g += by)
            out[g] = least = UTIL_MIN(least, in[g]);
    }
}

void pricing_lines_least_before(int64_t *out, const int64_t *in, int32_t lines, int64_t n)
{
    least_along(out, in, lines, n, 0, 1);
}

void pricing_lines_least_behind(int64_t *out, const int64_t *in, int32_t lines, int64_t n)
{
    least_along(out, in, lines, n, n - 1, -1);
}
