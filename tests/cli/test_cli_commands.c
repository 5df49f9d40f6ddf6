/* The command line: fixed forms, exit codes, help, JSON. */
#include "support/check.h"
#include "support/command.h"

#include <yyjson.h>
#include <moirai/moirai.h>

static const char *const commands[] = {"plan",  "zoo",      "cluster", "problem", "place",
                                       "check", "simulate", "placers", "version", "help"};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void make_problem(void)
{
    assert_runs("$M problem gpt3-tiny --cluster inter-server -o problem.json");
}

static void make_plan(void)
{
    make_problem();
    assert_runs("$M place problem.json --placer heft -o plan.json");
}

static int64_t int_of(yyjson_val *o, const char *key)
{
    yyjson_val *v = yyjson_obj_get(o, key);
    if (!yyjson_is_int(v))
        fail_msg("no whole number '%s' in: %s", key, shell_out);
    return yyjson_get_sint(v);
}

static void test_cli_overview_lists_every_command(void **state)
{
    (void)state;
    assert_int_equal(shell("$M"), 2);
    assert_string_equal(shell_out, "");
    assert_runs("$M --help");
    for (int i = 0; i < N_COMMANDS; i++)
        assert_contains(shell_out, commands[i]);
}

static void test_cli_help_of_every_command_has_usage_and_examples(void **state)
{
    (void)state;
    for (int i = 0; i < N_COMMANDS; i++) {
        assert_runs("$M %s --help", commands[i]);
        assert_contains(shell_out, "usage: moirai ");
        assert_contains(shell_out, "--json");
        assert_contains(shell_out, "examples:");
        assert_string_equal(shell_err, "");
        char *text = strdup(shell_out);
        assert_runs("$M help %s", commands[i]);
        assert_string_equal(shell_out, text);
        free(text);
    }
}

static void test_cli_unknown_words_get_the_nearest(void **state)
{
    (void)state;
    assert_fails(2, "did you mean 'place'?", "$M plcae");
    assert_fails(2, "did you mean '--time-limit'?", "$M place p.json --tiem-limit 3");
    assert_fails(2, "did you mean '--output'?", "$M zoo gpt3-tiny --out g.json");
    assert_fails(2, "did you mean 'heft'?", "$M place p.json --placer hef");
    assert_fails(2, "did you mean 'gpt3-330M'?", "$M zoo gpt3-330MB -o g.json");
    assert_fails(2, "did you mean 'tensor'?", "$M problem gpt3-tiny --cluster inter-server --flow tensr");
    assert_fails(3, "did you mean 'gpt3-tiny'?", "$M problem gpt3-tny --cluster inter-server");
    assert_fails(2, "see 'moirai help'", "$M xyzzyplugh");
    assert_int_equal(files_here(), 0);
}

static void test_cli_usage_errors_end_with_2(void **state)
{
    (void)state;
    assert_fails(2, "PROBLEM is missing", "$M place");
    assert_fails(2, "PLAN is missing", "$M check problem.json");
    assert_fails(2, "one argument too many", "$M check a b c");
    assert_fails(2, "--cluster", "$M problem gpt3-tiny");
    assert_fails(2, "needs", "$M problem gpt3-tiny --cluster");
    assert_fails(2, "takes no value", "$M zoo list --json=yes");
    assert_fails(2, "not a whole number", "$M place p.json --seed x");
    assert_fails(2, "not a whole number", "$M place p.json --seed 99999999999999999999");
    assert_fails(2, "must not be negative", "$M place p.json --seed -1");
    assert_fails(2, "must be from 0 to 1", "$M place p.json --gap 2");
    assert_fails(2, "not a number", "$M place p.json --gap nan");
    assert_fails(2, "must be from", "$M place p.json --time-limit=-1");
    assert_fails(2, "write NAME=VALUE", "$M problem gpt3-tiny --cluster inter-server -q -o - | $M place - --set seed");
    assert_fails(2, "write PATTERN=DEVICE", "$M problem gpt3-tiny --cluster inter-server --pin L0");
    assert_fails(2, "both come from stdin", "$M check - - </dev/null");
}

