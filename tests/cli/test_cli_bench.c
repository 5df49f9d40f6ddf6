/* The command bench, as typed: a short run, its files, going on after an interruption. */
#include "support/check.h"
#include "support/command.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <yyjson.h>

/* Quick placers on small networks: seconds, also on a slow machine. */
#define SHORT "$M bench paper --models gpt3-tiny --placers single,heft,m-sct,moirai --time-limit 0.1 "
/* Where it does not matter what is measured. */
#define QUICK "$M bench paper --models gpt3-tiny --placers single,heft,m-topo,m-etf --parts latency "

static int lines(const char *path)
{
    char *text = read_text(path);
    int n = 0;
    for (const char *at = text; at && *at; at++)
        n += *at == '\n';
    free(text);
    return n;
}

static int64_t whole(yyjson_val *o, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(o, key));
}

static void test_cli_bench_short_run_of_all_parts(void **state)
{
    (void)state;
    assert_runs(SHORT "-o out --json -q");
    yyjson_val *root = shell_json(), *row, *study = yyjson_obj_get(root, "study");
    size_t i, max;
    int parts = 0;
    const char *last = "";
    assert_int_equal(whole(root, "cases"), whole(root, "done"));
    assert_int_equal(lines("out/journal.jsonl"), whole(root, "cases"));
    yyjson_arr_foreach(yyjson_obj_get(study, "rows"), i, max, row) {
        const char *part = yyjson_get_str(yyjson_obj_get(row, "part"));
        parts += strcmp(part, last) != 0;
        last = part;
        if (whole(row, "result") == 0)
            assert_true(whole(row, "makespan_ns") > 0 && whole(row, "process_bytes") > 1000000);
        else
            assert_true(yyjson_get_len(yyjson_obj_get(row, "message")) > 0);
    }
    assert_int_equal(max, whole(root, "cases"));
    assert_int_equal(parts, 7);
    assert_true(yyjson_arr_size(yyjson_obj_get(study, "tables")) >= 12);
    char *csv = read_text("out/results.csv"), *page = read_text("out/paper.html"),
         *json = read_text("out/results.json");
    assert_int_equal(lines("out/results.csv"), whole(root, "cases") + 1);
    assert_contains(csv, "part,network,cluster,coarsened,placer");
    assert_contains(page, "fitted cost model");
    assert_contains(json, "\"format\": \"moirai-study\"");
    free(json);
    free(page);
    free(csv);
}

/* The makespans are those of `moirai place`. */
static void test_cli_bench_agrees_with_place(void **state)
{
    (void)state;
    assert_runs(
        "$M bench paper --models gpt3-tiny --testbeds inter-server --placers heft --parts latency -o out -q --json");
    yyjson_val *row = yyjson_arr_get_first(yyjson_obj_get(yyjson_obj_get(shell_json(), "study"), "rows"));
    int64_t makespan = whole(row, "makespan_ns");
    assert_runs("$M problem gpt3-tiny -c inter-server --flow edge --segment-us 0 -q -o p.json");
    assert_runs("$M place p.json --placer heft --json -q");
    assert_int_equal(whole(shell_json(), "makespan_ns"), makespan);
}

static void test_cli_bench_goes_on_where_it_was(void **state)
{
    (void)state;
    assert_runs(QUICK "-o out -q");
    int all = lines("out/journal.jsonl");
    assert_int_equal(all, 16);
    assert_runs(QUICK "-o out"); /* all is there: nothing is run */
    assert_contains(shell_err, "16 of 16 experiments are done");
    assert_int_equal(lines("out/journal.jsonl"), all);
    assert_runs("sed -i 5d out/journal.jsonl");
    assert_runs(QUICK "-o out --show");
    assert_contains(shell_err, "15 of 16 experiments are done");
    assert_int_equal(lines("out/journal.jsonl"), all - 1); /* --show runs nothing */
    assert_runs(QUICK "-o out");
    assert_contains(shell_err, "[5/16] latency: gpt3-tiny on inter-server, coarsened, single ...");
    assert_null(strstr(shell_err, "[4/16]"));
    assert_int_equal(lines("out/journal.jsonl"), all);
}

static void wait_for_lines(const char *path, int n)
{
    for (int i = 0; i < 6000 && lines(path) < n; i++)
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    assert_true(lines(path) >= n);
}

/* Ctrl-C in the middle of a search without end: what is done is written, the rest is run by the next call. */
static void test_cli_bench_interrupted(void **state)
{
    (void)state;
    char *argv[] = {"moirai",       "bench",        "paper",        "--models", "gpt3-mini", "--testbeds",
                    "inter-server", "--placers",    "heft,placeto", "--parts",  "latency",   "-o",
                    "out",          "--time-limit", "100000",       NULL};
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("out.txt", "w", stdout) || !freopen("err.txt", "w", stderr))
            _exit(99);
        execv(MOIRAI_COMMAND, argv);
        _exit(98);
    }
    assert_true(child > 0);
    wait_for_lines("out/journal.jsonl", 1); /* heft is done, placeto learns */
    assert_int_equal(kill(child, SIGINT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    char *err = read_text("err.txt");
    assert_contains(err, "the same command goes on from here");
    assert_int_equal(lines("out/journal.jsonl"), 1); /* what was cut short is no result */
    assert_true(file_exists("out/paper.html") && file_exists("out/results.json"));
    free(err);
}

static void test_cli_bench_markdown_has_its_figures_beside_it(void **state)
{
    (void)state;
    assert_runs(QUICK "-o out --markdown paper.md -q --force");
    char *text = read_text("paper.md");
    assert_contains(text, "# The paper's experiments, repeated");
    assert_contains(text, "(paper/speedup-inter-server-original.svg)");
    assert_contains(text, "fitted cost model");
    free(text);
    assert_true(file_exists("paper/speedup-inter-server-original.svg"));
    assert_true(file_exists("paper/generation.svg"));
}

static void test_cli_bench_writes_no_page_of_a_busy_machine(void **state)
{
    (void)state;
    assert_runs(QUICK "-o out -q");
    assert_runs(
        "sed -i -E 's/\"load\": *[0-9.]+/\"load\":1000/' out/journal.jsonl && grep -q 'load\":1000' out/journal.jsonl");
    assert_fails(1, "not written: the load was", QUICK "-o out --show --markdown paper.md -q");
    assert_false(file_exists("paper.md"));
    assert_true(file_exists("out/results.json"));
    assert_runs("sed -i -E 's/\"load\":1000/\"load\":0.5/' out/journal.jsonl");
    assert_runs(QUICK "-o out --show --markdown paper.md -q");
    assert_true(file_exists("paper.md"));
}

static void test_cli_bench_refuses_at_once(void **state)
{
    (void)state;
    assert_fails(2, "'everything'", "$M bench everything -o out");
    assert_fails(2, "-o DIR", "$M bench paper");
    assert_fails(2, "no network 'gpt5'", "$M bench paper --models gpt5 -o out");
    assert_false(file_exists("out"));
    write_text("file", "");
    assert_fails(1, "file", "$M bench paper --models gpt3-tiny --parts latency --placers heft -o file -q");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_bench_short_run_of_all_parts, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_bench_agrees_with_place, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_bench_goes_on_where_it_was, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_bench_interrupted, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_bench_markdown_has_its_figures_beside_it, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_bench_writes_no_page_of_a_busy_machine, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_bench_refuses_at_once, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
