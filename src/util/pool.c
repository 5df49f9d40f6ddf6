#include "util/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/util.h"

#define MESSAGE 512
#define MOST_THREADS 1024

typedef struct pool {
    util_job_fn job;
    void *data;
    int32_t n;
    atomic_int next;
    pthread_mutex_t lock; /* of what follows: the first failing job by number */
    int32_t failed;
    int result;
    char message[MESSAGE]; /* messages are thread-local: carry it over */
} pool;

static void note_failure(pool *x, int32_t i, int rc)
{
    pthread_mutex_lock(&x->lock);
    if (i < x->failed) {
        x->failed = i;
        x->result = rc;
        snprintf(x->message, MESSAGE, "%s", moirai_error_message());
    }
    pthread_mutex_unlock(&x->lock);
}

static void *work(void *data)
{
    pool *x = data;
    for (int32_t i; (i = atomic_fetch_add(&x->next, 1)) < x->n;) {
        int rc = x->job(x->data, i);
        if (rc)
            note_failure(x, i, rc);
    }
    return NULL;
}

int util_pool_run(util_job_fn job, void *data, int32_t n, int threads)
{
    pool x = {.job = job, .data = data, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER, .failed = INT32_MAX};
    int32_t cores = threads > 0 ? threads : util_cores();
    pthread_t thread[MOST_THREADS];
    int32_t helpers = 0, want = (int32_t)UTIL_MIN(UTIL_MIN(cores, MOST_THREADS), n) - 1;
    while (helpers < want && !pthread_create(&thread[helpers], NULL, work, &x))
        helpers++;
    work(&x);
    for (int32_t i = 0; i < helpers; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&x.lock);
    return x.result ? moirai_error(x.result, "%s", x.message) : 0;
}
