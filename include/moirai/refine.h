/* Measured runs back into the times of a graph and the latencies of a cluster. */
#ifndef MOIRAI_REFINE_H
#define MOIRAI_REFINE_H

#include <moirai/cluster.h>
#include <moirai/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_refine_report {
    int32_t n_segments;         /* in the file, with a measured time */
    int32_t n_ops;              /* (operator, device) pairs that were part of one */
    int32_t n_transfers;        /* that told latencies; 0 without a cluster */
    double least, median, most; /* measured / predicted of the segments; 0 where there is none */
    int64_t segment_ns; /* what a segment takes beside its operators, median of the devices; 0 without a cluster */
} moirai_refine_report;

/* `path` is the timeline that `moirai run` wrote. The operators of a segment are scaled so that they sum to the
 * segment's measured time on its device; operators that did not run on a device by what all of its segments say
 * together; devices that ran nothing by what all devices say. Times of devices that the graph has none of are not made
 * up.
 *
 * With a cluster (`c` may be NULL) what a segment takes beside its operators goes to the latencies of the channels into
 * its device, since it is a transfer that begins a segment, and not to the operators; and the latencies become those
 * that the transfers of the run had. All channels become direct links, bandwidths stay.
 *
 * Graph and cluster are unchanged on failure: MOIRAI_EINPUT for a file that names an operator or device that they do
 * not have. `report` may be NULL. O(operators x devices + segments^2 + segments x transfers). */
MOIRAI_API int moirai_refine(moirai_graph *g, moirai_cluster *c, const char *path, moirai_refine_report *report);
MOIRAI_API int moirai_refine_parse(moirai_graph *g, moirai_cluster *c, const char *json, size_t length,
                                   const char *label, moirai_refine_report *report);

#ifdef __cplusplus
}
#endif
#endif
