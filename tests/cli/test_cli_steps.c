/* The steps that commands share: a network by its name, a problem with its wishes, a search, and how plans are shown.
 */
#include <yyjson.h>

#include "cli/steps/steps.h"
#include "support/capture.h"
#include "support/check.h"
#include "support/command.h"
#include "support/tiny.h"

static const cli_argument arguments[] = {{.name = "X", .kind = CLI_VALUE_FILE, .help = "x", .optional = true}, {0}};
static const cli_option options[] = {
    CLI_OPTIONS_NETWORK,
    CLI_OPTION_CLUSTER,
    CLI_OPTIONS_PROBLEM,
    CLI_OPTIONS_SEARCH,
    CLI_OPTION_PICTURE,
    CLI_OPTION_OUTPUT("a file"),
    {0},
};
static const cli_command step = {.name = "step", .summary = "one step", .arguments = arguments, .options = options};

int cli_command_count(void)
{
    return 1;
}

const cli_command *cli_command_at(int index)
{
    return index == 0 ? &step : NULL;
}

const moirai_interrupt *cli_interrupt(void)
{
    static const moirai_interrupt never;
    return &never;
}

#define CLI(...) typed((char *[]){__VA_ARGS__, NULL})
static cli_context typed(char **words)
{
    cli_context cli;
    int n = 0;
    while (words[n])
        n++;
    assert_ok(cli_parse(&cli, &step, n, words));
    return cli;
}

static void test_cli_steps_networks_by_name_and_file(void **state)
{
    (void)state;
    moirai_graph *g;
    cli_context cli = CLI("-q");
    assert_ok(cli_network(&g, &cli, "gpt3-tiny"));
    assert_int_equal(g->element_bytes, 4);
    assert_ok(moirai_graph_write(g, "tiny.json"));
    moirai_graph_free(g);
    assert_ok(cli_network(&g, &cli, "tiny.json"));
    assert_int_equal(g->n_ops, 118);
    moirai_graph_free(g);
    cli_free(&cli);
    cli = CLI("-q", "--dtype", "fp16");
    assert_ok(cli_network(&g, &cli, "gpt3-tiny"));
    assert_int_equal(g->element_bytes, 2);
    moirai_graph_free(g);
    assert_int_equal(cli_network(&g, &cli, "gpt3-tinny"), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(),
                        "gpt3-tinny: neither a file nor a network of the zoo: did you mean 'gpt3-tiny'?");
    cli_free(&cli);
}

static void test_cli_steps_clusters(void **state)
{
    (void)state;
    moirai_cluster *c;
    cli_context cli = CLI("-q");
    assert_int_equal(cli_cluster(&c, &cli), MOIRAI_EUSAGE);
    assert_contains(moirai_error_message(), "step: --cluster NAME|FILE is missing");
    cli_free(&cli);
    cli = CLI("-q", "-c", "2x v100, 100Gbps");
    assert_ok(cli_cluster(&c, &cli));
    assert_int_equal(c->n_devices, 2);
    moirai_cluster_free(c);
    cli_free(&cli);
}

/* A pattern may hold '=': the last one counts. */
static void test_cli_steps_problem_takes_modes_and_wishes(void **state)
{
    (void)state;
    moirai_graph *g;
    moirai_cluster *c;
    moirai_problem *p;
    cli_context cli = CLI("-q", "--flow", "edge", "--congestion", "channel", "--memory", "peak", "--cost", "roofline",
                          "--pin", "L0/*=B", "--forbid", "L1/fc*=A", "--together", "L1/ln*");
    assert_ok(moirai_zoo_graph(&g, "gpt3-tiny", 4));
    assert_ok(moirai_cluster_open(&c, "2x v100, 100Gbps"));
    assert_ok(cli_problem(&p, &cli, g, c, "mine"));
    assert_string_equal(p->name, "mine");
    assert_true(p->flow == MOIRAI_FLOW_EDGE && p->congestion == MOIRAI_CONGESTION_CHANNEL &&
                p->memory == MOIRAI_MEMORY_PEAK);
    assert_int_equal(p->op_devices[tiny_op(p, "L0/fc1")], 2);
    assert_int_equal(p->op_devices[tiny_op(p, "L1/fc1")], 2);
    assert_int_equal(p->op_devices[tiny_op(p, "L1/ln1")], 3);
    assert_int_equal(p->op_group[tiny_op(p, "L1/ln1")], p->op_group[tiny_op(p, "L1/ln2")]);
    assert_true(p->op_group[tiny_op(p, "L1/ln1")] >= 0);
    yyjson_mut_val *by = yyjson_mut_obj_get(cli.result, "times_by_model");
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(by, "roofline")), 2 * 118);
    moirai_problem_free(p);
    cli_free(&cli);
    static char *const wrong[] = {"L0/fc1", "=A", "L0/fc1="};
    for (size_t i = 0; i < 3; i++) {
        cli = CLI("-q", "--pin", wrong[i]);
        assert_int_equal(cli_problem(&p, &cli, g, c, NULL), MOIRAI_EUSAGE);
        assert_contains(moirai_error_message(), "write PATTERN=DEVICE");
        cli_free(&cli);
    }
    moirai_graph_free(g);
    moirai_cluster_free(c);
}

