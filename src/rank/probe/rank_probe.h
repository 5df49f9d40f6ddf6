/* The parts of `moirai-rank probe`: what a rank is, how fast two ranks talk, and the line through it. */
#ifndef MOIRAI_RANK_PROBE_RANK_PROBE_H
#define MOIRAI_RANK_PROBE_RANK_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "rank/gpu/cuda.h"
#include "rank/mpi_world.h"
#include "rank/host/rank_shared.h"
#include "rank/probe/probe_link.h"

#define PROBE_TEXT 128
#define PROBE_MAX_GPUS 16
#define PROBE_LARGEST (16 << 20) /* bytes of a message */

typedef struct probe_gpu {
    char name[PROBE_TEXT];
    int64_t memory_bytes;
} probe_gpu;

/* What a rank is. Plain bytes: ranks send it to rank 0 as it is, all being the same program. */
typedef struct probe_rank {
    char host[PROBE_TEXT];
    char cpu[PROBE_TEXT];   /* model, "" unknown */
    char cores[PROBE_TEXT]; /* "0-3" where the process may use a part of the machine only, else "" */
    char providers[PROBE_TEXT];
    char onnxruntime[PROBE_TEXT];
    int32_t n_cores, n_threads; /* of the whole machine: cores and hardware threads */
    int32_t n_own;              /* hardware threads that this process may use */
    int32_t n_gpus;
    int64_t memory_bytes;
    double load; /* the kernel's average over the last minute: processes that wanted a core; below 0: not known */
    probe_gpu gpu[PROBE_MAX_GPUS];
} probe_rank;

int rank_probe_describe(probe_rank *out);
/* GPUs that NVML knows of; none where there is no NVML. */
int32_t rank_probe_gpus(probe_gpu *out, int32_t most);

/* A rank's side of a link: tensors travel as in `moirai run` (rank/rank_transport.h). */
typedef struct probe_side {
    char *data;            /* PROBE_LARGEST bytes on the host, which MPI reads and fills, or other ranks map */
    bool shared;           /* others can map `data` */
    const rank_cuda *cuda; /* NULL: the device is a CPU. Else: */
    void *memory;          /* as many bytes on its GPU */
    bool mapped;           /* the other rank maps it: messages are empty */
    void *peer;    /* memory of a sender: another GPU's, which is copied, or a processor's, which is read; else NULL */
    bool own_core; /* a GPU's, and no other rank needs it: waiting is without sleep, as in `moirai run` */
} probe_side;

/* Rank `from` measures what it takes to send to rank `to`; the result is at `from`. Called by both. */
void rank_probe_pair(probe_link *out, const rank_world *w, int from, int to, const probe_side *side, double seconds);

#endif
