/* ONNX models made by hand, byte by byte: the tests of the reader share no code with it. */
#ifndef MOIRAI_TEST_ONNX_MAKER_H
#define MOIRAI_TEST_ONNX_MAKER_H

#include <stddef.h>
#include <stdint.h>

/* A protobuf message in the making. Zero-initialise; out of memory aborts the test. */
typedef struct wire {
    uint8_t *data;
    size_t length, capacity;
} wire;

void wire_free(wire *w);
void wire_number(wire *w, uint32_t field, int64_t value);
void wire_bytes(wire *w, uint32_t field, const void *data, size_t length);
void wire_text(wire *w, uint32_t field, const char *text);
/* Takes the child's bytes and frees it. */
void wire_message(wire *w, uint32_t field, wire *child);
/* The head of a bytes field whose `length` payload bytes the caller appends (or leaves to a hole in a file). */
void wire_head(wire *w, uint32_t field, uint64_t length);

enum { MAKE_FLOAT = 1, MAKE_INT64 = 7, MAKE_FLOAT16 = 10 };

/* Shapes are "1x3x224x224"; a word instead of a number is a symbolic dimension; "" is a scalar. */
void make_input(wire *graph, const char *name, int type, const char *shape);
void make_output(wire *graph, const char *name, int type, const char *shape); /* shape NULL: none given */
/* Dims, type and name; the caller adds data and puts it into field 5 of the graph. */
void make_tensor(wire *tensor, const char *name, int type, const char *shape);
void make_external(wire *graph, const char *name, int type, const char *shape, const char *offset, const char *length);
/* A tensor whose numbers are in a file; `offset` and `length` may be NULL. The caller puts it where it belongs. */
void make_external_tensor(wire *tensor, const char *name, int type, const char *shape, const char *location,
                          const char *offset, const char *length);
/* Floats of zeros, inline. */
void make_weights(wire *graph, const char *name, const char *shape);
void make_ints(wire *graph, const char *name, int n, const int64_t *value, int scalar);

/* Attributes go into a wire of their own, which make_node takes. */
void make_attr_int(wire *attrs, const char *name, int64_t value);
void make_attr_ints(wire *attrs, const char *name, int n, const int64_t *value);
void make_attr_text(wire *attrs, const char *name, const char *value);
/* Takes the tensor. */
void make_attr_tensor(wire *attrs, const char *name, wire *tensor);
void make_attr_graph(wire *attrs, const char *name, wire *graph);
/* Names separated by commas; an empty one is left out. `attrs` may be NULL. */
void make_node(wire *graph, const char *type, const char *inputs, const char *outputs, wire *attrs);
void make_node_in(wire *graph, const char *domain, const char *type, const char *inputs, const char *outputs,
                  wire *attrs);
/* The same in a FunctionProto. */
void make_function_node(wire *function, const char *type, const char *inputs, const char *outputs, wire *attrs);

/* The whole model around a graph, which it takes. */
void make_model(wire *model, wire *graph);

#endif
