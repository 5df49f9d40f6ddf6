/* Measured runs back into the times of a graph and the latencies of a cluster. */
#ifndef MOIRAI_REFINE_H
#define MOIRAI_REFINE_H

#include <stdbool.h>

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
    int64_t extra_ns;   /* what a cut costs beyond what its transfer shows; 0 without a cluster */
    int32_t n_rates;    /* channels whose bandwidth the runs told; 0 without a cluster */
} moirai_refine_report;

typedef struct moirai_refine_options {
    bool as_measured; /* to predict the plan of the last file: its segments and its end are met, as far as can be. Else
                         all runs count, and one that took longer than its plan promised counts as longer still: the next
                         plan is chosen for looking fast, too */
} moirai_refine_options;

/* `path` has the n timelines that `moirai run` wrote; they count together; of several runs of one
 * plan (the same segments and transfers) each number counts as the mean of its middle half. The times of operators on a
 * device become
 * such that they sum to the measured times of its segments as well as can be: operators of one type with equal times
 * stay equal, and a segment of at least half the network is met exactly. Operators that did not run on a device follow
 * all of its segments; devices that ran nothing follow all devices. Times of devices that the graph has none of are not
 * made up.
 *
 * With a cluster (`c` may be NULL) what a segment takes beside its operators goes to the latencies of the channels into
 * its device, since it is a transfer that begins a segment, and not to the operators; latencies become those that the
 * transfers had; and all of them change by what makes the runs, played through, as long as they were. Bandwidths change
 * where awaited transfers of a channel, of several sizes, tell them; else they stay. All channels become direct links.
 *
 * Graph and cluster are unchanged on failure: MOIRAI_EINPUT for a file that names an operator or device that they do
 * not have. `report`, one for each file, may be NULL. O(operators x devices + segments^2 + segments x transfers). */
MOIRAI_API int moirai_refine(moirai_graph *g, moirai_cluster *c, const char *const *path, int32_t n,
                             moirai_refine_report *report);
/* The same with options; `o` NULL is {0}. */
MOIRAI_API int moirai_refine_with(moirai_graph *g, moirai_cluster *c, const char *const *path, int32_t n,
                                  const moirai_refine_options *o, moirai_refine_report *report);
/* The same for one timeline in memory; `label` names it in messages. */
MOIRAI_API int moirai_refine_parse(moirai_graph *g, moirai_cluster *c, const char *json, size_t length,
                                   const char *label, moirai_refine_report *report);

#ifdef __cplusplus
}
#endif
#endif
