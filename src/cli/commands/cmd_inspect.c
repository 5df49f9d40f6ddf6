/* moirai inspect: what a network is made of, before any cluster is in sight. */
#include "cli/framework/cli.h"
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>
#include <moirai/stats.h>

/* Written by cli_network for ONNX files, which alone know which weights are shared and which are numbers. */
static int64_t parameters(const cli_context *cli, const moirai_graph *g, const moirai_graph_stats *s)
{
    yyjson_mut_val *onnx = yyjson_mut_obj_get(cli->result, "onnx");
    yyjson_mut_val *count = onnx ? yyjson_mut_obj_get(onnx, "parameters") : NULL;
    return count ? (int64_t)yyjson_mut_get_sint(count) : s->weight_bytes / (g->element_bytes ? g->element_bytes : 4);
}

static void say_types(const cli_context *cli, const moirai_type_stats *type, int32_t n)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "types");
    cli_print(cli, "\n%-28s %10s %14s %12s %12s\n", "type", "operators", "arithmetic", "weights", "results");
    for (int32_t i = 0; i < n; i++) {
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "type", type[i].type);
        yyjson_mut_obj_add_int(cli->doc, o, "operators", type[i].n_ops);
        yyjson_mut_obj_add_int(cli->doc, o, "unknown_flops", type[i].n_unknown_flops);
        yyjson_mut_obj_add_sint(cli->doc, o, "flops", type[i].flops);
        yyjson_mut_obj_add_sint(cli->doc, o, "traffic_bytes", type[i].traffic_bytes);
        yyjson_mut_obj_add_sint(cli->doc, o, "weight_bytes", type[i].weight_bytes);
        yyjson_mut_obj_add_sint(cli->doc, o, "activation_bytes", type[i].activation_bytes);
        bool unknown = type[i].n_unknown_flops == type[i].n_ops;
        cli_print(cli, "%-28s %10s %14s %12s %12s\n", type[i].type, cli_human_count(type[i].n_ops).s,
                  unknown ? "?" : cli_human_flops((double)type[i].flops).s, cli_human_bytes(type[i].weight_bytes).s,
                  cli_human_bytes(type[i].activation_bytes).s);
    }
}

static const char *text_in(yyjson_mut_val *object, const char *key)
{
    const char *text = yyjson_mut_get_str(yyjson_mut_obj_get(object, key));
    return text ? text : "";
}

/* As cli_network has found them in an ONNX file. */
static void say_inputs(const cli_context *cli)
{
    yyjson_mut_val *onnx = yyjson_mut_obj_get(cli->result, "onnx"), *in;
    yyjson_mut_val *list = onnx ? yyjson_mut_obj_get(onnx, "inputs") : NULL;
    size_t i, n = 0;
    if (list)
        yyjson_mut_arr_foreach(list, i, n, in) {
            cli_print(cli, "%-14s %s: %s %s\n",
                      i        ? ""
                      : n == 1 ? "input"
                               : "inputs",
                      text_in(in, "name"), text_in(in, "type"), text_in(in, "shape"));
        }
    int64_t all = onnx ? yyjson_mut_get_sint(yyjson_mut_obj_get(onnx, "n_inputs")) : 0;
    if (all > (int64_t)n)
        cli_print(cli, "%-14s and %s more\n", "", cli_human_count(all - (int64_t)n).s);
}

static void say_stats(const cli_context *cli, const moirai_graph *g, const moirai_graph_stats *s)
{
    int64_t count = parameters(cli, g, s);
    cli_print(cli, "%s\n", g->name);
    cli_print(cli, "operators      %s of %d types, %s edges\n", cli_human_count(g->n_ops).s, s->n_types,
              cli_human_count(s->n_edges).s);
    say_inputs(cli);
    cli_print(cli, "parameters     %s, weights %s\n", cli_human_count(count).s, cli_human_bytes(s->weight_bytes).s);
    cli_print(cli, "arithmetic     %s, traffic %s\n", cli_human_flops((double)s->flops).s,
              cli_human_bytes(s->traffic_bytes).s);
    if (s->n_unknown_flops)
        cli_print(cli, "               not known for %s operators\n", cli_human_count(s->n_unknown_flops).s);
    cli_print(cli, "activations    %s in all, %s at most at once\n", cli_human_bytes(s->activation_bytes).s,
              cli_human_bytes(s->peak_activation_bytes).s);
    cli_print(cli, "depth          %s, width %s\n", cli_human_count(s->depth).s, cli_human_count(s->width).s);
    cli_print(cli, "cut points     %s\n", cli_human_count(s->n_cut_points).s);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "network", g->name);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "element_bytes", g->element_bytes);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "operators", g->n_ops);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "edges", s->n_edges);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "parameters", count);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "weight_bytes", s->weight_bytes);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "flops", s->flops);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "unknown_flops", s->n_unknown_flops);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "traffic_bytes", s->traffic_bytes);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "activation_bytes", s->activation_bytes);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "peak_activation_bytes", s->peak_activation_bytes);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "depth", s->depth);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "width", s->width);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "sources", s->n_sources);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "sinks", s->n_sinks);
}

