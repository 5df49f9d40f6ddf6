/* Transfers that hold their devices: small problems against all plans that there are. */
#include <moirai/moirai.h>

#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "util/util.h"

#define MOST_NODES 200000

/* Alone on x 20; b beside a costs the transfer twice over: 4 to y, and 4 from there. */
static void test_place_hold_by_hand(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion device\ndevice x 9\ndevice y 9\nop a 2,2 > s:4\nop b 6,6 s > t:4\n"
                                     "op c 6,6 s > u:4\nop d 6,6 t u\n");
    moirai_plan *plan;
    assert_ok(moirai_place(&plan, p, "moirai", NULL));
    assert_int_equal(plan->makespan_ns, 20); /* 2 + 4 + 6 + 6 with one of them on y, and 4 back: no better */
    moirai_plan_free(plan);
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.certificate_path = "-";
    assert_int_equal(moirai_place(&plan, p, "moirai", &o), MOIRAI_EUSAGE);
    assert_non_null(strstr(moirai_error_message(), "congestion device"));
    moirai_problem_free(p);
}

/* Two operators side by side: one device takes 12, two take 6, and `single` is about one. */
static void test_place_hold_leaves_single_alone(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion device\ndevice x 9\ndevice y 9\nop a 6,7\nop b 6,7\n");
    moirai_plan *plan;
    moirai_alone alone;
    assert_ok(moirai_place(&plan, p, "single", NULL));
    assert_int_equal(plan->makespan_ns, 12);
    assert_int_equal(plan->op_device[0], plan->op_device[1]);
    assert_ok(moirai_alone_find(&alone, p, plan));
    assert_int_equal(alone.ns, 12);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_place_hold_against_all_plans(void **state)
{
    (void)state;
    int n = 0, optimal = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(60); seed++) {
        random_spec spec = random_spec_draw(seed, 5);
        spec.congestion = MOIRAI_CONGESTION_DEVICE;
        moirai_problem *p = random_problem(&spec);
        int64_t best = p ? brute_force(p, MOST_NODES, NULL) : BRUTE_GAVE_UP;
        static const char *const placer[] = {"heft", "moirai"};
        for (int i = 0; i < 2 && best >= 0; i++) {
            moirai_plan *plan;
            if (moirai_place(&plan, p, placer[i], NULL)) /* a plan that heft did not find a place for */
                continue;
            if (plan->makespan_ns < best || plan->lower_bound_ns > best)
                fail_msg("seed %llu: %s: %lld, proven %lld, the best is %lld", (unsigned long long)seed, placer[i],
                         (long long)plan->makespan_ns, (long long)plan->lower_bound_ns, (long long)best);
            optimal += i == 1 && plan->makespan_ns == best;
            n += i == 1;
            moirai_plan_free(plan);
        }
        moirai_problem_free(p);
    }
    print_message("%d of %d plans are the best\n", optimal, n);
    assert_true(n > TEST_SHARE(40)); /* the hunt has seen something */
    assert_true(optimal > n * 3 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_hold_by_hand),
        cmocka_unit_test(test_place_hold_leaves_single_alone),
        cmocka_unit_test(test_place_hold_against_all_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
