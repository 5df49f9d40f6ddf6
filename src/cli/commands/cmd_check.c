/* moirai check: does a plan obey every rule of the model? */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <string.h>
#include <yyjson.h>

typedef struct findings {
    cli_context *cli;
    yyjson_mut_val *list;
    int64_t n;
    bool foreign; /* the plan says that it is another problem's */
    char first[300];
} findings;

static void report(void *data, const char *line)
{
    findings *f = data;
    if (!f->foreign)
        cli_print(f->cli, "%s\n", line);
    else if (!f->n)
        snprintf(f->first, sizeof f->first, "%s", line);
    f->n++;
    yyjson_mut_arr_add_strcpy(f->cli->doc, f->list, line);
}

/* Every rule that a plan of another problem breaks says the same: that it is one. */
static int say_broken(const findings *f, int rc, const moirai_problem *p, const moirai_plan *plan, const char *path)
{
    if (f->foreign)
        return moirai_error(rc,
                            "%s: a plan of another problem: it was made for '%.80s' with other operators, times or "
                            "devices than '%.80s' has, and breaks %lld of its rules; the first: %s",
                            path, plan->problem, p->name, (long long)f->n, f->first);
    return moirai_error(rc, "%s: the plan breaks %lld rule%s", path, (long long)f->n, f->n == 1 ? "" : "s");
}

/* A plan may obey the rules and not fit: memory static does not count tensors. */
static int warn(cli_context *cli, const moirai_problem *p, const moirai_plan *plan)
{
    moirai_analysis *a;
    int rc = moirai_analysis_new(&a, p, plan, NULL);
    if (rc)
        return rc;
    cli_show_over(cli, a);
    moirai_analysis_free(a);
    return 0;
}

static void show_rate(cli_context *cli, const moirai_rate *r)
{
    cli_print(cli, "ok: with %d request%s in flight and %d cop%s a period of %s\n", r->in_flight,
              r->in_flight == 1 ? "" : "s", r->n_copies, r->n_copies == 1 ? "y" : "ies", cli_human_ns(r->period_ns).s);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "in_flight", r->in_flight);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "period_ns", r->period_ns);
}

static int run(cli_context *cli)
{
    const char *problem_path = cli_arg(cli, 0), *plan_path = cli_arg(cli, 1);
    if (!strcmp(problem_path, "-") && !strcmp(plan_path, "-"))
        return moirai_error(MOIRAI_EUSAGE, "check: problem and plan can't both come from stdin");
    findings f = {.cli = cli, .list = yyjson_mut_arr(cli->doc)};
    moirai_problem *p = NULL;
    moirai_plan *plan = NULL;
    int rc = cli_problem_read(&p, problem_path);
    rc = rc ? rc : moirai_plan_read(&plan, p, plan_path);
    if (!rc) {
        f.foreign = plan->problem_digest && plan->problem_digest != moirai_problem_digest(p);
        rc = moirai_plan_check(p, plan, report, &f);
        rc = rc && f.n ? rc : moirai_rate_check(p, plan, report, &f);
        yyjson_mut_obj_add_bool(cli->doc, cli->result, "valid", !rc);
        yyjson_mut_obj_add_int(cli->doc, cli->result, "makespan_ns", plan->makespan_ns);
        yyjson_mut_obj_add_val(cli->doc, cli->result, "violations", f.list);
        if (rc && f.n)
            say_broken(&f, rc, p, plan, plan_path);
        else if (!rc)
            cli_print(cli, "ok: %s operators, %s transfers, makespan %s\n", cli_human_count(plan->n_ops).s,
                      cli_human_count(plan->n_transfers).s, cli_human_ns(plan->makespan_ns).s);
        if (!rc && plan->rate)
            show_rate(cli, plan->rate);
        rc = rc ? rc : warn(cli, p, plan);
    }
    moirai_plan_free(plan);
    moirai_problem_free(p);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "PROBLEM", .kind = CLI_VALUE_FILE, .help = "the problem file"},
    {.name = "PLAN", .kind = CLI_VALUE_FILE, .help = "the plan file"},
    {0},
};
static const cli_example examples[] = {
    {"moirai check problem.json plan.json", "Every violation is a line; exit code 0 means that there is none"},
    {0},
};
const cli_command cli_command_check = {
    .name = "check",
    .summary = "check a plan against every rule of the model",
    .text = "Written apart from the simulator that makes plans: times, order, devices, transfers, congestion, memory. "
            "Of a plan "
            "for many requests also its copies, their memory together, and the period.",
    .arguments = arguments,
    .examples = examples,
    .run = run,
};
