/* The computing thread of a stream: of the requests whose next segment has its inputs, the oldest, or the one whose segment is due first. */
#include "rank/stream/stream.h"

#include <stdio.h>
#include <string.h>

/* ---- what a request has ---- */

void stream_made(stream_lane *lane, int tensor)
{
    for (int i = 0; i < lane->copy->n_sends; i++)
        if (lane->send[i].tensor == tensor && lane->send[i].state == STREAM_IDLE)
            lane->send[i].state = STREAM_READY;
}

void stream_fail(stream *s, stream_lane *lane, int rc)
{
    if (!lane->done.failed) {
        lane->done.failed = rc;
        snprintf(lane->done.text, sizeof lane->done.text, "device '%.60s': %s", s->x->device->name,
                 moirai_error_message());
    }
    lane->next_segment = lane->copy->x->device->n_segments;
    for (int i = 0; i < lane->copy->n_sends; i++)
        if (lane->send[i].state == STREAM_IDLE)
            lane->send[i].state = STREAM_READY;
}

/* ---- one segment ---- */

static bool has_inputs(const stream_lane *lane)
{
    const stream_copy *c = lane->copy;
    int k = lane->next_segment;
    for (int i = 0; i < c->n_waits[k]; i++)
        if (lane->recv[c->wait[k][i]].state != STREAM_DONE)
            return false;
    return true;
}

/* When the next segment is due, in requests that have begun since the oldest one (rate/stream/stream.c). */
static double due(const stream *s, const stream_lane *lane)
{
    const rank_exec *x = lane->copy->x;
    double part = (double)x->device->segment[lane->next_segment].start_ns / (double)UTIL_MAX(x->job->makespan_ns, 1);
    return (double)(lane->number - s->lane[s->order[0]].number) + (double)s->x->job->pace * part;
}

static stream_lane *pick(const stream *s)
{
    stream_lane *best = NULL;
    for (int i = 0; i < s->n_active && (!best || s->x->job->pace); i++) {
        stream_lane *lane = &s->lane[s->order[i]];
        if (lane->next_segment < lane->copy->x->device->n_segments && has_inputs(lane) &&
            (!best || due(s, lane) < due(s, best)))
            best = lane;
    }
    return best;
}

static int compute(const stream_lane *lane, int index)
{
    const rank_exec *x = lane->copy->x;
    const job_segment *plan = &x->device->segment[index];
    exec_segment *g = &x->segment[index];
    for (int i = 0; i < plan->n_inputs; i++)
        if (!(g->feed[i] = lane->value[g->in[i]]))
            return moirai_error(MOIRAI_EFAIL, "%s: input '%s' is not there", plan->file, plan->input[i]);
    memset(g->fetch, 0, (size_t)plan->n_outputs * sizeof *g->fetch);
    return rank_ort_check(x->ort,
                          x->ort->api->Run(g->session, NULL, plan->input, g->feed, (size_t)plan->n_inputs, plan->output,
                                           (size_t)plan->n_outputs, g->fetch),
                          plan->file);
}

static void release(const stream *s, OrtValue **value)
{
    if (*value)
        s->x->ort->api->ReleaseValue(*value);
    *value = NULL;
}

static void release_dead(const stream *s, stream_lane *lane, int index)
{
    const rank_exec *x = lane->copy->x;
    const job_segment *plan = &x->device->segment[index];
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? plan->n_outputs : plan->n_inputs); i++) {
            int tensor = side ? x->segment[index].out[i] : x->segment[index].in[i];
            const exec_slot *slot = &x->slot[tensor];
            if (!slot->lasting && !slot->kept && slot->last_use == index)
                release(s, &lane->value[tensor]);
        }
}

/* Under the lock. */
static void hand_out(stream *s, stream_lane *lane, int index, int rc)
{
    const rank_exec *x = lane->copy->x;
    const exec_segment *g = &x->segment[index];
    for (int i = 0; i < x->device->segment[index].n_outputs && !rc; i++) {
        if (lane->done.failed) { /* given up meanwhile */
            release(s, &g->fetch[i]);
            continue;
        }
        lane->value[g->out[i]] = g->fetch[i];
        stream_made(lane, g->out[i]);
    }
    if (rc)
        stream_fail(s, lane, rc);
    if (lane->done.failed)
        return;
    release_dead(s, lane, index);
    lane->next_segment++;
}

/* ---- the thread ---- */

static void *work(void *data)
{
    stream *s = data;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        stream_lane *lane = pick(s);
        if (!lane) {
            s->computing = false;
            pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        int index = lane->next_segment;
        int64_t start_ns = s->segment_ns = rank_clock_own_ns();
        s->computing = lane->computing = true;
        pthread_mutex_unlock(&s->lock);
        int rc = compute(lane, index);
        int64_t busy_ns = rank_clock_own_ns() - start_ns;
        pthread_mutex_lock(&s->lock);
        lane->computing = false;
        lane->done.busy_ns += busy_ns;
        hand_out(s, lane, index, rc);
        pthread_cond_signal(&s->poke);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int stream_compute_start(stream *s)
{
    int error = pthread_create(&s->thread, NULL, work, s);
    if (error)
        return moirai_error(MOIRAI_EFAIL, "can't start a thread: %s", strerror(error));
    s->has_thread = true;
    return 0;
}

void stream_compute_stop(stream *s)
{
    if (!s->has_thread)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->has_thread = false;
}