static const char chain[] = "device A 100\ndevice B 50\nop a 1000,2000 > s:500 mem=10\nop b 3000,1000 s mem=20\n";

static void test_cli_steps_search_with_settings_and_seed(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(chain);
    moirai_plan *plan;
    const moirai_placer *placer;
    cli_context cli = CLI("-q", "--placer", "heft", "--seed", "77");
    assert_ok(cli_placer(&placer, &cli));
    assert_string_equal(placer->name, "heft");
    assert_ok(cli_search(&plan, &cli, p, NULL));
    assert_int_equal(plan->seed, 77);
    assert_string_equal(plan->placer, "heft");
    assert_int_equal(plan->makespan_ns, 2500);
    moirai_plan_free(plan);
    cli_free(&cli);
    cli = CLI("-q", "--placer", "hefty");
    assert_int_equal(cli_placer(&placer, &cli), MOIRAI_EUSAGE);
    assert_string_equal(moirai_error_message(), "step: no placer 'hefty': did you mean 'heft'?");
    cli_free(&cli);
    cli = CLI("-q", "--set", "nonsense");
    assert_int_equal(cli_search(&plan, &cli, p, NULL), MOIRAI_EUSAGE);
    assert_contains(moirai_error_message(), "write NAME=VALUE");
    cli_free(&cli);
    cli = CLI("-q", "--placer", "heft", "--set", "colour=red");
    assert_int_equal(cli_search(&plan, &cli, p, NULL), MOIRAI_EUSAGE);
    cli_free(&cli);
    cli = CLI("-q"); /* the default is moirai */
    assert_ok(cli_placer(&placer, &cli));
    assert_string_equal(placer->name, "moirai");
    cli_free(&cli);
    moirai_problem_free(p);
}

static void test_cli_steps_show_a_plan_in_text_and_json(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(chain);
    moirai_plan *plan = tiny_place(p, "exact");
    char *err;
    cli_context cli = CLI("--picture");
    plan->generation_ns = 1234;
    capture c = capture_begin();
    cli_show_plan(&cli, p, plan);
    char *out = capture_end(c, &err);
    assert_contains(
        out,
        "plan         tiny by exact, optimal (searched)\nmakespan     2.500 us\nbound        2.500 us, gap 0.00 %\n"
        "transfers    1, 500 B\nmade in      1.234 us\n");
    assert_contains(out, "A               1     1.000 us   40 %         10 B        100 B\n");
    assert_contains(out, "B               1     1.000 us   40 %         20 B         50 B\n");
    assert_string_equal(err, "");
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(cli.result, "makespan_ns")), 2500);
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(cli.result, "transfer_bytes")), 500);
    assert_true(yyjson_mut_get_real(yyjson_mut_obj_get(cli.result, "gap")) == 0);
    yyjson_mut_val *b = yyjson_mut_arr_get(yyjson_mut_obj_get(cli.result, "devices"), 1);
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(b, "busy_ns")), 1000);
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(b, "capacity_bytes")), 50);
    free(out);
    free(err);
    plan->lower_bound_ns = 2000; /* far, and the search has an opinion */
    plan->origin.tries = 9, plan->origin.stale = 3, plan->origin.rival_ns = 2501;
    c = capture_begin();
    cli_show_plan(&cli, p, plan);
    out = capture_end(c, &err);
    assert_contains(out, "gap 20.00 %\nweak side    likely the bound: ");
    assert_string_equal(yyjson_mut_get_str(yyjson_mut_obj_get(cli.result, "weak_side")), "bound");
    yyjson_mut_val *evidence = yyjson_mut_obj_get(cli.result, "evidence");
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(evidence, "rival_ns")), 2501);
    free(out);
    free(err);
    cli_free(&cli);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* Nine devices without work are one line of text, and nine objects of JSON; eight have lines of their own. */
