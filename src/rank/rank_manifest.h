/* Inside rank_job.c and rank_manifest.c: a job is read in two files, since it comes from two. Private. */
#ifndef MOIRAI_RANK_RANK_MANIFEST_H
#define MOIRAI_RANK_RANK_MANIFEST_H

#include "rank/rank_job.h"
#include "util/json.h"

/* The device that `key` of the object names. */
int rank_job_find_device(int *out, const rank_job *job, const util_json_at *at, yyjson_val *object, const char *key);
/* From job->folder; what is read stays in `job` whatever the result. */
int rank_manifest_read(rank_job *job);

#endif
