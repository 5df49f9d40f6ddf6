/* Plans by loads of generated problems: what is lost where blocks in a row are chosen without each other's bytes. */
#include "generate/generate.h"
#include "support/check.h"

#include <moirai/placer.h>
#include <moirai/schedule.h>

/* Memory binds: the devices of the blocks' choices do not fit together, and without moving some of them the plan is the list scheduler's. */
static void test_bench_loads_of_blocks_are_made_to_fit(void **state)
{
    (void)state;
    const moirai_setting only = {"off", "whole,blocks,intervals,interval-plans,layers,shifts,again"},
                         none = {"off", "loads,whole,blocks,intervals,interval-plans,layers,again"};
    moirai_problem *p;
    moirai_plan *plan, *start;
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.effort = 0.05;
    o.budget.threads = 1;
    o.n_settings = 1;
    assert_ok(generate_problem(&p, "phases/400/4/unrelated/0.5/27"));
    o.setting = &none;
    assert_ok(moirai_place(&start, p, "moirai", &o));
    o.setting = &only;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    assert_true((double)plan->makespan_ns < 0.8 * (double)start->makespan_ns);
    moirai_plan_free(plan);
    moirai_plan_free(start);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bench_loads_of_blocks_are_made_to_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
