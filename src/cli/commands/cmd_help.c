/* moirai help: the tables as text, man page, Markdown or bash completion. */
#include "cli/framework/cli.h"
#include "cli/commands/commands.h"

static int run(cli_context *cli)
{
    const char *name = cli_arg(cli, 0);
    cli->json = false; /* help has no numbers to hand over */
    if (cli_has(cli, "man")) {
        cli_help_man(stdout);
    } else if (cli_has(cli, "markdown")) {
        cli_help_markdown(stdout);
    } else if (cli_has(cli, "bash")) {
        cli_help_bash(stdout);
    } else if (name) {
        const cli_command *c = cli_command_find(name);
        if (!c)
            return moirai_error(MOIRAI_EUSAGE, "help: no command '%s': see 'moirai help'", name);
        cli_help_command(stdout, c);
    } else {
        cli_help_overview(stdout);
    }
    return 0;
}

static const cli_argument arguments[] = {
    {.name = "COMMAND", .kind = CLI_VALUE_COMMAND, .help = "the command to explain", .optional = true},
    {0},
};
static const cli_option options[] = {
    {.name = "man", .help = "the man page of all commands", .kind = CLI_VALUE_FLAG},
    {.name = "markdown", .help = "the page docs/commands.md", .kind = CLI_VALUE_FLAG},
    {.name = "bash", .help = "completion for bash", .kind = CLI_VALUE_FLAG},
    {0},
};
static const cli_example examples[] = {
    {"moirai help place", "Explain one command"},
    {"moirai help --man | man -l -", "Read the manual of this very build"},
    {0},
};
const cli_command cli_command_help = {
    .name = "help",
    .summary = "explain the commands",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
