/* moirai shard: operators of an ONNX model cut into pieces, or what of it can be cut. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/util.h"

static void show_strip(const cli_context *cli, yyjson_mut_val *list, const moirai_shard_strip *x)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, list);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "name", x->name);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "kind", x->kind);
    yyjson_mut_obj_add_strcpy(cli->doc, o, "unit", x->unit);
    yyjson_mut_obj_add_sint(cli->doc, o, "units", x->units);
    yyjson_mut_obj_add_int(cli->doc, o, "operators", x->n_ops);
    yyjson_mut_obj_add_int(cli->doc, o, "class", x->class_number);
    yyjson_mut_obj_add_sint(cli->doc, o, "flops", x->flops);
    yyjson_mut_obj_add_sint(cli->doc, o, "weight_bytes", x->weight_bytes);
    yyjson_mut_obj_add_int(cli->doc, o, "sums", x->n_sums);
    yyjson_mut_obj_add_int(cli->doc, o, "joins", x->n_joins);
    yyjson_mut_obj_add_bool(cli->doc, o, "alternative", x->alternative);
    char units[64];
    snprintf(units, sizeof units, "%lld %s", (long long)x->units, x->unit);
    cli_print(cli, "%5d %-18s %9d %12s %12s %5d %5d  %s%s\n", x->class_number, units, x->n_ops,
              x->flops < 0 ? "?" : cli_human_flops((double)x->flops).s, cli_human_bytes(x->weight_bytes).s, x->n_sums,
              x->n_joins, x->name, x->alternative ? " (instead of others)" : "");
}

static void show_all(const cli_context *cli, const moirai_shards *s)
{
    yyjson_mut_val *strips = yyjson_mut_obj_add_arr(cli->doc, cli->result, "strips");
    yyjson_mut_val *refused = yyjson_mut_obj_add_arr(cli->doc, cli->result, "whole");
    cli_print(cli, "%5s %-18s %9s %12s %12s %5s %5s  %s\n", "class", "units", "operators", "arithmetic", "weights",
              "sums", "joins", "strip");
    for (int32_t i = 0; i < moirai_shards_count(s); i++) {
        moirai_shard_strip x = moirai_shards_strip(s, i);
        show_strip(cli, strips, &x);
    }
    for (int32_t i = 0; i < moirai_shards_refusal_count(s); i++) {
        moirai_shard_refusal r = moirai_shards_refusal(s, i);
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(cli->doc, refused);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "operator", r.op);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "type", r.type);
        yyjson_mut_obj_add_strcpy(cli->doc, o, "why", r.why);
        cli_print(cli, "%s%s (%s): %s\n", i ? "" : "\nnot cut:\n", r.op, r.type, r.why);
    }
}

static int write_cut(const cli_context *cli, const moirai_shards *s, const char *output)
{
    const char *sum = cli_text(cli, "sum");
    moirai_shard_report report;
    int rc = moirai_shards_write(s, cli_text(cli, "cut"), cli_shard_sum(sum), output, &report);
    if (rc)
        return rc;
    cli_print(cli, "cut          %s strips into %s pieces\n", cli_human_count(report.n_strips).s,
              cli_human_count(report.n_pieces).s);
    cli_print(cli, "nodes        %s, before %s\n", cli_human_count(report.n_nodes).s,
              cli_human_count(report.n_nodes_before).s);
    cli_print(cli, "slices       %s of weights\n", cli_human_bytes(report.cut_bytes).s);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "strips", report.n_strips);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "pieces", report.n_pieces);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "nodes", report.n_nodes);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "nodes_before", report.n_nodes_before);
    yyjson_mut_obj_add_sint(cli->doc, cli->result, "cut_bytes", report.cut_bytes);
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "cut", report.cut);
    return 0;
}

static int run(cli_context *cli)
{
    const char *output = cli_text(cli, "output");
    moirai_onnx_options options;
    moirai_shards *s = NULL;
    if (!cli_has(cli, "list") && (!cli_text(cli, "cut") || !output))
        return moirai_error(MOIRAI_EUSAGE, "shard: --cut and --output, or --list, are needed");
    int rc = output ? cli_writable(cli, output) : 0;
    rc = rc ? rc : cli_onnx_options(&options, cli);
    if (rc)
        return rc;
    rc = moirai_shards_open(&s, cli_arg(cli, 0), &options);
    cli_onnx_options_free(&options);
    if (!rc && cli_has(cli, "list"))
        show_all(cli, s);
    else if (!rc)
        rc = write_cut(cli, s, output);
    moirai_shards_free(s);
    return rc;
}

static const cli_argument arguments[] = {
    {.name = "MODEL", .kind = CLI_VALUE_FILE, .help = "an ONNX file"},
    {0},
};
static const cli_option options[] = {
    {.name = "cut",
     .argument = "CUT",
     .kind = CLI_VALUE_TEXT,
     .help = "strips and sizes: 'layer0/mlp: 2:3:5; *attention: 2,4,6'; shares with colons, units with commas, one "
             "number for equal pieces"},
    CLI_OPTION_SUM,
    {.name = "list", .kind = CLI_VALUE_FLAG, .help = "show what can be cut, in what units, and what can't and why"},
    {.name = "dim",
     .argument = "NAME=N",
     .kind = CLI_VALUE_TEXT,
     .repeated = true,
     .help = "set a dimension that the network leaves open, by its name or as INPUT:AXIS=N"},
    {.name = "shape",
     .argument = "INPUT:1x3x224x224",
     .kind = CLI_VALUE_TEXT,
     .repeated = true,
     .help = "set the shape of an input"},
    CLI_OPTION_OUTPUT("write the cut model"),
    {0},
};
static const cli_example examples[] = {
    {"moirai shard model.onnx --list", "What can be cut"},
    {"moirai shard model.onnx --cut '*rows: 2:3' -o cut.onnx", "Images cut by rows, with the rows beside a cut twice"},
    {"moirai shard model.onnx --cut '*mlp: 2:3:5; *attention: 2,4,6' -o cut.onnx", "Unequal pieces of all layers"},
    {0},
};
const cli_command cli_command_shard = {
    .name = "shard",
    .summary = "cut operators of an ONNX model into unequal pieces",
    .text =
        "Writes a model of the same results in which several devices can share what was one operator: heads of "
        "attention, columns of feed-forward blocks, channels and groups of convolutions, rows of images, samples of a "
        "batch. "
        "Weights are sliced. Any ONNX runtime loads it; plan, split and run take it as any other model.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
