/* moirai import: another solver's answer as a plan. */
#include "cli/framework/cli.h"
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <string.h>
#include <yyjson.h>
#include <moirai/milp.h>

static void say_claim(const cli_context *cli, const moirai_milp_claim *c)
{
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "solver", c->solver[0] ? c->solver : "unknown");
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "claim", c->status);
    yyjson_mut_obj_add_bool(cli->doc, cli->result, "claims_optimal", c->optimal);
    if (c->has_objective && c->objective_ns >= 0)
        yyjson_mut_obj_add_sint(cli->doc, cli->result, "claimed_ns", c->objective_ns);
    cli_print(cli, "solver %s says: %s%s%s\n", c->solver[0] ? c->solver : "unknown",
              c->status[0] ? c->status : "nothing about its status", c->has_objective ? ", makespan " : "",
              c->has_objective ? cli_human_ns(c->objective_ns).s : "");
}

static void say_plan(const cli_context *cli, const moirai_plan *plan, const moirai_milp_claim *c)
{
    const char *status = moirai_plan_is_optimal(plan) ? "optimal" : "feasible", *verdict = moirai_plan_verdict(plan);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "status", status);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "verdict", verdict);
    if (plan->solver_bound_ns >= 0)
        yyjson_mut_obj_add_sint(cli->doc, cli->result, "solver_bound_ns", plan->solver_bound_ns);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "makespan_ns", plan->makespan_ns);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "lower_bound_ns", plan->lower_bound_ns);
    yyjson_mut_obj_add_real(cli->doc, cli->result, "gap", moirai_plan_gap(plan));
    cli_print(cli, "status %s, makespan %s, bound %s, gap %s\n", verdict, cli_human_ns(plan->makespan_ns).s,
              cli_human_ns(plan->lower_bound_ns).s, cli_human_gap(moirai_plan_gap(plan)).s);
    if (c->has_objective && c->objective_ns >= 0 && c->objective_ns < plan->makespan_ns)
        cli_say(cli, "the claimed makespan is not confirmed: simulated, these decisions take %s\n",
                cli_human_ns(plan->makespan_ns).s);
    else if (c->optimal && !moirai_plan_is_optimal(plan) && plan->solver_bound_ns < 0)
        cli_say(cli, "that it is optimal is the solver's word: --trust-bound writes it into the plan\n");
}

static int run(cli_context *cli)
{
    const char *path = cli_text(cli, "output"), *solution = cli_text(cli, "sol");
    moirai_problem *p = NULL;
    moirai_plan *plan = NULL;
    moirai_milp_claim claim;
    if (!solution)
        return moirai_error(MOIRAI_EUSAGE, "import: give the solution file with --sol");
    int rc = cli_writable(cli, path);
    rc = rc ? rc : cli_problem_read(&p, cli_arg(cli, 0));
    rc = rc ? rc : moirai_milp_import(&plan, p, solution, cli_has(cli, "trust-bound"), &claim);
    rc = rc ? rc : moirai_plan_check(p, plan, NULL, NULL);
    if (!rc) {
        say_claim(cli, &claim);
        say_plan(cli, plan, &claim);
    }
    if (!rc && path)
        rc = moirai_plan_write(plan, p, path);
    if (!rc && path)
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "output", path);
    moirai_plan_free(plan);
    moirai_problem_free(p);
    return rc;
}

static const cli_argument arguments[] = {
    {"PROBLEM", CLI_VALUE_FILE, "the problem file that was exported", false, false},
    {0},
};
static const cli_option options[] = {
    {.name = "sol",
     .argument = "FILE",
     .help = "solution file of HiGHS, CBC, Gurobi, SCIP or GLPK",
     .kind = CLI_VALUE_FILE},
    {.name = "trust-bound",
     .help = "write the file's claim of optimality into the plan, as its solver's word",
     .kind = CLI_VALUE_FLAG},
    CLI_OPTION_OUTPUT("write the plan here"),
    {0},
};
static const cli_example examples[] = {
    {"moirai import problem.json --sol model.sol -o plan.json", "Read a solver's answer, simulate and check it"},
    {0},
};
const cli_command cli_command_import = {
    .name = "import",
    .summary = "read another solver's answer as a plan",
    .text = "Devices and orders are taken from the solution file, times from the simulator, and the plan is checked. "
            "The file's "
            "claim of optimality is shown; the plan's bound is what moirai itself can prove quickly. "
            "--trust-bound writes the claim beside it, as the solver's word.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
