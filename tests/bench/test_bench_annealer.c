/* The plain annealer: its plans hold in every mode, none beats the optimum, and time makes them no worse. */
#include "generate/generate.h"
#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/tiny.h"
#include "wide/wide.h"

#include <moirai/schedule.h>

/* Of small problems at random; those that the annealer does not know, or finds no room for at once, are left out. */
static void test_bench_annealer_is_right_and_often_optimal(void **state)
{
    (void)state;
    int optimal = 0, all = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        random_spec spec = random_spec_draw(seed, 6);
        spec.memory = MOIRAI_MEMORY_STATIC;
        spec.groups = false;
        moirai_problem *p = random_problem(&spec);
        moirai_plan *plan;
        assert_non_null(p);
        int rc = wide_anneal(&plan, p, 0.01, seed);
        if (!rc) {
            int64_t least = brute_force(p, 20000000, NULL);
            assert_ok(moirai_plan_check(p, plan, NULL, NULL));
            if (least >= 0) {
                assert_true(plan->makespan_ns >= least);
                optimal += plan->makespan_ns == least;
                all++;
            }
        } else {
            assert_int_equal(rc, MOIRAI_EINFEASIBLE);
        }
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
    assert_true(all > 100);
    assert_true(2 * optimal > all);
}

static void test_bench_annealer_gets_no_worse_with_time(void **state)
{
    (void)state;
    static const char *const name[] = {"fork-join/100/3/kinds/0.3/1", "layered/200/4/unrelated/0.5/1",
                                       "cells/100/2/kinds/0.1/3", "experts/small/4/roofline/coarsened/1"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        moirai_problem *p;
        moirai_plan *first, *later;
        assert_ok(generate_problem(&p, name[i]));
        assert_ok(wide_anneal(&first, p, 0, 1));
        assert_ok(wide_anneal(&later, p, 0.2, 1));
        assert_true(later->makespan_ns <= first->makespan_ns);
        assert_true(first->makespan_ns >= moirai_bound_load(p));
        moirai_plan_free(first);
        moirai_plan_free(later);
        moirai_problem_free(p);
    }
}

/* Two operators, one for each of two devices: nothing to search for. */
static void test_bench_annealer_puts_work_where_it_is_short(void **state)
{
    (void)state;
    moirai_problem *p;
    moirai_plan *plan;
    p = tiny_problem("device A 100\n"
                     "device B 100\n"
                     "op a 5,9\n"
                     "op b 9,4\n");
    assert_ok(wide_anneal(&plan, p, 0.01, 1));
    assert_int_equal(plan->makespan_ns, 5);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_bench_annealer_says_what_it_does_not_know(void **state)
{
    (void)state;
    moirai_plan *plan;
    moirai_problem *p = tiny_problem("device A 100\n"
                                     "op a 5\n");
    p->memory = MOIRAI_MEMORY_PEAK;
    assert_int_equal(wide_anneal(&plan, p, 0.01, 1), MOIRAI_EUSAGE);
    assert_null(plan);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_annealer_is_right_and_often_optimal),
        cmocka_unit_test(test_bench_annealer_gets_no_worse_with_time),
        cmocka_unit_test(test_bench_annealer_puts_work_where_it_is_short),
        cmocka_unit_test(test_bench_annealer_says_what_it_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
