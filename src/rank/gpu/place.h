/* Where every rank computes, and which of them can map each other's memory. */
#ifndef MOIRAI_RANK_GPU_PLACE_H
#define MOIRAI_RANK_GPU_PLACE_H

#include <mpi.h>

#include "rank/gpu/cuda.h"

/* Plain bytes: sent as it is. */
typedef struct rank_place {
    char host[64];
    int has_gpu;
    unsigned char gpu[16];   /* its id, the same in every process */
    rank_cuda_handle memory; /* of the rank, where it was given */
} rank_place;

/* The places of all ranks of `comm` into all[rank]; `cuda` and `memory` (or NULL) are those of this one, number `rank`.
 * Collective. */
void rank_place_share(rank_place *all, MPI_Comm comm, int rank, const rank_cuda *cuda, const rank_cuda_handle *memory);
/* Can b map a's memory: GPUs of one host, and MOIRAI_TRANSPORT is not "host". */
bool rank_place_mapped(const rank_place *a, const rank_place *b);
/* The same GPU: what is mapped need not be copied. */
bool rank_place_same_gpu(const rank_place *a, const rank_place *b);

#endif
