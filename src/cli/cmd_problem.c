/* moirai problem: a network meets a cluster, all numbers settled. */
#include "cli/commands.h"
#include "cli/steps.h"

static int run(moirai_cli *cli)
{
    const char *output = moirai_cli_text(cli, "output");
    moirai_cluster *c = NULL;
    moirai_graph *g = NULL;
    moirai_problem *p = NULL;
    int rc = moirai_cli_writable(cli, output);
    rc = rc ? rc : moirai_cli_cluster(&c, cli);
    rc = rc ? rc : moirai_cli_network(&g, cli, moirai_cli_arg(cli, 0));
    rc = rc ? rc : moirai_cli_problem(&p, cli, g, c, moirai_cli_text(cli, "name"));
    rc = rc ? rc : output ? moirai_problem_write(p, output) : 0;
    if (!rc)
        moirai_show_problem(cli, p);
    moirai_problem_free(p);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return rc;
}

static const moirai_argument arguments[] = {
    {.name = "GRAPH", .kind = MOIRAI_VALUE_NETWORK, .help = "a graph file, an ONNX file, or a network of the zoo"},
    {0},
};
static const moirai_option options[] = {
    MOIRAI_OPTION_CLUSTER,
    MOIRAI_OPTIONS_PROBLEM,
    MOIRAI_OPTIONS_NETWORK,
    {.name = "name", .argument = "NAME", .help = "name of the problem (default GRAPH-CLUSTER)", .kind = MOIRAI_VALUE_TEXT},
    MOIRAI_OPTION_OUTPUT("write it as a moirai-problem file"),
    {0},
};
static const moirai_example examples[] = {
    {"moirai problem gpt3-330M --cluster inter-server --flow edge -o problem.json", "As the paper counts transfers"},
    {"moirai problem gpt.json --cluster four.json --pin 'L0/*=A' -o problem.json", "Keep the first layer on device A"},
    {0},
};
const moirai_command moirai_command_problem = {
    .name = "problem",
    .summary = "settle all numbers of a placement: times, sizes, channels",
    .text = "Times come from the cost model; 'auto' takes measured times where the graph has them and the best "
            "estimate elsewhere. Patterns are shell patterns over operator names.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
