/* One table per command: the help, the man page, the page in docs and the completion that come from it, word by word.
 */
#include "support/check.h"
#include "support/command.h"
#include "cli/framework/cli.h"

static const cli_argument fry_arguments[] = {
    {.name = "EGG", .kind = CLI_VALUE_NETWORK, .help = "what to fry"},
    {.name = "MORE", .kind = CLI_VALUE_FILE, .help = "whatever goes with it", .optional = true, .repeated = true},
    {0},
};
static const cli_option fry_options[] = {
    {.name = "side",
     .letter = 's',
     .argument = "S",
     .help = "which side up",
     .kind = CLI_VALUE_CHOICE,
     .choices = "sunny|over",
     .standard = "sunny"},
    {.name = "spice", .argument = "NAME", .help = "add a spice", .kind = CLI_VALUE_TEXT, .repeated = true},
    {.name = "lid", .help = "with the lid on", .kind = CLI_VALUE_FLAG},
    {0},
};
static const cli_example fry_examples[] = {{"moirai fry egg --lid", "Fry an egg"}, {0}};
static const cli_command commands[] = {
    {.name = "fry",
     .summary = "fry an egg",
     .text = "Heat is needed.\n\n.So is a pan.",
     .arguments = fry_arguments,
     .options = fry_options,
     .examples = fry_examples},
    {.name = "wash", .summary = "wash up"},
};

int cli_command_count(void)
{
    return 2;
}

const cli_command *cli_command_at(int index)
{
    return index < 2 ? &commands[index] : NULL;
}

/* What `write` writes; free() it. */
static char *written(void (*write)(FILE *out))
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    write(out);
    fclose(out);
    return text;
}

static void fry_help(FILE *out)
{
    cli_help_command(out, &commands[0]);
}

static void test_cli_help_of_a_command(void **state)
{
    (void)state;
    char *text = written(fry_help);
    assert_string_equal(text, "moirai fry: fry an egg\n\n"
                              "usage: moirai fry EGG [MORE...] [options]\n\n"
                              "Heat is needed.\n\n.So is a pan.\n\n"
                              "arguments:\n"
                              "  EGG                        what to fry\n"
                              "  MORE                       whatever goes with it\n\n"
                              "options:\n"
                              "  -s, --side S               which side up: sunny|over (default sunny)\n"
                              "  --spice NAME               add a spice (may be given several times)\n"
                              "  --lid                      with the lid on\n"
                              "  --json                     print the result as JSON\n"
                              "  -q, --quiet                say nothing on stderr but errors\n"
                              "  -h, --help                 show this help\n\n"
                              "examples:\n"
                              "  moirai fry egg --lid\n"
                              "      Fry an egg\n");
    free(text);
}

static void test_cli_help_overview(void **state)
{
    (void)state;
    char *text = written(cli_help_overview);
    assert_non_null(strstr(text, "\n  fry        fry an egg\n  wash       wash up\n"));
    free(text);
}

/* No line of help is longer than 100 columns, however long the sentence. */
static void long_help(FILE *out)
{
    static const cli_option options[] = {
        {.name = "a-very-long-name-of-an-option",
         .argument = "VALUE",
         .kind = CLI_VALUE_TEXT,
         .help = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
                 "seventeen eighteen "
                 "nineteen twenty twenty-one twenty-two twenty-three twenty-four twenty-five"},
        {0},
    };
    static const cli_command command = {.name = "talk", .summary = "talk", .options = options};
    cli_help_command(out, &command);
}

static void test_cli_help_fills_lines(void **state)
{
    (void)state;
    char *text = written(long_help);
    int lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++)
        assert_true(strlen(line) <= 101);
    assert_true(lines >= 6);
    free(text);
}

static void test_cli_help_as_a_man_page(void **state)
{
    (void)state;
    char *text = written(cli_help_man);
    assert_contains(text, ".TH MOIRAI 1");
    assert_contains(text, ".B \\-s, \\-\\-side S\nwhich side up: sunny|over; default sunny.\n");
    assert_contains(text, ".B \\-\\-spice NAME\nadd a spice; may be given several times.\n");
    assert_contains(text,
                    "Heat is needed.\n.PP\n\\&.So is a pan."); /* a line that begins with a dot is no command of roff */
    assert_contains(text, "Fry an egg:\n.PP\n.RS\n.nf\nmoirai fry egg \\-\\-lid\n.fi\n.RE\n");
    assert_contains(text, ".TP\n.B 4\ninfeasible");
    free(text);
}

