/* Putting a cluster together; shared by the reader, the built-in testbeds and the one-line descriptions. */
#ifndef MOIRAI_CLUSTER_CLUSTER_BUILD_H
#define MOIRAI_CLUSTER_CLUSTER_BUILD_H

#include <moirai/cluster.h>

/* More than a day for one hop is a mistake, and sums over any path stay far from int64's end. */
#define CLUSTER_MAX_LATENCY_NS ((int64_t)100000000000000)

int cluster_new(moirai_cluster **out, const char *name);
/* A device of a type (known or not); memory is the type's until set. NULL with a message if the name is taken or
 * there are too many. The pointer stays valid. */
moirai_device *cluster_add_device(moirai_cluster *c, const char *name, const char *type);
/* The variant of a type that has this much memory, or NULL: "orin" with 8 GB is an "orin-nano". */
const moirai_device_type *cluster_variant_of(const moirai_device_type *type, int64_t memory_bytes);
/* Memory that was stated for a device of a known type: picks the variant that has it, where `figures` of the file do not
 * say otherwise, and notes what contradicts the type. `label` may be NULL. */
int cluster_state_memory(moirai_cluster *c, moirai_device *d, int64_t memory_bytes, const char *label);
/* What a device has before its file says otherwise: the figures of its type (the generic processor's where it stands in),
 * of a processor that is run as far as its threads go. All 0 where nothing is known. Memory is the type's. */
void cluster_usual_figures(moirai_device_type *out, const moirai_device *d);
/* A line more of notes. */
int cluster_add_note(moirai_cluster *c, const char *text);
/* One direction. Checks numbers, that the two differ and that there is no such link yet. */
int cluster_add_link(moirai_cluster *c, int32_t from, int32_t to, int64_t bytes_per_second, int64_t latency_ns);
/* Compute the full mesh; MOIRAI_EINPUT where two devices are not connected. */
int cluster_close(moirai_cluster *c);

#endif
