/* A batch of independent jobs on a few threads. */
#ifndef MOIRAI_UTIL_POOL_H
#define MOIRAI_UTIL_POOL_H

#include <stdint.h>

/* Runs job(data, i) for i in 0 .. n-1 on up to `threads` threads (0: all cores; 1,024 at most) and waits. Returns the
 * result of the first failing job by number, with its message, or 0: the outcome does not depend on the threads. */
typedef int (*util_job_fn)(void *data, int32_t i);
int util_pool_run(util_job_fn job, void *data, int32_t n, int threads);

#endif
