/* moirai report: plans as a page to look at. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

static const char *nth(const cli_context *cli, const char *option, int i)
{
    return i < cli_uses(cli, option) ? cli_use(cli, option, i) : NULL;
}

/* Labels that tell the plans apart: the user's, else the placer's, with the file's name where two are the same. */
static const char *label_of(const cli_context *cli, const cli_read *read, int n, int i)
{
    const char *given = nth(cli, "label", i), *placer = read[i].plan->placer;
    if (given)
        return given;
    for (int j = 0; j < n; j++)
        if (j != i && !strcmp(read[j].plan->placer, placer)) {
            const char *slash = strrchr(cli_arg(cli, i), '/');
            return slash ? slash + 1 : cli_arg(cli, i);
        }
    return placer;
}

static void tell(cli_context *cli, const cli_read *read, int n)
{
    yyjson_mut_val *list = yyjson_mut_arr(cli->doc);
    for (int i = 0; i < n; i++) {
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "label", label_of(cli, read, n, i));
        yyjson_mut_obj_add_int(cli->doc, o, "makespan_ns", read[i].plan->makespan_ns);
        if (n > 1)
            cli_print(cli, "%-24.24s %14s\n", label_of(cli, read, n, i), cli_human_ns(read[i].plan->makespan_ns).s);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "plans", list);
    cli_show_why(cli, read[0].analysis, 0, 3 + (read[0].analysis->over_device != MOIRAI_NONE));
}

static int check(const cli_context *cli)
{
    if (cli->n_args > 1 && !cli_has(cli, "problem"))
        return moirai_error(MOIRAI_EUSAGE, "report: several plans need their problem: give it with --problem");
    static const char *const lists[] = {"timeline", "log", "label"};
    for (size_t j = 0; j < sizeof lists / sizeof *lists; j++)
        if (cli_uses(cli, lists[j]) > cli->n_args)
            return moirai_error(MOIRAI_EUSAGE, "report: --%s is given %d times for %d plans", lists[j],
                                cli_uses(cli, lists[j]), cli->n_args);
    return cli_writable(cli, cli_text(cli, "output"));
}

static int run(cli_context *cli)
{
    int n = cli->n_args, rc = check(cli);
    moirai_problem *p = NULL;
    cli_read *read = calloc((size_t)n, sizeof *read);
    cli_page_plan *page = calloc((size_t)n, sizeof *page);
    if (!rc && (!read || !page))
        rc = moirai_error(MOIRAI_EFAIL, "out of memory");
    rc = rc ? rc : cli_problem_of(&p, cli, cli_arg(cli, 0));
    for (int i = 0; i < n && !rc; i++)
        rc = cli_read_plan(&read[i], p, cli_arg(cli, i), nth(cli, "timeline", i));
    for (int i = 0; i < n && !rc; i++)
        page[i] = (cli_page_plan){label_of(cli, read, n, i), read[i].analysis, nth(cli, "log", i)};
    rc = rc ? rc : cli_write_page(cli, cli_text(cli, "output"), page, n);
    if (!rc)
        tell(cli, read, n);
    for (int i = 0; read && i < n; i++)
        cli_read_free(&read[i]);
    free(page);
    free(read);
    moirai_problem_free(p);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "PLAN",
     .kind = CLI_VALUE_FILE,
     .help = "plans of one problem; the first is shown first",
     .repeated = true},
    {0},
};
static const cli_option options[] = {
    CLI_OPTION_PLAN_PROBLEM,
    {.name = "timeline",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .repeated = true,
     .help = "what 'moirai run' measured; the first belongs to the first plan, and so on"},
    {.name = "log",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .repeated = true,
     .help = "log of the search (--log-json); the first belongs to the first plan, and so on"},
    {.name = "label",
     .argument = "NAME",
     .kind = CLI_VALUE_TEXT,
     .repeated = true,
     .help = "name of a plan (default: its placer)"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "write the page",
     .standard = "report.html",
     .kind = CLI_VALUE_FILE},
    CLI_OPTION_FORCE,
    {0},
};
static const cli_example examples[] = {
    {"moirai report plan.json --problem problem.json -o report.html",
     "A page with timeline, critical path, memory and network"},
    {"moirai report plan.json --problem problem.json --timeline plan.measured.json -o run.html",
     "Planned above measured"},
    {"moirai report plan.json heft.json single.json --problem problem.json -o compare.html",
     "Three plans side by side"},
    {0},
};
const cli_command cli_command_report = {
    .name = "report",
    .summary = "show plans on a page to look at",
    .text = "One file that opens in any browser and asks for nothing else: the timeline of every device and its ports, "
            "what the "
            "critical path is made of, memory against its limit, the network by layers, the search, several plans side "
            "by side. "
            "Without the problem it shows the timeline only.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
