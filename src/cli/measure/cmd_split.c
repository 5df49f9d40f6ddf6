/* moirai split: a plan's sub-models as files. */
#include "cli/commands/commands.h"
#include "cli/steps/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

int cli_split(moirai_split_report *report, const cli_context *cli, const char *plan, const char *model,
              const char *folder, bool gpu)
{
    moirai_split_options o = {.rules = cli_text(cli, "rules"),
                              .segment_ns = cli_has(cli, "segment-us")
                                                ? (int64_t)(1000 * cli_real(cli, "segment-us") + 0.5)
                                                : moirai_runtime_segment_ns(MOIRAI_RUNTIME_ORT, !gpu)};
    int rc = cli_onnx_options(&o.onnx, cli);
    rc = rc ? rc : moirai_split(plan, model, folder, &o, report);
    cli_onnx_options_free(&o.onnx);
    return rc;
}

static int check_folder(const cli_context *cli, const char *folder)
{
    char manifest[4096];
    if (!folder)
        return moirai_error(MOIRAI_EUSAGE, "split: --output FOLDER is missing");
    snprintf(manifest, sizeof manifest, "%s/manifest.json", folder);
    if (!access(manifest, F_OK) && !cli_has(cli, "force"))
        return moirai_error(MOIRAI_EFAIL, "%s: exists already: --force replaces it", manifest);
    return 0;
}

static int run(cli_context *cli)
{
    const char *folder = cli_text(cli, "output");
    moirai_split_report report;
    int rc = check_folder(cli, folder);
    rc = rc ? rc : cli_split(&report, cli, cli_arg(cli, 0), cli_arg(cli, 1), folder, false);
    if (rc)
        return rc;
    cli_print(cli, "segments     %s on %d of %d devices\n", cli_human_count(report.n_segments).s, report.n_used,
              report.n_devices);
    cli_print(cli, "transfers    %s\n", cli_human_count(report.n_transfers).s);
    cli_print(cli, "nodes        %s\n", cli_human_count(report.n_nodes).s);
    cli_print(cli, "files        %s in %s\n", cli_human_bytes(report.file_bytes).s, folder);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "devices", report.n_devices);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "used_devices", report.n_used);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "segments", report.n_segments);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "transfers", report.n_transfers);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "nodes", report.n_nodes);
    yyjson_mut_obj_add_int(cli->doc, cli->result, "file_bytes", report.file_bytes);
    return 0;
}

static const cli_argument arguments[] = {
    CLI_ARGUMENTS_PLAN_MODEL,
    {0},
};
static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .kind = CLI_VALUE_FOLDER,
     .help = "where the sub-models and manifest.json go; made if missing"},
    CLI_OPTION_FORCE,
    CLI_OPTIONS_SPLIT,
    {0},
};
static const cli_example examples[] = {
    {"moirai split plan.json model.onnx -o parts", "One ONNX file per segment, and parts/manifest.json"},
    {0},
};
const cli_command cli_command_split = {
    .name = "split",
    .summary = "cut an ONNX model into what each device of a plan runs",
    .text = "Operators on a device are grouped into as few sub-models as the schedule allows: one ends where it must "
            "wait for "
            "a transfer or where a result must leave early. Each is a valid ONNX model with the weights that it uses.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
