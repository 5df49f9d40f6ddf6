/* The public face of the importer. */
#include <moirai/onnx.h>

#include <string.h>

#include "onnx/onnx_import.h"

bool moirai_onnx_available(void)
{
    return true;
}

static int import(moirai_graph **out, const onnx_model *model, const char *label,
                  const moirai_onnx_options *options, moirai_onnx_report *report)
{
    moirai_onnx_report scratch;
    onnx_import im = {.model = model, .options = options, .report = report ? report : &scratch};
    memset(im.report, 0, sizeof *im.report);
    int rc = onnx_import_run(&im);
    if (!rc)
        rc = onnx_build(out, &im, label);
    onnx_import_free(&im);
    return rc;
}

int moirai_onnx_read(moirai_graph **out, const char *path, const moirai_onnx_options *options,
                     moirai_onnx_report *report)
{
    onnx_model *model;
    *out = NULL;
    int rc = onnx_model_open(&model, path);
    if (!rc) {
        rc = import(out, model, path, options, report);
        onnx_model_free(model);
    }
    return rc ? moirai_error_prefix(rc, "%s", path) : 0;
}

int moirai_onnx_parse(moirai_graph **out, const void *data, size_t length, const char *label,
                      const moirai_onnx_options *options, moirai_onnx_report *report)
{
    onnx_model *model;
    *out = NULL;
    int rc = onnx_model_parse(&model, data, length);
    if (!rc) {
        rc = import(out, model, label, options, report);
        onnx_model_free(model);
    }
    return rc ? moirai_error_prefix(rc, "%s", label) : 0;
}
