/* moirai export: a plan for other tools to show, or the problem as a mixed-integer program for any solver. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/util.h"

/* A plan that bounds the time windows: the user's, or the best of the quick placers. Without any the file is larger. */
static int find_start(moirai_plan **out, const moirai_problem *p, const cli_context *cli)
{
    static const char *const quick[] = {"single", "heft", "m-etf"};
    const char *path = cli_text(cli, "start");
    *out = NULL;
    if (path) {
        int rc = moirai_plan_read(out, p, path);
        return rc ? rc : moirai_plan_check(p, *out, NULL, NULL);
    }
    for (size_t n = 0; n < sizeof quick / sizeof *quick; n++) {
        moirai_plan *plan;
        if (!moirai_placer_find(quick[n]) || moirai_place(&plan, p, quick[n], NULL))
            continue;
        if (*out && (*out)->makespan_ns <= plan->makespan_ns) {
            moirai_plan_free(plan);
            continue;
        }
        moirai_plan_free(*out);
        *out = plan;
    }
    return 0;
}

static void say_result(const cli_context *cli, const moirai_problem *p, const char *path, const moirai_plan *start,
                       const moirai_milp_size *size, int64_t unit_ns)
{
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "problem", p->name);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "output", path);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "rows", size->rows);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "columns", size->columns);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "binaries", size->binaries);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "nonzeros", size->nonzeros);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "unit_ns", unit_ns);
    cli_print(cli, "%s: %s rows, %s columns (%s binaries), %s coefficients; times in units of %s ns\n", path,
              cli_human_count(size->rows).s, cli_human_count(size->columns).s, cli_human_count(size->binaries).s,
              cli_human_count(size->nonzeros).s, cli_human_count(unit_ns).s);
    if (start) {
        yyjson_mut_obj_add_sint(cli->doc, cli->result, "start_makespan_ns", start->makespan_ns);
        cli_print(cli, "plans slower than %s (%s) are not in it\n", cli_human_ns(start->makespan_ns).s,
                  start->placer[0] ? start->placer : "given plan");
    }
    if (p->memory == MOIRAI_MEMORY_PEAK)
        cli_say(cli, "memory peak: the lives of tensors are not in it; import checks them\n");
}

#define NO_FORMAT \
    "export: say with --to what to write: trace, dot, svg, csv or device-map of a plan, lp or mps of a problem (with " \
    "-o)"

static int export_problem(cli_context *cli)
{
    const char *path = cli_text(cli, "output");
    moirai_problem *p = NULL;
    moirai_plan *start = NULL;
    moirai_formulation f;
    moirai_milp_size size;
    int64_t unit_ns;
    if (!path)
        return moirai_error(MOIRAI_EUSAGE, cli_has(cli, "to") ? "export: give the file to write with -o" : NO_FORMAT);
    int rc = moirai_formulation_parse(&f, cli_text(cli, "formulation"));
    rc = rc ? rc : cli_writable(cli, path);
    rc = rc ? rc : cli_problem_read(&p, cli_arg(cli, 0));
    if (rc && !p && !cli_has(cli, "to"))
        moirai_error_prefix(rc, "%s", NO_FORMAT);
    rc = rc ? rc : find_start(&start, p, cli);
    rc = rc ? rc
            : moirai_milp_export(p, f, cli_text(cli, "to"), start, cli_count(cli, "max-rows"), path, &size, &unit_ns);
    if (!rc)
        say_result(cli, p, path, start, &size, unit_ns);
    moirai_plan_free(start);
    moirai_problem_free(p);
    return rc;
}

/* ---- a plan ---- */

static int export_plan(cli_context *cli)
{
    const char *format = cli_text(cli, "to"), *path = cli_text(cli, "output"), *plan_path = cli_arg(cli, 0);
    moirai_export_options o = {.depth = (int)cli_count(cli, "depth")};
    moirai_problem *p = NULL;
    cli_read read = {0};
    char *text = NULL;
    size_t length = 0;
    cli->stdout_taken |= !path && !cli->json; /* the export itself is the result */
    int rc = cli_writable(cli, path);
    rc = rc ? rc : cli_problem_of(&p, cli, plan_path);
    if (!rc && p->partial && (!strcmp(format, "dot") || !strcmp(format, "device-map")))
        rc = moirai_error(MOIRAI_EUSAGE, "export: --to %s needs the plan's problem: give it with --problem", format);
    rc = rc ? rc : cli_read_plan(&read, p, plan_path, cli_text(cli, "timeline"));
    rc = rc ? rc : moirai_export(&text, &length, read.analysis, format, &o);
    if (!rc && (path || !cli->json))
        rc = util_file_write(path ? path : "-", text, length);
    if (!rc) {
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "problem", p->name);
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "format", format);
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "output", path ? path : "-");
        yyjson_mut_obj_add_uint(cli->doc, cli->result, "bytes", length);
        if (path)
            cli_print(cli, "%s: %s as %s\n", path, cli_human_bytes((int64_t)length).s, format);
    }
    free(text);
    cli_read_free(&read);
    moirai_problem_free(p);
    return rc;
}

