/* What is served: names, types and shapes, in the words of the Open Inference Protocol. */
#ifndef MOIRAI_SERVE_SERVE_MODEL_H
#define MOIRAI_SERVE_SERVE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "serve/serve_wire.h"

typedef struct serve_type {
    const char *name;  /* "FP32" */
    const char *plain; /* "float32", as the manifest of a split has it */
    int64_t onnx;      /* TensorProto.DataType */
    size_t bytes;      /* of an element */
} serve_type;

typedef struct serve_tensor {
    char *name;
    const serve_type *type;
    int64_t rank, dim[SERVE_MOST_DIMS];
    int64_t elements;
    size_t bytes;
} serve_tensor;

typedef struct serve_model {
    char *name;
    int n_inputs, n_outputs;
    serve_tensor *input, *output; /* in the order of the manifest */
    size_t in_bytes, out_bytes;   /* of all of them */
} serve_model;

#define SERVE_VERSION "1" /* the only one of a model */

/* NULL: there is no such type, or none that can be served. */
const serve_type *serve_type_of_onnx(int64_t onnx);
const serve_type *serve_type_of_plain(const char *plain);

/* Sets a tensor; MOIRAI_EINPUT where it has no type that can be served, no shape, or is too large. */
int serve_tensor_set(serve_tensor *t, const char *name, const serve_type *type, int64_t rank, const int64_t *dim);
/* "[1,3,64,64]" */
void serve_shape_text(char *out, size_t size, const int64_t *dim, int64_t rank);

int serve_model_new(serve_model **out, const char *name, int n_inputs, int n_outputs);
/* Adds up the tensors' bytes once all are set. */
void serve_model_sum(serve_model *m);
void serve_model_free(serve_model *m);
/* The longest body of a request that can make sense. */
size_t serve_model_most_bytes(const serve_model *m);

#endif
