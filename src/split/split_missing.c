/* What the library says where it was built without protobuf-c or onnx.proto. */
#include <moirai/split.h>

#include <string.h>

int moirai_split(const char *plan_path, const char *model_path, const char *folder, const moirai_split_options *options,
                 moirai_split_report *report)
{
    (void)plan_path;
    (void)folder;
    (void)options;
    if (report)
        memset(report, 0, sizeof *report);
    return moirai_error(MOIRAI_EFAIL,
                        "%s: this build splits no ONNX: it was made without protobuf-c or onnx.proto "
                        "(libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)",
                        model_path);
}
