/* The protobuf wire format, walked with the generated descriptors: large weights stay where they are. */
#ifndef MOIRAI_ONNX_ONNX_WIRE_H
#define MOIRAI_ONNX_ONNX_WIRE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* A payload left out of the slim copy: `field` of a TensorProto lies at file[offset .. offset + length). */
typedef struct onnx_cut {
    size_t offset, length;
    uint32_t field;
} onnx_cut;

typedef struct onnx_slim {
    uint8_t *data;
    size_t length, capacity;
    onnx_cut *cut;
    size_t n_cuts, cut_capacity;
    size_t n_messages;
} onnx_slim;

/* In the slim copy a cut payload is replaced by this field, whose fixed64 value is the cut's number. protobuf-c
 * keeps it among the message's unknown fields; the scanner drops those from files, so it can't be forged. */
#define ONNX_CUT_FIELD 536870911u

/* A message of type `root` with its large tensor payloads cut out. The scan also bounds what protobuf-c, which has
 * no limits of its own, will see: nesting, message count, singular messages given twice (which it would merge in
 * quadratic time), fields that onnx.proto does not have (dropped), names that are not UTF-8 (refused). O(length of
 * everything but the payloads). The caller frees with onnx_slim_free. */
int onnx_wire_scan(onnx_slim *out, const ProtobufCMessageDescriptor *root, const uint8_t *file, size_t length);
void onnx_slim_free(onnx_slim *slim);

/* Takes `length` bytes; 0 or a negative result. */
typedef int (*onnx_sink)(void *data, const void *bytes, size_t length);

/* The way back: a packed slim message is written to `sink` with every cut put in again from `file`. */
int onnx_wire_expand(const ProtobufCMessageDescriptor *root, const uint8_t *slim, size_t length, const onnx_cut *cut,
                     size_t n_cuts, const uint8_t *file, onnx_sink sink, void *sink_data);

#endif
