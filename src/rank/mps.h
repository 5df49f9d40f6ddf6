/* CUDA MPS: the service that lets processes run on one GPU at the same time, each on its share of it. Without it they
 * take turns, each having all of the GPU for a while. */
#ifndef MOIRAI_RANK_MPS_H
#define MOIRAI_RANK_MPS_H

#include "rank/ort.h"

/* Before any rank touches a GPU: where a rank of this host has a share of one, finds or starts the service, and sets
 * this process's environment for it. Every host has its own service; one that was started ends with the process that
 * started it. `device`: NULL on a rank without one. Collective; the result is that of the rank's own host. */
int rank_mps_join(const rank_ort_device *device);

#endif
