/* Measured runs back into a graph's times. */
#ifndef MOIRAI_REFINE_H
#define MOIRAI_REFINE_H

#include <moirai/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_refine_report {
    int32_t n_segments;                  /* in the file, with a measured time */
    int32_t n_ops;                       /* (operator, device) pairs that were part of one */
    double least, median, most;          /* measured / predicted of the segments; 0 where there is none */
} moirai_refine_report;

/* `path` is the timeline that `moirai run` wrote. The operators of a segment are scaled so that they sum to the segment's
 * measured time on its device; operators that did not run on a device by what all of its segments say together; devices
 * that ran nothing by what all devices say. Times of devices that the graph has none of are not made up. The graph is
 * unchanged on failure: MOIRAI_EINPUT for a file that names an operator or device that the graph has no time of. `report`
 * may be NULL. O(operators x devices). */
MOIRAI_API int moirai_graph_refine(moirai_graph *g, const char *path, moirai_refine_report *report);
MOIRAI_API int moirai_graph_refine_parse(moirai_graph *g, const char *json, size_t length, const char *label,
                                         moirai_refine_report *report);

#ifdef __cplusplus
}
#endif
#endif
