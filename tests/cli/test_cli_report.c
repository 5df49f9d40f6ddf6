/* The commands report, explain and export as a user types them, and what plan and place say at their end. */
#include <yyjson.h>

#include "support/check.h"
#include "support/command.h"

static void make_plan(void)
{
    assert_runs("$M plan gpt3-tiny --cluster inter-server --rules none --placer heft -o plan.json --problem-out "
                "problem.json --log-json log.json -q");
}

static void test_plan_and_place_end_with_what_limits(void **state)
{
    (void)state;
    assert_runs("$M plan gpt3-tiny --cluster inter-server --placer heft -o plan.json --problem-out problem.json -q");
    assert_contains(shell_out, "\nlimited by ");
    assert_contains(shell_out, "\ncritical path: ");
    assert_contains(shell_out, "A      rtx2080ti "); /* what A is */
    assert_runs("$M place problem.json --placer heft --json -q");
    yyjson_val *first = yyjson_arr_get_first(yyjson_obj_get(shell_json(), "devices"));
    assert_string_equal(yyjson_get_str(yyjson_obj_get(first, "type")), "rtx2080ti");
    yyjson_val *path = yyjson_obj_get(shell_json(), "critical_path");
    int64_t sum = 0;
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(path, i, n, key, value) {
        sum += strstr(yyjson_get_str(key), "_ns") ? yyjson_get_sint(value) : 0;
    }
    assert_true(sum > 0 && sum == yyjson_get_sint(yyjson_obj_get(shell_json(), "makespan_ns")));
}

static void test_report_writes_one_page(void **state)
{
    (void)state;
    make_plan();
    assert_runs("$M report plan.json --problem problem.json --log log.json -o r.html --json -q");
    assert_true(yyjson_get_uint(yyjson_obj_get(shell_json(), "report_bytes")) > 10000);
    char *page = read_text("r.html");
    assert_contains(page, "<!DOCTYPE html>");
    assert_contains(page, "</html>");
    assert_null(strstr(page, "{{"));
    assert_null(strstr(page, "http://"));
    assert_null(strstr(page, "https://"));
    free(page);
    assert_runs("$M report plan.json --problem problem.json -o - -q >s.html && tail -c 8 s.html");
    assert_runs("$M place problem.json --placer heft --report p.html -q");
    assert_true(file_exists("p.html"));
}

static void test_report_refuses_what_makes_no_sense(void **state)
{
    (void)state;
    make_plan();
    assert_fails(2, "--problem", "$M report plan.json plan.json -o r.html");
    assert_fails(2, "--log is given 2 times for 1 plans",
                 "$M report plan.json --problem problem.json --log log.json --log log.json -o r.html");
    assert_runs("$M report plan.json --problem problem.json -o r.html -q");
    assert_fails(1, "--force", "$M report plan.json --problem problem.json -o r.html");
    assert_runs("sed 's/\"finish_ns\": [0-9]*/\"finish_ns\": 7/' plan.json >wrong.json");
    assert_fails(1, "wrong.json: the plan breaks the rules", "$M report wrong.json --problem problem.json -o w.html");
    assert_false(file_exists("w.html"));
    assert_fails(3, "problem.json", "$M report plan.json --problem problem.json --timeline problem.json -o w.html");
}

static void test_explain_says_why(void **state)
{
    (void)state;
    make_plan();
    assert_runs("$M explain plan.json --problem problem.json --op L0/fc1 -q");
    assert_contains(shell_out, "'L0/fc1' (MatMul): it runs on ");
    assert_null(strstr(shell_out, "what if"));
    assert_runs("$M explain plan.json --problem problem.json --what-if 1 --changes 3 --placer heft --json -q");
    yyjson_val *list = yyjson_obj_get(shell_json(), "what_if");
    assert_int_equal(yyjson_arr_size(list), 4);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(yyjson_arr_get_first(list), "change")), "as it is");
    assert_runs(
        "$M explain plan.json --problem problem.json --cluster inter-server --what-if 1 --changes 2 --placer heft -q");
    assert_contains(shell_out, "proven bound");
    assert_fails(
        3, "devices",
        "$M explain plan.json --problem problem.json --cluster '2x v100, 100Gbps 5us' --what-if 1 --placer heft -q");
    assert_fails(2, "no operator 'nobody'", "$M explain plan.json --problem problem.json --op nobody");
    assert_fails(2, "--problem", "$M explain plan.json --op L0/fc1");
    assert_runs("$M explain plan.json -q");
    assert_contains(shell_out, "give its problem");
}

