/* ONNX Runtime on a GPU; the CUDA provider's part of ort.h. */
#ifndef MOIRAI_RANK_ORT_CUDA_H
#define MOIRAI_RANK_ORT_CUDA_H

#include "rank/ort.h"
#include "rank/rank_tensor.h"

/* Opens GPU `number` and adds the provider to ort->options; called by rank_ort_open once options are made. What it made
 * is closed by rank_ort_cuda_close, also after a failure. */
int rank_ort_cuda_open(rank_ort *ort, int number);
void rank_ort_cuda_close(rank_ort *ort);

/* A tensor over memory of the GPU, which stays the caller's. */
int rank_gpu_value(OrtValue **out, const rank_ort *ort, void *memory, size_t bytes, const rank_shape *s);

/* A session whose inputs and outputs are bound to tensors on the GPU. The session stays the caller's. `what` names it
 * in messages. A run is over when its call returns. */
typedef struct rank_bound {
    const rank_ort *ort;
    OrtSession *session;
    OrtIoBinding *binding;
} rank_bound;

int rank_bound_open(rank_bound *b, const rank_ort *ort, OrtSession *session);
void rank_bound_close(rank_bound *b);
int rank_bound_in(rank_bound *b, const char *name, const OrtValue *value);
int rank_bound_out(rank_bound *b, const char *name, const OrtValue *value);
/* A run whose outputs ONNX Runtime makes, on the GPU: their sizes are not known before. value[i] is the caller's, to be
 * released. */
int rank_bound_learn(rank_bound *b, const char *const *out, size_t n, OrtValue **value, const char *what);
/* A run into the bound outputs. */
int rank_bound_run(rank_bound *b, const char *what);

#endif
