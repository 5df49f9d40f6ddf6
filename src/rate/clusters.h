/* Units that are joined along dear tensors. Private. */
#ifndef MOIRAI_RATE_CLUSTERS_H
#define MOIRAI_RATE_CLUSTERS_H

#include "place/fit.h"
#include "relax/view.h"

typedef struct rate_cluster_task {
    const relax_view *v;
    const place_units *units;
    int32_t wanted;   /* clusters: joining ends there, or where nothing is left to join */
    double most_ns;   /* that a cluster may take, each operator on its fastest device */
    bool as_they_are; /* only units that are on the same device are joined */
    uint64_t seed;
} rate_cluster_task;

/* Clusters, and `device` with each of them on one device: where its first unit was, or, if that does not fit, near it. *out NULL where such devices
 * are not found; `device` is then as it was. Deterministic for the seed. O(E log E). */
int rate_cluster(place_units **out, int32_t *device, const rate_cluster_task *task);

#endif