static void test_export_writes_plans_and_problems(void **state)
{
    (void)state;
    make_plan();
    assert_runs("$M export plan.json --problem problem.json --to svg >plan.svg");
    assert_contains(shell("head -c 4 plan.svg") ? "" : shell_out, "<svg");
    assert_runs("$M plan inception-tiny --cluster v100 -o one.json --problem-out one.problem.json -q");
    assert_runs("$M export one.json --problem one.problem.json --to svg | grep -o 's, optimal.*</tspan>'");
    assert_contains(shell_out, "s, optimal (searched)</tspan>");
    assert_runs("$M export plan.json --problem problem.json --to trace -o trace.json --json -q");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(shell_json(), "format")), "trace");
    assert_runs("$M export plan.json --to csv | head -1");
    assert_contains(shell_out, "kind,name,type");
    assert_runs("$M export problem.json --to mps -o m.mps -q");
    assert_fails(2, "--problem is for exports of a plan",
                 "$M export problem.json --to lp --problem problem.json -o m.lp");
    assert_fails(2, "--formulation is for lp and mps",
                 "$M export plan.json --problem problem.json --to dot --formulation paper");
    assert_fails(2, "needs the plan's problem", "$M export plan.json --to dot");
    assert_fails(2, "say with --to what to write: trace, dot,", "$M export plan.json");
    assert_fails(3, "say with --to what to write: trace, dot,", "$M export plan.json -o x.lp");
    assert_fails(3, "is split over devices", "$M export plan.json --problem problem.json --to device-map --depth 1");
}

/* Devices that wait for each other in turns: dot ranks clusters one by one unless it is told not to, and fails. */
static void test_export_dot_is_what_graphviz_draws(void **state)
{
    (void)state;
    static const char *const nets[] = {"inception-tiny", "gpt3-mini", "t5-tiny", "resnet18"};
    if (shell("command -v dot"))
        skip();
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        assert_runs(
            "$M plan %s -c intra-server --segment-us 0 --placer heft -o plan.json --problem-out problem.json -q "
            "--force",
            nets[i]);
        assert_runs("$M export plan.json --problem problem.json --to dot -q -o plan.dot --force");
        assert_runs("dot -Tplain plan.dot >drawn 2>complaints && ! grep . complaints && test $(grep -c ^node drawn) = "
                    "$(grep -c '^    n[0-9]' plan.dot)");
    }
}

static void test_fused_operators_are_named_after_the_heaviest(void **state)
{
    (void)state;
    assert_runs(
        "$M plan inception-tiny --cluster inter-server --placer heft -o plan.json --problem-out problem.json -q");
    assert_runs("$M export plan.json --problem problem.json --to svg");
    assert_contains(shell_out, "conv</text>");
    assert_null(strstr(shell_out, "relu</text>"));
}

static void test_tensors_that_do_not_fit_are_warned_of(void **state)
{
    (void)state;
    static const char warning[] = "warning: A needs 347 kB at its peak and has 200 kB: memory static counts weights";
    assert_runs(
        "$M plan inception-tiny --cost roofline --cluster '2x t4 200kB, 100Gbps 5us' --placer heft -o plan.json "
        "--problem-out problem.json -q");
    assert_contains(shell_out, warning);
    assert_runs("$M place problem.json --placer heft -q");
    assert_contains(shell_out, warning);
    assert_runs("$M check problem.json plan.json -q");
    assert_contains(shell_out, warning);
    assert_runs("$M explain plan.json --problem problem.json --what-if 0 -q");
    assert_contains(shell_out, warning);
    assert_runs("$M report plan.json --problem problem.json -o r.html -q");
    assert_contains(shell_out, warning);
    char *page = read_text("r.html");
    assert_contains(page, warning);
    free(page);
    assert_runs("$M check problem.json plan.json --json -q");
    yyjson_val *over = yyjson_obj_get(shell_json(), "over_memory");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(over, "device")), "A");
    assert_int_equal(yyjson_get_sint(yyjson_obj_get(over, "memory_bytes")), 200000);
    assert_true(yyjson_get_sint(yyjson_obj_get(over, "peak_bytes")) > 200000);
    assert_runs("$M plan inception-tiny --cluster '2x t4, 100Gbps 5us' --placer heft -q");
    assert_null(strstr(shell_out, "warning:"));
}

