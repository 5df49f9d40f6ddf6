/* Requests that were accepted and wait for their answers. Every one is answered once: with its result, with the words of a
 * device that could not compute it, or when its time is over. One that was under way in a group of ranks that died is
 * asked again. */
#ifndef MOIRAI_SERVE_SERVE_QUEUE_H
#define MOIRAI_SERVE_SERVE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "serve/serve_request.h"

typedef struct serve_job {
    struct serve_job *next;
    serve_request request;
    int64_t id;                   /* in the order of arrival */
    double arrived_s, deadline_s; /* util_seconds */
    const void *carrier;          /* which link it was sent by; NULL: it waits */
    int n_holders;                /* queue, owner, sender: the last one frees it */
    bool answered;
    int code; /* HTTP's, once answered */
    char text[320];
    char *output;
    void (*wake)(void *owner); /* called once, when answered, by any thread; must not call the queue */
    void *owner;
} serve_job;

typedef struct serve_list {
    serve_job *first, **last;
    int64_t n;
} serve_list;

typedef struct serve_queue {
    pthread_mutex_t lock;
    pthread_cond_t news; /* something to take, or an end of taking */
    serve_list waiting, sent;
    int64_t most_waiting, next_id;
    bool closed; /* takes no more requests */
    int64_t n_accepted, n_repeated;
} serve_queue;

void serve_queue_init(serve_queue *q, int64_t most_waiting);
void serve_queue_end(serve_queue *q);

/* One holder, the caller. */
serve_job *serve_job_new(void);
void serve_job_let_go(serve_queue *q, serve_job *j);

/* Accepts the job (its `wake` will come), or answers it here and now: 429 where as many wait as may, 504 where it is late
 * already, 503 where nothing is taken any more. */
bool serve_queue_put(serve_queue *q, serve_job *j);
/* The next one, now sent by `carrier`; NULL if *stop is set or nothing came for some time. The caller is a holder: its
 * answer may come, and be taken, while it is still at work on the request. */
serve_job *serve_queue_take(serve_queue *q, const void *carrier, const atomic_bool *stop);
/* One that this carrier has was computed: takes `output`, or failed: with `text`. False: it has none of that id. */
bool serve_queue_answer(serve_queue *q, const void *carrier, int64_t id, char *output, const char *text);
/* What this carrier has goes back to the front, in its order. Returns how many. */
int64_t serve_queue_return(serve_queue *q, const void *carrier);
/* Answers what is late: 504. */
void serve_queue_expire(serve_queue *q, double now_s);
/* From now on nothing is accepted. */
void serve_queue_close(serve_queue *q);
void serve_queue_wake(serve_queue *q); /* those in serve_queue_take look at *stop */
/* Jobs that wait and that are under way. */
void serve_queue_count(serve_queue *q, int64_t *n_waiting, int64_t *n_sent);
/* Is everything answered? */
bool serve_queue_idle(serve_queue *q);

#endif
