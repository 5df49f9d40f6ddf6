/* One clock for all ranks: rank 0's CLOCK_MONOTONIC. */
#ifndef MOIRAI_RANK_MPI_CLOCK_H
#define MOIRAI_RANK_MPI_CLOCK_H

#include "rank/mpi_world.h"

/* A rank's clock against rank 0's at two moments; between them the difference is taken to be linear. */
typedef struct rank_clock {
    int64_t at_ns[2], offset_ns[2]; /* own time; what to add to it */
    int64_t round_trip_ns; /* of the best ping, the offset's error is at most half of it; on rank 0 the longest */
} rank_clock;

int64_t rank_clock_own_ns(void);
/* Pings between rank 0 and every other; `moment` 0 or 1 (0 sets both). Collective. */
void rank_clock_align(rank_clock *c, const rank_world *w, int moment);
/* Own time in rank 0's, and back (with the first offset). */
int64_t rank_clock_common_ns(const rank_clock *c, int64_t own_ns);
int64_t rank_clock_from_common_ns(const rank_clock *c, int64_t common_ns);

#endif
