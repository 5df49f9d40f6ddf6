/* Many rows side by side: which, in what order, and that a journal is gone on with. */
#include "support/check.h"
#include "util/util.h"
#include "wide/summary.h"
#include "wide/wide.h"

#include <unistd.h>

/* ---- rows ---- */

static size_t of_group(const wide_rows *rows, size_t n, const char *group)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += !strcmp(rows->row[i].group, group);
    return count;
}

static void test_bench_wide_every_beginning_is_a_fair_sample(void **state)
{
    (void)state;
    wide_rows rows;
    assert_ok(wide_rows_list(&rows, "zoo,onnx,onnx-original,shapes,generator", "tune", NULL, 0));
    assert_true(rows.n > 250);
    for (size_t n = 1; n <= rows.n; n++)
        for (size_t g = 0; g < WIDE_GROUPS; g++) {
            double share = (double)of_group(&rows, rows.n, wide_groups[g]) * (double)n / (double)rows.n;
            double has = (double)of_group(&rows, n, wide_groups[g]);
            assert_true(has > share - 2 && has < share + 2);
        }
    wide_rows_free(&rows);
}

static void test_bench_wide_rows_by_half_pattern_and_number(void **state)
{
    (void)state;
    wide_rows tune, judge, both, few;
    assert_ok(wide_rows_list(&tune, "generator", "tune", NULL, 0));
    assert_ok(wide_rows_list(&judge, "generator", "judge", NULL, 0));
    assert_ok(wide_rows_list(&both, "generator", "both", NULL, 0));
    assert_int_equal(tune.n + judge.n, both.n);
    for (size_t i = 0; i < tune.n; i++)
        for (size_t j = 0; j < judge.n; j++)
            assert_string_not_equal(tune.row[i].name, judge.row[j].name);
    assert_ok(wide_rows_list(&few, "zoo,generator", "both", "fft/*,zoo:gpt3*/tensor", 3));
    assert_int_equal(few.n, 6);
    for (size_t i = 0; i < few.n; i++)
        assert_true(!strncmp(few.row[i].name, "fft/", 4) || !strncmp(few.row[i].name, "zoo:gpt3", 8));
    wide_rows_free(&tune);
    wide_rows_free(&judge);
    wide_rows_free(&both);
    wide_rows_free(&few);
    assert_ok(wide_rows_list(&few, "lu/50/2/kinds/0.1/7,onnx:x/inter-server/original", "tune", NULL, 0));
    assert_int_equal(few.n, 2);
    assert_string_equal(few.row[0].name, "lu/50/2/kinds/0.1/7");
    assert_string_equal(few.row[0].group, "families");
    assert_string_equal(few.row[1].group, "onnx original");
    wide_rows_free(&few);
    assert_int_equal(wide_rows_list(&few, "generator", "third", NULL, 0), MOIRAI_EUSAGE);
    assert_int_equal(wide_rows_list(&few, "zoo,moon", "tune", NULL, 0), MOIRAI_EUSAGE);
    assert_non_null(strstr(moirai_error_message(), "'moon'"));
}

static void test_bench_wide_rows_are_problems(void **state)
{
    (void)state;
    static const char *const good[] = {"zoo:gpt3-tiny/inter-server/coarsened/edge", "shape:layered/100/4",
                                       "fork-join/100/3/kinds/0.3/1"};
    static const char *const bad[] = {"zoo:gpt3-tiny/inter-server/coarsened", "zoo:a/b/c/tensor/e", "file:x", "onnx:x"};
    moirai_problem *p;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(wide_problem(&p, good[i]));
        moirai_problem_free(p);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(wide_problem(&p, bad[i]), 0);
        assert_null(p);
    }
}

/* ---- jobs and journal ---- */

typedef struct heard {
    int ends;
    size_t last;
} heard;

static void hear(void *data, size_t job)
{
    heard *h = data;
    h->ends++;
    h->last = job;
}

static const char *const small_rows[3] = {"chains/100/3/kinds/0.3/1", "in-tree/100/3/kinds/0.3/1",
                                          "lu/100/2/related/0.1/1"};

static wide_setup quick(const char *placer)
{
    return (wide_setup){.placer = placer, .limit_s = 5, .effort = 1, .threads = 1};
}

static void lay_out(wide_job *job, const wide_setup *a, const wide_setup *b)
{
    for (int i = 0; i < 6; i++)
        job[i] = (wide_job){.row = small_rows[i / 2], .setup = i % 2 ? b : a};
}

static void test_bench_wide_runs_side_by_side_and_goes_on_from_its_journal(void **state)
{
    (void)state;
    wide_setup heft = quick("heft"), etf = quick("m-etf");
    wide_job job[6], again[6];
    heard h = {0};
    char *path = temporary_path("journal.csv"), *text, *cut;
    size_t length;
    unlink(path);
    lay_out(job, &heft, &etf);
    wide_run r = {.job = job, .n_jobs = 6, .side_by_side = 3, .csv_path = path, .done = hear, .data = &h};
    assert_ok(wide_run_all(&r));
    assert_int_equal(h.ends, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(job[i].outcome.message, "");
        assert_true(job[i].outcome.done && job[i].outcome.plan_ns > 0 && wide_gap(&job[i].outcome) >= 0);
    }
    assert_true(job[1].outcome.plan_ns != job[0].outcome.plan_ns);

    /* As if it had been killed while it wrote the last line: one job is left to do. */
    assert_ok(util_file_read(&text, &length, path));
    cut = strrchr(text, ',');
    assert_ok(util_file_write(path, text, (size_t)(cut - text)));
    free(text);
    lay_out(again, &heft, &etf);
    h = (heard){0};
    r.job = again;
    r.side_by_side = 1;
    assert_ok(wide_csv_read(path, again, 6));
    size_t missing = 6;
    for (size_t i = 0; i < 6; i++)
        missing = again[i].outcome.done ? missing : i;
    lay_out(again, &heft, &etf);
    assert_ok(wide_run_all(&r));
    assert_int_equal(h.ends, 6);
    assert_int_equal(h.last, missing);
    for (int i = 0; i < 6; i++)
        assert_int_equal(again[i].outcome.plan_ns, job[i].outcome.plan_ns);

    /* And now nothing is. */
    lay_out(again, &heft, &etf);
    assert_ok(wide_csv_read(path, again, 6));
    for (int i = 0; i < 6; i++)
        assert_true(again[i].outcome.done);
    unlink(path);
}

