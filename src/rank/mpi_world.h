/* MPI as moirai-rank uses it: one thread at a time talks to MPI (MPI_THREAD_SERIALIZED), waiting never spins for
 * long, messages may be larger than 2 GiB, and a failure anywhere is known everywhere. */
#ifndef MOIRAI_RANK_MPI_WORLD_H
#define MOIRAI_RANK_MPI_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <mpi.h>

typedef struct rank_world {
    MPI_Comm comm;      /* all ranks, or those that run one plan (rank_world_part) */
    int rank, size;     /* in it */
    size_t chunk_bytes; /* the most that one MPI message carries */
} rank_world;

/* MPI_Init_thread, and, where MOIRAI_SUPERVISED is set, one line "moirai-rank: start RANK PID" on stderr by which the
 * command knows who is there. */
int rank_world_open(rank_world *w, int *argc, char ***argv);
void rank_world_close(void);
/* The ranks of `w` that come with the same `part`, numbered in their order. Collective over `w`. */
void rank_world_part(rank_world *out, const rank_world *w, int part);
void rank_world_part_close(rank_world *part);

/* One line "moirai-rank: error CODE RANK message" on stderr, in one write: the command shows the first of these. */
void rank_world_say_error(const rank_world *w, int rc);
/* The same, then the end of all ranks. Never returns. */
void rank_world_abort(const rank_world *w, int rc) __attribute__((noreturn));

/* 0 if every rank comes with 0; else, on every rank, result and message of the first one that does not, which rank 0
 * has said. Collective. */
int rank_world_agree(const rank_world *w, int rc);
/* Waits for all ranks, however long that takes: it sleeps so long between two looks. */
void rank_world_meet(const rank_world *w, long sleep_ns);
bool rank_world_all_fine(const rank_world *w, int rc); /* the same: is it 0? */

/* A pause that grows from nothing to 20 us while *round grows: for polling beside ranks that share cores. */
void rank_world_pause(int *round);
/* Collective, without spinning. */
void rank_world_barrier(const rank_world *w);
void rank_world_bcast(const rank_world *w, void *data, size_t bytes, int root);

/* A rank that waits may look out without sleeping, unless it takes the time of another one: ranks of this machine that
 * may use one of its cores are not more than its cores. Collective. */
bool rank_world_own_core(const rank_world *w);

/* A message in chunks; tag and order do the matching. `request` has room for rank_world_chunks(w, bytes). */
size_t rank_world_chunks(const rank_world *w, size_t bytes);
void rank_world_isend(const rank_world *w, const void *data, size_t bytes, int to, int tag, MPI_Request *request);
void rank_world_irecv(const rank_world *w, void *data, size_t bytes, int from, int tag, MPI_Request *request);
/* Blocking forms, without spinning. */
void rank_world_send(const rank_world *w, const void *data, size_t bytes, int to, int tag);
void rank_world_recv(const rank_world *w, void *data, size_t bytes, int from, int tag);
void rank_world_wait(MPI_Request *request, size_t n);
/* An empty message that may take long to come: looks out so rarely that whoever works on this core does not notice. */
void rank_world_recv_late(const rank_world *w, int from, int tag);

#endif
