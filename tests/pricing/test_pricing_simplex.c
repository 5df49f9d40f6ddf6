/* The simplex of the masters against HiGHS, and against what every optimum is. */
#include <math.h>

#include <moirai/moirai.h>

#include "lp/machines.h"
#include "lp/simplex.h"
#include "support/check.h"
#include "support/scale.h"
#include "util/util.h"

#define MOST_ROWS 60
#define MOST_COLUMNS 160

static const util_stop never;

/* Rows as in a master: limits 0 that one column widens at a price, sums of parts, and ranges. */
typedef struct programme {
    int32_t m, n;
    double lower[MOST_ROWS], upper[MOST_ROWS], cost[MOST_COLUMNS], a[MOST_ROWS][MOST_COLUMNS];
} programme;

static double some(util_rng *rng)
{
    return (double)util_rng_below(rng, 1000) / 1000;
}

static void draw_rows(programme *p, util_rng *rng)
{
    for (int32_t i = 0; i < p->m; i++) {
        p->lower[i] = -HUGE_VAL;
        p->upper[i] = i % 4 ? 0 : some(rng);
        if (i >= p->m - 3) /* parts of a kind */
            p->lower[i] = p->upper[i] = 1 + (double)util_rng_below(rng, 16);
        else if (i >= p->m - 5) { /* a number in its range */
            p->lower[i] = (double)util_rng_below(rng, 3);
            p->upper[i] = p->lower[i] + (double)util_rng_below(rng, 3);
        }
    }
}

static void draw(programme *p, util_rng *rng)
{
    *p = (programme){.m = 8 + (int32_t)util_rng_below(rng, MOST_ROWS - 8)};
    p->n = p->m + (int32_t)util_rng_below(rng, (uint32_t)(MOST_COLUMNS - p->m));
    draw_rows(p, rng);
    for (int32_t j = 0; j < p->n; j++) {
        if (j == 0) { /* theta */
            p->cost[j] = 1;
            for (int32_t i = 0; i < p->m - 5; i++)
                p->a[i][j] = -1;
        } else if (j <= 4) { /* ranges may be missed */
            p->cost[j] = 64;
            p->a[p->m - 5 + (j - 1) / 2][j] = j % 2 ? 1 : -1;
        } else {
            p->cost[j] = util_rng_below(rng, 2) ? some(rng) : 0;
            for (int32_t i = 0; i < p->m - 5; i++)
                p->a[i][j] = util_rng_below(rng, 4) ? 0 : some(rng);
            p->a[p->m - 5][j] = (double)util_rng_below(rng, 2);
            p->a[p->m - 4][j] = (double)util_rng_below(rng, 2);
            p->a[p->m - 3 + j % 3][j] = 1;
        }
    }
}

static int32_t entries(const programme *p, int32_t j, int32_t *row, double *value)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->m; i++)
        if (p->a[i][j] != 0) {
            row[n] = i;
            value[n++] = p->a[i][j];
        }
    return n;
}

/* Rows are kept, reduced costs have their signs, and so have the dual values: that is what an optimum is. */
static void assert_optimal(const programme *p, int32_t columns, const double *dual, const double *x)
{
    for (int32_t i = 0; i < p->m; i++) {
        double sum = 0;
        for (int32_t j = 0; j < columns; j++)
            sum += p->a[i][j] * x[j];
        assert_true(sum >= p->lower[i] - 1e-5 && sum <= p->upper[i] + 1e-5);
        assert_true(dual[i] < 1e-6 || sum <= p->lower[i] + 1e-5);
        assert_true(dual[i] > -1e-6 || sum >= p->upper[i] - 1e-5);
    }
    for (int32_t j = 0; j < columns; j++) {
        double reduced = p->cost[j];
        for (int32_t i = 0; i < p->m; i++)
            reduced -= dual[i] * p->a[i][j];
        assert_true(x[j] >= 0 && reduced > -1e-5);
        assert_true(x[j] < 1e-6 || reduced < 1e-5);
    }
}