static void test_verdict_claims_no_more_than_is_shown(void **state)
{
    (void)state;
    assert_runs("$M plan inception-tiny --cluster '1x v100' --placer heft -q");
    assert_contains(shell_out, "\ncritical path: all operators one after another on A, which never waits\n");
    assert_null(strstr(shell_out, "waiting"));
    assert_runs("$M plan inception-tiny --cluster '3x v100, 1kbps 5s' --placer heft -q");
    assert_contains(shell_out, "busy 100 % of the time, while nothing runs on B and C\n");
    assert_runs("$M plan inception-tiny --cost roofline --cluster '1x v100, 1x t4, 100Gbps 1us' --placer heft -q");
    assert_contains(shell_out, "limited by the work on A");
    assert_contains(shell_out, "; moving tensors is 28 % of the critical path\n");
    assert_contains(shell_out, "critical path: 72 % computing (");
    assert_null(strstr(shell_out, "only"));
}

/* What --pin finds, --op finds: names that were fused away, and patterns. */
static void test_explain_knows_the_names_that_pins_know(void **state)
{
    (void)state;
    assert_runs("$M plan inception-tiny -c inter-server --placer heft --pin 'stem0/conv=A' -o plan.json --problem-out "
                "problem.json -q");
    assert_runs("$M explain plan.json --problem problem.json --op stem0/conv -q");
    assert_contains(shell_out, "stem0/relu");
    assert_runs("$M explain plan.json --problem problem.json --op 'stem*' -q --json");
    assert_true(yyjson_arr_size(yyjson_obj_get(shell_json(), "ops")) > 1);
    assert_fails(2, "has no operator 'stem9*', nor one that fits it as a pattern",
                 "$M explain plan.json --problem problem.json --op 'stem9*' -q");
}

static void test_plan_alone_shows_the_bound_that_it_claims(void **state)
{
    (void)state;
    make_plan();
    assert_runs("$M explain plan.json -q");
    assert_contains(shell_out, "; the file claims a bound of ");
    assert_contains(shell_out, "give the problem to check it");
    assert_null(strstr(shell_out, "nothing is proven"));
    assert_runs("$M report plan.json -o r.html -q");
    assert_contains(shell_out, "; the file claims a bound of ");
}

static void test_plan_of_another_problem_says_so(void **state)
{
    (void)state;
    static const char message[] = "a plan of another problem: problem 'inception-tiny-inter-server' has 63 operators, "
                                  "the plan 26: made with other --rules? 'moirai plan --problem-out'";
    assert_runs("$M plan inception-tiny --cluster inter-server --placer heft -o plan.json -q");
    assert_runs("$M problem inception-tiny --cluster inter-server -o problem.json -q");
    assert_fails(3, message, "$M check problem.json plan.json");
    assert_fails(3, message, "$M explain plan.json --problem problem.json");
    assert_fails(3, message, "$M report plan.json --problem problem.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plan_and_place_end_with_what_limits, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_report_writes_one_page, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_report_refuses_what_makes_no_sense, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_explain_says_why, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_export_writes_plans_and_problems, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_export_dot_is_what_graphviz_draws, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_fused_operators_are_named_after_the_heaviest, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_tensors_that_do_not_fit_are_warned_of, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_verdict_claims_no_more_than_is_shown, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_explain_knows_the_names_that_pins_know, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_plan_alone_shows_the_bound_that_it_claims, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_plan_of_another_problem_says_so, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