static void test_cli_options_stand_anywhere(void **state)
{
    (void)state;
    make_problem();
    assert_runs("$M place --placer=heft problem.json --seed 7 -oplan1.json");
    assert_runs("$M place --seed=7 -o plan2.json --placer heft -- problem.json");
    assert_runs("sed 's/\"generation_ns\": *[0-9]*//' plan1.json >a && sed 's/\"generation_ns\": *[0-9]*//' plan2.json "
                ">b && cmp a b");
}

static void test_cli_fixed_forms_work(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny --dtype fp16 -o graph.json");
    assert_runs(
        "$M problem graph.json --cluster intra-server --flow edge --congestion channel --memory peak -o problem.json");
    assert_runs("$M place problem.json --placer heft --time-limit 10 --seed 3 -o plan.json");
    assert_runs("$M check problem.json plan.json");
    assert_contains(shell_out, "ok: ");
    assert_string_equal(shell_err, "");
    assert_int_equal(files_here(), 3);
}

/* The first verdict knows what `run` will pay for every cut. */
static void test_cli_cuts_are_not_free(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx net.onnx -q");
    assert_runs("$M problem net.onnx -c 'v100, cpu-8-avx2, 100Gbps 5us' -q -o p.json --json");
    yyjson_val *segment = yyjson_obj_get(shell_json(), "segment_ns");
    assert_int_equal(yyjson_get_sint(yyjson_obj_get(segment, "A")), 17000);
    assert_int_equal(yyjson_get_sint(yyjson_obj_get(segment, "B")), 8000);
    assert_runs("grep -q '\"from\": \"A\", \"to\": \"B\".*\"latency_ns\": 13000' p.json");
    assert_runs("$M plan net.onnx -c inter-server --effort 0.1 -q --json");
    int64_t usual = yyjson_get_sint(yyjson_obj_get(shell_json(), "makespan_ns"));
    assert_runs("$M plan net.onnx -c inter-server --effort 0.1 --segment-us 17 -q --json");
    assert_int_equal(yyjson_get_sint(yyjson_obj_get(shell_json(), "makespan_ns")), usual);
    assert_runs("$M plan net.onnx -c inter-server --effort 0.1 --segment-us 0 -q --json");
    assert_true(yyjson_get_sint(yyjson_obj_get(shell_json(), "makespan_ns")) < usual);
}

static void test_cli_settings_name_those_that_there_are(void **state)
{
    (void)state;
    assert_true(*moirai_version() >= '0' && *moirai_version() <= '9');
    assert_runs("$M version");
    assert_contains(shell_out, moirai_version());
    assert_runs("$M problem gpt3-tiny -c inter-server -q -o p.json");
    assert_fails(2, "has no setting 'bogus': it has ", "$M place p.json --set bogus=1 -q");
}

static void test_cli_modes_reach_the_problem_file(void **state)
{
    (void)state;
    assert_runs(
        "$M problem gpt3-tiny --cluster inter-server --flow edge --congestion none --memory peak --name mine -q -o -");
    yyjson_val *o = shell_json();
    assert_string_equal(yyjson_get_str(yyjson_obj_get(o, "format")), "moirai-problem");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(o, "name")), "mine");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(o, "flow")), "edge");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(o, "congestion")), "none");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(o, "memory")), "peak");
}