static void test_programmes_that_grow_are_solved_to_their_optimum(void **state)
{
    (void)state;
    util_rng rng;
    util_rng_seed(&rng, 7);
    for (int32_t round = 0; round < TEST_SHARE(120); round++) {
        static programme p;
        draw(&p, &rng);
        pricing_simplex *s;
        assert_ok(pricing_simplex_new(&s, p.m, p.lower, p.upper));
        int32_t solved = 0;
        for (int32_t j = 0; j < p.n; j++) {
            int32_t row[MOST_ROWS], n;
            double value[MOST_ROWS], dual[MOST_ROWS], x[MOST_COLUMNS], best;
            n = entries(&p, j, row, value);
            assert_ok(pricing_simplex_add_column(s, p.cost[j], n, row, value));
            if (j < 8 || (j % 9 && j + 1 < p.n))
                continue;
            assert_ok(pricing_simplex_solve(s, &never, &best, dual, x));
            assert_optimal(&p, j + 1, dual, x);
            solved++;
        }
        assert_true(solved > 0);
        pricing_simplex_free(s);
    }
}

static void test_what_has_no_solution_or_no_least_one_is_given_up(void **state)
{
    (void)state;
    const double lower[] = {2, -HUGE_VAL}, upper[] = {2, 1}, one[] = {1, 1}, minus = -1;
    const int32_t both[] = {0, 1};
    double value;
    pricing_simplex *s;
    assert_ok(pricing_simplex_new(&s, 2, lower, upper));
    assert_ok(pricing_simplex_add_column(s, 1, 2, both, one)); /* x = 2 and x <= 1 */
    assert_int_equal(pricing_simplex_solve(s, &never, &value, NULL, NULL), MOIRAI_ELIMIT);
    assert_ok(pricing_simplex_add_column(s, 3, 1, &both[1], &minus)); /* now there is room, at a price */
    assert_ok(pricing_simplex_solve(s, &never, &value, NULL, NULL));
    assert_true(fabs(value - 5) < 1e-5);
    assert_ok(pricing_simplex_add_column(s, -1, 1, &both[1], &minus)); /* and now it pays to take ever more */
    assert_int_equal(pricing_simplex_solve(s, &never, &value, NULL, NULL), MOIRAI_ELIMIT);
    pricing_simplex_free(s);
}

/* Beale's example, on which the textbook's rules go round for ever; with free rows beside it. */
static void test_ties_do_not_go_round_for_ever(void **state)
{
    (void)state;
    const double lower[] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL}, upper[] = {0, 0, 1, HUGE_VAL};
    const double cost[] = {-0.75, 150, -0.02, 6};
    const double a[4][4] = {{0.25, 0.5, 0, 1}, {-60, -90, 0, 1}, {-0.04, -0.02, 1, 1}, {9, 3, 0, 1}};
    const int32_t row[] = {0, 1, 2, 3};
    double value, x[4];
    pricing_simplex *s;
    assert_ok(pricing_simplex_new(&s, 4, lower, upper));
    for (int32_t j = 0; j < 4; j++)
        assert_ok(pricing_simplex_add_column(s, cost[j], 4, row, a[j]));
    assert_ok(pricing_simplex_solve(s, &never, &value, NULL, x));
    assert_true(fabs(value + 0.05) < 1e-4 && fabs(x[2] - 1) < 1e-4);
    pricing_simplex_free(s);
}

/* (1 + 2^-30)^2 - (1 + 2^-29) is 2^-60, which the product has lost once it is rounded by itself. */
PRICING_FOR_EACH_MACHINE
double product_and_sum(const double *a, const double *c, int32_t n); /* seen from outside, so that it is not inlined */

PRICING_FOR_EACH_MACHINE
double product_and_sum(const double *a, const double *c, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += fabs(a[i] * a[i] - c[i]);
    return sum;
}

/* On a machine that can do both at once the search would decide otherwise than on one that can't. */
static void test_a_product_is_rounded_before_it_is_added(void **state)
{
    (void)state;
    double a[16], c[16];
    for (int32_t i = 0; i < 16; i++) {
        a[i] = 1 + ldexp(1, -30);
        c[i] = 1 + ldexp(1, -29);
    }
    assert_true(product_and_sum(a, c, 16) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programmes_that_grow_are_solved_to_their_optimum),
        cmocka_unit_test(test_what_has_no_solution_or_no_least_one_is_given_up),
        cmocka_unit_test(test_ties_do_not_go_round_for_ever),
        cmocka_unit_test(test_a_product_is_rounded_before_it_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
