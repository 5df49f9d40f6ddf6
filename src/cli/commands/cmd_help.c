/* moirai help: the tables as text, man page, Markdown or bash completion. */
#include <yyjson.h>

#include "cli/framework/cli.h"
#include "cli/commands/commands.h"

/* For programs that ask what there is: names and summaries; of one command its text, too. */
static void list(cli_context *cli, const cli_command *only)
{
    yyjson_mut_val *commands = yyjson_mut_obj_add_arr(cli->doc, cli->result, "commands");
    for (int i = 0; i < cli_command_count(); i++) {
        const cli_command *c = cli_command_at(i);
        if (only && c != only)
            continue;
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, commands);
        yyjson_mut_obj_add_str(cli->doc, o, "name", c->name);
        yyjson_mut_obj_add_str(cli->doc, o, "summary", c->summary);
        if (only && c->text)
            yyjson_mut_obj_add_str(cli->doc, o, "text", c->text);
    }
}

static int run(cli_context *cli)
{
    const char *name = cli_arg(cli, 0);
    if (cli->json && !cli_has(cli, "man") && !cli_has(cli, "markdown") && !cli_has(cli, "bash")) {
        const cli_command *only = name ? cli_command_find(name) : NULL;
        if (name && !only)
            return moirai_error(MOIRAI_EUSAGE, "help: no command '%s': see 'moirai help'", name);
        list(cli, only);
        return 0;
    }
    cli->json = false; /* pages are text */
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
