/* Tensors of moirai-rank outside ONNX Runtime: files (NumPy's .npy, ONNX's .pb), random numbers, comparison. */
#ifndef MOIRAI_RANK_RANK_TENSOR_H
#define MOIRAI_RANK_RANK_TENSOR_H

#include "rank/ort.h"

#define RANK_MAX_DIMS 16

typedef struct rank_shape {
    int64_t type; /* ONNXTensorElementDataType, which is TensorProto.DataType */
    int64_t rank;
    int64_t dim[RANK_MAX_DIMS];
} rank_shape;

/* Bytes of such a tensor; MOIRAI_EINPUT for strings, negative dimensions and more than 2^50. */
int rank_shape_bytes(size_t *out, const rank_shape *s);
int rank_type_of_name(int64_t *out, const char *name); /* "float32", as the manifest writes it */
const char *rank_type_name(int64_t type);
void rank_shape_text(char *out, size_t size, const rank_shape *s); /* "float32 1x3x64x64" */

/* A tensor of this shape, its memory owned by it and not yet set. */
int rank_value_new(OrtValue **out, void **data, const rank_ort *ort, const rank_shape *s);
/* A tensor over `bytes` of host memory, which stay the caller's. */
int rank_value_over(OrtValue **out, const rank_ort *ort, void *memory, size_t bytes, const rank_shape *s);
/* Shape and memory of a tensor that ONNX Runtime made; MOIRAI_EINPUT for what is no tensor of numbers. */
int rank_value_look(rank_shape *s, void **data, size_t *bytes, const rank_ort *ort, OrtValue *value, const char *name);

/* Numbers drawn from `seed` and the tensor's name: reals around 0, whole numbers 0 or 1 (safe as indices and masks). */
void rank_random(void *data, size_t bytes, const rank_shape *s, uint64_t seed, const char *name);

int rank_npy_read(OrtValue **out, rank_shape *s, const rank_ort *ort, const char *path);
int rank_npy_write(const char *path, const rank_shape *s, const void *data, size_t bytes);
/* A TensorProto, as in ONNX's test_data_set folders; `name` (may be NULL) gets its name, which the caller frees. */
int rank_pb_read(OrtValue **out, rank_shape *s, char **name, const rank_ort *ort, const char *path);

typedef struct rank_difference {
    int64_t n, n_bad;     /* elements; those further apart than atol + rtol * |expected| */
    double largest;       /* absolute difference; infinity where only one is not finite */
    int64_t worst;        /* its index */
    double got, expected; /* there */
} rank_difference;

/* Shapes must be equal. Whole numbers and booleans must be equal, whatever the tolerances. */
void rank_compare(rank_difference *d, const rank_shape *s, const void *got, const void *expected, double atol,
                  double rtol);

#endif
