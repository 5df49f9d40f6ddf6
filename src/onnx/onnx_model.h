/* An ONNX file in memory: protobuf-c's structs for everything but the large weights, which stay in the mapped file.
 *
 * The generated structs may be read freely, and taken into new messages: a sub-model is a fresh Onnx__ModelProto
 * whose arrays point at nodes and initializers of this one. onnx_model_write puts the weights back in. */
#ifndef MOIRAI_ONNX_ONNX_MODEL_H
#define MOIRAI_ONNX_ONNX_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnx.pb-c.h"
#include "onnx/onnx_wire.h"

typedef struct onnx_model {
    Onnx__ModelProto *proto;
    const uint8_t *file; /* mapped, or the caller's */
    size_t length;
    bool mapped;
    onnx_slim slim; /* only its cuts are kept */
} onnx_model;

/* The file must not change while it is open. Messages do not name the file: callers prefix. */
int onnx_model_open(onnx_model **out, const char *path);
/* `data` is borrowed and must outlive the model. */
int onnx_model_parse(onnx_model **out, const void *data, size_t length);
void onnx_model_free(onnx_model *model);

/* `proto` may be any message tree that uses parts of `model`; a file is replaced at once or not at all. */
int onnx_model_write(const onnx_model *model, const Onnx__ModelProto *proto, const char *path);

/* ---- onnx_tensor.c ---- */
/* Where the numbers of a tensor are. */
typedef enum onnx_data_kind {
    ONNX_DATA_NONE,    /* nowhere: no field holds any */
    ONNX_DATA_RAW,     /* `bytes`, little endian, packed as in raw_data */
    ONNX_DATA_PACKED,  /* `bytes`, still in wire format: the packed field number `field` */
    ONNX_DATA_TYPED,   /* in the struct's float_data, int32_data, int64_data, double_data, uint64_data or string_data */
    ONNX_DATA_EXTERNAL /* in the file `location`, relative to the model's folder */
} onnx_data_kind;

typedef struct onnx_data {
    onnx_data_kind kind;
    const uint8_t *bytes;
    size_t length;
    uint32_t field;
    const char *location;
    int64_t external_offset, external_length; /* -1: to the end */
} onnx_data;

/* Fails with MOIRAI_EINPUT on external offsets and lengths that are no sizes. */
int onnx_tensor_data(onnx_data *out, const onnx_model *model, const Onnx__TensorProto *tensor);

/* Bits of one element, 0 for strings and unknown types. */
int onnx_type_bits(int32_t elem_type);
bool onnx_type_is_float(int32_t elem_type);

/* A tensor's elements and bytes from its dims; MOIRAI_EINPUT on negative dims, on more than 2^50 bytes, and where
 * the data in the file are not as many. */
int onnx_tensor_size(const onnx_model *model, const Onnx__TensorProto *tensor, int64_t *elements, int64_t *bytes);

/* ---- onnx_attr.c ---- */
/* Attributes by name; the value given where the node has none of that name. */
const Onnx__AttributeProto *onnx_attr(const Onnx__NodeProto *node, const char *name);
int64_t onnx_attr_int(const Onnx__NodeProto *node, const char *name, int64_t missing);
/* True if the node's attribute equals `text`; `missing` where it has none. */
bool onnx_attr_is(const Onnx__NodeProto *node, const char *name, const char *text, bool missing);

#endif
