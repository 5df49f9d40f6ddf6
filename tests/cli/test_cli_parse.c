/* The parser that every command shares. */
#include "support/check.h"
#include "support/fake_commands.h"

const cli_command *cli_command_find(const char *name)
{
    return strcmp(name, "fake") ? NULL : &fake_command;
}

static void parse_ok(cli_context *cli, char **words)
{
    int rc = fake_parse(cli, words);
    if (rc)
        fail_msg("%s", moirai_error_message());
}

static void refuse(const char *part, char **words)
{
    cli_context cli;
    assert_int_equal(fake_parse(&cli, words), MOIRAI_EUSAGE);
    if (!strstr(moirai_error_message(), part))
        fail_msg("'%s' is not in '%s'", part, moirai_error_message());
    cli_free(&cli);
}

static void test_cli_parse_takes_all_spellings(void **state)
{
    (void)state;
    static const struct {
        char *words[6];
    } spellings[] = {
        {{"a", "--colour", "red", NULL}},
        {{"--colour=red", "a", NULL}},
        {{"-c", "red", "a", NULL}},
        {{"-cred", "a", NULL}},
        {{"--colour", "red", "--", "a", NULL}},
        {{"-c", "green", "a", "-c", "red", NULL}},
    };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        cli_context cli;
        parse_ok(&cli, (char **)spellings[i].words);
        assert_string_equal(cli_text(&cli, "colour"), "red");
        assert_int_equal(cli.n_args, 1);
        assert_string_equal(cli_arg(&cli, 0), "a");
        assert_null(cli_arg(&cli, 1));
        cli_free(&cli);
    }
}

static void test_cli_parse_keeps_repeats_and_defaults(void **state)
{
    (void)state;
    cli_context cli;
    parse_ok(&cli, WORDS("a", "--tag", "x", "--tag=", "--tag", "--json"));
    assert_int_equal(cli_uses(&cli, "tag"), 3);
    assert_string_equal(cli_use(&cli, "tag", 0), "x");
    assert_string_equal(cli_use(&cli, "tag", 1), "");
    assert_string_equal(cli_use(&cli, "tag", 2), "--json");
    assert_false(cli.json);
    assert_string_equal(cli_text(&cli, "colour"), "green");
    assert_true(cli_real(&cli, "gap") == 0.01);
    assert_int_equal(cli_count(&cli, "seed"), 1);
    assert_true(cli_real(&cli, "time-limit") == 0);
    cli_free(&cli);
}

static void test_cli_parse_a_dash_is_an_argument_and_takes_stdout(void **state)
{
    (void)state;
    cli_context cli;
    parse_ok(&cli, WORDS("-", "-o", "-"));
    assert_string_equal(cli_arg(&cli, 0), "-");
    assert_true(cli.stdout_taken);
    cli_free(&cli);
    parse_ok(&cli, WORDS("--", "--json"));
    assert_string_equal(cli_arg(&cli, 0), "--json");
    assert_false(cli.json);
    cli_free(&cli);
}

static void test_cli_parse_refuses_what_makes_no_sense(void **state)
{
    (void)state;
    refuse("FIRST is missing", WORDS("--json"));
    refuse("'c' is one argument too many", WORDS("a", "b", "c"));
    refuse("not one of red|green", WORDS("a", "--colour", "blue"));
    refuse("needs C", WORDS("a", "--colour"));
    refuse("takes no value", WORDS("a", "--json=1"));
    refuse("unknown option '-z'", WORDS("a", "-z"));
    refuse("did you mean '--colour'?", WORDS("a", "--color", "red"));
    refuse("the value is empty", WORDS("a", "--output="));
    refuse("not a whole number", WORDS("a", "--seed", "1.5"));
    refuse("not a whole number", WORDS("a", "--seed", ""));
    refuse("not a number", WORDS("a", "--gap", "inf"));
    refuse("must be from 0 to 1", WORDS("a", "--gap", "1.5"));
}

static void test_cli_parse_suggests_only_what_is_near(void **state)
{
    (void)state;
    char near[16];
    assert_string_equal(cli_nearest(near, sizeof near, "plcae", "plan|place|check"), "place");
    assert_string_equal(cli_nearest(near, sizeof near, "chek", "plan|place|check"), "check");
    assert_string_equal(cli_nearest(near, sizeof near, "simul", "plan|simulate"), "simulate");
    assert_null(cli_nearest(near, sizeof near, "banana", "plan|place|check"));
}

static void test_cli_parse_numbers_for_people(void **state)
{
    (void)state;
    assert_string_equal(cli_human_ns(999).s, "999 ns");
    assert_string_equal(cli_human_ns(30000000).s, "30.000 ms");
    assert_string_equal(cli_human_ns(-1).s, "-");
    assert_string_equal(cli_human_count(50560).s, "50,560");
    assert_string_equal(cli_human_count(-1234567).s, "-1,234,567");
    assert_string_equal(cli_human_bytes(0).s, "0 B");
    assert_string_equal(cli_human_bytes(11000000000).s, "11.0 GB");
    assert_string_equal(cli_human_bytes(INT64_MAX).s, "9.22 EB");
    /* A gap is never shown smaller than it is. */
    assert_string_equal(cli_human_gap(0.00001).s, "0.01 %");
    assert_string_equal(cli_human_gap(0).s, "0.00 %");
    assert_string_equal(cli_human_gap(-1).s, "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_parse_takes_all_spellings),
        cmocka_unit_test(test_cli_parse_keeps_repeats_and_defaults),
        cmocka_unit_test(test_cli_parse_a_dash_is_an_argument_and_takes_stdout),
        cmocka_unit_test(test_cli_parse_refuses_what_makes_no_sense),
        cmocka_unit_test(test_cli_parse_suggests_only_what_is_near),
        cmocka_unit_test(test_cli_parse_numbers_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
