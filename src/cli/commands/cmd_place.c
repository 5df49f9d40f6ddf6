/* moirai place: a plan for a problem. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <string.h>

static int run(cli_context *cli)
{
    const char *output = cli_text(cli, "output"), *start_path = cli_text(cli, "start");
    const moirai_placer *placer;
    moirai_problem *p = NULL;
    moirai_plan *start = NULL, *plan = NULL;
    if (start_path && !strcmp(start_path, "-") && !strcmp(cli_arg(cli, 0), "-"))
        return moirai_error(MOIRAI_EUSAGE, "place: problem and start can't both come from stdin");
    int rc = cli_placer(&placer, cli);
    rc = rc ? rc : cli_writable(cli, output);
    rc = rc ? rc : cli_search_writable(cli);
    rc = rc ? rc : cli_writable(cli, cli_text(cli, "report"));
    rc = rc ? rc : cli_problem_read(&p, cli_arg(cli, 0));
    rc = rc ? rc : start_path ? moirai_plan_read(&start, p, start_path) : 0;
    rc = rc ? rc : cli_search(&plan, cli, p, start);
    rc = rc ? rc : output ? moirai_plan_write(plan, p, output) : 0;
    if (!rc) {
        cli_show_plan(cli, p, plan);
        if (cli_has(cli, "picture"))
            cli_show_picture(cli, p, plan);
        rc = cli_show_explained(cli, p, plan);
    }
    moirai_plan_free(plan);
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
