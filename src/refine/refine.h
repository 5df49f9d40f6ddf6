/* Timelines in memory, and what they say together; private to refine. */
#ifndef MOIRAI_REFINE_REFINE_H
#define MOIRAI_REFINE_REFINE_H

#include <moirai/refine.h>

typedef struct refine_segment {
    int32_t device; /* in refine_timeline.device */
    int64_t start_ns, finish_ns, median_ns;
    int64_t work_ns;         /* planned; 0: the file does not say */
    int32_t first_op, n_ops; /* in refine_timeline.op */
} refine_segment;

typedef struct refine_transfer {
    int32_t from, to;   /* devices of the timeline */
    const char *tensor; /* NULL: the file does not say */
    int64_t bytes, planned_ns, start_ns, finish_ns, median_ns;
} refine_transfer;

typedef struct refine_timeline {
    const char *label;
    int64_t latency_ns; /* end to end, the median; 0: the file does not say */
    int64_t planned_ns; /* what the plan promised; 0: the file does not say */
    int32_t n_devices;
    const char *device[MOIRAI_MASK_DEVICES];
    int32_t key[MOIRAI_MASK_DEVICES];     /* column of the graph's times; set where a segment ran */
    int32_t number[MOIRAI_MASK_DEVICES];  /* in the cluster */
    int64_t busy_ns[MOIRAI_MASK_DEVICES]; /* for a request, with several in flight; 0: the file does not say */
    int64_t load_ns[MOIRAI_MASK_DEVICES]; /* the same as planned */
    size_t n_segments, n_transfers, n_ops;
    refine_segment *segment; /* by device, in order */
    refine_transfer *transfer;
    const char **op;
    int32_t *op_number; /* of the graph */
    void *doc;          /* owns the strings */
} refine_timeline;

typedef struct refiner {
    moirai_graph *g;
    moirai_cluster *c; /* or NULL */
    int32_t n;
    refine_timeline *t;
    int64_t *time_ns;    /* the new table */
    int64_t *latency_ns; /* the new latencies of all channels, [from * n_devices + to] */
    int64_t *rate;       /* their new bandwidths, bytes per second */
    int32_t n_rates;     /* of which runs told so many */
    bool as_measured;
    bool cuts_seen;      /* a run had transfers: latencies are those of cuts */
    int64_t *segment_ns; /* [key] what a segment takes beside its operators; -1: too few tell, or no cluster */
    int32_t *class_of;   /* [op] operators that are equal: of one type, with the same times everywhere */
    int32_t n_classes;
} refiner;

/* Of an operator's time in tables [op][key] such as the graph's. */
static inline int64_t refine_cell(const moirai_graph *g, int32_t op, int32_t key)
{
    return (int64_t)op * g->n_time_keys + key;
}

/* ---- refine_timeline.c ---- */
int refine_timeline_parse(refine_timeline *out, const char *json, size_t length, const char *label);
void refine_timeline_free(refine_timeline *t);
/* The middle one of n numbers, which get sorted; 0 if there are none. */
double refine_median(double *number, size_t n);

/* ---- refine_merge.c ---- several runs of one plan become one; r->n falls. */
int refine_merge(refiner *r);

/* ---- refine_line.c ---- a line through points that outliers do not move. */
typedef struct refine_point {
    double x, y;
} refine_point;
/* Sorts the points by falling x. Without two different x: slope 0. */
int refine_line(double *slope, double *intercept, refine_point *p, size_t n);

/* ---- refine_fit.c ---- prices of segments (with a cluster) and times of operators. */
int refine_classes(refiner *r);
int refine_fit(refiner *r);
/* Afterwards, to predict the last run as it was. */
void refine_meet_last(refiner *r);

/* ---- refine_load.c ---- last of all: times as they are with requests in flight, where runs had them. */
int refine_load(refiner *r);

/* ---- refine_rates.c ---- bandwidths, from transfers of several sizes. */
int refine_rates(refiner *r);
/* Did the receiver wait for this message? Others are noted when it next looks, and may have been there for long. */
bool refine_awaited(const refine_timeline *t, const refine_transfer *x);

/* ---- refine_links.c ---- latencies, from the transfers, rates and segment_ns. */
int refine_latencies(refiner *r);
void refine_links_set(moirai_cluster *c, const int64_t *latency_ns, const int64_t *rate);

/* ---- refine_replay.c ---- what cuts cost beyond that, so that predictions end when the runs did. */
int refine_replay(refiner *r, int64_t *extra_ns);

#endif
