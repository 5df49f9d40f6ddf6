/* What was measured: lines into a chapter, with verdicts worked out by hand. */
#include "support/check.h"
#include "support/command.h"

#include <moirai/study.h>
#include <moirai/zoo.h>

#include "study/measured.h"

#define PLAN(network, graph, link, placer, round, predicted, measured) \
    "{\"what\": \"plan\", \"network\": \"" network "\", \"testbed\": \"intra-server\", \"graph\": \"" graph \
    "\", \"link\": \"" link "\", \"placer\": \"" placer "\", \"round\": " #round ", \"operators\": 4872, " \
    "\"predicted_ms\": " #predicted ", \"measured_ms\": " #measured \
    ", \"parts\": 4, \"date\": \"2026-11-17 15:30\"}\n"

static const char lines[] =
    "{\"what\": \"parts\", \"testbed\": \"intra-server\", \"device\": \"an abacus\", \"share\": [0.31, 0.19], \"sm\": "
    "[40, 24]}\n"
    "{\"what\": \"link\", \"testbed\": \"intra-server\", \"link\": \"ipc\", \"latency_us\": 2.5, \"gb_s\": 900}\n"
    "{\"what\": \"failed\", \"why\": \"of another kind\"}\n" /* passed over */
    PLAN("gpt3-330M", "original", "ipc", "moirai", 0, 90.0, 100.0)
        PLAN("gpt3-330M", "original", "host", "moirai", 0, 120.0, 125.0)
            PLAN("gpt3-330M", "original", "ipc", "placeto", 0, 210.0, 400.0)
                PLAN("gpt3-330M", "original", "host", "placeto", 0, 210.0, 250.0)
                    PLAN("gpt3-330M", "original", "ipc", "single", 0, 180.0, 180.0)
                        PLAN("gpt3-330M", "original", "ipc", "heft", 0, 95.0, 90.0) /* faster than moirai's */
    PLAN("gpt3-330M", "original", "ipc", "moirai", 1, 96.0, 95.0)
        PLAN("gpt3-330M", "coarsened", "ipc", "moirai", 0, 70.0, 50.0)
            PLAN("gpt3-330M", "coarsened", "ipc", "moirai", 0, 70.0, 80.0) /* again: this one counts */
    PLAN("gpt3-330M", "pieces", "ipc", "moirai", 0, 38.0,
         40.0) "{\"what\": \"none\", \"network\": \"gpt3-330M\", \"testbed\": \"intra-server\", \"graph\": "
               "\"coarsened\", "
               "\"link\": "
               "\"host\", \"placer\": \"hrl\", \"round\": 0, \"why\": \"no reason\"}\n"
               "{\"what\": \"baseline\", \"network\": \"gpt3-330M\", \"testbed\": \"intra-server\", \"how\": "
               "\"plain\", \"part\": "
               "\"A\", \"ms\": 200}\n"
               "{\"what\": \"baseline\", \"network\": \"gpt3-330M\", \"testbed\": \"intra-server\", \"how\": "
               "\"compiled\", "
               "\"part\": "
               "\"A\", \"ms\": 60}\n"
               "{\"what\": \"memory\", \"network\": \"gpt3-330M\", \"testbed\": \"intra-server\", \"graph\": "
               "\"original\", "
               "\"placer\": \"moirai\", \"part\": \"B\", \"weights\": 1000000, \"computed\": 3000000, \"measured\": "
               "4000000}\n"
               "{\"what\": \"curve\", \"network\": \"gpt3-330M\", \"testbed\": \"intra-server\", \"graph\": "
               "\"coarsened\", "
               "\"placer\": \"hrl\", \"seconds\": 5400, \"cpu_s\": 2000, \"ms\": 150.5}\n"
               "{\"what\": \"curve\", \"network\": \"gpt3-330M\", \"testbed\": \"intra-server\", \"graph\": "
               "\"coarsened\", "
               "\"placer\": \"hrl\", \"seconds\": 10, \"cpu_s\": 4, \"ms\": 170.25}\n"
               "{\"what\": \"operators\", \"network\": \"inceptionv4\", \"part\": \"C\", \"operators\": 490, "
               "\"median_us\": 41, "
               "\"mean_us\": 60.25, \"longest_us\": 900, \"short\": 0.9}\n"
               "{\"what\": \"plan\", \"network\": \"swin"; /* a line that a crash cut off */

