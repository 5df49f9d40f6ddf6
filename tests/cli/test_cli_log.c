/* The log of a search: what is shown, when, and every event in --log-json. */
#include "support/check.h"
#include "support/command.h"
#include "support/fake_commands.h"

#include <unistd.h>
#include <yyjson.h>

const cli_command *cli_command_find(const char *name)
{
    (void)name;
    return NULL;
}

static const moirai_placer placer = {.name = "seeker", .letters = "H heft, A annealing"};
static const moirai_problem problem = {.n_ops = 4872, .n_devices = 4};

/* Runs `n` events through a log opened with `words`; stderr of that time goes to the file "err". */
static void run_log(char **words, const moirai_progress *events, int n)
{
    cli_context cli;
    cli_log *log;
    assert_int_equal(fake_parse(&cli, words), 0);
    fflush(stderr);
    int keep = dup(STDERR_FILENO);
    assert_non_null(freopen("err", "w", stderr));
    int rc = cli_log_open(&log, &cli, &placer, &problem);
    if (!rc) {
        for (int i = 0; i < n; i++)
            cli_log_event(log, &events[i]);
        rc = cli_log_close(log);
    }
    fflush(stderr);
    dup2(keep, STDERR_FILENO);
    close(keep);
    cli_free(&cli);
    assert_int_equal(rc, 0);
}

