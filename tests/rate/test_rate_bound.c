/* The bound of the period: never above the best that all assignments, mixtures of them and their streams reach. */
#include <moirai/moirai.h>

#include "rate/least/least.h"
#include "rate/loads.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/rate_brute.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "util/util.h"

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

static int64_t bound_of_loads(const moirai_problem *p, bool one_copy)
{
    relax_answer answer;
    relax_task job = {.goal_ns = INT64_MAX / 4, .cases = 100, .rounds = 40, .one_copy = one_copy, .threads = 1};
    assert_ok(rate_least_relax(&answer, p, &job));
    int64_t lower = answer.lower_ns;
    relax_answer_clear(&answer);
    return lower;
}

/* The least largest load of all assignments that fit. */
static int64_t least_load(const moirai_problem *p, const relax_view *v)
{
    int64_t least = INT64_MAX, all = 1;
    int32_t device[16];
    for (int32_t i = 0; i < p->n_ops; i++)
        all *= v->K;
    for (int64_t which = 0; which < all; which++) {
        int64_t rest = which, most = 0;
        bool allowed = true;
        for (int32_t i = 0; i < p->n_ops; i++, rest /= v->K) {
            device[i] = (int32_t)(rest % v->K);
            allowed &= p->op_devices[i] >> device[i] & 1;
        }
        rate_balance b;
        if (!allowed)
            continue;
        assert_ok(rate_balance_open(&b, v, device));
        for (int32_t r = 0; r < v->n_resources; r++)
            most = UTIL_MAX(most, b.load_ns[r]);
        least = b.n_over ? least : UTIL_MIN(least, most);
        rate_balance_close(&b);
    }
    return least;
}

/* Of one copy more can be proven than of mixtures, by cases; never more than the best assignment has. */
static void test_rate_bound_of_one_copy_is_never_above_the_best(void **state)
{
    (void)state;
    int n = 0, raised = 0, met = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(1500); seed++) {
        random_spec spec = random_spec_draw(seed, 5);
        if (seed % 4 == 0)
            spec.congestion = MOIRAI_CONGESTION_DEVICE;
        moirai_problem *p = random_problem(&spec);
        relax_view v;
        if (!p || p->n_ops == 0) {
            moirai_problem_free(p);
            continue;
        }
        assert_ok(relax_view_open(&v, p, 100));
        int64_t least = least_load(p, &v), lower = bound_of_loads(p, true);
        if (lower > least)
            fail_msg("seed %llu: %lld proven, %lld reached", (unsigned long long)seed, (long long)lower,
                     (long long)least);
        raised += lower > bound_of_loads(p, false);
        met += lower == least;
        n++;
        relax_view_close(&v);
        moirai_problem_free(p);
    }
    print_message("%d problems; cases raise %d bounds, %d are met\n", n, raised, met);
    assert_true(n > TEST_SHARE(1000) && raised > TEST_SHARE(300) && met > TEST_SHARE(10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_bound_by_hand),
        cmocka_unit_test(test_rate_bound_is_of_mixtures_too),
        cmocka_unit_test(test_rate_bound_is_never_above_the_best),
        cmocka_unit_test(test_rate_bound_of_one_copy_is_never_above_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
