/* Runs a placer for the user: options, parameters, log, Ctrl-C. */
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

int cli_placer(const moirai_placer **out, const cli_context *cli)
{
    const char *name = cli_text(cli, "placer");
    if (!name)
        name = moirai_placer_find("moirai") ? "moirai" : "heft";
    *out = moirai_placer_find(name);
    if (*out)
        return 0;
    return moirai_error(MOIRAI_EUSAGE, "%s: no placer '%s': %s", cli->command->name, name,
                        cli_hint(name, CLI_VALUE_PLACER, "'moirai placers' lists them").s);
}

int cli_search_writable(const cli_context *cli)
{
    int rc = cli_writable(cli, cli_text(cli, "certificate"));
    return rc ? rc : cli_writable(cli, cli_text(cli, "log-json"));
}

/* --set NAME=VALUE, cut in place in copies. */
static int read_settings(moirai_setting *setting, char **copy, int *n, const cli_context *cli)
{
    for (int i = 0; i < cli_uses(cli, "set"); i++) {
        char *text = strdup(cli_use(cli, "set", i));
        if (!text)
            return moirai_error(MOIRAI_EFAIL, "out of memory");
        copy[(*n)++] = text;
        char *equals = strchr(text, '=');
        if (!equals || equals == text)
            return moirai_error(MOIRAI_EUSAGE, "%s: --set '%s': write NAME=VALUE", cli->command->name, text);
        *equals = '\0';
        setting[i] = (moirai_setting){text, equals + 1};
    }
    return 0;
}

#define USUAL_LIMIT_S 20

static int place_logged(moirai_plan **out, cli_context *cli, const moirai_problem *p, const moirai_placer *placer,
                        moirai_place_options *o)
{
    cli_log *log;
    int rc = cli_log_open(&log, cli, placer, p);
    if (rc)
        return rc;
    o->budget.progress = cli_log_event;
    o->budget.progress_data = log;
    rc = moirai_place(out, p, placer->name, o);
    int log_rc = cli_log_close(log);
    if (!rc && (cli_has(cli, "log") || cli_has(cli, "log-timeless")))
        cli_log_steps(*out, !cli_has(cli, "log-timeless"));
    if (!rc && moirai_interrupt_raised(cli_interrupt()))
        cli_say(cli, "interrupted: this is the best plan so far\n");
    if (!rc && log_rc) /* the plan is worth more than its log */
        cli_say(cli, "warning: %s\n", moirai_error_message());
    return rc;
}

double cli_time_limit_s(const cli_context *cli)
{
    if (cli_has(cli, "time-limit"))
        return cli_real(cli, "time-limit");
    return cli_has(cli, "effort") ? 0 : USUAL_LIMIT_S;
}

int cli_search(moirai_plan **out, cli_context *cli, const moirai_problem *p, const moirai_plan *start)
{
    const moirai_placer *placer;
    int rc = cli_placer(&placer, cli), n = 0;
    if (rc)
        return rc;
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.seed = (uint64_t)cli_count(cli, "seed");
    o.budget.time_limit_s = cli_time_limit_s(cli);
    if (o.budget.time_limit_s > 0 && cli->spent_s > 0)
        o.budget.time_limit_s = UTIL_MAX(o.budget.time_limit_s - cli->spent_s, 0.1);
    o.gap = cli_real(cli, "gap");
    o.budget.effort = cli_real(cli, "effort");
    o.budget.threads = (int)cli_count(cli, "threads");
    o.start = start;
    o.budget.interrupt = cli_interrupt();
    o.certificate_path = cli_text(cli, "certificate");
    size_t most = (size_t)cli_uses(cli, "set") + 1;
    moirai_setting *setting = calloc(most, sizeof *setting);
    char **copy = calloc(most, sizeof *copy);
    rc = setting && copy ? read_settings(setting, copy, &n, cli) : moirai_error(MOIRAI_EFAIL, "out of memory");
    o.setting = setting;
    o.n_settings = n;
    rc = rc ? rc : place_logged(out, cli, p, placer, &o);
    for (int i = 0; i < n; i++)
        free(copy[i]);
    free(copy);
    free(setting);
    return rc;
}
