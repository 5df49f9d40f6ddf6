/* A timeline in memory, and what its parts say; private to refine. */
#ifndef MOIRAI_RUN_REFINE_H
#define MOIRAI_RUN_REFINE_H

#include <moirai/refine.h>

typedef struct refine_segment {
    int32_t device; /* in refine_timeline.device */
    int64_t start_ns, finish_ns, median_ns;
    int32_t first_op, n_ops; /* in refine_timeline.op */
} refine_segment;

typedef struct refine_transfer {
    int32_t from, to; /* devices of the timeline */
    int64_t bytes, start_ns, finish_ns, median_ns;
} refine_transfer;

typedef struct refine_timeline {
    int32_t n_devices;
    const char *device[MOIRAI_MAX_DEVICES];
    size_t n_segments, n_transfers, n_ops;
    refine_segment *segment; /* by device, in order */
    refine_transfer *transfer;
    const char **op;
    void *doc; /* owns the strings */
} refine_timeline;

/* ---- refine_timeline.c ---- */
int moirai_refine_timeline_parse(refine_timeline *out, const char *json, size_t length, const char *label);
void moirai_refine_timeline_free(refine_timeline *t);
/* The middle one of n numbers, which get sorted; 0 if there are none. */
double moirai_refine_median(double *number, size_t n);

/* ---- refine_links.c ---- */
/* What a segment on `device` takes beside its operators, given the predicted time of each segment. */
int64_t moirai_refine_segment_cost(const refine_timeline *t, int32_t device, const double *predicted_ns);
/* New latencies of all channels of `c`, [from * n + to]. `segment_ns` is the above, by device of the timeline. */
int moirai_refine_latencies(int64_t *latency_ns, const moirai_cluster *c, const refine_timeline *t,
                            const int64_t *segment_ns, const char *label);
void moirai_refine_links_set(moirai_cluster *c, const int64_t *latency_ns);

#endif
