/* The placer `exact`: optima with their proof, limits, waiting for memory, and what it says where nothing fits. */
#include "exact/exact.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "util/util.h"

#include <moirai/placer.h>

static moirai_problem *parse(const char *text)
{
    moirai_problem *p;
    assert_ok(moirai_problem_parse(&p, text, strlen(text), "text"));
    return p;
}

/* Two producers on A, two readers on B with room for one tensor at a time: the second must be sent late on purpose. */
#define TWO_DEVICES(memory_b) \
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"wait\",\"flow\":\"tensor\",\"congestion\":\"port\"," \
    "\"memory\":\"peak\",\"devices\":[{\"name\":\"A\",\"memory_bytes\":100},{\"name\":\"B\",\"memory_" \
    "bytes\":" memory_b \
    "}],\"channels\":[{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000,\"latency_ns\":0}," \
    "{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":1000000000,\"latency_ns\":0}],\"ops\":[" \
    "{\"name\":\"p\",\"type\":\"X\",\"memory_bytes\":0,\"time_ns\":[1,null],\"inputs\":[],\"outputs\":[{\"name\":" \
    "\"s\",\"bytes\":6}]}," \
    "{\"name\":\"q\",\"type\":\"X\",\"memory_bytes\":0,\"time_ns\":[1,null],\"inputs\":[],\"outputs\":[{\"name\":" \
    "\"t\",\"bytes\":6}]}," \
    "{\"name\":\"x\",\"type\":\"X\",\"memory_bytes\":0,\"time_ns\":[null,10],\"inputs\":[\"s\"],\"outputs\":[]}," \
    "{\"name\":\"y\",\"type\":\"X\",\"memory_bytes\":0,\"time_ns\":[null,10],\"inputs\":[\"t\"],\"outputs\":[]}]}"

