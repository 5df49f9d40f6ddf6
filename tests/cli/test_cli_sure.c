/* `plan` says how sure its speed-up is, by predicted times and by measured ones. */
#include "support/check.h"
#include "support/command.h"

#include <stdlib.h>
#include <yyjson.h>

static void test_cli_sure_plan_has_an_interval(void **state)
{
    (void)state;
    assert_runs("$M plan gpt3-tiny --cluster '2x v100, 1x l4, 100Gbps 5us' --placer heft");
    assert_contains(shell_out, " times as fast (");
    assert_contains(shell_out, " to ");
    assert_runs("$M plan gpt3-tiny --cluster '2x v100, 1x l4, 100Gbps 5us' --placer heft --json -q");
    assert_contains(shell_out, "\"speed_up_low\"");
    assert_contains(shell_out, "\"speed_up_high\"");
    assert_contains(shell_out, "\"most_wanted\"");
    assert_contains(shell_out, "\"doubt\"");
}

/* What to measure first is a class on a device, for networks that nobody can run here; where the verdict hangs on
 * errors, `plan` says so and names it. */
static void test_cli_sure_names_what_is_wanted(void **state)
{
    (void)state;
    assert_runs("$M profile gpt3-tiny --cluster '2x v100, 1x l4, 100Gbps 5us' --most-wanted");
    assert_contains(shell_out, "class ");
    assert_contains(shell_out, "linear");
    assert_contains(shell_out, "v100");
    assert_runs("$M plan gpt3-tiny --cluster '1x l4, 1x rtx3060, 100Gbps 2us' --placer heft --runtime tensorrt");
    assert_contains(shell_err, "hangs on the error of predicted times");
    assert_contains(shell_err, "most of all class linear on l4");
    assert_runs("$M profile gpt3-tiny --cluster '1x h100' --most-wanted");
    assert_contains(shell_out, "nothing is wanted");
    assert_fails(2, "measures and writes nothing",
                 "$M profile gpt3-tiny --cluster '2x v100' --most-wanted -o out.json");
}

/* Four operators side by side, each measured on A and on B. */
#define OP(name) \
    "{\"name\": \"" name "\", \"type\": \"Conv\", \"inputs\": [\"x\"], \"outputs\": [{\"name\": \"" name \
    "\", \"bytes\": 4000}], \"time_ns\": {\"A\": 1000000, \"B\": 1000000}}"
#define DEVICE(name, host) \
    "{\"name\": \"" name "\", \"memory\": \"1GB\", \"ep\": \"cpu\", \"threads\": 1, \"host\": \"" host "\"}"
static void write_measured(void)
{
    write_text("g.json", "{\"format\": \"moirai-graph\", \"version\": 1, \"origin\": \"onnx\", \"ops\": [" OP(
                             "a") "," OP("b") "," OP("c") "," OP("d") "]}");
    for (int apart = 0; apart < 2; apart++)
        for (int runs = 0; runs < 2; runs++) {
            char text[1000], path[40];
            snprintf(path, sizeof path, "%s%s.json", apart ? "apart" : "together", runs ? "-run" : "");
            snprintf(text, sizeof text,
                     "{\"format\": \"moirai-cluster\", \"version\": 1,%s \"devices\": [" DEVICE(
                         "A", "one") ",%s], \"links\": "
                                     "[{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"10Gbps\", \"both\": true}]}",
                     runs ? " \"cuts_measured\": true," : "", apart ? DEVICE("B", "two") : DEVICE("B", "one"));
            write_text(path, text);
        }
}

static void interval(double *low, double *high, const char *cluster)
{
    assert_runs("$M plan g.json --cluster %s.json --rules none --effort 0.1 --json -q", cluster);
    yyjson_val *o = shell_json();
    assert_true(yyjson_get_real(yyjson_obj_get(o, "speed_up")) == 2);
    *low = yyjson_get_real(yyjson_obj_get(o, "speed_up_low"));
    *high = yyjson_get_real(yyjson_obj_get(o, "speed_up_high"));
    assert_true(*low > 1 && *low < *high);
}

/* Operators were measured alone: in a run, devices of one host are slower together, and a run that was measured is
 * surer. */
