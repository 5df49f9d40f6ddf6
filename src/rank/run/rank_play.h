/* A plan that is loaded, played once or several times: warm-up, measured runs, a timeline. */
#ifndef MOIRAI_RANK_RUN_RANK_PLAY_H
#define MOIRAI_RANK_RUN_RANK_PLAY_H

#include "rank/rank_exec.h"

/* The device of this job that rank number `rank` stands for, or NULL. */
const job_device *rank_play_device(const rank_job *job, int rank);
/* Are there enough ranks and tags? */
int rank_play_check(const rank_world *w, const rank_job *job);
/* Opens ONNX Runtime and the sub-models of a device. What was opened is left in *ort and *out, also after a failure. */
int rank_play_load(rank_exec **out, rank_ort **ort, const rank_world *w, const rank_job *job, const job_device *d);
/* Starts the computing thread. Once, before the first play. Collective over the job's ranks. */
int rank_play_begin(rank_exec *x);
/* After the first run: tensors that move get lasting places. x: NULL on a rank without a device. Collective. */
int rank_play_settle(rank_exec *x, const rank_world *w, const rank_job *job);
/* x->job->warmup runs and x->job->runs measured ones, to x->job->result, and as many to x->job->other; the first time one more before them, in which
 * sizes are learned. Collective over the job's ranks. */
int rank_play(rank_exec *x);

#endif
