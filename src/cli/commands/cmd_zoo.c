/* moirai zoo: the paper's networks, and small ones for tests. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <string.h>
#include <yyjson.h>
#include <moirai/onnx.h>

static int list(cli_context *cli)
{
    yyjson_mut_val *networks = yyjson_mut_arr(cli->doc);
    cli_print(cli, "%-18s %10s %7s %7s %6s  %s\n", "network", "operators", "layers", "hidden", "heads", "");
    for (int i = 0; i < moirai_zoo_count(); i++) {
        const moirai_zoo_entry *z = moirai_zoo_at(i);
        cli_print(cli, "%-18s %10s %7d %7d %6d  %s\n", z->name, cli_human_count(z->n_ops).s, z->layers, z->hidden,
                  z->heads, z->summary);
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, networks);
        yyjson_mut_obj_add_str(cli->doc, o, "name", z->name);
        yyjson_mut_obj_add_str(cli->doc, o, "summary", z->summary);
        yyjson_mut_obj_add_int(cli->doc, o, "ops", z->n_ops);
        yyjson_mut_obj_add_int(cli->doc, o, "layers", z->layers);
        yyjson_mut_obj_add_int(cli->doc, o, "hidden", z->hidden);
        yyjson_mut_obj_add_int(cli->doc, o, "heads", z->heads);
        if (z->paper_parameters)
            yyjson_mut_obj_add_str(cli->doc, o, "paper_parameters", z->paper_parameters);
    }
    yyjson_mut_obj_add_val(cli->doc, cli->result, "networks", networks);
    return 0;
}

static void show(cli_context *cli, const moirai_graph *g)
{
    int64_t weights = 0, traffic = 0;
    double flops = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        weights += g->op_weight_bytes[i];
        traffic += g->op_traffic_bytes[i] > 0 ? g->op_traffic_bytes[i] : 0;
        flops += g->op_flops[i] > 0 ? (double)g->op_flops[i] : 0;
    }
    cli_print(cli, "network      %s, %s\n", g->name, cli_text(cli, "dtype"));
    cli_print(cli, "operators    %s\n", cli_human_count(g->n_ops).s);
    cli_print(cli, "tensors      %s\n", cli_human_count(g->n_tensors).s);
    cli_print(cli, "weights      %s, %s parameters\n", cli_human_bytes(weights).s,
              cli_human_count(weights / g->element_bytes).s);
    cli_print(cli, "arithmetic   %s\n", cli_human_flops(flops).s);
    cli_print(cli, "traffic      %s\n", cli_human_bytes(traffic).s);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "name", g->name);
    yyjson_mut_obj_add_str(cli->doc, cli->result, "dtype", cli_text(cli, "dtype"));
    yyjson_mut_obj_add_int(cli->doc, cli->result, "ops", g->n_ops);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "tensors", g->n_tensors);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "weight_bytes", weights);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "parameters", weights / g->element_bytes);
    yyjson_mut_obj_add_real(cli->doc, cli->result, "flops", flops);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "traffic_bytes", traffic);
}

/* Large weights go beside the model: that file must not be lost either. */
static int model_writable(const cli_context *cli, const char *model)
{
    char data[4096];
    int rc = cli_writable(cli, model);
    if (rc || !model)
        return rc;
    snprintf(data, sizeof data, "%s.data", model);
    return cli_writable(cli, data);
}

static int run(cli_context *cli)
{
    const char *name = cli_arg(cli, 0), *output = cli_text(cli, "output");
    moirai_graph *g = NULL;
    if (!name || !strcmp(name, "list"))
        return list(cli);
    if (!moirai_zoo_find(name))
        return moirai_error(MOIRAI_EUSAGE, "zoo: no network '%s': %s", name,
                            cli_hint(name, CLI_VALUE_NETWORK, "'moirai zoo list' shows them").s);
    const char *model = cli_text(cli, "onnx");
    if (model && !strcmp(cli_text(cli, "dtype"), "bf16"))
        return moirai_error(MOIRAI_EUSAGE, "zoo: --onnx writes fp32 or fp16, not bf16");
    int element_bytes = strcmp(cli_text(cli, "dtype"), "fp32") ? 2 : 4;
    int rc = cli_writable(cli, output);
    rc = rc ? rc : model_writable(cli, model);
    rc = rc ? rc : moirai_zoo_graph(&g, name, element_bytes);
    rc = rc ? rc : output ? moirai_graph_write(g, output) : 0;
    rc = rc || !model ? rc : moirai_onnx_write_zoo(name, element_bytes, (uint64_t)cli_count(cli, "seed"), model);
    if (!rc)
        show(cli, g);
    moirai_graph_free(g);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "NAME", .kind = CLI_VALUE_NETWORK, .help = "a network, or 'list' for all of them", .optional = true},
    {0},
};
static const cli_option options[] = {
    {.name = "dtype",
     .argument = "TYPE",
     .help = "number type",
     .standard = "fp32",
     .kind = CLI_VALUE_CHOICE,
     .choices = "fp32|fp16|bf16"},
    {.name = "onnx",
     .argument = "FILE",
     .help = "write it as an ONNX model that runs, with random weights",
     .kind = CLI_VALUE_FILE},
    {.name = "seed", .argument = "N", .help = "draws the random weights", .standard = "1", .kind = CLI_VALUE_COUNT},
    CLI_OPTION_OUTPUT("write the network as a moirai-graph file"),
    {0},
};
static const cli_example examples[] = {
    {"moirai zoo list", "All networks"},
    {"moirai zoo gpt3-330M -o gpt.json", "Write one as a graph file"},
    {"moirai zoo gpt3-tiny --onnx tiny.onnx", "Write one as a model that runs (all but swin)"},
    {"moirai zoo gpt3-13B --dtype fp16 --json", "What it needs in half precision"},
    {0},
};
const cli_command cli_command_zoo = {
    .name = "zoo",
    .summary = "list or write the networks that come with moirai",
    .text = "The eleven networks of the paper with its operator counts, and small ones for tests.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
