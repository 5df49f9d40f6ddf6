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
        int64_t a[MOST], b[MOST], lower[MOST], sum[MOST], added[MOST], set[MOST], least = INT64_MAX, least_sum = NONE;
        draw(&r, a, MOST);
        draw(&r, b, MOST);
        memcpy(lower, a, sizeof a);
        memcpy(sum, a, sizeof a);
        memcpy(added, a, sizeof a);
        memset(set, 0, sizeof set);
        pricing_line_lower(lower, b, n);
        pricing_line_lower_sum(sum, b, lower, n);
        pricing_line_add(added, b, n);
        pricing_line_set(set, b, -7, n);
        for (int32_t g = 0; g < MOST; g++) { /* beyond n nothing is touched */
            bool both = a[g] < NONE && b[g] < NONE, in = g < n;
            int64_t low = in ? UTIL_MIN(a[g], b[g]) : a[g];
            assert_true(lower[g] == low);
            assert_true(sum[g] == (in ? UTIL_MIN(a[g], b[g] + low) : a[g]));
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

static void test_pricing_lines_lower_to_the_least_within_a_step(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 13);
    for (int32_t n = 0; n <= MOST; n++) {
        int64_t a[MOST], kink[MOST], ends[MOST], both[MOST];
        draw(&r, a, MOST);
        draw(&r, kink, MOST);
        memcpy(ends, a, sizeof a);
        memcpy(both, a, sizeof a);
        pricing_line_lower_ends(ends, NULL, n);
        pricing_line_lower_ends(both, kink, n);
        for (int32_t g = 0; g < MOST; g++) {
            int64_t least = g + 1 < n ? UTIL_MIN(a[g], a[g + 1]) : a[g];
            assert_true(ends[g] == least);
            assert_true(both[g] == (g + 1 < n ? UTIL_MIN(least, kink[g]) : a[g]));
        }
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

/* A task of 2.5 steps, of length 10 each, at prices 1, 2, 3, ...: from the beginning of step g, or such that it ends with
 * step g + 2. */
static void test_pricing_lines_worth_of_a_task(void **state)
{
    (void)state;
    int64_t price[8], sum[9] = {0}, low[4] = {0}, kink[4] = {0};
    for (int32_t g = 0; g < 8; g++) {
        price[g] = g + 1;
        sum[g + 1] = sum[g] + 10 * price[g];
    }
    pricing_line_add_worth(low, sum, price, 2, 5, 4);
    pricing_line_add_kink(kink, sum, price, 2, 5, 4);
    for (int32_t g = 0; g < 4; g++) {
        assert_true(low[g] == 10 * price[g] + 10 * price[g + 1] + 5 * price[g + 2]);
        assert_true(kink[g] == 5 * price[g] + 10 * price[g + 1] + 10 * price[g + 2]);
    }
    pricing_line_add_worth(low, sum, price, 8, 0, 1); /* to the very end: there is no price behind it */
    assert_true(low[0] == 10 + 20 + 15 + 360);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pricing_lines_add_and_compare_like_plain_loops),
        cmocka_unit_test(test_pricing_lines_lower_to_the_least_within_a_step),
        cmocka_unit_test(test_pricing_lines_divide_as_whole_numbers),
        cmocka_unit_test(test_pricing_lines_running_minima),
        cmocka_unit_test(test_pricing_lines_worth_of_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