static moirai_study *study(const char *text)
{
    moirai_study *s;
    moirai_study_options o;
    moirai_study_options_init(&o);
    o.networks = "gpt3-330M";
    o.parts = "latency";
    assert_ok(moirai_study_new(&s, &o));
    assert_ok(moirai_study_measured_parse(s, text, strlen(text), "measured"));
    return s;
}

/* The row of a table that begins with this word, joined by '|'. */
static char *row_of(const study_document *d, const char *table, const char *first)
{
    static char text[1024];
    for (size_t i = 0; i < d->n; i++) {
        const study_block *b = &d->block[i];
        if (b->kind != STUDY_TABLE || strcmp(b->name, table) != 0)
            continue;
        assert_int_equal(b->n_cells % b->n_columns, 0);
        for (int r = b->n_columns; r < b->n_cells; r += b->n_columns)
            if (!strcmp(b->cell[r], first)) {
                size_t used = 0;
                for (int c = 0; c < b->n_columns; c++)
                    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", c ? "|" : "", b->cell[r + c]);
                return text;
            }
    }
    fail_msg("table '%s' has no row '%s'", table, first);
    return text;
}

static void test_study_measured_verdicts_worked_out_by_hand(void **state)
{
    (void)state;
    study_document d = {0};
    moirai_study *s = study(lines);
    assert_ok(study_document_make(&d, s));
    /* 400 / 100 and 250 / 125, the paper's 4.12; predicted 210 / 90 */
    assert_string_equal(row_of(&d, "measured-verdicts", "speed-up over placeto, intra-server, original"),
                        "speed-up over placeto, intra-server, original|up to 4.12|up to 2.33|up to 4.00, mean 2.83, "
                        "least 2.00|as there");
    assert_string_equal(
        row_of(&d, "measured-verdicts", "speed-up over single, intra-server, original"),
        "speed-up over single, intra-server, original|-|up to 2.00|up to 1.80, mean 1.80, least 1.80|not claimed");
    /* 80 of 100 measured, 70 of 90 predicted, 3.8 % in the paper */
    assert_string_equal(row_of(&d, "measured-verdicts", "latency cut by coarsening, intra-server"),
                        "latency cut by coarsening, intra-server|up to 3.8 %|up to 22.2 %|up to 20.0 %|more");
    const char *best =
        row_of(&d, "measured-verdicts", "\"consistently outperforms\": no other plan is more than 1 % faster");
    assert_contains(best, "in 3 of 3|in 2 of 3|mostly");
    assert_contains(row_of(&d, "measured-verdicts",
                           "higher bandwidth achieves better speed-up: plans by IPC no slower than through the host"),
                    "in 1 of 1|in 1 of 1|as there");
    study_document_free(&d);
    moirai_study_free(s);
}

static void test_study_measured_tables(void **state)
{
    (void)state;
    study_document d = {0};
    moirai_study *s = study(lines);
    assert_ok(study_document_make(&d, s));
    assert_string_equal(row_of(&d, "measured-intra-server", "gpt3-330M"),
                        "gpt3-330M|original|ipc|4872|90.0 / 100.0|210.0 / 400.0|180.0 / 180.0|95.0 / 90.0|96.0 / "
                        "95.0|4|1.80");
    assert_string_equal(row_of(&d, "measured-parts", "intra-server"),
                        "intra-server|an abacus|0.31, 0.19|40, 24|ipc|2.5|900.0");
    assert_string_equal(row_of(&d, "measured-baselines", "gpt3-330M"),
                        "gpt3-330M|intra-server|A|200.0|-|60.0|180.0|-|95.0|80.0|40.0|1.50"); /* 60 / 40 */
    assert_string_equal(row_of(&d, "testbeds", "inter-server"), "inter-server|A|rtx2080ti|11|-|5.53|4.12|5.54");
    assert_string_equal(row_of(&d, "models", "gpt3-330M"), "gpt3-330M|330M|1024|16|24|4872");
    assert_string_equal(row_of(&d, "measured-memory", "gpt3-330M"),
                        "gpt3-330M|intra-server|original|moirai|B|1.0|3.0|4.0|0.75");
    assert_string_equal(row_of(&d, "curves", "gpt3-330M, intra-server, coarsened"),
                        "gpt3-330M, intra-server, coarsened|hrl|170.2|150.5|2000|-");
    assert_string_equal(row_of(&d, "operator-times-measured", "inceptionv4"), "inceptionv4|C|490|41.0|60.2|900.0|90.0");
    study_document_free(&d);
    moirai_study_free(s);
}

