/* The bound of the period: never above the best that all assignments, mixtures of them and their streams reach. */
#include <moirai/moirai.h>

#include "support/check.h"
#include "support/random_problem.h"
#include "support/rate_brute.h"
#include "support/scale.h"
#include "support/tiny.h"

static int64_t bound(const moirai_problem *p, int32_t in_flight, int64_t latency_ns)
{
    moirai_budget budget;
    moirai_budget_init(&budget);
    budget.threads = 1;
    int64_t lower = -1;
    assert_ok(moirai_rate_bound(&lower, p, in_flight, latency_ns, &budget));
    return lower;
}

/* a and b of 30 ns run anywhere: 30 per request on two devices, if each has one of them, and 60 ns of latency. */
static void test_rate_bound_by_hand(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 30,30 > t:0\nop b 30,30 t > u:0\n");
    assert_int_equal(bound(p, 8, 60), 30);
    assert_int_equal(bound(p, 1, 60), 60);
    assert_int_equal(bound(p, 2, 60), 30);
    assert_int_equal(bound(p, 7, 0), 30);
    moirai_problem_free(p);
}

/* Sending takes 100 ns: two devices of which y is three times as slow share requests, not operators. 1 / (1/60 + 1/180). */
static void test_rate_bound_is_of_mixtures_too(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 30,90 > t:100\nop b 30,90 t > u:0\n");
    assert_int_equal(bound(p, 8, 0), 45);
    moirai_problem_free(p);
}

/* All assignments of small problems, mixtures of them, and streams in many orders; bench_rate_hunt does more of it. */
static void test_rate_bound_is_never_above_the_best(void **state)
{
    (void)state;
    rate_brute_counts counts = {0};
    for (uint64_t seed = 1; seed <= TEST_SHARE(10000); seed++) {
        random_spec spec = random_spec_draw(seed, 6);
        if (seed % 4 == 0)
            spec.congestion = MOIRAI_CONGESTION_DEVICE;
        moirai_problem *p = random_problem(&spec);
        char why[256];
        if (p && !rate_brute_check(p, seed, 4096, 8, &counts, why))
            fail_msg("seed %llu: %s", (unsigned long long)seed, why);
        moirai_problem_free(p);
    }
    print_message("%lld problems, %lld mixtures, %lld streams; transfers and bytes raise %lld bounds, %lld are met\n",
                  (long long)counts.problems, (long long)counts.mixtures, (long long)counts.streams,
                  (long long)counts.raised, (long long)counts.met);
    assert_true(counts.problems > TEST_SHARE(7000)); /* the hunt has seen something */
    assert_true(counts.streams > TEST_SHARE(20000));
    assert_true(counts.raised > TEST_SHARE(500));
    assert_true(counts.met > TEST_SHARE(500)); /* one nanosecond more would be seen */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_bound_by_hand),
        cmocka_unit_test(test_rate_bound_is_of_mixtures_too),
        cmocka_unit_test(test_rate_bound_is_never_above_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
