/* moirai_split: read, match, group, write. */
#include "split/split.h"

#include <errno.h>
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

static int split_import(onnx_import *im, const char *plan_path, const char *model_path, const char *folder,
                        const moirai_split_options *o, moirai_split_report *report)
{
    moirai_graph *fine = NULL;
    split_plan *plan = NULL;
    int rc = onnx_import_run(im);
    rc = rc ? rc : onnx_build(&fine, im, model_path);
    if (rc)
        return moirai_error_prefix(rc, "%s", model_path);
    rc = split_plan_read(&plan, plan_path, fine, o->rules);
    rc = rc ? rc : split_segments(plan);
    rc = rc ? rc : split_merge(plan, o->segment_ns);
    rc = rc ? rc : make_folder(folder);
    rc = rc ? rc : split_models(plan, im, fine, model_path, folder, report);
    rc = rc ? rc : split_manifest(plan, im, model_path, folder);
    split_plan_free(plan);
    moirai_graph_free(fine);
    return rc;
}

int moirai_split(const char *plan_path, const char *model_path, const char *folder, const moirai_split_options *options,
                 moirai_split_report *report)
{
    static const moirai_split_options none;
    const moirai_split_options *o = options ? options : &none;
    moirai_split_report scratch;
    moirai_onnx_report onnx_report = {0};
    onnx_model *model;
    report = report ? report : &scratch;
    memset(report, 0, sizeof *report);
    int rc = onnx_model_open(&model, model_path);
    if (rc)
        return moirai_error_prefix(rc, "%s", model_path);
    onnx_import im = {.model = model, .options = &o->onnx, .report = &onnx_report};
    rc = split_import(&im, plan_path, model_path, folder, o, report);
    onnx_import_free(&im);
    onnx_model_free(model);
    return rc;
}
