/* Layers that all differ in sizes: their bounds come from prices on loads, whatever the number of threads, and are certified. */
#include <stdio.h>

#include <moirai/moirai.h>

#include "support/check.h"
#include "support/scale.h"
#include "support/shapes.h"

#define LAYER 28 /* operators */

static moirai_plan *place(const moirai_problem *p, const char *off, int threads, const char *certificate)
{
    moirai_place_options o;
    moirai_plan *plan = NULL;
    moirai_setting without = {"off", off};
    moirai_place_options_init(&o);
    o.budget.effort = 0.005;
    o.budget.time_limit_s = 0;
    o.budget.threads = threads;
    o.certificate_path = certificate;
    o.setting = &without;
    o.n_settings = off != NULL;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    return plan;
}

/* The same plan and bound on three threads as on one. Once is enough where only faults of memory are looked for: then `plan` itself is of three. */
#define THREADS TEST_AGAIN(3, 1)
static void assert_same_on_three(const moirai_problem *p, const char *off, const char *path, const moirai_plan *plan)
{
    if (THREADS == 3)
        return;
    moirai_plan *three = place(p, off, 3, path);
    assert_schedules_equal(plan, three);
    assert_int_equal(plan->lower_bound_ns, three->lower_bound_ns);
    moirai_plan_free(three);
}

/* Longest paths alone leave 37 %, and first prices of all pairs would take minutes. */
static void test_layers_that_differ_are_bounded_within_a_fifth_on_any_number_of_threads(void **state)
{
    (void)state;
    static const char path[] = "test_place_layers.certificate.json";
    moirai_problem *p = NULL;
    assert_ok(shape_problem(&p, "transformer", 3 * LAYER, 4));
    moirai_plan *plan = place(p, NULL, THREADS, path);
    assert_true((double)plan->lower_bound_ns > 0.8 * (double)plan->makespan_ns);
    assert_int_equal(plan->certified_bound_ns, plan->lower_bound_ns);
    assert_same_on_three(p, NULL, path, plan);
    remove(path);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* Prices on loads do for the blocks of a spine: they alone are left here. Those of the whole leave 40 %. */
static void test_layers_beside_floating_work_are_bounded_by_loads_of_their_spine(void **state)
{
    (void)state;
    static const char path[] = "test_place_layers.spine.json", off[] = "pair-prices,intervals";
    moirai_problem *p = NULL;
    assert_ok(shape_problem(&p, "masked", 6 * LAYER, 4));
    moirai_plan *plan = place(p, off, THREADS, path);
    assert_true((double)plan->lower_bound_ns > 0.7 * (double)plan->makespan_ns);
    assert_int_equal(plan->certified_bound_ns, plan->lower_bound_ns);
    assert_same_on_three(p, off, path, plan);
    remove(path);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_that_differ_are_bounded_within_a_fifth_on_any_number_of_threads),
        cmocka_unit_test(test_layers_beside_floating_work_are_bounded_by_loads_of_their_spine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
