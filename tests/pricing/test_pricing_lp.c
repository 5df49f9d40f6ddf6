/* The linear programmes that are solved by HiGHS, by hand: the three ways to solve one say the same, and changes
 * count. Without HiGHS all of them say that there is none. */
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

static void test_pricing_lp_ways_agree(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    double objective, dual[2], value[2], primal[2];
    pricing_lp *lp = two_columns();
    assert_ok(pricing_lp_solve(lp, &never, &objective, dual, primal));
    assert_numbers(primal, 2, 1);
    assert_numbers(dual, 1.5, 0.5);
    assert_true(fabs(objective - 4) < 1e-7);
    assert_ok(pricing_lp_solve(lp, &never, &objective, NULL, NULL)); /* nobody wants more */
    pricing_lp_free(lp);
    lp = two_columns();
    assert_ok(pricing_lp_solve_once(lp, &never, dual, primal));
    assert_numbers(primal, 2, 1);
    assert_numbers(dual, 1.5, 0.5);
    assert_ok(pricing_lp_solve_again(lp, &never, dual, value, NULL));
    assert_numbers(dual, 1.5, 0.5);
    assert_numbers(value, 3, -1);
    pricing_lp_free(lp);
}

static void test_pricing_lp_changes_count(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    double dual[3], value[3], primal[2];
    pricing_lp *lp = two_columns();
    assert_ok(pricing_lp_solve_once(lp, &never, dual, primal));
    assert_numbers(primal, 2, 1);
    assert_ok(pricing_lp_set_column(lp, 0, 0.5));
    assert_ok(pricing_lp_solve_again(lp, &never, dual, value, primal));
    assert_numbers(primal, 0.5, 2.5);
    assert_ok(pricing_lp_set_column(lp, 0, HUGE_VAL));
    assert_ok(pricing_lp_add_row(lp, 2, HUGE_VAL, 1, (const int32_t[]){1}, (const double[]){1})); /* y >= 2 */
    assert_ok(pricing_lp_solve_again(lp, &never, dual, value, primal));
    assert_numbers(primal, 1, 2);
    assert_numbers(dual + 1, 0, 1); /* of the row that no longer binds, of the new one */
    assert_true(fabs(value[2] - 2) < 1e-7);
    pricing_lp_free(lp);
}

/* y <= -1 has no solution: the multipliers alone show that. */
static void test_pricing_lp_refutes(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    double dual[3], value[3];
    pricing_lp *lp = two_columns();
    assert_ok(pricing_lp_solve_again(lp, &never, dual, value, NULL));
    assert_false(pricing_lp_refuted(lp, dual));
    assert_ok(pricing_lp_add_row(lp, -HUGE_VAL, -1, 1, (const int32_t[]){1}, (const double[]){1}));
    assert_int_equal(pricing_lp_solve_again(lp, &never, dual, value, NULL), MOIRAI_ELIMIT);
    assert_true(pricing_lp_refuted(lp, dual));
    assert_true(fabs(dual[2]) > 1e-9);
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
        cmocka_unit_test(test_pricing_lp_ways_agree),
        cmocka_unit_test(test_pricing_lp_changes_count),
        cmocka_unit_test(test_pricing_lp_refutes),
        cmocka_unit_test(test_pricing_lp_is_there_or_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
