/* A job of `moirai run`: what every rank reads before it starts. The command writes it; docs/run.md describes the
 * manifest. */
#ifndef MOIRAI_RANK_RANK_JOB_H
#define MOIRAI_RANK_RANK_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "rank/rank_tensor.h"
#include "util/json.h"

typedef struct job_segment {
    const char *file;
    int n_inputs, n_outputs, n_ops;
    const char **input, **output;
    int64_t start_ns, finish_ns, work_ns; /* planned */
} job_segment;

typedef struct job_device {
    const char *name;
    int rank; /* or -1: it runs nothing */
    rank_ort_device ort;
    double share; /* of a GPU, 0: all of it */
    int n_segments;
    job_segment *segment;
} job_device;

typedef struct job_transfer {
    const char *tensor;
    int from, to;                       /* devices */
    int tag;                            /* counts the transfers of a pair of devices */
    int64_t bytes, start_ns, finish_ns; /* planned */
} job_transfer;

typedef struct job_value {
    const char *name;
    rank_shape shape; /* type 0, rank -1 where not known */
    const char *file; /* of an input: .npy or .pb that gives it, or NULL */
} job_value;

/* One of several copies of the network that work at the same time. */
typedef struct job_copy {
    const char *job;          /* its file; NULL: the job that lists it */
    int64_t slots, share_ppm; /* of requests in flight; slots 0, in all copies: they take turns by their shares */
} job_copy;

typedef struct rank_job {
    const char *folder;           /* of the sub-models */
    const char *model;            /* the whole one */
    const char *outputs, *result; /* where the outputs go (a folder, or NULL: nowhere) and the measured timeline */
    const char *other;            /* or NULL: as many runs once more, for a timeline of their own; see rank_play.c */
    const char *data_set;         /* ONNX test_data_set folder, or NULL */
    const char *rate;             /* where the measured rate goes, if in_flight is above 1 */
    int64_t warmup, runs, seed, makespan_ns;
    int64_t in_flight; /* requests at a time, beside runs one by one; 1: these alone */
    int64_t pace;      /* at which they go; 0: the oldest goes first */
    double at_least_s; /* to measure their rate */
    bool progress;     /* rank 0 tells how many runs are done */
    double stall_s;
    int n_copies; /* of the network; 1: this job alone */
    job_copy *copy;
    yyjson_val *rank_name; /* devices of all copies in the order of ranks; NULL: those of this job that run something */
    int n_devices, n_ranks; /* ranks: devices that run something, in any copy */
    job_device *device;
    int n_transfers;
    job_transfer *transfer;
    int n_inputs, n_outputs;
    job_value *input, *output;
    yyjson_doc *doc, *manifest; /* own the strings */
} rank_job;

int rank_job_read(rank_job **out, const char *path);
void rank_job_free(rank_job *job);
/* The rank that makes this output of the network. */
int rank_job_owner(const rank_job *job, const char *output);

/* ---- rank_input.c ---- */
/* The value of a network input: from its file, the data set or random. `index`: in job->input. */
int rank_job_input(OrtValue **out, const rank_job *job, const rank_ort *ort, int index);

#endif
