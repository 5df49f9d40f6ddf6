/* moirai plan: from a network's file to a checked plan, in one command. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#define BOUND_S 2.0 /* at most, for each bound on an expanded plan */

/* Everything on the way; freed in one place. */
typedef struct work {
    moirai_cluster *cluster;
    moirai_graph *graph, *coarse;
    moirai_problem *fine, *problem; /* problem: of the coarse graph */
    moirai_problem *unpinned;       /* what is planned, without the wishes, where there are any */
    moirai_plan *plan, *expanded;
    cli_many rate; /* --objective rate: `plan` is the last of these */
    cli_cut cut;
} work;

static void work_free(work *w)
{
    moirai_plan_free(w->expanded);
    if (!w->rate.n)
        moirai_plan_free(w->plan);
    cli_many_free(&w->rate);
    moirai_problem_free(w->problem);
    moirai_problem_free(w->fine);
    moirai_problem_free(w->unpinned);
    moirai_graph_free(w->coarse);
    moirai_graph_free(w->graph);
    moirai_cluster_free(w->cluster);
    cli_cut_free(&w->cut);
}

static int coarsen(work *w, cli_context *cli)
{
    moirai_rules *rules = NULL;
    int rc = moirai_rules_open(&rules, cli_text(cli, "rules"));
    cli_status_set("coarsening");
    rc = rc ? rc : moirai_coarsen(&w->coarse, w->graph, rules, NULL);
    moirai_rules_free(rules);
    if (rc)
        return rc;
    cli_say(cli, "coarsened %s operators to %s with the rules '%s'\n", cli_human_count(w->graph->n_ops).s,
            cli_human_count(w->coarse->n_ops).s, cli_text(cli, "rules"));
    yyjson_mut_obj_add_int(cli->doc, cli->result, "network_ops", w->graph->n_ops);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "coarse_ops", w->coarse->n_ops);
    return 0;
}

/* What was proven of the fused operators says nothing of their members, whose times add up to more or less: the quick
 * bounds are asked again. */
static int bound_expanded(work *w, cli_context *cli)
{
    static const char *const quick[] = {"critical-path", "load", "blocks"};
    moirai_budget budget;
    moirai_budget_init(&budget);
    budget.threads = (int)cli_count(cli, "threads");
    budget.time_limit_s = BOUND_S;
    budget.interrupt = cli_interrupt();
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++) {
        const moirai_bound *b = moirai_bound_find(quick[i]);
        int64_t lower = MOIRAI_UNKNOWN;
        if (b && !b->find(&lower, w->fine, &budget) && lower > w->expanded->lower_bound_ns)
            w->expanded->lower_bound_ns = lower;
    }
    return 0;
}

/* A plan of the original operators: the members of a fused operator run where it runs. */
static int expand(work *w, cli_context *cli)
{
    int64_t n_devices = w->cluster->n_devices;
    moirai_problem_options o = {.flow = w->problem->flow,
                                .congestion = w->problem->congestion,
                                .memory = w->problem->memory,
                                .cost_model = cli_text(cli, "cost"),
                                .tf32 = cli_has(cli, "tf32")};
    if (n_devices != w->problem->n_devices)
        return moirai_error(MOIRAI_EFAIL, "the problem has %d devices, the cluster %lld", w->problem->n_devices,
                            (long long)n_devices);
    cli_status_set("expanding the plan");
    cli_cut_costs(&o, cli);
    int rc = cli_runtime(&o.runtime, cli, w->graph);
    rc = rc ? rc : moirai_problem_new(&w->fine, w->graph, w->cluster, &o);
    rc = rc ? rc : cli_wishes(cli, w->fine, w->coarse);
    rc = rc ? rc : moirai_plan_expand(&w->expanded, w->fine, w->problem, w->coarse, w->plan);
    rc = rc ? rc : bound_expanded(w, cli);
    return rc ? rc : moirai_plan_check(w->fine, w->expanded, NULL, NULL);
}

static const char *verdict(char *text, size_t size, const moirai_problem *p, double speed_up, const cli_interval *sure)
{
    if (p->n_uncosted) /* cli_show_plan names them */
        snprintf(text, size, "what is gained is not known");
    else if (speed_up >= 1.005 && sure->known)
        snprintf(text, size, "the plan is %.2f times as fast (%.2f to %.2f)", speed_up, sure->low, sure->high);
    else if (speed_up >= 1.005)
        snprintf(text, size, "the plan is %.2f times as fast", speed_up);
    else if (speed_up >= 0.9995)
        snprintf(text, size, "splitting gains nothing");
    else
        snprintf(text, size, "splitting gains nothing: the plan is %.1f %% slower", 100 * (1 / speed_up - 1));
    return text;
}

static bool is_cut(const work *w)
{
    return w->cut.text && *w->cut.text;
}

