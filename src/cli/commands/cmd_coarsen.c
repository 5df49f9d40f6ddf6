/* moirai coarsen: fuse what an inference backend fuses, and say by which rule. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <stdlib.h>
#include <yyjson.h>
#include <moirai/coarsen.h>

static int32_t fused_length(const moirai_graph *g, int32_t op)
{
    return g->op_member_off[op + 1] - g->op_member_off[op];
}

static void say_rules(const cli_context *cli, const moirai_rules *rules, const int64_t *count)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "rules");
    cli_print(cli, "%10s  %s\n", "fused", "rule");
    for (int r = 0; r < moirai_rules_count(rules); r++) {
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(cli->doc, list);
        yyjson_mut_obj_add_strcpy(cli->doc, item, "rule", moirai_rules_text(rules, r));
        yyjson_mut_obj_add_sint(cli->doc, item, "fused", count[r]);
        if (count[r])
            cli_print(cli, "%10s  %s\n", cli_human_count(count[r]).s, moirai_rules_text(rules, r));
    }
}

/* Every fused operator with its members. */
static void say_members(const cli_context *cli, const moirai_graph *coarse)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(cli->doc, cli->result, "fused");
    for (int32_t i = 0; i < coarse->n_ops; i++) {
        if (!fused_length(coarse, i))
            continue;
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(cli->doc, list), *members;
        yyjson_mut_obj_add_strcpy(cli->doc, item, "name", coarse->op_name[i]);
        yyjson_mut_obj_add_strcpy(cli->doc, item, "type", coarse->op_type[i]);
        members = yyjson_mut_obj_add_arr(cli->doc, item, "members");
        cli_print(cli, "%s:", coarse->op_type[i]);
        for (int32_t e = coarse->op_member_off[i]; e < coarse->op_member_off[i + 1]; e++) {
            yyjson_mut_arr_add_strcpy(cli->doc, members, coarse->op_member[e]);
            cli_print(cli, " %s", coarse->op_member[e]);
        }
        cli_print(cli, "\n");
    }
}

static void say_result(const cli_context *cli, const moirai_graph *fine, const moirai_graph *coarse,
                       const moirai_rules *rules, const int64_t *count)
{
    yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "network", fine->name);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "operators", fine->n_ops);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "coarse_operators", coarse->n_ops);
    cli_print(cli, "%s: %s operators, %s after fusion\n", fine->name, cli_human_count(fine->n_ops).s,
              cli_human_count(coarse->n_ops).s);
    say_rules(cli, rules, count);
    if (cli_has(cli, "list"))
        say_members(cli, coarse);
}

static int coarsen(cli_context *cli, const moirai_graph *fine, const moirai_rules *rules)
{
    const char *output = cli_text(cli, "output");
    int64_t *count = calloc((size_t)moirai_rules_count(rules) + 1, sizeof *count);
    moirai_graph *coarse = NULL;
    int rc = count ? moirai_coarsen(&coarse, fine, rules, count) : moirai_error(MOIRAI_EFAIL, "out of memory");
    if (!rc)
        say_result(cli, fine, coarse, rules, count);
    if (!rc && output)
        rc = moirai_graph_write(coarse, output);
    if (!rc && output)
        yyjson_mut_obj_add_strcpy(cli->doc, cli->result, "output", output);
    moirai_graph_free(coarse);
    free(count);
    return rc;
}

static int run(cli_context *cli)
{
    moirai_graph *fine = NULL;
    moirai_rules *rules = NULL;
    int rc = cli_writable(cli, cli_text(cli, "output"));
    rc = rc ? rc : moirai_rules_open(&rules, cli_text(cli, "rules"));
    rc = rc ? rc : cli_network(&fine, cli, cli_arg(cli, 0));
    rc = rc ? rc : coarsen(cli, fine, rules);
    moirai_graph_free(fine);
    moirai_rules_free(rules);
    return rc;
}

static const cli_argument arguments[] = {
    {"NETWORK", CLI_VALUE_NETWORK, "a graph file, an ONNX model (.onnx) or a name of the zoo", false, false},
    {0},
};
static const cli_option options[] = {
    {.name = "rules",
     .argument = "SET|FILE",
     .standard = "onnxruntime",
     .kind = CLI_VALUE_RULES,
     .help = "a shipped set (eigen, onnxruntime, none) or a file of fusion rules"},
    {.name = "list", .help = "name every fused operator and its members", .kind = CLI_VALUE_FLAG},
    CLI_OPTIONS_NETWORK,
    CLI_OPTION_OUTPUT("write the coarse graph here"),
    {0},
};
static const cli_example examples[] = {
    {"moirai coarsen gpt3-tiny -o coarse.json", "Fuse what ONNX Runtime would fuse in a network of the zoo"},
    {"moirai coarsen inception-tiny --rules eigen --list", "See which operators the paper's rules fuse"},
    {0},
};
const cli_command cli_command_coarsen = {
    .name = "coarsen",
    .summary = "fuse operators that a backend runs as one",
    .text = "Chains of operators whose types spell a rule, each read by the next one only, become one operator that "
            "lists its members. Longer matches win. Prints how many operators each rule made.\n\n"
            "A rule file has one rule per line: types separated by spaces, 'a|b' for either, 'a?' for an item that "
            "may be missing, '#' for comments.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
