/* moirai compare: every placer on one problem, in one table. */
#include "cli/commands/commands.h"
#include "cli/steps/compare.h"
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>

/* ---- the problem: a file, or with --cluster a network ---- */

static int make_problem(moirai_problem **out, cli_context *cli)
{
    moirai_cluster *cluster = NULL;
    moirai_graph *graph = NULL, *coarse = NULL;
    moirai_rules *rules = NULL;
    int rc = cli_cluster(&cluster, cli);
    rc = rc ? rc : cli_network(&graph, cli, cli_arg(cli, 0));
    rc = rc ? rc : moirai_rules_open(&rules, cli_text(cli, "rules"));
    rc = rc ? rc : moirai_coarsen(&coarse, graph, rules, NULL);
    rc = rc ? rc : cli_problem(out, cli, coarse, cluster, NULL);
    moirai_rules_free(rules);
    moirai_graph_free(coarse);
    moirai_graph_free(graph);
    moirai_cluster_free(cluster);
    return rc;
}

static int open_problem(moirai_problem **out, cli_context *cli)
{
    const char *name = cli_arg(cli, 0);
    if (cli_has(cli, "cluster"))
        return make_problem(out, cli);
    if (moirai_zoo_find(name))
        return moirai_error(MOIRAI_EUSAGE, "compare: '%s' is a network: --cluster says where to place it", name);
    return moirai_problem_read(out, name);
}

/* ---- running ---- */

static void tell(const cli_context *cli, const cli_row *row)
{
    const cli_child_report *r = &row->report;
    if (r->result)
        cli_say(cli, " %s\n", cli_compare_status(row));
    else
        cli_say(cli, " %s, made in %s%s\n", cli_human_ns(r->makespan_ns).s, cli_human_ns(r->generation_ns).s,
                r->stopped ? ", stopped early" : "");
}

static int run_rows(const cli_context *cli, cli_comparison *c, const moirai_problem *p)
{
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.time_limit_s = cli_real(cli, "time-limit");
    o.budget.effort = cli_real(cli, "effort");
    o.budget.threads = (int)cli_count(cli, "threads");
    o.budget.seed = (uint64_t)cli_count(cli, "seed");
    o.budget.interrupt = cli_interrupt();
    o.gap = cli_real(cli, "gap");
    int rc = 0;
    for (int i = 0; i < c->n && !rc && !moirai_interrupt_raised(cli_interrupt()); i++) {
        cli_row *row = &c->row[i];
        cli_say(cli, "[%d/%d] %s ...", i + 1, c->n, row->title);
        o.setting = row->setting;
        o.n_settings = row->n_settings;
        rc = cli_child_place(&row->report, p, row->placer, &o);
        row->ran = !rc;
        /* A setting that makes no sense: say so at once. What a placer is not for (so many devices) is in its row. */
        if (!rc && row->report.result == MOIRAI_EUSAGE && row->n_settings > 0)
            rc = moirai_error(MOIRAI_EUSAGE, "%s", row->report.message);
        if (rc)
            cli_say(cli, "\n");
        else
            tell(cli, row);
    }
    if (!rc && moirai_interrupt_raised(cli_interrupt()))
        cli_say(cli, "interrupted: this is what was done\n");
    return rc;
}

static int run(cli_context *cli)
{
    moirai_problem *p = NULL;
    cli_comparison c = {0};
    bool csv = cli_has(cli, "csv");
    if (csv && cli->json)
        return moirai_error(MOIRAI_EUSAGE, "compare: --csv or --json, not both");
    int rc = cli_compare_parse(&c, cli_text(cli, "placers"));
    rc = rc ? rc : open_problem(&p, cli);
    rc = rc ? rc : run_rows(cli, &c, p);
    if (!rc) {
        cli_compare_judge(&c, p);
        cli_compare_show(cli, &c, p, csv);
        if (c.best < 0 && !moirai_interrupt_raised(cli_interrupt()))
            rc = moirai_error(MOIRAI_EINFEASIBLE, "compare: none of %d placers found a plan of '%s'", c.n, p->name);
    }
    cli_compare_free(&c);
    moirai_problem_free(p);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "PROBLEM|MODEL",
     .kind = CLI_VALUE_NETWORK,
     .help = "a problem file; with --cluster an ONNX file, a graph file, or a network of the zoo"},
    {0},
};
static const cli_option options[] = {
    CLI_OPTION_CLUSTER,
    {.name = "placers",
     .argument = "A,B|all",
     .kind = CLI_VALUE_TEXT,
     .standard = "all",
     .help = "which, in this order; NAME:SETTING=VALUE sets a parameter, and a placer may come twice"},
    {.name = "time-limit",
     .argument = "SECONDS",
     .kind = CLI_VALUE_REAL,
     .least = 1e-3,
     .most = 1e9,
     .standard = "60",
     .help = "of each placer that searches"},
    {.name = "gap",
     .argument = "G",
     .kind = CLI_VALUE_REAL,
     .least = 0,
     .most = 1,
     .standard = "0.01",
     .help = "a placer stops when its plan is proven to be within this share of the best"},
    CLI_OPTION_EFFORT("work to spend"),
    CLI_OPTION_THREADS("threads of each placer"),
    CLI_OPTION_SEED,
    {.name = "csv", .kind = CLI_VALUE_FLAG, .help = "the table as comma-separated values, in nanoseconds and bytes"},
    {.name = "rules",
     .argument = "RULES",
     .standard = "onnxruntime",
     .kind = CLI_VALUE_RULES,
     .help = "fusion rules for a network: eigen, onnxruntime, none, or a rule file"},
    CLI_OPTIONS_PROBLEM,
    CLI_OPTIONS_NETWORK,
    {0},
};
static const cli_example examples[] = {
    {"moirai compare gpt3-330M --cluster inter-server --time-limit 30", "Everything that there is, 30 s each at most"},
    {"moirai compare problem.json --placers heft,m-sct,getf,getf:mode=milp,moirai --csv > table.csv",
     "Some of them, for a spreadsheet"},
    {0},
};
const cli_command cli_command_compare = {
    .name = "compare",
    .summary = "run placers one after the other on one problem, and compare their plans",
    .text =
        "Each placer runs in a process of its own, so that the peak memory shown is its own (with the problem's) and a "
        "crash is a row. The gap of every row is to the best bound that any of them, or a plain bound, has proven. A "
        "placer that "
        "finds no plan has a row that says so; the command fails only if none finds one.\n\n"
        "Ctrl-C ends the placer at work, keeps its best plan and shows what is done; a second Ctrl-C ends the command.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
