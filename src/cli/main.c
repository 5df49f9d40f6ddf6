/* moirai: a table of commands. */
#include "cli/cli.h"
#include "cli/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which a newcomer meets them. */
static const moirai_command *const commands[] = {
    &moirai_command_plan,
    &moirai_command_inspect,
    &moirai_command_zoo,
    &moirai_command_cluster,
    &moirai_command_coarsen,
    &moirai_command_problem,
    &moirai_command_place,
    &moirai_command_report,
    &moirai_command_explain,
    &moirai_command_bound,
    &moirai_command_check,
    &moirai_command_prove,
    &moirai_command_simulate,
    &moirai_command_split,
    &moirai_command_run,
    &moirai_command_placers,
    &moirai_command_export,
    &moirai_command_import,
    &moirai_command_fit,
    &moirai_command_probe,
    &moirai_command_profile,
    &moirai_command_version,
    &moirai_command_help,
};

static volatile int interrupted;

int moirai_command_count(void)
{
    return (int)(sizeof commands / sizeof *commands);
}

const moirai_command *moirai_command_at(int index)
{
    return commands[index];
}

const moirai_command *moirai_command_find(const char *name)
{
    for (int i = 0; i < moirai_command_count(); i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

const volatile int *moirai_cli_interrupt(void)
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
                        moirai_cli_hint(typed, MOIRAI_VALUE_COMMAND, "see 'moirai help'").s);
}

/* With --json a failure is a result too: scripts read one place. */
static void print_json(moirai_cli *cli, int result)
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

static int run_command(const moirai_command *command, int argc, char **argv)
{
    moirai_cli cli;
    int result = moirai_cli_parse(&cli, command, argc, argv);
    if (!result && moirai_cli_has(&cli, "help")) {
        moirai_help_command(stdout, command);
    } else {
        if (!result)
            result = command->run(&cli);
        print_json(&cli, result);
    }
    /* A full disk behind stdout is a failure that only the last flush shows. */
    if ((fflush(stdout) || ferror(stdout)) && !result)
        result = moirai_error(MOIRAI_EFAIL, "stdout: %s", strerror(errno));
    moirai_cli_free(&cli);
    return result ? complain(result) : 0;
}

int main(int argc, char **argv)
{
    signal(SIGINT, on_interrupt);
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error to report, not a death */
    if (argc < 2) {
        moirai_help_overview(stderr);
        return -MOIRAI_EUSAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    else if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        name = "version";
    const moirai_command *command = moirai_command_find(name);
    if (!command)
        return complain(unknown_command(name));
    return run_command(command, argc - 2, argv + 2);
}
