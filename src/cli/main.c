/* moirai: a table of commands. */
#include "cli/framework/cli.h"
#include "cli/commands/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <yyjson.h>

#include "util/stop.h"

/* In the order in which a newcomer meets them. */
static const cli_command *const commands[] = {
    &cli_command_plan,    &cli_command_inspect, &cli_command_zoo,    &cli_command_cluster,  &cli_command_coarsen,
    &cli_command_problem, &cli_command_place,   &cli_command_report, &cli_command_explain,  &cli_command_compare,
    &cli_command_bound,   &cli_command_check,   &cli_command_prove,  &cli_command_simulate, &cli_command_shard,
    &cli_command_split,   &cli_command_tune,    &cli_command_run,    &cli_command_serve,    &cli_command_placers,
    &cli_command_export,  &cli_command_import,  &cli_command_fit,    &cli_command_probe,    &cli_command_profile,
    &cli_command_bench,   &cli_command_version, &cli_command_help,
};

static moirai_interrupt interrupted;

int cli_command_count(void)
{
    return (int)(sizeof commands / sizeof *commands);
}

const cli_command *cli_command_at(int index)
{
    return commands[index];
}

const cli_command *cli_command_find(const char *name)
{
    for (int i = 0; i < cli_command_count(); i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

const moirai_interrupt *cli_interrupt(void)
{
    return &interrupted;
}

/* The first signal asks the search to stop and keep its best plan, and what runs to end and tidy up; the second kills.
 * Two within a second are one: `timeout` and some shells signal a command and then its group, to which it belongs. */
static void on_interrupt(int signal_number)
{
    static atomic_llong first_ns;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long now_ns = 1000000000ll * now.tv_sec + now.tv_nsec, none = 0;
    if (atomic_compare_exchange_strong(&first_ns, &none, now_ns)) {
        moirai_interrupt_raise(&interrupted);
    } else if (now_ns - none > 1000000000ll) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

static void catch_signals(void)
{
    util_file_obey(&interrupted);
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    if (signal(SIGHUP, on_interrupt) == SIG_IGN) /* nohup */
        signal(SIGHUP, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error to report, not a death */
}

static int complain(int rc)
{
    const char *message = moirai_error_message(); /* what the placer of that name says has the prefix already */
    fprintf(stderr, "%s%s\n", strncmp(message, "moirai: ", 8) ? "moirai: " : "", message);
    return -rc;
}

static int unknown_command(const char *typed)
{
    return moirai_error(MOIRAI_EUSAGE, "no command '%s': %s", typed,
                        cli_hint(typed, CLI_VALUE_COMMAND, "see 'moirai help'").s);
}

static bool asks_json(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], "--json"))
            return true;
    return false;
}

/* With --json a failure is a result too: scripts read one place. */
static void print_json(cli_context *cli, int rc)
{
    if (!cli->json || cli->stdout_taken)
        return;
    if (rc) {
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "error", moirai_error_message());
        yyjson_mut_obj_add_int(cli->doc, cli->result, "exit_code", -rc);
    }
    char *text = yyjson_mut_write(cli->doc, YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_ESCAPE_UNICODE, NULL);
    printf("%s\n", text ? text : "{\"error\": \"out of memory\"}");
    free(text);
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    cli_context cli;
    int rc = cli_parse(&cli, command, argc, argv);
    if (!rc && cli_has(&cli, "help")) {
        cli_help_command(stdout, command);
    } else {
        cli_status_open(cli.quiet);
        rc = rc ? rc : command->run(&cli);
        cli_status_close();
        print_json(&cli, rc);
    }
    /* A full disk behind stdout is a failure that only the last flush shows. */
    if ((fflush(stdout) || ferror(stdout)) && !rc)
        rc = moirai_error(MOIRAI_EFAIL, "stdout: %s", strerror(errno));
    cli_free(&cli);
    return rc ? complain(rc) : 0;
}

int main(int argc, char **argv)
{
    catch_signals();
    if (argc < 2) {
        cli_help_overview(stderr);
        return -MOIRAI_EUSAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    else if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        name = "version";
    const cli_command *command = cli_command_find(name);
    if (!command) {
        int rc = unknown_command(name);
        cli_context cli = {.json = asks_json(argc, argv), .doc = yyjson_mut_doc_new(NULL)};
        yyjson_mut_doc_set_root(cli.doc, cli.result = yyjson_mut_obj(cli.doc));
        print_json(&cli, rc);
        yyjson_mut_doc_free(cli.doc);
        return complain(rc);
    }
    return run_command(command, argc - 2, argv + 2);
}
