#include "util/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/util.h"

#define MESSAGE 512

typedef struct pool {
    util_job_fn job;
    void *data;
    int32_t n;
    atomic_int next;
    int *result;
    char (*message)[MESSAGE]; /* messages are thread-local: carry them over */
} pool;

static void *work(void *data)
{
    pool *x = data;
    for (int32_t i; (i = atomic_fetch_add(&x->next, 1)) < x->n;) {
        x->result[i] = x->job(x->data, i);
        if (x->result[i])
            snprintf(x->message[i], MESSAGE, "%s", moirai_error_message());
    }
    return NULL;
}

int util_pool_run(util_job_fn job, void *data, int32_t n, int threads)
{
    pool x = {.job = job, .data = data, .n = n};
    x.result = util_alloc((size_t)n, sizeof *x.result);
    x.message = util_alloc((size_t)n, sizeof *x.message);
    int result = x.result && x.message ? MOIRAI_OK : MOIRAI_EFAIL;
    if (!result) {
        long cores = threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN);
        pthread_t thread[64];
        int32_t helpers = 0, want = (int32_t)UTIL_MIN(UTIL_MIN(cores, 64), n) - 1;
        while (helpers < want && !pthread_create(&thread[helpers], NULL, work, &x))
            helpers++;
        work(&x);
        for (int32_t i = 0; i < helpers; i++)
            pthread_join(thread[i], NULL);
        for (int32_t i = n - 1; i >= 0; i--)
            if (x.result[i])
                result = moirai_error(x.result[i], "%s", x.message[i]);
    }
    free(x.result);
    free(x.message);
    return result;
}
