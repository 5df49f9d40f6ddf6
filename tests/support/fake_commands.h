/* A table of one command, for tests of the framework without the real ones. Include in one file of a test. */
#ifndef MOIRAI_TEST_FAKE_COMMANDS_H
#define MOIRAI_TEST_FAKE_COMMANDS_H

#include "cli/steps/steps.h"

static const cli_argument fake_arguments[] = {
    {.name = "FIRST", .kind = CLI_VALUE_FILE, .help = "a file"},
    {.name = "SECOND", .kind = CLI_VALUE_FILE, .help = "another", .optional = true},
    {0},
};
static const cli_option fake_options[] = {
    CLI_OPTIONS_SEARCH,
    {.name = "colour",
     .letter = 'c',
     .argument = "C",
     .help = "a colour",
     .kind = CLI_VALUE_CHOICE,
     .choices = "red|green",
     .standard = "green"},
    {.name = "tag", .argument = "T", .help = "a tag", .kind = CLI_VALUE_TEXT, .repeated = true},
    CLI_OPTION_OUTPUT("a file"),
    {0},
};
static const cli_command fake_command = {
    .name = "fake", .summary = "stand in", .arguments = fake_arguments, .options = fake_options};

int cli_command_count(void)
{
    return 1;
}

const cli_command *cli_command_at(int index)
{
    return index == 0 ? &fake_command : NULL;
}

const moirai_interrupt *cli_interrupt(void)
{
    static const moirai_interrupt never;
    return &never;
}

/* Parses up to seven words, NULL at the end. */
static inline int fake_parse(cli_context *cli, char **words)
{
    int n = 0;
    while (words[n])
        n++;
    return cli_parse(cli, &fake_command, n, words);
}
#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})

#endif
