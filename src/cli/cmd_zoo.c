/* moirai zoo: the paper's networks, and small ones for tests. */
#include "cli/commands.h"
#include "cli/steps.h"

#include <string.h>
#include <moirai/onnx.h>

static int list(moirai_cli *cli)
{
    yyjson_mut_val *networks = yyjson_mut_arr(cli->doc);
    moirai_cli_print(cli, "%-18s %10s %7s %7s %6s  %s\n", "network", "operators", "layers", "hidden", "heads", "");
    for (int i = 0; i < moirai_zoo_count(); i++) {
        const moirai_zoo_entry *z = moirai_zoo_at(i);
        moirai_cli_print(cli, "%-18s %10s %7d %7d %6d  %s\n", z->name, moirai_text_count(z->n_ops).s, z->layers, z->hidden,
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

static void show(moirai_cli *cli, const moirai_graph *g)
{
    int64_t weights = 0, traffic = 0;
    double flops = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        weights += g->op_weight_bytes[i];
        traffic += g->op_traffic_bytes[i] > 0 ? g->op_traffic_bytes[i] : 0;
        flops += g->op_flops[i] > 0 ? (double)g->op_flops[i] : 0;
    }
    moirai_cli_print(cli, "network      %s, %s\n", g->name, moirai_cli_text(cli, "dtype"));
    moirai_cli_print(cli, "operators    %s\n", moirai_text_count(g->n_ops).s);
    moirai_cli_print(cli, "tensors      %s\n", moirai_text_count(g->n_tensors).s);
    moirai_cli_print(cli, "weights      %s, %s parameters\n", moirai_text_bytes(weights).s,
                     moirai_text_count(weights / g->element_bytes).s);
    moirai_cli_print(cli, "arithmetic   %s\n", moirai_text_flops(flops).s);
    moirai_cli_print(cli, "traffic      %s\n", moirai_text_bytes(traffic).s);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "name", g->name);
    yyjson_mut_obj_add_str(cli->doc, cli->result, "dtype", moirai_cli_text(cli, "dtype"));
    yyjson_mut_obj_add_int(cli->doc, cli->result, "ops", g->n_ops);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "tensors", g->n_tensors);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "weight_bytes", weights);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "parameters", weights / g->element_bytes);
    yyjson_mut_obj_add_real(cli->doc, cli->result, "flops", flops);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "traffic_bytes", traffic);
}

/* Large weights go beside the model: that file must not be lost either. */
static int model_writable(const moirai_cli *cli, const char *model)
{
    char data[4096];
    int rc = moirai_cli_writable(cli, model);
    if (rc || !model)
        return rc;
    snprintf(data, sizeof data, "%s.data", model);
    return moirai_cli_writable(cli, data);
}

static int run(moirai_cli *cli)
{
    const char *name = moirai_cli_arg(cli, 0), *output = moirai_cli_text(cli, "output");
    moirai_graph *g = NULL;
    if (!name || !strcmp(name, "list"))
        return list(cli);
    if (!moirai_zoo_find(name))
        return moirai_error(MOIRAI_EUSAGE, "zoo: no network '%s': %s", name,
                            moirai_cli_hint(name, MOIRAI_VALUE_NETWORK, "'moirai zoo list' shows them").s);
    const char *model = moirai_cli_text(cli, "onnx");
    int element_bytes = strcmp(moirai_cli_text(cli, "dtype"), "fp16") ? 4 : 2;
    int rc = moirai_cli_writable(cli, output);
    rc = rc ? rc : model_writable(cli, model);
    rc = rc ? rc : moirai_zoo_graph(&g, name, element_bytes);
    rc = rc ? rc : output ? moirai_graph_write(g, output) : 0;
    rc = rc || !model ? rc : moirai_onnx_write_zoo(name, element_bytes, (uint64_t)moirai_cli_count(cli, "seed"), model);
    if (!rc)
        show(cli, g);
    moirai_graph_free(g);
    return rc;
}

static const moirai_argument arguments[] = {
    {.name = "NAME", .kind = MOIRAI_VALUE_NETWORK, .help = "a network, or 'list' for all of them", .optional = true},
    {0},
};
static const moirai_option options[] = {
    {.name = "dtype", .argument = "TYPE", .help = "number type", .standard = "fp32", .kind = MOIRAI_VALUE_CHOICE,
     .choices = "fp32|fp16"},
    {.name = "onnx", .argument = "FILE", .help = "write it as an ONNX model that runs, with random weights",
     .kind = MOIRAI_VALUE_FILE},
    {.name = "seed", .argument = "N", .help = "draws the random weights", .standard = "1", .kind = MOIRAI_VALUE_COUNT},
    MOIRAI_OPTION_OUTPUT("write the network as a moirai-graph file"),
    {0},
};
static const moirai_example examples[] = {
    {"moirai zoo list", "All networks"},
    {"moirai zoo gpt3-330M -o gpt.json", "Write one as a graph file"},
    {"moirai zoo gpt3-tiny --onnx tiny.onnx", "Write one as a model that runs (all but swin)"},
    {"moirai zoo gpt3-13B --dtype fp16 --json", "What it needs in half precision"},
    {0},
};
const moirai_command moirai_command_zoo = {
    .name = "zoo",
    .summary = "list or write the networks that come with moirai",
    .text = "The eleven networks of the paper with its operator counts, and small ones for tests.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
