/* The cheapest devices at given prices, against all assignments of small problems. */
#include <math.h>
#include <moirai/moirai.h>
#include <stdlib.h>

#include "place/fit.h"
#include "rate/least/least.h"
#include "relax/relax.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "util/util.h"

#define MOST_ASSIGNMENTS 4096

/* Price x load of all resources. */
static double priced(const relax_view *v, const double *price, const uint8_t *device)
{
    int64_t *load = util_alloc((size_t)v->n_resources, sizeof *load);
    double sum = 0;
    relax_loads(load, v, device);
    for (int32_t r = 0; r < v->n_resources; r++)
        sum += price[r] * (double)load[r];
    free(load);
    return sum;
}

/* The least of all assignments of units; HUGE_VAL: none is allowed. */
static double by_brute_force(const relax_view *v, const place_units *u, const double *price)
{
    uint8_t *device = util_alloc((size_t)v->n, sizeof *device);
    int32_t *of_unit = util_alloc((size_t)u->n, sizeof *of_unit);
    double least = HUGE_VAL;
    for (int32_t i = 0; i < u->n;) {
        bool may = true;
        for (int32_t op = 0; op < v->n; op++) {
            device[op] = (uint8_t)of_unit[u->of_op[op]];
            may &= place_unit_may(u, u->of_op[op], device[op]);
        }
        least = may ? fmin(least, priced(v, price, device)) : least;
        for (i = 0; i < u->n && ++of_unit[i] == v->K; i++)
            of_unit[i] = 0;
    }
    free(device);
    free(of_unit);
    return least;
}

/* Prices at random, some of them 0. */
static void draw_prices(double *price, int32_t n, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    for (int32_t r = 0; r < n; r++)
        price[r] = util_rng_below(&rng, 3) ? util_rng_real(&rng) : 0;
}

static bool check_one(const moirai_problem *p, uint64_t seed)
{
    relax_view v;
    place_units *u;
    rate_least *least;
    util_stop stop = {0};
    assert_ok(relax_view_open(&v, p, 100));
    assert_ok(place_units_new(&u, p));
    bool small = pow(v.K, u->n) <= MOST_ASSIGNMENTS;
    if (small) {
        double *price = util_alloc((size_t)v.n_resources, sizeof *price), sum;
        double *cost = util_alloc((size_t)v.n * (size_t)v.K, sizeof *cost);
        uint8_t *device = util_alloc((size_t)v.n, sizeof *device);
        draw_prices(price, v.n_resources, seed);
        for (int32_t i = 0; i < v.n; i++)
            for (int32_t k = 0; k < v.K; k++)
                cost[i * v.K + k] = p->op_devices[i] >> k & 1 ? price[k] * (double)moirai_op_ns(p, i, k) : HUGE_VAL;
        assert_ok(rate_least_new(&least, &v, u->of_op, u->n, &stop));
        assert_non_null(least);
        assert_ok(rate_least_find(least, cost, price, device, &sum, &stop));
        double expected = by_brute_force(&v, u, price), about = 1e-9 * (1 + fabs(expected));
        assert_true(fabs(sum - expected) <= about && fabs(priced(&v, price, device) - expected) <= about);
        rate_least_free(least);
        free(price);
        free(cost);
        free(device);
    }
    place_units_free(u);
    relax_view_close(&v);
    return small;
}

static void test_rate_least_is_the_least_of_all_assignments(void **state)
{
    (void)state;
    int32_t n = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(3000); seed++) {
        random_spec spec = random_spec_draw(seed, 8);
        moirai_problem *p = random_problem(&spec);
        n += p && check_one(p, seed);
        moirai_problem_free(p);
    }
    assert_true(n > TEST_SHARE(1500));
}

/* Six readers of one tensor: the set of devices that it reaches is a variable. */
static void test_rate_least_sends_once_to_each_device(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\ndevice z 9\nop a 5,9,9 > t:10\n"
                                     "op b 9,2,9 t > b:0\nop c 9,2,8 t > c:0\nop d 9,2,8 t > d:0\n"
                                     "op e 9,9,2 t > e:0\nop f 3,3,3 t > f:0\nop g 4,1,1 t > g:0\n");
    for (uint64_t seed = 1; seed <= 200; seed++)
        assert_true(check_one(p, seed));
    moirai_problem_free(p);
}

/* At prices that were found exactly messages prove what no mixture undercuts, but for a few 1e-5: 1 / (1/60 + 1/180) us for all on x or all on y. */
static void test_rate_least_finds_the_prices(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 30000,90000 > t:100000\nop b 30000,90000 t > u:0\n");
    relax_answer answer;
    relax_task job = {.goal_ns = INT64_MAX / 4, .cases = 1, .rounds = 100, .threads = 1};
    assert_ok(rate_least_relax(&answer, p, &job));
    assert_in_range(answer.lower_ns, 44998, 45000);
    relax_answer_clear(&answer);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_least_is_the_least_of_all_assignments),
        cmocka_unit_test(test_rate_least_sends_once_to_each_device),
        cmocka_unit_test(test_rate_least_finds_the_prices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