/* The network before it was cut: one device alone would run it whole. */
static int without_cut(work *w, cli_context *cli)
{
    moirai_problem_options o;
    moirai_graph *coarse = NULL;
    moirai_rules *rules = NULL;
    int rc = moirai_rules_open(&rules, cli_text(cli, "rules"));
    rc = rc ? rc : moirai_coarsen(&coarse, w->cut.whole, rules, NULL);
    rc = rc ? rc : cli_problem_options(&o, cli, w->cut.whole);
    rc = rc ? rc : moirai_problem_new(&w->unpinned, coarse, w->cluster, &o);
    moirai_rules_free(rules);
    moirai_graph_free(coarse);
    return rc;
}

/* Pins bind the plan, not what it is compared with: the question is what a device alone would do. Where nothing is
 * pinned, that is the problem itself. */
static int without_wishes(work *w, cli_context *cli)
{
    const moirai_problem *p = w->expanded ? w->fine : w->problem;
    const moirai_graph *g = w->expanded ? w->graph : w->coarse;
    moirai_problem_options o = {.flow = p->flow,
                                .congestion = p->congestion,
                                .memory = p->memory,
                                .cost_model = cli_text(cli, "cost"),
                                .tf32 = cli_has(cli, "tf32")};
    if (is_cut(w))
        return without_cut(w, cli);
    if (!cli_uses(cli, "pin") && !cli_uses(cli, "forbid") && !cli_uses(cli, "together"))
        return 0;
    cli_cut_costs(&o, cli);
    int rc = cli_runtime(&o.runtime, cli, w->graph);
    return rc ? rc : moirai_problem_new(&w->unpinned, g, w->cluster, &o);
}

/* The verdict that users ask for first: is the cluster worth it? */
static void show_verdict(work *w, cli_context *cli)
{
    moirai_alone alone;
    const moirai_problem *p = w->unpinned ? w->unpinned : w->expanded ? w->fine : w->problem;
    const moirai_plan *plan = w->expanded ? w->expanded : w->plan;
    if (moirai_alone_find(&alone, p, plan)) {
        cli_print(cli, "single       no device can take the whole network: %s\n", moirai_error_message());
        yyjson_mut_obj_add_null(cli->doc, cli->result, "single_device");
        return;
    }
    char text[120], whole[80] = "";
    cli_interval sure = {0};
    if (!w->unpinned && !is_cut(w))
        cli_how_sure(&sure, p, plan, w->expanded ? w->graph : w->coarse, w->cluster);
    const char *name = p->n_ops ? p->device_name[alone.device] : "";
    double speed_up = alone.speed_up;
    if (fabs((double)alone.ns / (double)alone.ops_ns - 1) > 0.005)
        snprintf(whole, sizeof whole, ", as it was measured whole (%s by its operators)", cli_human_ns(alone.ops_ns).s);
    if (sure.known) { /* the plan was made for the predicted times: others mostly make it look worse */
        sure.low = speed_up < sure.low ? speed_up : sure.low;
        sure.high = speed_up > sure.high ? speed_up : sure.high;
    }
    cli_print(cli, "single       %s on the best single device, %s%s%s: %s\n", cli_human_ns(alone.ns).s, name, whole,
              is_cut(w)     ? ", whole"
              : w->unpinned ? ", if nothing were pinned"
                            : "",
              verdict(text, sizeof text, p, speed_up, &sure));
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "single_device", name);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "single_makespan_ns", alone.ns);
    if (*whole)
        yyjson_mut_obj_add_int(cli->doc, cli->result, "single_ops_ns", alone.ops_ns);
    if (p->n_uncosted)
        yyjson_mut_obj_add_null(cli->doc, cli->result, "speed_up");
    else
        yyjson_mut_obj_add_real(cli->doc, cli->result, "speed_up", speed_up);
    cli_tell_sure(cli, &sure, speed_up);
}

static int check_outputs(const cli_context *cli)
{
    static const char *const names[] = {"output",   "problem-out", "graph-out", "certificate",
                                        "log-json", "report",      "cut-out"};
    enum { N = sizeof names / sizeof *names };
    for (int i = 0; i < N; i++) {
        const char *path = cli_text(cli, names[i]);
        int rc = cli_writable(cli, path);
        if (rc)
            return rc;
        for (int j = 0; path && j < i; j++) {
            const char *other = cli_text(cli, names[j]);
            if (other && !strcmp(other, path))
                return moirai_error(MOIRAI_EUSAGE, "plan: --%s and --%s both write '%s'", names[j], names[i], path);
        }
    }
    return 0;
}

static int write_outputs(const work *w, const cli_context *cli)
{
    const char *plan_path = cli_text(cli, "output"), *problem_path = cli_text(cli, "problem-out"),
               *graph_path = cli_text(cli, "graph-out");
    const moirai_problem *p = w->expanded ? w->fine : w->problem;
    int rc = graph_path ? moirai_graph_write(w->expanded ? w->graph : w->coarse, graph_path) : 0;
    rc = rc ? rc : problem_path ? moirai_problem_write(p, problem_path) : 0;
    rc = rc ? rc : cli_cut_write(&w->cut, cli);
    return rc ? rc : plan_path ? moirai_plan_write(w->expanded ? w->expanded : w->plan, p, plan_path) : 0;
}