static int lines_with(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

static moirai_progress event(double seconds, char letter, int64_t makespan_ns, int64_t bound_ns)
{
    return (moirai_progress){
        .seconds = seconds, .letter = letter, .makespan_ns = makespan_ns, .lower_bound_ns = bound_ns};
}

static void test_cli_log_shows_key_header_and_better_plans(void **state)
{
    (void)state;
    moirai_progress e[] = {event(0, 'H', 3000000, -1), event(1, ' ', 3000000, 1000000),
                           event(2, 'A', 2000000, 1000000)};
    run_log(WORDS("p", "--log"), e, 3);
    char *text = read_text("err");
    assert_contains(text, "seeker: 4,872 operators, 4 devices");
    assert_contains(text, "found by: H heft, A annealing");
    assert_int_equal(lines_with(text, "makespan"), 1);
    assert_contains(text, "H ");
    assert_contains(text, "50.00 %");
    /* The second event is no news and came within 5 s. */
    assert_int_equal(lines_with(text, " s\n"), 2);
    free(text);
}

static void test_cli_log_is_silent_without_a_terminal(void **state)
{
    (void)state;
    moirai_progress e[] = {event(0, 'H', 3000000, -1)};
    run_log(WORDS("p"), e, 1);
    char *text = read_text("err");
    assert_string_equal(text, "");
    free(text);
}

static void test_cli_log_repeats_the_header_every_20_lines(void **state)
{
    (void)state;
    moirai_progress e[45];
    for (int i = 0; i < 45; i++)
        e[i] = event(i, 'H', 1000000 - i, 1);
    run_log(WORDS("p", "--log"), e, 45);
    char *text = read_text("err");
    assert_int_equal(lines_with(text, "makespan"), 3);
    assert_int_equal(lines_with(text, " s\n"), 45);
    free(text);
}

static void test_cli_log_without_news_is_a_line_every_5_s(void **state)
{
    (void)state;
    moirai_progress e[101];
    for (int i = 0; i <= 100; i++)
        e[i] = event(i / 4.0, ' ', 1000000, i + 1);
    run_log(WORDS("p", "--log"), e, 101);
    char *text = read_text("err");
    assert_int_equal(lines_with(text, " s\n"), 6); /* at 0, 5, 10, 15, 20, 25 s */
    free(text);
}

static void test_cli_log_ends_with_the_last_state(void **state)
{
    (void)state;
    moirai_progress e[] = {event(0, 'H', 3000000, 1), event(0.01, 'A', 2000000, 1), event(0.02, 'A', 1234567, 1)};
    run_log(WORDS("p", "--log"), e, 3);
    char *text = read_text("err");
    assert_int_equal(lines_with(text, " s\n"), 2);
    assert_contains(text, "1.235 ms");
    free(text);
}

static void test_cli_log_timeless_does_not_depend_on_the_clock(void **state)
{
    (void)state;
    moirai_progress slow[3], fast[3];
    for (int i = 0; i < 3; i++) {
        slow[i] = event(10.0 * i, 'H', 1000000 - i / 2, 1);
        fast[i] = event(0.001 * i, 'H', 1000000 - i / 2, 1);
    }
    run_log(WORDS("p", "--log-timeless"), slow, 3);
    char *a = read_text("err");
    run_log(WORDS("p", "--log-timeless"), fast, 3);
    char *b = read_text("err");
    assert_string_equal(a, b);
    assert_null(strstr(a, " s\n"));
    assert_contains(a, "H ");
    free(a);
    free(b);
}

static void test_cli_log_json_has_every_event(void **state)
{
    (void)state;
    moirai_progress e[] = {event(0, 'H', 3000000, -1), event(0.5, ' ', -1, 1000000), event(1, 'A', 2000000, 1000000)};
    e[2].note = "a \"note\"";
    run_log(WORDS("p", "--log-json", "events"), e, 3);
    char *text = read_text("events");
    int n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++) {
        yyjson_doc *d = yyjson_read(line, strlen(line), 0);
        assert_non_null(d);
        yyjson_val *o = yyjson_doc_get_root(d);
        assert_true(yyjson_is_null(yyjson_obj_get(o, "makespan_ns")) == (n == 1));
        assert_true(yyjson_is_null(yyjson_obj_get(o, "lower_bound_ns")) == (n == 0));
        if (n == 2)
            assert_string_equal(yyjson_get_str(yyjson_obj_get(o, "note")), "a \"note\"");
        yyjson_doc_free(d);
    }
    assert_int_equal(n, 3);
    free(text);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

/* Silence is broken: how long nothing better was found, every second for the terminal, every 5 s in the log. */
static void test_cli_log_tells_how_long_nothing_came(void **state)
{
    (void)state;
    cli_context cli;
    cli_log *log;
    char text[256];
    assert_int_equal(fake_parse(&cli, WORDS("p", "--log")), 0);
    fflush(stderr);
    int keep = dup(STDERR_FILENO);
    assert_non_null(freopen("err", "w", stderr));
    assert_int_equal(cli_log_open(&log, &cli, &placer, &problem), 0);
    cli_log_tick(log, 0.5, text, sizeof text);
    assert_contains(text, "no plan yet");
    moirai_progress e = event(1, 'H', 3000000, 1000000);
    cli_log_event(log, &e);
    cli_log_tick(log, 4, text, sizeof text);
    assert_string_equal(text, "plan 3.000 ms, bound 1.000 ms, gap 66.67 %: no better plan in 3 s");
    cli_log_tick(log, 7, text, sizeof text); /* 6 s after the last line */
    cli_log_tick(log, 8, text, sizeof text);
    e = event(9, ' ', 3000000, 2000000); /* a better bound is no better plan */
    cli_log_event(log, &e);
    cli_log_tick(log, 9, text, sizeof text);
    assert_contains(text, "no better plan in 8 s");
    assert_int_equal(cli_log_close(log), 0);
    fflush(stderr);
    dup2(keep, STDERR_FILENO);
    close(keep);
    cli_free(&cli);
    char *err = read_text("err");
    assert_int_equal(lines_with(err, "no better plan in 6 s"), 1);
    assert_int_equal(lines_with(err, "no better plan in"), 1);
    free(err);
}

/* ---- bounds ---- */

static int find_seven(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    (void)p, (void)budget;
    *lower_ns = 7;
    return 0;
}

static int find_nothing(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    (void)p, (void)budget;
    *lower_ns = 99; /* what a failure leaves behind counts for nothing */
    return moirai_error(MOIRAI_ELIMIT, "HiGHS: model status 0");
}

/* One that fails is one line; the others stand. */
static void test_cli_bound_that_fails_is_one_line(void **state)
{
    (void)state;
    static const moirai_bound good = {.name = "good", .summary = "a bound", .find = find_seven};
    static const moirai_bound bad = {.name = "bad", .summary = "another", .find = find_nothing};
    cli_bound_found f[2];
    cli_context cli;
    moirai_budget o;
    moirai_budget_init(&o);
    assert_int_equal(fake_parse(&cli, WORDS("p")), 0);
    cli_bound_find(&f[0], &bad, &problem, &o);
    cli_bound_find(&f[1], &good, &problem, &o);
    assert_int_equal(cli_bounds_show(&cli, f, 2), 0);
    yyjson_mut_val *list = yyjson_mut_obj_get(cli.result, "bounds"), *first = yyjson_mut_arr_get(list, 0);
    assert_int_equal(yyjson_mut_arr_size(list), 2);
    assert_string_equal(yyjson_mut_get_str(yyjson_mut_obj_get(first, "error")), "HiGHS: model status 0");
    assert_true(yyjson_mut_is_null(yyjson_mut_obj_get(first, "lower_bound_ns")));
    assert_int_equal(yyjson_mut_get_sint(yyjson_mut_obj_get(cli.result, "lower_bound_ns")), 7);
    /* Nothing is left: that is a failure. */
    assert_int_equal(cli_bounds_show(&cli, f, 1), MOIRAI_ELIMIT);
    cli_free(&cli);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_cli_log_tells_how_long_nothing_came),
        IN_FOLDER(test_cli_bound_that_fails_is_one_line),
        IN_FOLDER(test_cli_log_shows_key_header_and_better_plans),
        IN_FOLDER(test_cli_log_is_silent_without_a_terminal),
        IN_FOLDER(test_cli_log_repeats_the_header_every_20_lines),
        IN_FOLDER(test_cli_log_without_news_is_a_line_every_5_s),
        IN_FOLDER(test_cli_log_ends_with_the_last_state),
        IN_FOLDER(test_cli_log_timeless_does_not_depend_on_the_clock),
        IN_FOLDER(test_cli_log_json_has_every_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
