/* moirai help: the tables as text, man page, Markdown or bash completion. */
#include "cli/cli.h"
#include "cli/commands.h"

static int run(moirai_cli *cli)
{
    const char *name = moirai_cli_arg(cli, 0);
    cli->json = false; /* help has no numbers to hand over */
    if (moirai_cli_has(cli, "man")) {
        moirai_help_man(stdout);
    } else if (moirai_cli_has(cli, "markdown")) {
        moirai_help_markdown(stdout);
    } else if (moirai_cli_has(cli, "bash")) {
        moirai_help_bash(stdout);
    } else if (name) {
        const moirai_command *c = moirai_command_find(name);
        if (!c)
            return moirai_error(MOIRAI_EUSAGE, "help: no command '%s': see 'moirai help'", name);
        moirai_help_command(stdout, c);
    } else {
        moirai_help_overview(stdout);
    }
    return 0;
}

static const moirai_argument arguments[] = {
    {.name = "COMMAND", .kind = MOIRAI_VALUE_COMMAND, .help = "the command to explain", .optional = true},
    {0},
};
static const moirai_option options[] = {
    {.name = "man", .help = "the man page of all commands", .kind = MOIRAI_VALUE_FLAG},
    {.name = "markdown", .help = "the page docs/commands.md", .kind = MOIRAI_VALUE_FLAG},
    {.name = "bash", .help = "completion for bash", .kind = MOIRAI_VALUE_FLAG},
    {0},
};
static const moirai_example examples[] = {
    {"moirai help place", "Explain one command"},
    {"moirai help --man | man -l -", "Read the manual of this very build"},
    {0},
};
const moirai_command moirai_command_help = {
    .name = "help",
    .summary = "explain the commands",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
