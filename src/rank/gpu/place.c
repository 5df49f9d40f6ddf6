/* Where every rank computes. */
#include "rank/gpu/place.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void rank_place_share(rank_place *all, MPI_Comm comm, int rank, const rank_cuda *cuda, const rank_cuda_handle *memory)
{
    rank_place *own = &all[rank];
    *own = (rank_place){.has_gpu = cuda != NULL};
    gethostname(own->host, sizeof own->host - 1);
    if (cuda)
        memcpy(own->gpu, rank_cuda_id(cuda), sizeof own->gpu);
    if (memory)
        own->memory = *memory;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all, (int)sizeof *all, MPI_BYTE, comm);
}

bool rank_place_mapped(const rank_place *a, const rank_place *b)
{
    const char *given = getenv("MOIRAI_TRANSPORT");
    return a->has_gpu && b->has_gpu && !strncmp(a->host, b->host, sizeof a->host) && !(given && !strcmp(given, "host"));
}

bool rank_place_same_gpu(const rank_place *a, const rank_place *b)
{
    return rank_place_mapped(a, b) && !memcmp(a->gpu, b->gpu, sizeof a->gpu);
}
