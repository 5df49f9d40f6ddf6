/* The queue: two lists in the order of arrival, of what waits and of what is under way. */
#include "serve/serve_queue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/util.h"

/* ---- lists ---- */

static void append(serve_list *l, serve_job *j)
{
    j->next = NULL;
    *(l->first ? l->last : &l->first) = j;
    l->last = &j->next;
    l->n++;
}

/* Takes out what `*at` points to. */
static serve_job *cut(serve_list *l, serve_job **at)
{
    serve_job *j = *at;
    *at = j->next;
    if (l->last == &j->next)
        l->last = at;
    j->next = NULL;
    l->n--;
    return j;
}

/* ---- jobs ---- */

serve_job *serve_job_new(void)
{
    serve_job *j = util_alloc(1, sizeof *j);
    if (j)
        j->n_holders = 1;
    return j;
}

static void let_go(serve_job *j)
{
    if (--j->n_holders)
        return;
    serve_request_free(&j->request);
    free(j->output);
    free(j);
}

void serve_job_let_go(serve_queue *q, serve_job *j)
{
    pthread_mutex_lock(&q->lock);
    let_go(j);
    pthread_mutex_unlock(&q->lock);
}

static void answer(serve_job *j, int code, const char *format, ...) MOIRAI_PRINTF(3, 4);
static void answer(serve_job *j, int code, const char *format, ...)
{
    va_list args;
    if (j->answered)
        return;
    va_start(args, format);
    vsnprintf(j->text, sizeof j->text, format, args);
    va_end(args);
    j->answered = true;
    j->code = code;
    if (j->wake)
        j->wake(j->owner);
}

/* ---- the queue ---- */

void serve_queue_init(serve_queue *q, int64_t most_waiting)
{
    memset(q, 0, sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->news, NULL);
    q->most_waiting = most_waiting;
}

void serve_queue_end(serve_queue *q)
{
    while (q->waiting.first)
        let_go(cut(&q->waiting, &q->waiting.first));
    while (q->sent.first)
        let_go(cut(&q->sent, &q->sent.first));
    pthread_cond_destroy(&q->news);
    pthread_mutex_destroy(&q->lock);
}

bool serve_queue_put(serve_queue *q, serve_job *j)
{
    pthread_mutex_lock(&q->lock);
    bool fits = !q->closed && q->waiting.n < q->most_waiting;
    if (q->closed) {
        answer(j, 503, "the server is ending and takes no more requests");
    } else if (util_seconds() >= j->deadline_s) {
        fits = false;
        answer(j, 504, "no answer within %.4g s: that was over when the request had been read",
               j->deadline_s - j->arrived_s);
    } else if (!fits) {
        answer(j, 429, "%lld requests wait already, as many as may: try again later", (long long)q->waiting.n);
    } else {
        j->id = q->next_id++;
        j->n_holders++;
        q->n_accepted++;
        append(&q->waiting, j);
        pthread_cond_signal(&q->news);
    }
    pthread_mutex_unlock(&q->lock);
    return fits;
}

serve_job *serve_queue_take(serve_queue *q, const void *carrier, const atomic_bool *stop)
{
    serve_job *j = NULL;
    pthread_mutex_lock(&q->lock);
    if (!q->waiting.first && !atomic_load(stop)) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_sec++;
        pthread_cond_timedwait(&q->news, &q->lock, &t);
    }
    if (q->waiting.first && !atomic_load(stop)) {
        j = cut(&q->waiting, &q->waiting.first);
        j->carrier = carrier;
        j->n_holders++;
        append(&q->sent, j);
    }
    pthread_mutex_unlock(&q->lock);
    return j;
}

bool serve_queue_answer(serve_queue *q, const void *carrier, int64_t id, char *output, const char *text)
{
    pthread_mutex_lock(&q->lock);
    serve_job **at = &q->sent.first;
    while (*at && ((*at)->carrier != carrier || (*at)->id != id))
        at = &(*at)->next;
    bool fits = *at != NULL;
    if (fits) {
        serve_job *j = cut(&q->sent, at);
        if (!j->answered) {
            j->output = output;
            output = NULL;
        }
        answer(j, text ? 500 : 200, "%s", text ? text : "");
        let_go(j);
    }
    pthread_mutex_unlock(&q->lock);
    free(output);
    return fits;
}

int64_t serve_queue_return(serve_queue *q, const void *carrier)
{
    serve_list back = {0};
    pthread_mutex_lock(&q->lock);
    for (serve_job **at = &q->sent.first; *at;) {
        if ((*at)->carrier != carrier) {
            at = &(*at)->next;
            continue;
        }
        serve_job *j = cut(&q->sent, at);
        j->carrier = NULL;
        if (j->answered)
            let_go(j);
        else
            append(&back, j);
    }
    int64_t n = back.n;
    if (n) {
        *back.last = q->waiting.first;
        if (!q->waiting.first)
            q->waiting.last = back.last;
        q->waiting.first = back.first;
        q->waiting.n += n;
        q->n_repeated += n;
    }
    pthread_cond_broadcast(&q->news);
    pthread_mutex_unlock(&q->lock);
    return n;
}

void serve_queue_expire(serve_queue *q, double now_s)
{
    pthread_mutex_lock(&q->lock);
    for (serve_job **at = &q->waiting.first; *at;) {
        if (now_s < (*at)->deadline_s) {
            at = &(*at)->next;
            continue;
        }
        serve_job *j = cut(&q->waiting, at);
        answer(j, 504, "no answer within %.4g s: the request was still waiting", j->deadline_s - j->arrived_s);
        let_go(j);
    }
    for (serve_job *j = q->sent.first; j; j = j->next)
        if (now_s >= j->deadline_s)
            answer(j, 504, "no answer within %.4g s: the request was being computed", j->deadline_s - j->arrived_s);
    pthread_mutex_unlock(&q->lock);
}

void serve_queue_close(serve_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_mutex_unlock(&q->lock);
}

void serve_queue_wake(serve_queue *q)
{
    pthread_mutex_lock(&q->lock);
    pthread_cond_broadcast(&q->news);
    pthread_mutex_unlock(&q->lock);
}

void serve_queue_count(serve_queue *q, int64_t *n_waiting, int64_t *n_sent)
{
    pthread_mutex_lock(&q->lock);
    *n_waiting = q->waiting.n;
    *n_sent = q->sent.n;
    pthread_mutex_unlock(&q->lock);
}

bool serve_queue_idle(serve_queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool idle = !q->waiting.n;
    for (const serve_job *j = q->sent.first; j; j = j->next)
        idle = idle && j->answered;
    pthread_mutex_unlock(&q->lock);
    return idle;
}
