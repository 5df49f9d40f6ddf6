/* moirai_split: read, match, group, write. */
#include "split/split.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "onnx/onnx_import.h"

static int make_folder(const char *folder)
{
    struct stat info;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return moirai_error(MOIRAI_EFAIL, "%s: can't make this folder: %s", folder, strerror(errno));
    if (stat(folder, &info) || !S_ISDIR(info.st_mode))
        return moirai_error(MOIRAI_EFAIL, "%s: not a folder", folder);
    return 0;
}

static int split_import(onnx_import *im, yyjson_val *root, const char *plan_path, const char *model_path, const char *folder,
                        const moirai_split_options *o, moirai_split_report *report)
{
    moirai_graph *fine = NULL;
    split_plan *plan = NULL;
    int rc = onnx_import_run(im);
    rc = rc ? rc : onnx_build(&fine, im, model_path);
    if (rc)
        return moirai_error_prefix(rc, "%s", model_path);
    rc = split_plan_read(&plan, root, plan_path, fine, o->rules);
    rc = rc ? rc : split_segments(plan);
    rc = rc ? rc : split_merge(plan, o->segment_ns);
    rc = rc ? rc : make_folder(folder);
    rc = rc ? rc : split_models(plan, im, fine, model_path, folder, report);
    rc = rc ? rc : split_manifest(plan, im, model_path, folder);
    split_plan_free(plan);
    moirai_graph_free(fine);
    return rc;
}

static int open_plan(yyjson_doc **out, const char *path)
{
    char *data;
    size_t length;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    rc = util_json_open(out, data, length, path, "moirai-plan");
    free(data);
    return rc;
}

int moirai_split(const char *plan_path, const char *model_path, const char *folder, const moirai_split_options *options,
                 moirai_split_report *report)
{
    static const moirai_split_options none;
    const moirai_split_options *o = options ? options : &none;
    moirai_split_report scratch;
    moirai_onnx_report onnx_report = {0};
    split_settings settings = {0};
    yyjson_doc *doc = NULL;
    onnx_model *model = NULL;
    report = report ? report : &scratch;
    memset(report, 0, sizeof *report);
    int rc = open_plan(&doc, plan_path);
    rc = rc ? rc : split_settings_new(&settings, yyjson_doc_get_root(doc), plan_path, &o->onnx);
    if (!rc && (rc = onnx_model_open(&model, model_path)))
        moirai_error_prefix(rc, "%s", model_path);
    if (!rc) {
        onnx_import im = {.model = model, .options = &settings.onnx, .report = &onnx_report};
        rc = split_import(&im, yyjson_doc_get_root(doc), plan_path, model_path, folder, o, report);
        onnx_import_free(&im);
        onnx_model_free(model);
    }
    split_settings_free(&settings);
    yyjson_doc_free(doc);
    return rc;
}
