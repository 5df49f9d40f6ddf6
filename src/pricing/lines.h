/* Lines of costs by step: the inner loops of pricing. A cost of PRICING_NONE or more says "does not fit". */
#ifndef MOIRAI_PRICING_LINES_H
#define MOIRAI_PRICING_LINES_H

#include <stdint.h>

/* out[g] = min(out[g], a[g] + b[g]); two costs that do not fit may be added. */
void pricing_line_lower_sum(int64_t *out, const int64_t *a, const int64_t *b, int64_t n);
/* out[g] += a[g], PRICING_NONE where either does not fit. */
void pricing_line_add(int64_t *out, const int64_t *a, int64_t n);
/* out[g] = a[g] + flat, PRICING_NONE where a[g] does not fit. */
void pricing_line_set(int64_t *out, const int64_t *a, int64_t flat, int64_t n);
void pricing_line_fill(int64_t *out, int64_t value, int64_t n);
void pricing_line_ramp(int64_t *out, int64_t first, int64_t by, int64_t n); /* out[g] = first + g * by */
/* The least of a[g]; INT64_MAX for n < 1. */
int64_t pricing_line_least(const int64_t *a, int64_t n);
/* The least of a[g] + b[g] where both fit; PRICING_NONE if nowhere. */
int64_t pricing_line_least_sum(const int64_t *a, const int64_t *b, int64_t n);
/* Running minima of `lines` lines of n costs, one behind the other: out[g] = least of in[0 .. g], or of in[g .. n - 1].
 * `in` and `out` may be the same. */
void pricing_lines_least_before(int64_t *out, const int64_t *in, int32_t lines, int64_t n);
void pricing_lines_least_behind(int64_t *out, const int64_t *in, int32_t lines, int64_t n);
/* line[g] /= by, for line[g] >= 0 and by > 0. */
void pricing_line_divide(int64_t *line, int32_t by, int64_t n);

#endif