static void test_cli_every_placer_gives_a_plan_that_checks(void **state)
{
    (void)state;
    make_problem();
    assert_runs("$M placers --json");
    yyjson_val *list = yyjson_obj_get(shell_json(), "placers"), *placer;
    char names[64][32];
    size_t i, n, count = 0;
    yyjson_arr_foreach(list, i, n, placer) {
        if (yyjson_get_bool(yyjson_obj_get(placer, "available")) && count < 64)
            snprintf(names[count++], sizeof names[0], "%s", yyjson_get_str(yyjson_obj_get(placer, "name")));
    }
    assert_true(count >= 5);
    for (i = 0; i < count; i++) {
        int code = shell("$M place problem.json --placer %s --time-limit 1 --force -o plan.json -q", names[i]);
        /* A method may refuse a problem of this size, or find nothing in a second; it must say so. */
        if (code == 4 || code == 5) {
            assert_contains(shell_err, "moirai: ");
            continue;
        }
        if (code)
            fail_msg("%s: %d: %s", names[i], code, shell_err);
        assert_runs("$M check problem.json plan.json");
    }
}

static void test_cli_json_is_json_everywhere(void **state)
{
    (void)state;
    make_plan();
    static const char *const lines[] = {
        "$M zoo list --json",
        "$M zoo gpt3-tiny --json",
        "$M cluster --json",
        "$M cluster inter-server --json",
        "$M problem gpt3-tiny --cluster intra-server --json",
        "$M place problem.json --placer heft --json",
        "$M check problem.json plan.json --json",
        "$M simulate problem.json plan.json --json --picture",
        "$M placers --json",
        "$M version --json",
        "$M plan gpt3-tiny --cluster inter-server --placer heft --json",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_runs("%s", lines[i]);
        assert_true(yyjson_is_obj(shell_json()));
    }
}

static void test_cli_failures_are_json_too(void **state)
{
    (void)state;
    assert_int_equal(shell("$M place nothing.json --json"), 3);
    assert_int_equal(int_of(shell_json(), "exit_code"), 3);
    assert_contains(shell_err, yyjson_get_str(yyjson_obj_get(shell_json(), "error")));
    assert_int_equal(shell("$M place --json"), 2);
    assert_int_equal(int_of(shell_json(), "exit_code"), 2);
}

static void test_cli_place_and_simulate_agree(void **state)
{
    (void)state;
    make_problem();
    assert_runs("$M place problem.json --placer m-etf --json -o plan.json");
    int64_t makespan = int_of(shell_json(), "makespan_ns");
    assert_true(makespan > 0);
    assert_runs("$M simulate problem.json plan.json --json -o again.json");
    yyjson_val *o = shell_json();
    assert_int_equal(int_of(o, "plan_makespan_ns"), makespan);
    assert_true(int_of(o, "makespan_ns") <= makespan);
    assert_runs("$M check problem.json again.json");
    assert_runs("$M simulate problem.json plan.json --dispatch --json -o third.json");
    assert_runs("$M check problem.json third.json");
}

static void test_cli_check_lists_violations_and_ends_with_1(void **state)
{
    (void)state;
    make_plan();
    assert_runs("sed 's/\"makespan_ns\": *[0-9]*/\"makespan_ns\": 1/' plan.json >broken.json");
    assert_fails(1, "broken.json: the plan breaks", "$M check problem.json broken.json");
    assert_contains(shell_out, "makespan");
    assert_int_equal(shell("$M check problem.json broken.json --json"), 1);
    yyjson_val *o = shell_json();
    assert_false(yyjson_get_bool(yyjson_obj_get(o, "valid")));
    assert_true(yyjson_arr_size(yyjson_obj_get(o, "violations")) >= 1);
}

static void test_cli_check_names_a_plan_of_another_problem(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-tiny -c inter-server -q -o inter.json");
    assert_runs("$M problem gpt3-tiny -c intra-server -q -o intra.json");
    assert_runs("$M place inter.json --placer heft -q -o plan.json");
    assert_fails(1, "plan.json: a plan of another problem: it was made for 'gpt3-tiny-inter-server'",
                 "$M check intra.json plan.json");
    assert_string_equal(shell_out, ""); /* not a line for each broken rule */
    assert_int_equal(shell("$M check intra.json plan.json --json -q"), 1);
    assert_true(yyjson_arr_size(yyjson_obj_get(shell_json(), "violations")) > 10);
}

