/* The state of `moirai-rank profile`, shared by its steps. */
#ifndef MOIRAI_RANK_PROFILE_RANK_PROFILE_JOB_H
#define MOIRAI_RANK_PROFILE_RANK_PROFILE_JOB_H

#include <moirai/cluster.h>
#include <moirai/onnx.h>

#include "rank/mpi_world.h"
#include "rank/probe/rank_probe.h"
#include "rank/profile/rank_profile.h"

typedef struct profile_piece {
    uint8_t *data;
    size_t length;
} profile_piece;

/* How it went on one device. Plain bytes, sent as it is. */
typedef struct profile_summary {
    char host[PROBE_TEXT];
    char device[512]; /* all that times depend on, beside the piece */
    char first_failure[256];
    int64_t overhead_ns;
    double load; /* of the host before this device's turn */
    int32_t n_threads;
    int32_t n_measured, n_cached, n_failed, n_again; /* pieces; n_again: in more than one batch */
    profile_time whole;                              /* the network as one; median_ns -1: not known */
} profile_summary;

typedef struct profile_job {
    rank_world w;
    const char *model_path, *cluster_path, *output_path, *report_path, *cache_given;
    bool fresh, progress, cold; /* cold: the graph's times are those with nothing in the caches */
    double cache_days;
    profile_effort effort;
    moirai_cluster *cluster;
    char cache[4096];

    moirai_graph *graph;  /* rank 0: coarse, to get its times */
    int32_t *piece_of_op; /* rank 0: -1 where an operator can't be cut out */
    int32_t n_pieces;
    profile_piece *piece;
    int64_t weight_bytes; /* of all operators */
    profile_piece whole;  /* all operators as one; no data where they can't be cut out, */

    profile_summary *summary; /* [rank]; own, or all on rank 0 */
    profile_time *time;       /* [rank * n_pieces + piece]; own, or all on rank 0 */
} profile_job;

int rank_profile_cut(profile_job *job, const moirai_onnx_options *options, const char *rules);
/* Pieces from rank 0 to all. Collective. */
int rank_profile_share(profile_job *job);
/* Every piece on this rank's device, from the cache where it knows. */
int rank_profile_measure(profile_job *job, const rank_ort *ort);
/* Rank 0: times into the graph, estimates where there are none, both files. */
int rank_profile_write(profile_job *job);

#endif
