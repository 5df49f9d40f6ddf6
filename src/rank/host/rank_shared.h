/* Memory that several processes of one host have. */
#ifndef MOIRAI_RANK_HOST_RANK_SHARED_H
#define MOIRAI_RANK_HOST_RANK_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

/* What another process needs to map it. Plain bytes: sent as it is. */
typedef struct rank_shared {
    char host[64];
    uint64_t network; /* its namespace: those who must talk through a network do so, on one machine, too */
    int32_t willing;  /* its process may share memory at all */
    int32_t pid, fd;
    uint64_t bytes;    /* 0: there is none */
    uint64_t token[2]; /* stands at its beginning */
} rank_shared;

/* Where tensors may begin in it: behind the token, and a cache line each. */
enum { RANK_SHARED_LINE = 64 };

/* This process: `willing` unless MOIRAI_TRANSPORT is "host". */
void rank_shared_self(rank_shared *out, bool willing);
/* What every rank of `comm` says: all[its rank]. Collective. */
void rank_shared_tell(rank_shared *all, MPI_Comm comm);
/* Both are willing and of one host. */
bool rank_shared_can(const rank_shared *a, const rank_shared *b);
/* So many bytes for this process and those that it tells of it; NULL: this system has none to give. They are gone when the
 * last of these processes has ended. */
void *rank_shared_new(rank_shared *s, size_t bytes);
/* Another process's; NULL: it can't be had. */
void *rank_shared_map(const rank_shared *s);
void rank_shared_free(void *memory, size_t bytes);

#endif
