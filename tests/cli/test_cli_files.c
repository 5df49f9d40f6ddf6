/* What the command does to files: nothing is lost, nothing is left half-written. */
#include <yyjson.h>

#include "support/check.h"
#include "support/command.h"

static void test_cli_files_are_never_overwritten(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "$M zoo gpt3-tiny -o kept",
        "$M cluster inter-server -o kept",
        "$M problem gpt3-tiny --cluster inter-server -o kept",
        "$M place problem.json --placer heft -o kept",
        "$M place problem.json --placer heft --log-json kept",
        "$M simulate problem.json plan.json -o kept",
        "$M plan gpt3-tiny --cluster inter-server -o kept",
        "$M plan gpt3-tiny --cluster inter-server --problem-out kept",
    };
    assert_runs("$M problem gpt3-tiny --cluster inter-server -o problem.json && $M place problem.json --placer heft -o "
                "plan.json");
    write_text("kept", "precious");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_fails(1, "kept: exists already: --force replaces it", "%s", lines[i]);
        char *text = read_text("kept");
        assert_string_equal(text, "precious");
        free(text);
    }
    assert_runs("$M zoo gpt3-tiny -o kept --force");
    assert_runs("$M problem kept --cluster inter-server -q");
    assert_int_equal(files_here(), 3);
}

static void test_cli_files_are_checked_before_the_work(void **state)
{
    (void)state;
    /* The problem does not exist: the complaint must be about the output, which is looked at first. */
    assert_fails(1, "no-folder", "$M place nothing.json -o no-folder/plan.json");
    assert_fails(1, "is a folder", "$M place nothing.json -o /tmp");
}

static void test_cli_files_full_disk_is_a_failure(void **state)
{
    (void)state;
    assert_fails(1, "No space left", "$M zoo gpt3-tiny -q -o /dev/full >/dev/null");
    assert_fails(1, "No space left", "$M zoo gpt3-tiny -q -o - >/dev/full");
    assert_fails(1, "No space left", "$M zoo list --json >/dev/full");
    assert_fails(1, "No space left", "$M help >/dev/full");
    assert_int_equal(files_here(), 0);
    assert_true(file_exists("/dev/full"));
}

static void test_cli_files_over_the_limit_leave_nothing(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-tiny --cluster inter-server -o problem.json");
    assert_fails(1, "big.json", "(ulimit -f 1; exec $M zoo gpt3-tiny -o big.json >/dev/null)");
    assert_fails(1, "big.json", "(ulimit -f 1; exec $M place problem.json --placer heft -q -o big.json >/dev/null)");
    assert_int_equal(files_here(), 1);
    write_text("big.json", "old");
    assert_fails(1, "big.json", "(ulimit -f 1; exec $M zoo gpt3-tiny --force -o big.json >/dev/null)");
    char *text = read_text("big.json");
    assert_string_equal(text, "old");
    free(text);
    assert_int_equal(files_here(), 2);
}

static void test_cli_files_dash_is_stdin_and_stdout(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny -q -o - | $M problem - --cluster inter-server -q -o - >problem.json");
    assert_runs("$M place - --placer heft -q -o - <problem.json | tee plan.json | $M check problem.json -");
    assert_contains(shell_out, "ok: ");
    assert_runs("$M check - plan.json <problem.json");
    assert_runs("$M cluster inter-server -q -o - | $M problem gpt3-tiny --cluster - -q --json");
    assert_true(yyjson_is_obj(shell_json()));
}

static void test_cli_files_stdout_holds_the_file_alone(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny -o -");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(shell_json(), "format")), "moirai-graph");
    assert_contains(shell_err, "operators");
    assert_runs("$M zoo gpt3-tiny -o - --json");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(shell_json(), "format")), "moirai-graph");
}

static void test_cli_files_start_plan_is_taken(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-tiny --cluster inter-server -q -o problem.json && "
                "$M place problem.json --placer heft -q -o plan.json");
    assert_runs("$M place problem.json --placer heft --start plan.json -q -o again.json");
    assert_fails(3, "missing.json", "$M place problem.json --placer heft --start missing.json");
}

static void test_cli_files_log_json_is_an_object_a_line(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-tiny --cluster inter-server -q -o problem.json");
    assert_runs("$M place problem.json --time-limit 1 --log-json log -q");
    char *text = read_text("log");
    assert_non_null(text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        yyjson_doc *d = yyjson_read(line, strlen(line), 0);
        assert_non_null(d);
        assert_true(yyjson_is_obj(yyjson_doc_get_root(d)));
        yyjson_doc_free(d);
    }
    free(text);
}

/* Gains of the steps lead from what is known without them to the bound; times are shown and not in the file. */
static void test_cli_files_say_which_steps_found_them(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-tiny --cluster inter-server -q -o problem.json --json");
    int64_t path = yyjson_get_sint(yyjson_obj_get(shell_json(), "critical_path_bound_ns")),
            load = yyjson_get_sint(yyjson_obj_get(shell_json(), "load_bound_ns")), sum = path > load ? path : load;
    assert_runs("$M place problem.json --effort 0.01 --threads 1 --json --log -q -o one.json");
    assert_contains(shell_err, "processor time");
    assert_contains(shell_err, "the plan is by ");
    yyjson_val *shown = shell_json(), *steps = yyjson_obj_get(shown, "steps"), *step;
    size_t i, n;
    bool named = false;
    assert_true(sum > 0 && yyjson_arr_size(steps) > 3);
    yyjson_arr_foreach(steps, i, n, step) {
        assert_true(yyjson_get_sint(yyjson_obj_get(step, "calls")) > 0);
        assert_true(yyjson_get_sint(yyjson_obj_get(step, "cpu_ns")) >= 0);
        sum += yyjson_get_sint(yyjson_obj_get(step, "bound_gain_ns"));
        named |=
            !strcmp(yyjson_get_str(yyjson_obj_get(step, "name")), yyjson_get_str(yyjson_obj_get(shown, "plan_by")));
    }
    assert_true(named);
    assert_int_equal(sum, yyjson_get_sint(yyjson_obj_get(shown, "lower_bound_ns")));
    assert_runs("$M place problem.json --effort 0.01 --threads 2 --log-timeless -q -o two.json");
    assert_null(strstr(shell_err, "processor time"));
    assert_runs("grep -q bound_by one.json && ! grep -q cpu_ns one.json");
    assert_runs(
        "sed 's/\"generation_ns\": *[0-9]*//' one.json >a && sed 's/\"generation_ns\": *[0-9]*//' two.json >b && "
        "cmp a b");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_cli_files_are_never_overwritten),      IN_FOLDER(test_cli_files_are_checked_before_the_work),
        IN_FOLDER(test_cli_files_full_disk_is_a_failure),     IN_FOLDER(test_cli_files_over_the_limit_leave_nothing),
        IN_FOLDER(test_cli_files_dash_is_stdin_and_stdout),   IN_FOLDER(test_cli_files_stdout_holds_the_file_alone),
        IN_FOLDER(test_cli_files_start_plan_is_taken),        IN_FOLDER(test_cli_files_log_json_is_an_object_a_line),
        IN_FOLDER(test_cli_files_say_which_steps_found_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
