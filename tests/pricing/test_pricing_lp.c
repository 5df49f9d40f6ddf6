/* A linear programme that is solved by HiGHS, by hand; it grows by columns. Without HiGHS it says that there is none. */
#include <math.h>

#include <moirai/moirai.h>

#include "lp/lp.h"
#include "support/check.h"
#include "util/util.h"

static const util_stop never;

/* Least x + 2 y where x + y >= 3 and y >= x - 1, both at least 0: x = 2, y = 1. Duals 3/2 and 1/2. */
static pricing_lp *two_columns(void)
{
    static const double lower[] = {3, -1}, upper[] = {HUGE_VAL, HUGE_VAL};
    static const int32_t row[] = {0, 1};
    pricing_lp *lp;
    assert_ok(pricing_lp_new(&lp, 2, lower, upper));
    assert_ok(pricing_lp_add_column(lp, 1, 2, row, (const double[]){1, -1}));
    assert_ok(pricing_lp_add_column(lp, 2, 2, row, (const double[]){1, 1}));
    return lp;
}

static void assert_numbers(const double *found, double first, double second)
{
    assert_true(fabs(found[0] - first) < 1e-7);
    assert_true(fabs(found[1] - second) < 1e-7);
}

static void test_pricing_lp_by_hand(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    double objective, dual[2], primal[3];
    pricing_lp *lp = two_columns();
    assert_ok(pricing_lp_solve(lp, &never, &objective, dual, primal));
    assert_numbers(primal, 2, 1);
    assert_numbers(dual, 1.5, 0.5);
    assert_true(fabs(objective - 4) < 1e-7);
    assert_ok(pricing_lp_solve(lp, &never, &objective, NULL, NULL));                             /* nobody wants more */
    assert_ok(pricing_lp_add_column(lp, 1, 2, (const int32_t[]){0, 1}, (const double[]){1, 0})); /* in place of y */
    assert_ok(pricing_lp_solve(lp, &never, &objective, dual, primal));
    assert_true(fabs(objective - 3) < 1e-7 && primal[1] < 1e-7);
    pricing_lp_free(lp);
}

static void test_pricing_lp_is_there_or_says_so(void **state)
{
    (void)state;
    pricing_lp *lp;
    bool there = pricing_lp_available();
    assert_int_equal(pricing_lp_new(&lp, 0, NULL, NULL), there ? 0 : MOIRAI_ELIMIT);
    assert_int_equal(lp != NULL, there);
    pricing_lp_free(lp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pricing_lp_by_hand),
        cmocka_unit_test(test_pricing_lp_is_there_or_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