static int search(work *w, cli_context *cli)
{
    if (!cli_many_wanted(cli))
        return cli_search(&w->plan, cli, w->problem, NULL);
    int rc = cli_many_search(&w->rate, cli, w->problem, NULL);
    w->plan = rc ? NULL : w->rate.plan[w->rate.n - 1];
    return rc;
}

static int show(work *w, cli_context *cli)
{
    const moirai_problem *p = w->expanded ? w->fine : w->problem;
    const moirai_plan *plan = w->expanded ? w->expanded : w->plan;
    int rc = 0;
    cli_show_cut(&w->cut, cli);
    if (w->rate.n) {
        rc = cli_show_many(cli, p, &w->rate);
    } else {
        show_verdict(w, cli);
        cli_show_plan(cli, p, plan);
    }
    if (!rc && cli_has(cli, "picture"))
        cli_show_picture(cli, p, plan);
    return rc ? rc : w->rate.n ? 0 : cli_show_explained(cli, p, plan);
}

static int run(cli_context *cli)
{
    work w = {0};
    const moirai_placer *placer;
    int rc = cli_placer(&placer, cli);
    rc = rc ? rc : cli_many_check(cli);
    if (!rc && cli_many_wanted(cli) && cli_has(cli, "expand"))
        rc = moirai_error(MOIRAI_EUSAGE,
                          "plan: --expand and --objective rate: plans for many requests are not expanded; "
                          "--rules none plans the original operators");
    rc = rc ? rc : check_outputs(cli);
    rc = rc ? rc : cli_cluster(&w.cluster, cli);
    rc = rc ? rc : cli_network(&w.graph, cli, cli_arg(cli, 0));
    rc = rc ? rc : cli_cut_network(&w.cut, &w.graph, cli, w.cluster);
    rc = rc ? rc : coarsen(&w, cli);
    cli_status_set("making the problem");
    rc = rc ? rc : cli_problem(&w.problem, cli, w.coarse, w.cluster, NULL);
    rc = rc ? rc : search(&w, cli);
    rc = rc ? rc : moirai_plan_check(w.problem, w.plan, NULL, NULL);
    rc = rc ? rc : cli_has(cli, "expand") ? expand(&w, cli) : 0;
    rc = rc ? rc : without_wishes(&w, cli);
    rc = rc ? rc : write_outputs(&w, cli);
    cli_status_set("%s", "");
    rc = rc ? rc : show(&w, cli);
    work_free(&w);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "MODEL", .kind = CLI_VALUE_NETWORK, .help = "an ONNX file, a graph file, or a network of the zoo"},
    {0},
};
static const cli_option options[] = {
    CLI_OPTION_CLUSTER,
    {.name = "rules",
     .argument = "RULES",
     .standard = "onnxruntime",
     .kind = CLI_VALUE_RULES,
     .help = "fusion rules: eigen, onnxruntime, none, or a rule file"},
    CLI_OPTIONS_PROBLEM,
    CLI_OPTIONS_SEARCH,
    CLI_OPTIONS_RATE,
    CLI_OPTIONS_NETWORK,
    CLI_OPTIONS_SHARD,
    {.name = "expand",
     .kind = CLI_VALUE_FLAG,
     .help = "plan (and problem) of the original operators instead of the fused ones"},
    {.name = "problem-out",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "write the problem that the plan belongs to"},
    {.name = "graph-out",
     .argument = "FILE",
     .kind = CLI_VALUE_FILE,
     .help = "write the graph that the problem was made from"},
    CLI_OPTION_PICTURE,
    CLI_OPTION_REPORT,
    CLI_OPTION_OUTPUT("write the plan"),
    {0},
};
static const cli_example examples[] = {
    {"moirai plan model.onnx --cluster inter-server -o plan.json", "Place an ONNX network on the paper's testbed"},
    {"moirai plan model.onnx --cluster inter-server --report report.html", "The same, as a page to look at"},
    {"moirai plan model.onnx --cluster mine.json --split-operators auto --cut-out cut.onnx -o plan.json",
     "Operators are cut into pieces where that is faster: the plan is for cut.onnx"},
    {"moirai plan gpt3-330M --cluster '4x v100, 100Gbps 5us' --picture", "What would four V100 do?"},
    {"moirai plan model.onnx --cluster inter-server --objective rate --in-flight 8",
     "As many requests per second as can be"},
    {"moirai plan model.onnx --cluster mine.json --dim batch=8 --rules none --time-limit 10 --json", "For a script"},
    {0},
};
const cli_command cli_command_plan = {
    .name = "plan",
    .summary = "import, coarsen, cost, place and check in one command",
    .text =
        "The command that most users will type. It prints what the best single device would do, the plan's makespan, "
        "a proven bound, and the load and memory of every device.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