static void test_cli_wishes_hold(void **state)
{
    (void)state;
    /* A and B are allowed, B is forbidden: all is on A, and nothing moves. */
    assert_runs("$M problem gpt3-tiny --cluster inter-server --pin '*=A,B' --forbid '*=B' -q -o p.json");
    assert_runs("$M place p.json --placer random --json");
    yyjson_val *o = shell_json();
    assert_int_equal(int_of(yyjson_arr_get_first(yyjson_obj_get(o, "devices")), "ops"), 118);
    assert_int_equal(int_of(o, "transfers"), 0);
    assert_runs("$M problem gpt3-tiny --cluster inter-server --together '*' -q -o t.json");
    assert_runs("$M place t.json --placer random --json");
    assert_int_equal(int_of(shell_json(), "transfers"), 0);
    assert_fails(3, "no-such", "$M problem gpt3-tiny --cluster inter-server -q --pin 'no-such*=A'");
    assert_fails(3, "'Z'", "$M problem gpt3-tiny --cluster inter-server -q --pin '*=Z'");
}

/* What a device alone would do does not depend on what the user pins. */
static void test_cli_baseline_knows_no_pins(void **state)
{
    (void)state;
    assert_runs("$M plan inception-tiny -c inter-server --placer heft -q --json");
    int64_t single = yyjson_get_sint(yyjson_obj_get(shell_json(), "single_makespan_ns"));
    assert_runs("$M plan inception-tiny -c inter-server --placer heft --pin '*=C' -q --json");
    assert_int_equal(yyjson_get_sint(yyjson_obj_get(shell_json(), "single_makespan_ns")), single);
    assert_true(yyjson_get_real(yyjson_obj_get(shell_json(), "speed_up")) < 0.999);
    assert_runs("$M plan inception-tiny -c inter-server --placer heft --pin '*=C' -q");
    assert_contains(shell_out, ", if nothing were pinned: splitting gains nothing: the plan is ");
    assert_contains(shell_out, " % slower\n");
    assert_runs("$M plan inception-tiny -c inter-server --placer heft --pin 'stem*=A' --forbid '*=D' -o plan.json "
                "--problem-out problem.json -q");
    assert_runs("$M explain plan.json --problem problem.json --what-if 0 -q");
    assert_null(strstr(shell_out, "the best single device,"));
}

static void test_cli_quiet_says_nothing(void **state)
{
    (void)state;
    assert_runs("$M plan gpt3-tiny --cluster inter-server --placer heft -q");
    assert_string_equal(shell_err, "");
    assert_contains(shell_out, "makespan");
}

static void test_cli_plan_writes_a_plan_that_checks(void **state)
{
    (void)state;
    assert_runs("$M plan gpt3-tiny --cluster inter-server --placer heft -o plan.json --problem-out problem.json "
                "--graph-out graph.json --picture");
    assert_contains(shell_out, "best single device");
    assert_contains(shell_out, "computing");
    assert_runs("$M check problem.json plan.json");
    assert_runs("$M problem graph.json --cluster inter-server -q -o again.json --name x");
    assert_runs(
        "$M plan gpt3-tiny --cluster inter-server --placer heft --expand -o fine.json --problem-out fine-problem.json");
    assert_runs("$M check fine-problem.json fine.json");
    assert_runs("$M plan gpt3-tiny --cluster inter-server --rules none --placer heft --json");
    yyjson_val *o = shell_json();
    assert_int_equal(int_of(o, "network_ops"), int_of(o, "coarse_ops"));
    assert_true(yyjson_get_real(yyjson_obj_get(o, "speed_up")) > 0);
    assert_fails(2, "both write", "$M plan gpt3-tiny --cluster inter-server -o x.json --problem-out x.json");
}

