/* A table of one command, for tests of the framework without the real ones. Include in one file of a test. */
#ifndef MOIRAI_TEST_FAKE_COMMANDS_H
#define MOIRAI_TEST_FAKE_COMMANDS_H

#include "cli/steps.h"

static const moirai_argument fake_arguments[] = {
    {.name = "FIRST", .kind = MOIRAI_VALUE_FILE, .help = "a file"},
    {.name = "SECOND", .kind = MOIRAI_VALUE_FILE, .help = "another", .optional = true},
    {0},
};
static const moirai_option fake_options[] = {
    MOIRAI_OPTIONS_SEARCH,
    {.name = "colour", .letter = 'c', .argument = "C", .help = "a colour", .kind = MOIRAI_VALUE_CHOICE, .choices = "red|green",
     .standard = "green"},
    {.name = "tag", .argument = "T", .help = "a tag", .kind = MOIRAI_VALUE_TEXT, .repeated = true},
    MOIRAI_OPTION_OUTPUT("a file"),
    {0},
};
static const moirai_command fake_command = {
    .name = "fake", .summary = "stand in", .arguments = fake_arguments, .options = fake_options};

int moirai_command_count(void)
{
    return 1;
}

const moirai_command *moirai_command_at(int index)
{
    return index == 0 ? &fake_command : NULL;
}

const volatile int *moirai_cli_interrupt(void)
{
    static volatile int never;
    return &never;
}

/* Parses up to seven words, NULL at the end. */
static inline int fake_parse(moirai_cli *cli, char **words)
{
    int n = 0;
    while (words[n])
        n++;
    return moirai_cli_parse(cli, &fake_command, n, words);
}
#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})

#endif
