/* CUDA MPS: the service that lets processes run on one GPU at the same time, each on its share of it. Without it they
 * take turns, each having all of the GPU for a while. */
#ifndef MOIRAI_RANK_GPU_MPS_H
#define MOIRAI_RANK_GPU_MPS_H

#include <stdbool.h>

/* Before any rank touches a GPU: where a rank of this host has a share of one, finds or starts the service, and sets
 * this process's environment for it. Every host has its own service; one that was started ends with the process that
 * started it. `gpu`: this rank's device is one, or its share (0: all of it). Collective; the result is that of the
 * rank's own host. */
int rank_mps_join(bool gpu, double share);

/* moirai-rank mps FOLDER: starts the service there, says "running", "missing" or "failed" on standard output, and keeps
 * the service until standard input ends. Returns the exit code. */
int rank_mps(int argc, char **argv);

#endif