static void test_cli_steps_sum_up_devices_without_work(void **state)
{
    (void)state;
    for (int idle = 8; idle <= 9; idle++) {
        char text[512] = "", *err;
        for (int k = 0; k <= idle; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "device d%d 99\n", k);
        snprintf(text + strlen(text), sizeof text - strlen(text), "op a %s\n",
                 idle == 8 ? "5,6,6,6,6,6,6,6,6" : "5,6,6,6,6,6,6,6,6,6");
        moirai_problem *p = tiny_problem(text);
        moirai_plan *plan = tiny_place(p, "single");
        cli_context cli = CLI("--picture");
        capture c = capture_begin();
        cli_show_plan(&cli, p, plan);
        cli_show_picture(&cli, p, plan);
        char *out = capture_end(c, &err);
        assert_contains(out, "\nd0 ");
        assert_int_equal(strstr(out, "\nd8 ") != NULL, idle == 8);
        assert_int_equal(strstr(out, "\nand 9 devices without operators\n") != NULL, idle == 9);
        assert_int_equal(yyjson_mut_arr_size(yyjson_mut_obj_get(cli.result, "devices")), idle + 1);
        free(out);
        free(err);
        cli_free(&cli);
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
}

/* 2500 ns in 50 cells of 50 ns: 20 of computing on A, 10 of sending, 20 on B. */
static void test_cli_steps_draw_a_plan(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(chain);
    moirai_plan *plan = tiny_place(p, "exact");
    char *err;
    cli_context cli = CLI("--picture");
    setenv("COLUMNS", "66", 1);
    setenv("LC_ALL", "C", 1);
    capture c = capture_begin();
    cli_show_picture(&cli, p, plan);
    char *out = capture_end(c, &err);
    assert_contains(out, "\nA      |####################                              |  40 %\n");
    assert_contains(out, "\n       |                                                  |\n"); /* A receives nothing */
    assert_contains(out, "\nB      |                              ####################|  40 %\n");
    assert_contains(out, "\n       |                    ==========                    |\n");
    unsetenv("COLUMNS");
    unsetenv("LC_ALL");
    free(out);
    free(err);
    cli_free(&cli);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_cli_steps_show_a_problem(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(chain);
    char *err;
    cli_context cli = CLI("--json");
    capture c = capture_begin();
    cli_show_problem(&cli, p);
    char *out = capture_end(c, &err);
    assert_string_equal(out, ""); /* --json prints the result alone, at the end */
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(cli.result, "critical_path_bound_ns")), 2000);
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(cli.result, "op_memory_bytes")), 30);
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(cli.result, "device_memory_bytes")), 150);
    assert_string_equal(yyjson_mut_get_str(yyjson_mut_obj_get(cli.result, "congestion")), "port");
    free(out);
    free(err);
    cli_free(&cli);
    moirai_problem_free(p);
}

/* Text is the result on stdout; with `-o -` the file is, and the text goes to stderr; quiet silences the story alone.
 */
static void test_cli_steps_where_words_go(void **state)
{
    (void)state;
    static const struct {
        char *word[2];
        const char *out, *err;
    } list[] = {
        {{"--force", NULL}, "result", "story"},
        {{"-q", NULL}, "result", ""},
        {{"--json", NULL}, "", "story"},
        {{"-o", "-"}, "", "resultstory"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        cli_context cli = CLI(list[i].word[0], list[i].word[1]);
        char *err;
        capture c = capture_begin();
        cli_print(&cli, "%s", "result");
        cli_say(&cli, "%s", "story");
        char *out = capture_end(c, &err);
        assert_string_equal(out, list[i].out);
        assert_string_equal(err, list[i].err);
        free(out);
        free(err);
        cli_free(&cli);
    }
}

static void test_cli_steps_files_that_may_be_written(void **state)
{
    (void)state;
    cli_context cli = CLI("x"), force = CLI("x", "--force");
    write_text("there", "old");
    assert_ok(cli_writable(&cli, NULL));
    assert_ok(cli_writable(&cli, "-"));
    assert_ok(cli_writable(&cli, "new"));
    assert_ok(cli_writable(&cli, "/dev/null"));
    assert_int_equal(cli_writable(&cli, "there"), MOIRAI_EFAIL);
    assert_string_equal(moirai_error_message(), "there: exists already: --force replaces it");
    assert_ok(cli_writable(&force, "there"));
    assert_int_equal(cli_writable(&force, "."), MOIRAI_EFAIL);
    assert_string_equal(moirai_error_message(), ".: is a folder");
    assert_int_equal(cli_writable(&force, "no/such/folder"), MOIRAI_EFAIL);
    assert_contains(moirai_error_message(), "folder 'no/such'");
    cli_free(&cli);
    cli = CLI("--certificate", "there");
    assert_int_equal(cli_search_writable(&cli), MOIRAI_EFAIL);
    cli_free(&cli);
    cli_free(&force);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_cli_steps_networks_by_name_and_file),
        IN_FOLDER(test_cli_steps_clusters),
        IN_FOLDER(test_cli_steps_problem_takes_modes_and_wishes),
        IN_FOLDER(test_cli_steps_search_with_settings_and_seed),
        IN_FOLDER(test_cli_steps_show_a_plan_in_text_and_json),
        IN_FOLDER(test_cli_steps_sum_up_devices_without_work),
        IN_FOLDER(test_cli_steps_draw_a_plan),
        IN_FOLDER(test_cli_steps_show_a_problem),
        IN_FOLDER(test_cli_steps_where_words_go),
        IN_FOLDER(test_cli_steps_files_that_may_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