/* An option of the other kind of export is a mistake, not something to pass over. */
static int refuse(const cli_context *cli, const char *const *names, const char *what)
{
    for (; *names; names++)
        if (cli_has(cli, *names))
            return moirai_error(MOIRAI_EUSAGE, "export: --%s is for %s, not for --to %s", *names, what,
                                cli_text(cli, "to"));
    return 0;
}

static int run(cli_context *cli)
{
    static const char *const of_problems[] = {"formulation", "start", "max-rows", NULL};
    static const char *const of_plans[] = {"problem", "timeline", "depth", NULL};
    bool plan = moirai_exporter_find(cli_text(cli, "to")) != NULL;
    int rc = plan ? refuse(cli, of_problems, "lp and mps") : refuse(cli, of_plans, "exports of a plan");
    return rc ? rc : plan ? export_plan(cli) : export_problem(cli);
}

static const cli_argument arguments[] = {
    {"FILE", CLI_VALUE_FILE, "a plan; with --to lp or mps a problem", false, false},
    {0},
};
static const cli_option options[] = {
    {.name = "to",
     .argument = "FORMAT",
     .help = "of a plan: trace (Perfetto), dot (Graphviz), svg, csv, device-map (Hugging Face); of a problem: lp, mps",
     .standard = "lp",
     .kind = CLI_VALUE_CHOICE,
     .choices = "trace|dot|svg|csv|device-map|lp|mps"},
    CLI_OPTION_PLAN_PROBLEM,
    {.name = "timeline",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "trace: what 'moirai run' measured, as further tracks"},
    {.name = "depth",
     .argument = "N",
     .kind = CLI_VALUE_COUNT,
     .standard = "0",
     .help = "device-map: modules of this many parts of a name must not be split; 0 is whole names"},
    {.name = "formulation",
     .argument = "NAME",
     .help = "lp, mps: tight, or the paper's as printed; both have the same optimum",
     .standard = "tight",
     .kind = CLI_VALUE_CHOICE,
     .choices = "tight|paper"},
    {.name = "start",
     .argument = "PLAN",
     .help = "lp, mps: a plan whose makespan bounds the time windows",
     .kind = CLI_VALUE_FILE},
    {.name = "max-rows",
     .argument = "COUNT",
     .help = "lp, mps: refuse larger models",
     .standard = "500000",
     .kind = CLI_VALUE_COUNT,
     .least = 1,
     .most = 1e9},
    CLI_OPTION_OUTPUT("write here; exports of a plan go to standard output otherwise"),
    {0},
};
static const cli_example examples[] = {
    {"moirai export plan.json --problem problem.json --to svg -o plan.svg", "A Gantt chart for a paper"},
    {"moirai export plan.json --problem problem.json --to trace -o trace.json",
     "For ui.perfetto.dev or chrome://tracing"},
    {"moirai export plan.json --problem problem.json --to dot | dot -Tpdf -o plan.pdf",
     "The network with a box per device"},
    {"moirai export plan.json --problem problem.json --to device-map", "Modules to devices, for Hugging Face"},
    {"moirai export problem.json --to lp -o model.lp", "Write the model for Gurobi, SCIP, CBC, HiGHS or GLPK"},
    {0},
};
const cli_command cli_command_export = {
    .name = "export",
    .summary = "write a plan for other tools, or a problem for other solvers",
    .text =
        "Of a plan: a trace with a track per device and port, a graph, a chart, a table, or a map from modules to "
        "devices. "
        "Of a problem (--to lp, --to mps): the mixed-integer program. "
        "The model has the paper's variables and equations: row names start with the equation's number. All numbers in "
        "it are whole. Solve it with any solver and bring the answer back with moirai import.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