static void test_study_measured_draws_a_curve(void **state)
{
    (void)state;
    moirai_study *s = study(lines);
    char *svg, name[32];
    size_t length;
    assert_int_equal(moirai_study_figure_count(s), 1); /* no row of the study is done */
    assert_ok(moirai_study_figure(&svg, &length, name, s, 0));
    assert_string_equal(name, "curve-gpt3-330M");
    assert_contains(svg, "intra-server, coarsened");
    assert_null(strstr(svg, "nan"));
    free(svg);
    moirai_study_free(s);
}

/* Four networks on four devices; what each row says of the operators is what the problem has. */
static void test_study_times_of_operators(void **state)
{
    (void)state;
    study_document d = {0};
    moirai_study *s = study("");
    moirai_graph *graph;
    moirai_cluster *cluster;
    moirai_problem *p;
    char mean[32];
    double sum = 0;
    assert_ok(study_document_make(&d, s));
    assert_ok(moirai_zoo_graph(&graph, "googlenet", 4));
    assert_ok(moirai_cluster_open(&cluster, "inter-server"));
    assert_ok(moirai_problem_new(&p, graph, cluster, &(moirai_problem_options){.flow = MOIRAI_FLOW_EDGE}));
    for (int32_t i = 0; i < p->n_ops; i++)
        sum += (double)moirai_op_ns(p, i, 0);
    snprintf(mean, sizeof mean, "|%.1f|", sum / p->n_ops * 1e-3);
    const char *row = row_of(&d, "operator-times", "googlenet");
    assert_contains(row, "googlenet|GoogLeNet, 306|A|196|");
    assert_contains(row, mean);
    moirai_problem_free(p);
    moirai_cluster_free(cluster);
    moirai_graph_free(graph);
    study_document_free(&d);
    moirai_study_free(s);
}

/* Without the file the page says that nothing was measured; with it, which chapter was. */
static void test_study_measured_is_said_in_every_form(void **state)
{
    (void)state;
    static const char *const said[] = {"nothing here was measured on a GPU", "Measured on parts of a GPU"};
    for (int with = 0; with < 2; with++) {
        moirai_study *s = study(with ? lines : "");
        char *text;
        size_t length;
        assert_ok(moirai_study_markdown(&text, &length, s, "paper"));
        assert_contains(text, said[with]);
        assert_null(strstr(text, with ? said[0] : "## Measured on parts"));
        assert_contains(text, "[model.md](model.md), Devices"); /* a link, where pages are neighbours */
        free(text);
        moirai_study_free(s);
    }
}

static void test_study_measured_bad_lines_get_one_clear_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } bad[] = {
        {"\n{\"network\": \"x\"}\n", "measured: line 2"},
        {"{\"what\": \"plan\", \"predicted_ms\": 3}\n", "measured_ms"},
        {"{\"what\": \"curve\", \"ms\": 3, \"cpu_s\": 1}\n", "seconds"},
        {"[1}\n", "measured: line 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        moirai_study *s = study("");
        assert_int_equal(moirai_study_measured_parse(s, bad[i].text, strlen(bad[i].text), "measured"), MOIRAI_EINPUT);
        assert_contains(moirai_error_message(), bad[i].said);
        moirai_study_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_study_measured_verdicts_worked_out_by_hand),
        cmocka_unit_test(test_study_measured_tables),
        cmocka_unit_test(test_study_measured_draws_a_curve),
        cmocka_unit_test(test_study_times_of_operators),
        cmocka_unit_test(test_study_measured_is_said_in_every_form),
        cmocka_unit_test(test_study_measured_bad_lines_get_one_clear_line),
    };
    return cmocka_run_group_tests_name("study_measured", tests, NULL, NULL);
}