static void test_bench_wide_other_setups_are_other_results(void **state)
{
    (void)state;
    wide_setup a = quick("heft"), b = a;
    char one[WIDE_KEY], two[WIDE_KEY];
    b.setting[b.n_settings++] = (moirai_setting){"off", "x,y"};
    wide_setup_key(one, &a);
    wide_setup_key(two, &b);
    assert_string_not_equal(one, two);
    assert_null(strchr(two, ','));
    b = a;
    b.limit_s = 6;
    wide_setup_key(two, &b);
    assert_string_not_equal(one, two);
}

/* What failed is said, kept, and run again next time. */
static void test_bench_wide_failures_have_their_message(void **state)
{
    (void)state;
    wide_setup none = quick("no-such-placer");
    wide_job job = {.row = small_rows[0], .setup = &none};
    heard h = {0};
    char *path = temporary_path("failures.csv");
    unlink(path);
    wide_run r = {.job = &job, .n_jobs = 1, .side_by_side = 1, .csv_path = path, .done = hear, .data = &h};
    assert_ok(wide_run_all(&r));
    assert_non_null(strstr(job.outcome.message, "no-such-placer"));
    assert_true(wide_gap(&job.outcome) < 0);
    job.outcome = (wide_outcome){0};
    assert_ok(wide_csv_read(path, &job, 1));
    assert_false(job.outcome.done);
    unlink(path);
    assert_ok(util_file_write(path, "something else\n", 15));
    assert_int_equal(wide_csv_read(path, &job, 1), MOIRAI_EINPUT);
    unlink(path);
}

static void test_bench_wide_begins_nothing_that_would_not_end(void **state)
{
    (void)state;
    wide_setup heft = quick("heft");
    wide_job job = {.row = small_rows[0], .setup = &heft};
    heard h = {0};
    wide_run r = {.job = &job, .n_jobs = 1, .side_by_side = 1, .until_s = 4, .done = hear, .data = &h};
    assert_ok(wide_run_all(&r)); /* a limit of 5 s does not fit into 4 */
    assert_int_equal(h.ends, 0);
    assert_false(job.outcome.done);
}

/* ---- the rest ---- */

static void test_bench_wide_options(void **state)
{
    (void)state;
    char set[] = "name=a=b";
    char *line[] = {"x",     "--limit", "7.5",      "--jobs", "3",      "--set", set,
                    "--off", "s,t",     "--ablate", "u",      "--half", "judge"};
    wide_options o;
    assert_ok(wide_options_parse(&o, 13, line));
    assert_true(o.setup.limit_s == 7.5 && o.side_by_side == 3 && o.setup.n_settings == 2);
    assert_string_equal(o.setup.setting[0].name, "name");
    assert_string_equal(o.setup.setting[0].value, "a=b");
    assert_string_equal(o.setup.setting[1].name, "off");
    assert_string_equal(o.setup.setting[1].value, "s,t");
    assert_string_equal(o.half, "judge");
    assert_string_equal(o.steps, "u");
    char plain[] = "plain";
    char *bad[][2] = {{"--limit", "x"}, {"--limit", "-1"}, {"--spoon", "1"}, {"--set", plain}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(wide_options_parse(&o, 3, (char *[]){"x", bad[i][0], bad[i][1]}), MOIRAI_EUSAGE);
    assert_int_equal(wide_options_parse(&o, 2, (char *[]){"x", "--limit"}), MOIRAI_EUSAGE);
    assert_ok(wide_options_parse(&o, 1, line));
    assert_string_equal(o.half, "tune"); /* nobody looks at the other half by accident */
}

static void test_bench_wide_summary(void **state)
{
    (void)state;
    double few[] = {3, 1, 2, 6}, many[100];
    wide_summary s = wide_summarize(few, 4);
    assert_true(s.mean == 3 && s.median == 2.5 && s.high == 6 && s.worst == 6);
    for (int i = 0; i < 100; i++)
        many[i] = 100 - i;
    s = wide_summarize(many, 100);
    assert_true(s.median == 50.5 && s.high == 95 && s.worst == 100);
    s = wide_summarize(many, 0);
    assert_true(s.n == 0 && s.worst == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_wide_every_beginning_is_a_fair_sample),
        cmocka_unit_test(test_bench_wide_rows_by_half_pattern_and_number),
        cmocka_unit_test(test_bench_wide_rows_are_problems),
        cmocka_unit_test(test_bench_wide_runs_side_by_side_and_goes_on_from_its_journal),
        cmocka_unit_test(test_bench_wide_other_setups_are_other_results),
        cmocka_unit_test(test_bench_wide_failures_have_their_message),
        cmocka_unit_test(test_bench_wide_begins_nothing_that_would_not_end),
        cmocka_unit_test(test_bench_wide_options),
        cmocka_unit_test(test_bench_wide_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
