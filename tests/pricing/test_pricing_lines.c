/* The inner loops of pricing beside the plainest ones, for all lengths up to some vectors' worth. */
#include <string.h>

#include "pricing/lines.h"
#include "pricing/pricer.h"
#include "support/check.h"
#include "util/util.h"

#define MOST 70
#define LINES 6
#define NONE PRICING_NONE

/* A third of them does not fit; some are below 0. */
static void draw(util_rng *r, int64_t *line, int32_t n)
{
    for (int32_t g = 0; g < n; g++)
        line[g] = util_rng_below(r, 3) ? (int64_t)util_rng_below(r, 1000) - 100 : NONE;
}

static void test_pricing_lines_add_and_compare_like_plain_loops(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 11);
    for (int32_t n = 0; n <= MOST; n++) {
        int64_t a[MOST], b[MOST], c[MOST], sum[MOST], added[MOST], set[MOST], least = INT64_MAX, least_sum = NONE;
        draw(&r, a, MOST);
        draw(&r, b, MOST);
        draw(&r, c, MOST);
        memcpy(sum, a, sizeof a);
        memcpy(added, a, sizeof a);
        memset(set, 0, sizeof set);
        pricing_line_lower_sum(sum, b, c, n);
        pricing_line_add(added, b, n);
        pricing_line_set(set, b, -7, n);
        for (int32_t g = 0; g < MOST; g++) { /* beyond n nothing is touched */
            bool both = a[g] < NONE && b[g] < NONE, in = g < n;
            assert_true(sum[g] == (in ? UTIL_MIN(a[g], b[g] + c[g]) : a[g]));
            assert_true(added[g] == (!in ? a[g] : both ? a[g] + b[g] : NONE));
            assert_true(set[g] == (!in ? 0 : b[g] < NONE ? b[g] - 7 : NONE));
            if (in)
                least = UTIL_MIN(least, a[g]);
            if (in && both)
                least_sum = UTIL_MIN(least_sum, a[g] + b[g]);
        }
        assert_true(pricing_line_least(a, n) == least);
        assert_true(pricing_line_least_sum(a, b, n) == least_sum);
    }
}

static void test_pricing_lines_divide_as_whole_numbers(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 14);
    for (int32_t by = 1; by < 3000; by = by < 40 ? by + 1 : by * 3 - 1) {
        int64_t a[MOST], divided[MOST];
        for (int32_t g = 0; g < MOST; g++) { /* also multiples, and one less, where rounding would show */
            int64_t any = (int64_t)(util_rng_next(&r) >> (1 + util_rng_below(&r, 62)));
            a[g] = g % 3 ? UTIL_MAX(any / by * by - (g % 3 == 2), 0) : any;
        }
        memcpy(divided, a, sizeof a);
        pricing_line_divide(divided, by, MOST);
        for (int32_t g = 0; g < MOST; g++)
            assert_true(divided[g] == a[g] / by);
    }
}

static void test_pricing_lines_running_minima(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 12);
    for (int32_t lines = 1; lines <= LINES; lines++)
        for (int32_t n = 1; n <= MOST; n += 23) {
            int64_t in[LINES * MOST], before[LINES * MOST], behind[LINES * MOST];
            draw(&r, in, lines * n);
            memcpy(before, in, sizeof in);
            pricing_lines_least_before(before, before, lines, n); /* in place */
            pricing_lines_least_behind(behind, in, lines, n);
            for (int32_t x = 0; x < lines * n; x++) {
                int32_t first = x / n * n;
                assert_true(before[x] == pricing_line_least(in + first, x - first + 1));
                assert_true(behind[x] == pricing_line_least(in + x, first + n - x));
            }
        }
}

static void test_pricing_lines_ramp(void **state)
{
    (void)state;
    for (int32_t n = 0; n < MOST; n++) {
        int64_t a[MOST] = {0};
        pricing_line_ramp(a, -5, 3, n);
        for (int32_t g = 0; g < MOST; g++)
            assert_true(a[g] == (g < n ? 3 * g - 5 : 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pricing_lines_add_and_compare_like_plain_loops),
        cmocka_unit_test(test_pricing_lines_divide_as_whole_numbers),
        cmocka_unit_test(test_pricing_lines_running_minima),
        cmocka_unit_test(test_pricing_lines_ramp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
