/* moirai: a table of commands. */
#include "cli/framework/cli.h"
#include "cli/commands/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which a newcomer meets them. */
static const rank_command *const commands[] = {
    &rank_command_plan,
    &rank_command_inspect,
    &rank_command_zoo,
    &rank_command_cluster,
    &rank_command_coarsen,
    &rank_command_problem,
    &rank_command_place,
    &rank_command_bound,
    &rank_command_check,
    &rank_command_prove,
    &rank_command_simulate,
    &rank_command_split,
    &rank_command_run,
    &rank_command_placers,
    &rank_command_export,
    &rank_command_import,
    &rank_command_fit,
    &rank_command_probe,
    &rank_command_profile,
    &rank_command_version,
    &rank_command_help,
};

static volatile int interrupted;

int rank_command_count(void)
{
    return (int)(sizeof commands / sizeof *commands);
}

const rank_command *rank_command_at(int index)
{
    return commands[index];
}

const rank_command *rank_command_find(const char *name)
{
    for (int i = 0; i < rank_command_count(); i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

const volatile int *cli_interrupt(void)
{
    return &interrupted;
}

/* The first Ctrl-C asks the search to stop and keep its best plan; the second one kills. */
static void on_interrupt(int signal_number)
{
    interrupted = 1;
    signal(signal_number, SIG_DFL);
}

static int complain(int result)
{
    fprintf(stderr, "moirai: %s\n", moirai_error_message());
    return -result;
}

static int unknown_command(const char *typed)
{
    return moirai_error(MOIRAI_EUSAGE, "no command '%s': %s", typed,
                        cli_hint(typed, CLI_VALUE_COMMAND, "see 'moirai help'").s);
}

/* With --json a failure is a result too: scripts read one place. */
static void print_json(cli_context *cli, int result)
{
    if (!cli->json || cli->stdout_taken)
        return;
    if (result) {
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "error", moirai_error_message());
        yyjson_mut_obj_add_int(cli->doc, cli->result, "exit_code", -result);
    }
    char *text = yyjson_mut_write(cli->doc, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL);
    printf("%s\n", text ? text : "{\"error\": \"out of memory\"}");
    free(text);
}

static int run_command(const rank_command *command, int argc, char **argv)
{
    cli_context cli;
    int result = cli_parse(&cli, command, argc, argv);
    if (!result && cli_has(&cli, "help")) {
        cli_help_command(stdout, command);
    } else {
        if (!result)
            result = command->run(&cli);
        print_json(&cli, result);
    }
    /* A full disk behind stdout is a failure that only the last flush shows. */
    if ((fflush(stdout) || ferror(stdout)) && !result)
        result = moirai_error(MOIRAI_EFAIL, "stdout: %s", strerror(errno));
    cli_free(&cli);
    return result ? complain(result) : 0;
}

int main(int argc, char **argv)
{
    signal(SIGINT, on_interrupt);
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error to report, not a death */
    if (argc < 2) {
        cli_help_overview(stderr);
        return -MOIRAI_EUSAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    else if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        name = "version";
    const rank_command *command = rank_command_find(name);
    if (!command)
        return complain(unknown_command(name));
    return run_command(command, argc - 2, argv + 2);
}
