/* --objective rate as users type it: options, lines, JSON, files, the page. */
#include <yyjson.h>

#include "support/check.h"
#include "support/command.h"
#include "support/scale.h"

static const char line[] = "place p.json --objective rate --effort 0.02 --threads 1";

static void make_problem(void)
{
    assert_runs("$M problem inception-tiny --cluster inter-server -q -o p.json");
}

static int64_t number(const char *key)
{
    yyjson_val *value = yyjson_obj_get(shell_json(), key);
    if (!yyjson_is_int(value))
        fail_msg("no number '%s' in %.300s", key, shell_out);
    return yyjson_get_sint(value);
}

static void test_rate_options_that_do_not_go_together(void **state)
{
    (void)state;
    make_problem();
    assert_fails(2, "--in-flight is for --objective rate", "$M place p.json --in-flight 4");
    assert_fails(2, "--latency-limit is for --objective rate", "$M place p.json --latency-limit 4");
    assert_fails(2, "--copies is for --objective rate", "$M place p.json --copies 1");
    assert_fails(2, "--curve is for --objective rate", "$M place p.json --curve");
    assert_fails(2, "not --placer 'heft'", "$M place p.json --objective rate --placer heft");
    assert_fails(2, "--set", "$M place p.json --objective rate --set a=b");
    assert_fails(2, "in-flight", "$M place p.json --objective rate --in-flight 0");
    assert_fails(2, "in-flight", "$M place p.json --objective rate --in-flight 1025");
    assert_fails(2, "in-flight", "$M place p.json --objective rate --in-flight many");
    assert_fails(2, "latency-limit", "$M place p.json --objective rate --latency-limit -1");
    assert_fails(2, "objective", "$M place p.json --objective speed");
    assert_fails(2, "--expand", "$M plan gpt3-tiny --cluster inter-server --objective rate --expand");
}

static void test_rate_a_latency_that_no_plan_has(void **state)
{
    (void)state;
    make_problem();
    assert_fails(
        4, "one request alone takes",
        "$M place p.json --objective rate --in-flight 2 --effort 0.001 --threads 1 --latency-limit 0.00001 -q");
}

static void test_rate_lines_numbers_and_file(void **state)
{
    (void)state;
    make_problem();
    assert_runs("$M %s --in-flight 4 -o plan.json -q", line);
    assert_contains(shell_out, "in flight");
    assert_contains(shell_out, "requests per second");
    assert_contains(shell_out, "limited by");
    assert_contains(shell_out, "one by one");
    assert_null(strstr(shell_out, "--latency-limit"));
    assert_runs("$M %s --in-flight 4 --latency-limit 1000000 -q", line);
    assert_contains(shell_out, "; of plans of any latency, --latency-limit apart");
    assert_runs("$M %s --in-flight 4 -o plan.json --force -q", line);
    assert_runs("$M check p.json plan.json");
    assert_contains(shell_out, "in flight");
    assert_runs("$M %s --in-flight 4 --json -q", line);
    int64_t period = number("period_ns"), bound = number("period_bound_ns");
    assert_true(bound > 0 && bound <= period && period < number("alone_ns"));
    assert_true(number("in_flight") <= 4);
    assert_true(yyjson_arr_size(yyjson_obj_get(shell_json(), "copies")) >= 1);
    assert_runs("sed 's/\"period_ns\": *[0-9]*/\"period_ns\": 1/; s/\"period_bound_ns\": *[0-9]*/\"period_bound_ns\": "
                "1/' plan.json > wrong.json");
    assert_fails(1, "breaks", "$M check p.json wrong.json");
    assert_runs("sed 's/\"objective\": \"rate\"/\"objective\": \"joy\"/' plan.json > wrong.json");
    assert_fails(3, "objective is \"joy\"", "$M check p.json wrong.json");
    assert_runs("sed 's/\"in_flight\": *[0-9]*/\"in_flight\": 0/' plan.json > wrong.json");
    assert_fails(3, "in_flight", "$M check p.json wrong.json");
    assert_runs("$M explain plan.json --problem p.json --what-if 0 -q");
    assert_contains(shell_out, "one request alone, on the plan's first copy:\n");
    assert_contains(shell_out, "is limited by");
    assert_runs("$M explain plan.json --problem p.json --what-if 0.2 --effort 0.02 --json -q");
    assert_int_equal(number("period_ns"), period);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(shell_json(), "verdict_of")),
                        "one request alone, on the plan's first copy");
    assert_int_equal(number("period_bound_ns"), bound);
    assert_true(number("n_copies") >= 1);
    yyjson_val *more = yyjson_arr_get_first(yyjson_obj_get(shell_json(), "one_more"));
    assert_true(yyjson_get_sint(yyjson_obj_get(more, "period_bound_ns")) > 0);
    assert_true(yyjson_get_sint(yyjson_obj_get(more, "period_bound_ns")) <= period); /* the device may stay idle */
}