static void test_exact_placer_waits_where_memory_asks_for_it(void **state)
{
    (void)state;
    moirai_problem *p = parse(TWO_DEVICES("10"));
    moirai_plan *plan;
    assert_ok(moirai_place(&plan, p, "exact", NULL));
    /* 1 to make, 6 to send, 10 to run; only then does the other tensor set out: 6 + 10 more. */
    assert_int_equal(plan->makespan_ns, 33);
    assert_true(moirai_plan_is_optimal(plan));
    assert_int_equal(plan->transfer[1].start_ns, 17);
    assert_int_equal(plan->device_peak_bytes[1], 6);
    moirai_plan_free(plan);
    moirai_problem_free(p);
    p = parse(TWO_DEVICES("12"));
    assert_ok(moirai_place(&plan, p, "exact", NULL));
    assert_int_equal(plan->makespan_ns, 27);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_exact_placer_proves_infeasible_memory(void **state)
{
    (void)state;
    moirai_problem *p = parse(TWO_DEVICES("5"));
    moirai_plan *plan;
    assert_int_equal(moirai_place(&plan, p, "exact", NULL), MOIRAI_EINFEASIBLE);
    assert_null(plan);
    assert_non_null(strstr(moirai_error_message(), "proven that no plan fits the memory"));
    moirai_problem_free(p);
}

static void test_exact_placer_proves_two_branches(void **state)
{
    (void)state;
    moirai_problem *p;
    moirai_plan *plan;
    assert_ok(moirai_problem_read(&p, data_path("two-branches.problem.json")));
    assert_ok(moirai_place(&plan, p, "exact", NULL));
    assert_int_equal(plan->makespan_ns, 36500000);
    assert_int_equal(plan->lower_bound_ns, 36500000);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

typedef struct story {
    int lines;
    int64_t makespan_ns, lower_bound_ns;
    bool fell, rose; /* every makespan is no worse than the last, every bound no lower */
} story;

static void listen(void *data, const moirai_progress *news)
{
    story *s = data;
    s->lines++;
    if (news->makespan_ns != MOIRAI_UNKNOWN) {
        s->fell &= s->makespan_ns < 0 || news->makespan_ns <= s->makespan_ns;
        s->makespan_ns = news->makespan_ns;
    }
    if (news->lower_bound_ns != MOIRAI_UNKNOWN) {
        s->rose &= news->lower_bound_ns >= s->lower_bound_ns;
        s->lower_bound_ns = news->lower_bound_ns;
    }
}

static void test_exact_placer_tells_its_story(void **state)
{
    (void)state;
    for (uint64_t seed = 10; seed < 60; seed++) {
        random_spec spec = {.seed = seed, .shape = SHAPE_LAYERED, .n_ops = 9, .n_devices = 3, .scale = 1000};
        moirai_problem *p = random_problem(&spec);
        moirai_place_options o;
        moirai_plan *plan;
        story s = {0, -1, -1, true, true};
        assert_non_null(p);
        moirai_place_options_init(&o);
        o.budget.progress = listen;
        o.budget.progress_data = &s;
        assert_ok(moirai_place(&plan, p, "exact", &o));
        assert_true(s.lines > 0 && s.fell && s.rose);
        assert_int_equal(s.makespan_ns, plan->makespan_ns);
        assert_true(s.lower_bound_ns <= plan->lower_bound_ns && moirai_plan_is_optimal(plan));
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
}

/* A limit, an interrupt: still a plan, and a bound that the full search confirms. */
static void test_exact_placer_keeps_the_incumbent(void **state)
{
    (void)state;
    moirai_interrupt interrupt = {1};
    for (uint64_t seed = 60; seed < 80; seed++) {
        random_spec spec = {.seed = seed, .shape = SHAPE_SERIES_PARALLEL, .n_ops = 11, .n_devices = 3, .scale = 1000};
        moirai_problem *p = random_problem(&spec);
        moirai_setting few = {"node-limit", "5"};
        moirai_place_options o;
        moirai_plan *full, *stopped, *limited;
        assert_non_null(p);
        moirai_place_options_init(&o);
        assert_ok(moirai_place(&full, p, "exact", &o));
        o.setting = &few;
        o.n_settings = 1;
        assert_ok(moirai_place(&limited, p, "exact", &o));
        o.n_settings = 0;
        o.budget.interrupt = &interrupt;
        assert_ok(moirai_place(&stopped, p, "exact", &o));
        assert_true(moirai_plan_is_optimal(full));
        assert_true(limited->makespan_ns >= full->makespan_ns && limited->lower_bound_ns <= full->makespan_ns);
        assert_true(stopped->makespan_ns >= full->makespan_ns && stopped->lower_bound_ns <= full->makespan_ns);
        moirai_plan_free(full);
        moirai_plan_free(stopped);
        moirai_plan_free(limited);
        moirai_problem_free(p);
    }
}

static void test_exact_placer_gives_large_problems_a_quick_plan(void **state)
{
    (void)state;
    random_spec spec = {.seed = 5, .shape = SHAPE_LAYERED, .n_ops = 700, .n_devices = 3, .scale = 1000};
    moirai_problem *p = random_problem(&spec);
    moirai_plan *plan, *heft;
    const char *why;
    assert_non_null(p);
    assert_false(exact_fits(p, &why));
    assert_non_null(why);
    assert_ok(moirai_place(&plan, p, "exact", NULL));
    assert_ok(moirai_place(&heft, p, "heft", NULL));
    assert_true(plan->makespan_ns <= heft->makespan_ns && plan->lower_bound_ns > 0);
    moirai_plan_free(plan);
    moirai_plan_free(heft);
    moirai_problem_free(p);
}

/* Times beyond what the sums of the search can hold are refused, not overflowed. */
static void test_exact_refuses_huge_times(void **state)
{
    (void)state;
    moirai_problem *p = parse(TWO_DEVICES("12"));
    exact_options o;
    exact_result r;
    p->op_time_ns[0] = (int64_t)1 << 60;
    exact_options_init(&o);
    assert_int_equal(exact_solve(p, &o, &r), MOIRAI_ELIMIT);
    assert_non_null(strstr(moirai_error_message(), "2^58"));
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_placer_waits_where_memory_asks_for_it),
        cmocka_unit_test(test_exact_placer_proves_infeasible_memory),
        cmocka_unit_test(test_exact_placer_proves_two_branches),
        cmocka_unit_test(test_exact_placer_tells_its_story),
        cmocka_unit_test(test_exact_placer_keeps_the_incumbent),
        cmocka_unit_test(test_exact_placer_gives_large_problems_a_quick_plan),
        cmocka_unit_test(test_exact_refuses_huge_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