static void test_cli_man_page_names_everything(void **state)
{
    (void)state;
    assert_runs("$M help --man");
    assert_true(!strncmp(shell_out, ".TH MOIRAI 1", 12));
    for (int i = 0; i < N_COMMANDS; i++) {
        char title[64];
        snprintf(title, sizeof title, ".SS moirai %s", commands[i]);
        assert_contains(shell_out, title);
    }
    assert_contains(shell_out, "\\-\\-time\\-limit");
    assert_contains(shell_out, ".SH EXIT STATUS");
}

static void test_cli_completion_completes(void **state)
{
    (void)state;
    assert_runs("$M help --bash >c");
    assert_runs("bash -c '. ./c; COMP_WORDS=(moirai pla) COMP_CWORD=1; _moirai; echo ${COMPREPLY[@]}'");
    assert_contains(shell_out, "place");
    assert_contains(shell_out, "placers");
    assert_runs(
        "bash -c '. ./c; COMP_WORDS=(moirai place p.json --placer h) COMP_CWORD=4; _moirai; echo ${COMPREPLY[@]}'");
    assert_contains(shell_out, "heft");
    assert_runs("bash -c '. ./c; COMP_WORDS=(moirai problem --fl) COMP_CWORD=2; _moirai; echo ${COMPREPLY[@]}'");
    assert_string_equal(shell_out, "--flow\n");
}

static void test_cli_commands_page_is_what_the_tables_say(void **state)
{
    (void)state;
    assert_runs("$M help --markdown >page.md");
    char *written = read_text(MOIRAI_SOURCE_DIR "/docs/commands.md"), *made = read_text("page.md");
    if (!written || strcmp(written, made))
        fail_msg("docs/commands.md is out of date: write it anew with 'moirai help --markdown'");
    free(written);
    free(made);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

static void test_cli_json_answers_for_help_and_for_what_is_not_there(void **state)
{
    (void)state;
    assert_runs("$M help --json");
    assert_true(yyjson_arr_size(yyjson_obj_get(shell_json(), "commands")) > 20);
    assert_int_equal(shell("$M nosuch --json"), 2);
    assert_int_equal(yyjson_get_int(yyjson_obj_get(shell_json(), "exit_code")), 2);
    assert_contains(yyjson_get_str(yyjson_obj_get(shell_json(), "error")), "nosuch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_cli_overview_lists_every_command),
        IN_FOLDER(test_cli_json_answers_for_help_and_for_what_is_not_there),
        IN_FOLDER(test_cli_help_of_every_command_has_usage_and_examples),
        IN_FOLDER(test_cli_unknown_words_get_the_nearest),
        IN_FOLDER(test_cli_usage_errors_end_with_2),
        IN_FOLDER(test_cli_options_stand_anywhere),
        IN_FOLDER(test_cli_fixed_forms_work),
        IN_FOLDER(test_cli_cuts_are_not_free),
        IN_FOLDER(test_cli_settings_name_those_that_there_are),
        IN_FOLDER(test_cli_modes_reach_the_problem_file),
        IN_FOLDER(test_cli_every_placer_gives_a_plan_that_checks),
        IN_FOLDER(test_cli_json_is_json_everywhere),
        IN_FOLDER(test_cli_failures_are_json_too),
        IN_FOLDER(test_cli_place_and_simulate_agree),
        IN_FOLDER(test_cli_check_lists_violations_and_ends_with_1),
        IN_FOLDER(test_cli_check_names_a_plan_of_another_problem),
        IN_FOLDER(test_cli_wishes_hold),
        IN_FOLDER(test_cli_baseline_knows_no_pins),
        IN_FOLDER(test_cli_quiet_says_nothing),
        IN_FOLDER(test_cli_plan_writes_a_plan_that_checks),
        IN_FOLDER(test_cli_man_page_names_everything),
        IN_FOLDER(test_cli_completion_completes),
        IN_FOLDER(test_cli_commands_page_is_what_the_tables_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