/* The file is proven by the verifier, of this problem and no other, and says no more than the bound. */
static void test_rate_certificate_is_of_the_period(void **state)
{
    (void)state;
    make_problem();
    assert_runs("$M %s --in-flight 4 --certificate proof.json -o plan.json -q", line);
    assert_contains(shell_out, "certified");
    assert_runs("$M %s --in-flight 4 --certificate proof.json --force --json -q", line);
    int64_t certified = number("period_certified_ns"), bound = number("period_bound_ns");
    assert_true(certified > 0 && certified <= bound);
    assert_runs("$M prove p.json proof.json --json");
    assert_int_equal(number("proven_bound_ns"), certified);
    assert_runs("$M check p.json plan.json");
    assert_runs("$M prove p.json proof.json plan.json");
    assert_contains(shell_out, "of the plan's bound");
    assert_runs("$M prove p.json proof.json plan.json --json");
    yyjson_val *of_plan = yyjson_obj_get(shell_json(), "plan");
    assert_int_equal(yyjson_get_sint(yyjson_obj_get(of_plan, "period_bound_ns")), bound);
    double share = yyjson_get_num(yyjson_obj_get(of_plan, "certified_share"));
    assert_true(certified == bound ? share == 1 : share < 1 && share > 0.999 * (double)certified / (double)bound);
    assert_runs("sed 's/\"period_ns\": *[0-9]*/\"period_ns\": 1/; s/\"period_bound_ns\": *[0-9]*/\"period_bound_ns\": "
                "1/' plan.json > wrong.json");
    assert_fails(6, "wrong.json: is no plan of this problem", "$M prove p.json proof.json wrong.json");
    assert_runs("sed 's/\"period_certified_ns\": *[0-9]*/\"period_certified_ns\": 2147483647/' plan.json > wrong.json");
    assert_fails(1, "breaks 1 rule", "$M check p.json wrong.json");
    assert_contains(shell_out, "2147483647 ns are said to be certified, the bound is ");
    assert_runs("$M place p.json --placer heft -o one.json -q");
    assert_fails(6, "is a plan of one request", "$M prove p.json proof.json one.json");
    assert_runs("sed 's/\"objective\": *\"rate\"/\"objective\": \"rate\", \"in_flight\": 3/' proof.json > few.json");
    assert_fails(6, "", "$M prove p.json few.json plan.json"); /* of at most 3 it would have to prove more */
    assert_runs("sed 's/_bound_ns\": *[0-9]*/_bound_ns\": 999999999999/g' proof.json > more.json");
    assert_fails(6, "more.json", "$M prove p.json more.json");
}

static void test_rate_curve_is_a_table_and_a_picture(void **state)
{
    (void)state;
    make_problem();
    assert_runs("$M %s --in-flight 4 --curve --report page.html --json -q", line);
    yyjson_val *curve = yyjson_obj_get(shell_json(), "curve");
    assert_int_equal(yyjson_arr_size(curve), 3);
    int64_t before = INT64_MAX;
    size_t index, n;
    yyjson_val *row;
    yyjson_arr_foreach(curve, index, n, row) {
        int64_t period = yyjson_get_sint(yyjson_obj_get(row, "period_ns"));
        assert_true(period <= before);
        before = period;
        assert_int_equal(yyjson_get_sint(yyjson_obj_get(row, "in_flight")), 1 << index); /* whatever the plan has */
        assert_true(yyjson_get_sint(yyjson_obj_get(row, "used")) <= 1 << index);
    }
    char *page = read_text("page.html");
    assert_non_null(page);
    assert_contains(page, "\"rate\":{\"in_flight\":1");
    assert_contains(page, "rate-section");
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rate_options_that_do_not_go_together, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_rate_lines_numbers_and_file, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_rate_certificate_is_of_the_period, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_rate_curve_is_a_table_and_a_picture, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_rate_a_latency_that_no_plan_has, enter_folder, leave_folder),
    };
    return RUN_CASES_AGAIN(4, tests);
}
