/* moirai_split, the walk from a model and a plan to sub-models: open the network, read the plan on its operators, group
 * these into segments, write each, and the manifest. */
#include <yyjson.h>

#include "split/split.h"

#include "onnx/onnx_network.h"

static int split_network(onnx_network *net, yyjson_val *root, const char *plan_path, const char *folder,
                         const moirai_split_options *o, moirai_split_report *report)
{
    split_plan *plan = NULL;
    util_stage stage = {0};
    int rc = split_plan_take(&plan, root, plan_path, net->graph, o->rules);
    rc = rc ? rc : split_segments(plan);
    rc = rc ? rc : split_merge(plan, o->segment_ns);
    rc = rc ? rc : util_stage_open(&stage, folder);
    rc = rc ? rc : split_models(plan, net, stage.inside, report);
    rc = rc ? rc : split_manifest(plan, net, stage.inside);
    rc = util_stage_close(&stage, rc, "manifest.json");
    split_plan_free(plan);
    return rc;
}

int moirai_split(const char *plan_path, const char *model_path, const char *folder, const moirai_split_options *options,
                 moirai_split_report *report)
{
    static const moirai_split_options none;
    const moirai_split_options *o = options ? options : &none;
    moirai_split_report scratch;
    onnx_network *net = NULL;
    split_settings settings = {0};
    yyjson_doc *doc = NULL;
    report = report ? report : &scratch;
    memset(report, 0, sizeof *report);
    int rc = util_json_read(&doc, plan_path, "moirai-plan");
    rc = rc ? rc : split_settings_new(&settings, yyjson_doc_get_root(doc), plan_path, &o->onnx);
    rc = rc ? rc : onnx_network_open(&net, model_path, &settings.onnx);
    rc = rc ? rc : split_network(net, yyjson_doc_get_root(doc), plan_path, folder, o, report);
    onnx_network_free(net);
    split_settings_free(&settings);
    yyjson_doc_free(doc);
    return rc;
}