static void test_cli_sure_measured_times_have_an_interval(void **state)
{
    (void)state;
    double low[3], high[3];
    write_measured();
    interval(&low[0], &high[0], "together");
    interval(&low[1], &high[1], "apart");
    interval(&low[2], &high[2], "together-run");
    assert_true(low[0] < 0.9 * 2 && low[0] < 0.95 * low[1] && low[0] < 0.9 * low[2] &&
                high[2] - low[2] < high[0] - low[0]);
    assert_runs("$M plan g.json --cluster together.json --rules none --effort 0.1");
    assert_contains(shell_out, "the plan is 2.00 times as fast (1.");
    /* Threads that sleep while their device waits are the greatest doubt. */
    assert_runs("sed 's/\"threads\": 1/\"threads\": 2/' together.json >threads.json");
    assert_runs("$M plan g.json --cluster threads.json --rules none --effort 0.1 --json -q");
    assert_true(yyjson_get_real(yyjson_obj_get(shell_json(), "speed_up_low")) < 0.85 * low[0]);
}

/* Where it reaches down to 1, a note says what to do. */
static void test_cli_sure_says_that_measured_times_leave_a_doubt(void **state)
{
    (void)state;
    char *text;
    write_measured();
    text = read_text("g.json");
    for (char *at = text; (at = strstr(at, "\"B\": 1000000")); at++)
        memcpy(at + 5, "36", 2); /* B takes 3.6 times as long: a quarter of the operators there, 1.11 times as fast */
    write_text("slow.json", text);
    free(text);
    assert_runs("$M plan slow.json --cluster together.json --rules none --effort 0.1");
    assert_contains(shell_out, "the plan is 1.11 times as fast (0.");
    assert_contains(shell_err, "'moirai tune' runs it");
    assert_runs("$M plan g.json --cluster together.json --rules none --effort 0.1");
    assert_null(strstr(shell_err, "'moirai tune' runs it"));
}

/* What a plan is compared with is what was measured of the whole network, where that is known: operators add up to more. */
static void write_whole(const char *path, const char *whole)
{
    char *text = read_text("g.json"), *at = strstr(text, "\"ops\""), all[3000];
    snprintf(all, sizeof all, "%.*s\"whole_ns\": %s, %s", (int)(at - text), text, whole, at);
    write_text(path, all);
    free(text);
}

static void test_cli_sure_whole_networks_are_what_counts(void **state)
{
    (void)state;
    write_measured();
    write_whole("whole.json", "{\"A\": 2500000, \"B\": 3000000}");
    assert_runs("$M plan whole.json --cluster apart.json --rules none --effort 0.1 -o plan.json --problem-out p.json "
                "--report r.html");
    assert_contains(shell_out,
                    "single       2.500 ms on the best single device, A, as it was measured whole (4.000 ms by "
                    "its operators): the plan is 1.25 times as fast (");
    assert_contains(shell_out, "to 2.00)"); /* if segments lose nothing */
    assert_runs("$M explain plan.json --problem p.json --what-if 0");
    assert_contains(shell_out, "1.25 times as fast as the best single device, A, with 2.500 ms");
    char *page = read_text("r.html");
    assert_contains(page, "1.25 times as fast as the best single device, A, with 2.500 ms");
    free(page);
    write_whole("fast.json", "{\"A\": 1500000}");
    assert_runs("$M plan fast.json --cluster apart.json --rules none --effort 0.1");
    assert_contains(shell_out, "splitting gains nothing: the plan is 33.3 % slower");
    assert_runs("$M plan fast.json --cluster apart.json --rules none --placer single"); /* that plan is the whole */
    assert_contains(shell_out, "splitting gains nothing\n");
    assert_runs("$M plan fast.json --cluster apart.json --rules none --pin '*=A' --effort 0.1");
    assert_null(strstr(shell_out, "slower"));
    assert_fails(3, "whole_ns", "sed 's/1500000/0/' fast.json >bad.json; $M plan bad.json --cluster apart.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_sure_plan_has_an_interval, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_sure_names_what_is_wanted, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_sure_measured_times_have_an_interval, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_sure_whole_networks_are_what_counts, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_sure_says_that_measured_times_leave_a_doubt, enter_folder,
                                        leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
