/* moirai simulate: times from a plan's decisions alone. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

/* Devices as in the plan, order by longest remaining path. */
static int dispatch(moirai_plan **out, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_sim *sim = NULL;
    int rc = moirai_sim_new(&sim, p);
    if (!rc && moirai_sim_dispatch(sim, plan->op_device, NULL) < 0)
        rc = moirai_error(MOIRAI_EINPUT, "the plan puts an operator on a device that can't run it, or splits a group");
    rc = rc ? rc : moirai_sim_plan(out, sim);
    moirai_sim_free(sim);
    return rc;
}

/* A simulated plan keeps its author, and what was proven if that was of this very problem; what is plain to see holds
 * in any case. */
static int keep_origin(const cli_context *cli, const moirai_problem *p, moirai_plan *to, const moirai_plan *from)
{
    bool own = from->problem_digest == moirai_problem_digest(p);
    char *placer = strdup(from->placer ? from->placer : "");
    if (!placer)
        return moirai_error(MOIRAI_EFAIL, "out of memory");
    free(to->placer);
    to->placer = placer;
    to->seed = from->seed;
    to->generation_ns = from->generation_ns;
    int64_t path = moirai_bound_critical_path(p), load = moirai_bound_load(p);
    to->lower_bound_ns = path > load ? path : load;
    if (own && from->lower_bound_ns > to->lower_bound_ns)
        to->lower_bound_ns = from->lower_bound_ns;
    if (!own)
        cli_say(cli, "note: the plan was %s: its bound is not taken over\n",
                from->problem_digest ? "made for another problem" : "written without saying for which problem");
    return 0;
}

static void compare(cli_context *cli, const moirai_plan *before, const moirai_plan *after)
{
    int64_t gain = before->makespan_ns - after->makespan_ns;
    if (gain)
        cli_say(cli, "the plan says %s: simulated it is %s by %s\n", cli_human_ns(before->makespan_ns).s,
                gain > 0 ? "shorter" : "longer", cli_human_ns(gain > 0 ? gain : -gain).s);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "plan_makespan_ns", before->makespan_ns);
}

static int run(cli_context *cli)
{
    const char *output = cli_text(cli, "output");
    const char *problem_path = cli_arg(cli, 0), *plan_path = cli_arg(cli, 1);
    if (!strcmp(problem_path, "-") && !strcmp(plan_path, "-"))
        return moirai_error(MOIRAI_EUSAGE, "simulate: problem and plan can't both come from stdin");
    moirai_problem *p = NULL;
    moirai_plan *plan = NULL, *result = NULL;
    int rc = cli_writable(cli, output);
    rc = rc ? rc : cli_problem_read(&p, problem_path);
    rc = rc ? rc : moirai_plan_read(&plan, p, plan_path);
    rc = rc ? rc : cli_has(cli, "dispatch") ? dispatch(&result, p, plan) : moirai_plan_tighten(&result, p, plan);
    rc = rc ? rc : keep_origin(cli, p, result, plan);
    rc = rc ? rc : output ? moirai_plan_write(result, p, output) : 0;
    if (!rc) {
        compare(cli, plan, result);
        cli_show_plan(cli, p, result);
        if (cli_has(cli, "picture"))
            cli_show_picture(cli, p, result);
    }
    moirai_plan_free(result);
    moirai_plan_free(plan);
    moirai_problem_free(p);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "PROBLEM", .kind = CLI_VALUE_FILE, .help = "the problem file"},
    {.name = "PLAN", .kind = CLI_VALUE_FILE, .help = "the plan file"},
    {0},
};
static const cli_option options[] = {
    {.name = "dispatch", .kind = CLI_VALUE_FLAG, .help = "keep the devices only, order anew by longest remaining path"},
    CLI_OPTION_PICTURE,
    CLI_OPTION_OUTPUT("write the simulated plan"),
    {0},
};
static const cli_example examples[] = {
    {"moirai simulate problem.json plan.json --picture", "Makespan, device table and a picture"},
    {"moirai simulate other.json plan.json --dispatch", "The same devices under another problem's times"},
    {0},
};
const cli_command cli_command_simulate = {
    .name = "simulate",
    .summary = "run a plan's decisions through the simulator",
    .text = "Keeps the plan's devices and the order of everything, and starts each task as soon as the model allows: "
            "the result is never later than the plan.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
