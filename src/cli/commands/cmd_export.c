/* moirai export: the placement problem as a mixed-integer program for any solver. */
#include "cli/framework/cli.h"
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <stdio.h>
#include <string.h>
#include <moirai/milp.h>

/* A plan that bounds the time windows: the user's, or the best of the quick placers. Without any the file is larger. */
static int find_start(moirai_plan **out, const moirai_problem *p, const cli_context *cli)
{
    static const char *const quick[] = {"single", "heft", "m-etf"};
    const char *path = cli_text(cli, "start");
    *out = NULL;
    if (path) {
        int result = moirai_plan_read(out, p, path);
        return result ? result : moirai_plan_check(p, *out, NULL, NULL);
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
                     cli_human_count(size->rows).s, cli_human_count(size->columns).s,
                     cli_human_count(size->binaries).s, cli_human_count(size->nonzeros).s,
                     cli_human_count(unit_ns).s);
    if (start) {
        yyjson_mut_obj_add_sint(cli->doc, cli->result, "start_makespan_ns", start->makespan_ns);
        cli_print(cli, "plans slower than %s (%s) are not in it\n", cli_human_ns(start->makespan_ns).s,
                         start->placer[0] ? start->placer : "given plan");
    }
    if (p->memory == MOIRAI_MEMORY_PEAK)
        cli_say(cli, "memory peak: the lives of tensors are not in it; import checks them\n");
}

static int run(cli_context *cli)
{
    const char *path = cli_text(cli, "output");
    moirai_problem *p = NULL;
    moirai_plan *start = NULL;
    moirai_formulation f;
    moirai_milp_size size;
    int64_t unit_ns;
    if (!path)
        return moirai_error(MOIRAI_EUSAGE, "export: give the file to write with -o");
    int result = moirai_formulation_parse(&f, cli_text(cli, "formulation"));
    if (!result)
        result = cli_writable(cli, path);
    if (!result)
        result = cli_problem_read(&p, cli_arg(cli, 0));
    if (!result)
        result = find_start(&start, p, cli);
    if (!result)
        result = moirai_milp_export(p, f, cli_text(cli, "to"), start, cli_count(cli, "max-rows"), path,
                                    &size, &unit_ns);
    if (!result)
        say_result(cli, p, path, start, &size, unit_ns);
    moirai_plan_free(start);
    moirai_problem_free(p);
    return result;
}

static const cli_argument arguments[] = {
    {"PROBLEM", CLI_VALUE_FILE, "a problem file", false, false},
    {0},
};
static const cli_option options[] = {
    {.name = "to",
     .argument = "FORMAT",
     .help = "CPLEX LP or free MPS",
     .standard = "lp",
     .kind = CLI_VALUE_CHOICE,
     .choices = "lp|mps"},
    {.name = "formulation",
     .argument = "NAME",
     .help = "tight, or the paper's as printed; both have the same optimum",
     .standard = "tight",
     .kind = CLI_VALUE_CHOICE,
     .choices = "tight|paper"},
    {.name = "start",
     .argument = "PLAN",
     .help = "a plan whose makespan bounds the time windows",
     .kind = CLI_VALUE_FILE},
    {.name = "max-rows",
     .argument = "COUNT",
     .help = "refuse larger models",
     .standard = "500000",
     .kind = CLI_VALUE_COUNT,
     .least = 1,
     .most = 1e9},
    CLI_OPTION_OUTPUT("write the model here"),
    {0},
};
static const cli_example examples[] = {
    {"moirai export problem.json --to lp -o model.lp", "Write the model for Gurobi, SCIP, CBC, HiGHS or GLPK"},
    {0},
};
const cli_command cli_command_export = {
    .name = "export",
    .summary = "write the problem as a mixed-integer program",
    .text =
        "The model has the paper's variables and equations: row names start with the equation's number. All numbers in "
        "it are whole. Solve it with any solver and bring the answer back with moirai import.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
