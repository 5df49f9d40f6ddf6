/* What the files of shape rules share. */
#ifndef MOIRAI_ONNX_RULES_ONNX_SHAPE_H
#define MOIRAI_ONNX_RULES_ONNX_SHAPE_H

#include "onnx/rules/onnx_rules.h"

#define SHAPE(name) bool onnx_shape_##name(onnx_node *n)
/* A rule without its i-th input knows nothing. */
#define NEED(i) \
    if (!onnx_in(n, i)) \
    return false

/* Type and dimensions of the first output. */
static inline bool onnx_set_out(onnx_node *n, int32_t type, int32_t rank, const int64_t *dim)
{
    return onnx_value_shape(onnx_out(n, 0), type, rank, dim);
}

#endif