static void test_cli_help_as_a_page(void **state)
{
    (void)state;
    char *text = written(cli_help_markdown);
    assert_contains(text,
                    "\n## moirai fry\n\n    moirai fry EGG [MORE...] [options]\n\nFry an egg.\n\nHeat is needed.");
    assert_contains(text, "| `EGG` | what to fry |\n| `MORE` | whatever goes with it |\n");
    assert_contains(text, "| `-s, --side S` | which side up: sunny\\|over | sunny |\n");
    assert_contains(text, "| `--spice NAME` | add a spice; may be given several times |  |\n");
    assert_contains(text, "\nFry an egg:\n\n    moirai fry egg --lid\n");
    assert_contains(text, "\n## moirai wash\n\n    moirai wash [options]\n\nWash up.\n");
    assert_contains(text, "| 6 | verification failed");
    free(text);
}

/* Asks bash what it would offer after these words; the answers on one line. */
static void offers(const char *words, const char *expected)
{
    char line[512];
    snprintf(line, sizeof line,
             "bash -c 'source completion; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _moirai; echo "
             "\"${COMPREPLY[*]}\"'",
             words);
    assert_int_equal(shell("%s", line), 0);
    char *end = strchr(shell_out, '\n');
    assert_non_null(end);
    *end = '\0';
    assert_string_equal(shell_out, expected);
}

static void test_cli_help_as_completion(void **state)
{
    (void)state;
    char *text = written(cli_help_bash);
    write_text("completion", text);
    free(text);
    offers("moirai f", "fry");
    offers("moirai \"\"", "fry wash --help --version");
    offers("moirai fry --side \"\"", "sunny over");
    offers("moirai fry -s o", "over");
    offers("moirai fry --s", "--side --spice");
    offers("moirai fry --q", "--quiet");
    offers("moirai fry gpt3-t", "gpt3-tiny"); /* an argument of the kind network */
    offers("moirai wash --j", "--json");
}

/* ---- words ---- */

static void test_cli_words_of_every_kind(void **state)
{
    (void)state;
    static const struct {
        cli_value_kind kind;
        const char *word;
    } list[] = {
        {CLI_VALUE_COMMAND, "fry|wash"}, {CLI_VALUE_NETWORK, "gpt3-tiny"}, {CLI_VALUE_CLUSTER, "inter-server"},
        {CLI_VALUE_PLACER, "heft"},      {CLI_VALUE_COST, "roofline"},     {CLI_VALUE_RULES, "eigen|onnxruntime|none"},
    };
    char buffer[4096];
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        assert_contains(cli_help_words(buffer, sizeof buffer, list[i].kind, NULL), list[i].word);
    assert_string_equal(cli_help_words(buffer, sizeof buffer, CLI_VALUE_CHOICE, "a|b"), "a|b");
    assert_string_equal(cli_help_words(buffer, sizeof buffer, CLI_VALUE_TEXT, NULL), "");
    assert_string_equal(cli_help_words(buffer, 6, CLI_VALUE_COMMAND, NULL), "fry"); /* what fits */
}

static void test_cli_words_near_by(void **state)
{
    (void)state;
    assert_string_equal(cli_hint("fyr", CLI_VALUE_COMMAND, "none").s, "did you mean 'fry'?");
    assert_string_equal(cli_hint("gpt3-tny", CLI_VALUE_NETWORK, "none").s, "did you mean 'gpt3-tiny'?");
    assert_string_equal(cli_hint("elephant", CLI_VALUE_COMMAND, "none").s, "none");
    bool flag = true;
    assert_true(cli_is_setting("formulation", &flag) && !flag);
    assert_false(cli_is_setting("colour", &flag));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_help_of_a_command),
        cmocka_unit_test(test_cli_help_overview),
        cmocka_unit_test(test_cli_help_fills_lines),
        cmocka_unit_test(test_cli_help_as_a_man_page),
        cmocka_unit_test(test_cli_help_as_a_page),
        cmocka_unit_test_setup_teardown(test_cli_help_as_completion, enter_folder, leave_folder),
        cmocka_unit_test(test_cli_words_of_every_kind),
        cmocka_unit_test(test_cli_words_near_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
