/* moirai bound: what no plan can beat, by every method. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>

static bool asked_for(const cli_context *cli, const char *name)
{
    int n = cli_uses(cli, "only");
    for (int i = 0; i < n; i++)
        if (!strcmp(cli_use(cli, "only", i), name))
            return true;
    return n == 0;
}

static int check_names(const cli_context *cli)
{
    for (int i = 0; i < cli_uses(cli, "only"); i++)
        if (!moirai_bound_find(cli_use(cli, "only", i)))
            return moirai_error(MOIRAI_EUSAGE, "bound: no bound '%s'; 'moirai bound PROBLEM' shows all",
                                cli_use(cli, "only", i));
    return 0;
}

static int run(cli_context *cli)
{
    moirai_problem *p = NULL;
    int n = moirai_bound_count(), found = 0;
    cli_bound_found *f = calloc((size_t)n, sizeof *f);
    int rc = f ? check_names(cli) : moirai_error(MOIRAI_EFAIL, "out of memory");
    rc = rc ? rc : cli_problem_read(&p, cli_arg(cli, 0));
    moirai_budget o;
    moirai_budget_init(&o);
    o.effort = cli_real(cli, "effort");
    o.time_limit_s = cli_time_limit_s(cli);
    o.threads = (int)cli_count(cli, "threads");
    o.interrupt = cli_interrupt();
    for (int i = 0; !rc && i < n && !moirai_interrupt_raised(cli_interrupt()); i++)
        if (asked_for(cli, moirai_bound_at(i)->name)) {
            cli_status_set("bound '%s'", moirai_bound_at(i)->name);
            cli_bound_find(&f[found++], moirai_bound_at(i), p, &o);
        }
    rc = rc ? rc : cli_bounds_show(cli, f, found);
    free(f);
    moirai_problem_free(p);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "PROBLEM", .kind = CLI_VALUE_FILE, .help = "a problem file"},
    {0},
};
static const cli_option options[] = {
    {.name = "only",
     .argument = "NAME",
     .kind = CLI_VALUE_TEXT,
     .repeated = true,
     .help = "this bound alone, or several"},
    CLI_OPTION_EFFORT("work to spend"),
    {.name = "time-limit",
     .argument = "SECONDS",
     .kind = CLI_VALUE_LIMIT,
     .least = 1e-3,
     .most = 1e9,
     .help = "stop each bound after this time with what it has proven; 'none': when its effort is used up "
             "(default 20, or none where --effort is given)"},
    CLI_OPTION_THREADS("threads to use"),
    {0},
};
static const cli_example examples[] = {
    {"moirai bound problem.json", "All bounds; the best is marked *"},
    {"moirai bound problem.json --only load --only blocks", "Two of them"},
    {0},
};
const cli_command cli_command_bound = {
    .name = "bound",
    .summary = "prove what no plan can beat, by every method",
    .text = "Every bound holds by itself for every plan of the problem, in whole nanoseconds.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