static int say_cut_points(const cli_context *cli, const moirai_graph *g)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "cut_points");
    int32_t *op = malloc(((size_t)g->n_ops + 1) * sizeof *op);
    int32_t n = op ? moirai_graph_cut_points(g, op) : moirai_error(MOIRAI_EFAIL, "out of memory");
    if (n > 0 && cli_has(cli, "cuts"))
        cli_print(cli, "\ncut points\n");
    for (int32_t i = 0; i < n; i++) {
        yyjson_mut_arr_add_strcpy(cli->doc, list, g->op_name[op[i]]);
        if (cli_has(cli, "cuts"))
            cli_print(cli, "%s\n", g->op_name[op[i]]);
    }
    free(op);
    return n < 0 ? n : 0;
}

static void say_ops(const cli_context *cli, const moirai_graph *g)
{
    cli_print(cli, "\n%-20s %14s %12s %12s  %s\n", "type", "arithmetic", "weights", "results", "operator");
    for (int32_t i = 0; i < g->n_ops; i++) {
        int64_t bytes = 0;
        for (int32_t o = g->op_out_off[i]; o < g->op_out_off[i + 1]; o++)
            bytes += g->tensor_bytes[g->op_out[o]];
        cli_print(cli, "%-20s %14s %12s %12s  %s\n", g->op_type[i],
                  g->op_flops[i] < 0 ? "?" : cli_human_flops((double)g->op_flops[i]).s,
                  cli_human_bytes(g->op_weight_bytes[i]).s, cli_human_bytes(bytes).s, g->op_name[i]);
    }
}

static int run(cli_context *cli)
{
    moirai_graph *g;
    moirai_graph_stats stats;
    moirai_type_stats *types = NULL;
    int32_t n_types = 0;
    const char *output = cli_text(cli, "output");
    int rc = cli_writable(cli, output);
    rc = rc ? rc : cli_network(&g, cli, cli_arg(cli, 0));
    if (rc)
        return rc;
    rc = moirai_graph_stats_get(&stats, g);
    rc = rc ? rc : moirai_graph_types(&types, &n_types, g);
    if (!rc) {
        say_stats(cli, g, &stats);
        say_types(cli, types, n_types);
        rc = say_cut_points(cli, g);
        if (cli_has(cli, "list"))
            say_ops(cli, g);
    }
    if (!rc && output)
        rc = moirai_graph_write(g, output);
    free(types);
    moirai_graph_free(g);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "MODEL", .kind = CLI_VALUE_NETWORK, .help = "an ONNX file, a graph file or a network of the zoo"},
    {0},
};
static const cli_option options[] = {
    CLI_OPTIONS_NETWORK,
    {.name = "cuts", .kind = CLI_VALUE_FLAG, .help = "list the cut points"},
    {.name = "list", .kind = CLI_VALUE_FLAG, .help = "list every operator"},
    CLI_OPTION_OUTPUT("write the network as a graph file"),
    {0},
};
static const cli_example examples[] = {
    {"moirai inspect gpt3-330M", "A network of the zoo"},
    {"moirai inspect gpt3-330M --json", "The same, for scripts"},
    {0},
};
const cli_command cli_command_inspect = {
    .name = "inspect",
    .summary = "show what a network is made of",
    .text =
        "Operators by type, parameters, arithmetic, activations, depth, width and cut points.\n\n"
        "Depth is the number of operators on the longest path; width the most operators at the same distance from the "
        "start; a cut point is an operator beside which no other can run. Activations at once are those of running "
        "the operators one by one.\n\n"
        "ONNX: dimensions that the file leaves open get usual sizes, which are shown, unless --dim or --shape says "
        "otherwise; weights kept in external files need not be there.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
