/* The search for the best rate, for the user: options, log, Ctrl-C. */
#include "cli/steps/steps.h"

#include <string.h>

bool cli_many_wanted(const cli_context *cli)
{
    return !strcmp(cli_text(cli, "objective"), "rate");
}

int cli_many_check(const cli_context *cli)
{
    static const char *const own[] = {"in-flight", "latency-limit", "copies", "kind", "curve"};
    const char *command = cli->command->name, *placer = cli_text(cli, "placer");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!cli_many_wanted(cli) && cli_has(cli, own[i]))
            return moirai_error(MOIRAI_EUSAGE, "%s: --%s is for --objective rate", command, own[i]);
    if (!cli_many_wanted(cli))
        return 0;
    if (placer && strcmp(placer, "moirai"))
        return moirai_error(MOIRAI_EUSAGE, "%s: --objective rate has a search of its own, not --placer '%s'", command,
                            placer);
    if (cli_uses(cli, "set"))
        return moirai_error(MOIRAI_EUSAGE, "%s: --objective rate has no parameters to --set", command);
    return 0;
}

void cli_many_free(cli_many *r)
{
    for (int i = 0; i < r->n; i++)
        moirai_plan_free(r->plan[i]);
    r->n = 0;
    moirai_rate_figures_clear(&r->figures);
}

static int search(cli_many *out, cli_context *cli, const moirai_problem *p, const moirai_rate_options *o)
{
    if (cli_has(cli, "curve"))
        return moirai_rate_curve(out->plan, &out->n, p, o);
    int rc = moirai_rate_place(&out->plan[0], p, o);
    out->n = rc ? 0 : 1;
    return rc;
}

int cli_many_search(cli_many *out, cli_context *cli, const moirai_problem *p, const moirai_plan *start)
{
    moirai_rate_options o;
    moirai_rate_options_init(&o);
    o.budget.seed = (uint64_t)cli_count(cli, "seed");
    o.budget.time_limit_s = cli_time_limit_s(cli);
    o.budget.effort = cli_real(cli, "effort");
    o.budget.threads = (int)cli_count(cli, "threads");
    o.budget.interrupt = cli_interrupt();
    o.gap = cli_real(cli, "gap");
    o.in_flight = (int32_t)cli_count(cli, "in-flight");
    o.latency_limit_ns = (int64_t)(cli_real(cli, "latency-limit") * 1e6);
    o.copies = (int32_t)cli_count(cli, "copies");
    o.kind = strcmp(cli_text(cli, "kind"), "any") ? cli_text(cli, "kind") : NULL;
    o.start = start;
    o.certificate_path = cli_text(cli, "certificate");
    o.figures = &out->figures;
    const moirai_placer named = {.name = "rate", .letters = moirai_rate_letters()};
    cli_log *log;
    out->n = 0;
    int rc = cli_log_open(&log, cli, &named, p);
    if (rc)
        return rc;
    o.budget.progress = cli_log_event;
    o.budget.progress_data = log;
    rc = search(out, cli, p, &o);
    for (int i = 0; i < out->n; i++)
        out->asked[i] = i + 1 < out->n ? 1 << i : o.in_flight > 0 ? o.in_flight : 2 * p->n_devices;
    int log_rc = cli_log_close(log);
    if (!rc && moirai_interrupt_raised(cli_interrupt()))
        cli_say(cli, "interrupted: this is the best plan so far\n");
    if (!rc && log_rc) /* the plan is worth more than its log */
        cli_say(cli, "warning: %s\n", moirai_error_message());
    return rc;
}
