/* ONNX files as graphs (feature "onnx": needs protobuf-c). */
#ifndef MOIRAI_ONNX_H
#define MOIRAI_ONNX_H

#include <moirai/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_onnx_options {
    const char *const *dims;   /* "batch=8" */
    int n_dims;
    const char *const *shapes; /* "input:1x3x224x224" */
    int n_shapes;
} moirai_onnx_options;

/* What was met on the way, for the user. */
typedef struct moirai_onnx_report {
    int32_t n_nodes, n_folded;       /* nodes in the file; constant-only ones folded away */
    int32_t n_unknown_ops;           /* operators without a shape or cost rule */
    int32_t n_unknown_sizes;         /* tensors whose size could not be inferred */
    int64_t parameter_count, weight_bytes;
    char first_unknown[128];         /* type of the first operator without a rule, "" if none */
} moirai_onnx_report;

MOIRAI_API bool moirai_onnx_available(void);
/* `options` and `report` may be NULL. */
MOIRAI_API int moirai_onnx_read(moirai_graph **out, const char *path, const moirai_onnx_options *options,
                                moirai_onnx_report *report);
MOIRAI_API int moirai_onnx_parse(moirai_graph **out, const void *data, size_t length, const char *label,
                                 const moirai_onnx_options *options, moirai_onnx_report *report);

#ifdef __cplusplus
}
#endif
#endif
