/* ONNX Runtime for one device of a cluster file: its execution provider, threads and cores. Used by moirai-rank only.
 *
 * A process stands for one device, so that threads and memory are the process's: sessions share one thread pool and one
 * arena, and hundreds of small sub-models cost no more threads than one. Pool threads spin where the device has cores of
 * its own, one for each of them: ranks that share cores would fight. */
#ifndef MOIRAI_RANK_ORT_H
#define MOIRAI_RANK_ORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <onnxruntime_c_api.h>

#include "rank/gpu/cuda.h"

typedef struct rank_ort_device {
    const char *ep;    /* "cpu", "dnnl", "xnnpack", "cuda", "cuda:1"; NULL: cpu */
    const char *cores; /* "0-3,6"; NULL: all that the process has */
    int threads;       /* at most one per core; 0: one per core that the process may use */
} rank_ort_device;

typedef struct rank_ort {
    const OrtApi *api;
    OrtEnv *env;
    OrtAllocator *allocator; /* the default one: CPU, not to be freed */
    OrtMemoryInfo *cpu;
    OrtSessionOptions *options; /* what every session of this device is made with */
    int threads;
    bool spins; /* threads that have nothing to do look for work for a while before they sleep */
    /* On a GPU (ort_cuda.h), else NULL: */
    rank_cuda *cuda;
    OrtMemoryInfo *gpu;
    OrtSessionOptions *graphs; /* tried before `options`: sessions recorded as CUDA graphs */
    OrtRunOptions *first_run;  /* of a session: not recorded */
} rank_ort;

/* Pins the process to the device's cores, then makes the environment. Call once per process, before other threads
 * start. */
int rank_ort_open(rank_ort **out, const rank_ort_device *device);
void rank_ort_close(rank_ort *ort);

/* A model's file, which may read files of its folder; or its bytes, which may read none, with these options. Loaded in a
 * confined thread (rank_confine.h). `what` names it in messages. */
int rank_ort_session(OrtSession **out, const rank_ort *ort, const char *path);
int rank_ort_session_of(OrtSession **out, const rank_ort *ort, const void *bytes, size_t length,
                        const OrtSessionOptions *options, const char *what);

/* 0, or MOIRAI_EFAIL with "what: ONNX Runtime's words"; frees the status. */
int rank_ort_check(const rank_ort *ort, OrtStatus *status, const char *what);

/* ---- ort_library.c ---- */
/* ONNX Runtime's functions, of the version that moirai was built for; NULL with a message where it is not here or older. */
const OrtApi *rank_ort_api(void);
const char *rank_ort_version(void); /* "" where it is not here */

/* Names of the execution providers in this ONNX Runtime ("cpu", "dnnl", ...), separated by commas. */
int rank_ort_providers(char *out, size_t size);

/* "0-3,6" into the process's affinity; MOIRAI_EUSAGE on nonsense and on cores that the machine does not have. */
int rank_ort_pin(const char *cores);

/* The smallest model: what one number is, it stays. */
#define RANK_ORT_IDENTITY_BYTES 55
extern const unsigned char rank_ort_identity[RANK_ORT_IDENTITY_BYTES];

/* Bytes of an element of this type; 0 for strings and types under a byte. */
size_t rank_ort_element_bytes(ONNXTensorElementDataType type);

#endif
