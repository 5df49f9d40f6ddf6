/* The copies of a network that a plan for many requests has: their jobs, and this rank's part of each. */
#ifndef MOIRAI_RANK_RUN_RANK_COPIES_H
#define MOIRAI_RANK_RUN_RANK_COPIES_H

#include "rank/rank_exec.h"

typedef struct rank_copies {
    int n;
    rank_job **job;
    rank_exec **x; /* where this rank has a device */
    rank_ort *ort;
} rank_copies;

/* Reads the job and those that it names, and checks that there are ranks for them. Close in every case. */
int rank_copies_read(rank_copies *c, const rank_world *w, const char *path);
/* Opens ONNX Runtime and the sub-models of this rank's device, which is the same in all copies: `d`, of the first job. */
int rank_copies_load(rank_copies *c, const rank_world *w, const job_device *d);
/* Starts the computing threads. Collective. */
int rank_copies_begin(const rank_copies *c);
void rank_copies_close(rank_copies *c);

#endif
