/* What the library says where it was built without protobuf-c or onnx.proto. */
#include <moirai/onnx.h>

#include <string.h>

static int missing(moirai_graph **out, const char *label, moirai_onnx_report *report)
{
    *out = NULL;
    if (report)
        memset(report, 0, sizeof *report);
    return moirai_error(MOIRAI_EFAIL,
                        "%s: this build reads no ONNX: it was made without protobuf-c or onnx.proto "
                        "(libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)",
                        label);
}

bool moirai_onnx_available(void)
{
    return false;
}

int moirai_onnx_read(moirai_graph **out, const char *path, const moirai_onnx_options *options,
                     moirai_onnx_report *report)
{
    (void)options;
    return missing(out, path, report);
}

int moirai_onnx_parse(moirai_graph **out, const void *data, size_t length, const char *label,
                      const moirai_onnx_options *options, moirai_onnx_report *report)
{
    (void)data;
    (void)length;
    (void)options;
    return missing(out, label, report);
}

int moirai_onnx_write_zoo(const char *name, int element_bytes, uint64_t seed, const char *path)
{
    moirai_graph *none;
    (void)name;
    (void)element_bytes;
    (void)seed;
    return missing(&none, path, NULL);
}
