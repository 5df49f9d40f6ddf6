/* moirai problem: a network meets a cluster, all numbers settled. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

static int run(cli_context *cli)
{
    const char *output = cli_text(cli, "output");
    moirai_cluster *c = NULL;
    moirai_graph *g = NULL;
    moirai_problem *p = NULL;
    int rc = cli_writable(cli, output);
    rc = rc ? rc : cli_cluster(&c, cli);
    rc = rc ? rc : cli_network(&g, cli, cli_arg(cli, 0));
    rc = rc ? rc : cli_problem(&p, cli, g, c, cli_text(cli, "name"));
    rc = rc ? rc : output ? moirai_problem_write(p, output) : 0;
    if (!rc)
        cli_show_problem(cli, p);
    moirai_problem_free(p);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "GRAPH", .kind = CLI_VALUE_NETWORK, .help = "a graph file, an ONNX file, or a network of the zoo"},
    {0},
};
static const cli_option options[] = {
    CLI_OPTION_CLUSTER,
    CLI_OPTIONS_PROBLEM,
    CLI_OPTIONS_NETWORK,
    {.name = "name", .argument = "NAME", .help = "name of the problem (default GRAPH-CLUSTER)", .kind = CLI_VALUE_TEXT},
    CLI_OPTION_OUTPUT("write it as a moirai-problem file"),
    {0},
};
static const cli_example examples[] = {
    {"moirai problem gpt3-330M --cluster inter-server --flow edge -o problem.json", "As the paper counts transfers"},
    {"moirai problem gpt.json --cluster four.json --pin 'L0/*=A' -o problem.json", "Keep the first layer on device A"},
    {0},
};
const cli_command cli_command_problem = {
    .name = "problem",
    .summary = "settle all numbers of a placement: times, sizes, channels",
    .text = "Times come from the cost model; 'auto' takes measured times where the graph has them and the best "
            "estimate elsewhere. Patterns are shell patterns over operator names.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
