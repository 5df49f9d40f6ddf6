/* moirai place: a plan for a problem. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <string.h>

/* --objective rate */
static int run_rate(cli_context *cli, const moirai_problem *p, const moirai_plan *start)
{
    const char *output = cli_text(cli, "output");
    cli_many all = {0};
    int rc = cli_many_search(&all, cli, p, start);
    rc = rc ? rc : output ? moirai_plan_write(all.plan[all.n - 1], p, output) : 0;
    rc = rc ? rc : cli_show_many(cli, p, &all);
    if (!rc && cli_has(cli, "picture"))
        cli_show_picture(cli, p, all.plan[all.n - 1]);
    cli_many_free(&all);
    return rc;
}

static int run_latency(cli_context *cli, const moirai_problem *p, const moirai_plan *start)
{
    const char *output = cli_text(cli, "output");
    moirai_plan *plan = NULL;
    int rc = cli_search(&plan, cli, p, start);
    rc = rc ? rc : output ? moirai_plan_write(plan, p, output) : 0;
    if (!rc) {
        cli_show_plan(cli, p, plan);
        if (cli_has(cli, "picture"))
            cli_show_picture(cli, p, plan);
        rc = cli_show_explained(cli, p, plan);
    }
    moirai_plan_free(plan);
    return rc;
}

static int run(cli_context *cli)
{
    const char *output = cli_text(cli, "output"), *start_path = cli_text(cli, "start");
    const moirai_placer *placer;
    moirai_problem *p = NULL;
    moirai_plan *start = NULL;
    if (start_path && !strcmp(start_path, "-") && !strcmp(cli_arg(cli, 0), "-"))
        return moirai_error(MOIRAI_EUSAGE, "place: problem and start can't both come from stdin");
    int rc = cli_placer(&placer, cli);
    rc = rc ? rc : cli_many_check(cli);
    rc = rc ? rc : cli_writable(cli, output);
    rc = rc ? rc : cli_search_writable(cli);
    rc = rc ? rc : cli_writable(cli, cli_text(cli, "report"));
    rc = rc ? rc : cli_problem_read(&p, cli_arg(cli, 0));
    rc = rc ? rc : start_path ? moirai_plan_read(&start, p, start_path) : 0;
    rc = rc ? rc : cli_many_wanted(cli) ? run_rate(cli, p, start) : run_latency(cli, p, start);
    moirai_plan_free(start);
    moirai_problem_free(p);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "PROBLEM", .kind = CLI_VALUE_FILE, .help = "a problem file"},
    {0},
};
static const cli_option options[] = {
    CLI_OPTIONS_SEARCH,
    CLI_OPTIONS_RATE,
    {.name = "start", .argument = "PLAN", .help = "begin from this plan", .kind = CLI_VALUE_FILE},
    CLI_OPTION_PICTURE,
    CLI_OPTION_REPORT,
    CLI_OPTION_OUTPUT("write the plan"),
    {0},
};
static const cli_example examples[] = {
    {"moirai place problem.json --placer heft -o plan.json", "A plan in a moment"},
    {"moirai place problem.json --time-limit 60 --gap 0.01 -o plan.json",
     "Search until proven within 1 %, for a minute at most"},
    {"moirai place problem.json --objective rate --in-flight 8 -o plan.json", "The most requests per second"},
    {"moirai problem gpt3-tiny --cluster inter-server -q -o - | moirai place - -o plan.json", "Without a problem file"},
    {0},
};
const cli_command cli_command_place = {
    .name = "place",
    .summary = "find a device and a start for every operator",
    .text = "The plan is simulated in whole nanoseconds and checked before it is written. Ctrl-C ends the search and "
            "keeps the best plan; a second Ctrl-C ends the command.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
