/* Messages of new models, made in an arena. They borrow names, dimensions and types from the values they describe. */
#ifndef MOIRAI_ONNX_ONNX_MESSAGE_H
#define MOIRAI_ONNX_ONNX_MESSAGE_H

#include "onnx/onnx_import.h"

/* All return NULL, with a message, when out of memory. */
char *onnx_text(onnx_arena *a, const char *format, ...) MOIRAI_PRINTF(2, 3);
/* NULL as well where `value` is. `key` is borrowed. */
Onnx__StringStringEntryProto *onnx_entry(onnx_arena *a, const char *key, char *value);
/* A tensor of v's type, with its shape where `shape`. */
Onnx__TypeProto *onnx_tensor_type(onnx_arena *a, const onnx_value *v, bool shape);
Onnx__ValueInfoProto *onnx_value_info(onnx_arena *a, const char *name, const Onnx__TypeProto *type);

#endif
