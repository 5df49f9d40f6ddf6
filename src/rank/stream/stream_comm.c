/* The main thread of a stream: messages. Whoever of the two threads has something new for the other wakes it; between
 * looks at MPI this thread sleeps, a little while the device waits for messages, longer while it computes, longest while
 * there is no request at all: a look takes the core for some microseconds. */
#include "rank/stream/stream.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Sends that need not wait for each other, in sum; receives of a lane that are looked at in one go. */
enum { SMALL_BYTES = 1 << 17, LOOK_AHEAD = 4 };
/* Between two looks: awake where the core is the device's own, then sleeps that double from DOZE_NS. */
enum { AWAKE_NS = 2000000, DOZE_NS = 20000, WAITING_MOST_NS = 40000, SHARED_MOST_NS = 160000 };
enum { COMPUTING_NS = 100000, COMPUTING_MOST_NS = 200000, IDLE_MOST_NS = 1000000 };

bool stream_all_done(MPI_Request *request, size_t n)
{
    MPI_Status status[16];
    for (size_t at = 0; at < n; at += 16) {
        int done;
        MPI_Testall((int)UTIL_MIN(n - at, (size_t)16), request + at, &done, status);
        if (!done)
            return false;
    }
    return true;
}

void stream_post(const stream *s, stream_message *m)
{
    rank_world_irecv(&s->world, m->data, m->bytes, m->peer, m->tag, m->request);
    m->state = STREAM_MOVING;
}

void stream_cancel(MPI_Request *request, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (request[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&request[i]);
            MPI_Request_free(&request[i]);
        }
}

/* ---- a request comes ---- */

static void post_begin(stream *s)
{
    MPI_Irecv(&s->begin, (int)sizeof s->begin, MPI_BYTE, 0, STREAM_BEGIN_TAG, s->world.comm, &s->begin_request);
}

static void begin(stream *s)
{
    stream_lane *lane = &s->lane[s->begin.lane];
    const rank_exec *x = lane->copy->x;
    const rank_job *job = x->job;
    lane->number = s->begin.number;
    lane->variant = s->begin.variant;
    lane->next_segment = lane->first_open = 0;
    rank_world_wait(&lane->done_request, 1); /* rank 0 has it: it answered */
    memset(&lane->done, 0, sizeof lane->done);
    lane->done.number = lane->number;
    lane->done.lane = s->begin.lane;
    s->order[s->n_active++] = (int)s->begin.lane; /* requests begin in their order */
    for (int i = 0; !s->feeds && i < job->n_inputs; i++) {
        int slot = rank_exec_slot(x, job->input[i].name);
        if (slot >= 0)
            lane->value[slot] = s->variant[lane->variant][i];
    }
}

static bool poll_begin(stream *s)
{
    bool news = false;
    while (!s->ended && stream_all_done(&s->begin_request, 1)) {
        news = true;
        if (s->begin.number < 0) {
            s->ended = true;
        } else {
            begin(s);
            post_begin(s);
        }
    }
    return news;
}

/* ---- tensors ---- */

static bool look(stream_lane *lane, stream_message *m)
{
    if (m->state == STREAM_DONE || !stream_all_done(m->request, m->n_requests))
        return false;
    m->state = STREAM_DONE;
    stream_made(lane, m->tensor);
    return true;
}

/* The first ones that are open, which moves all messages on, and whatever the next segment waits for: that may be further
 * on, and what is open before it may wait for that segment. */
static bool poll_receives(stream_lane *lane)
{
    const stream_copy *c = lane->copy;
    bool news = false;
    int k = lane->next_segment;
    while (lane->first_open < c->n_recvs && lane->recv[lane->first_open].state == STREAM_DONE)
        lane->first_open++;
    for (int i = lane->first_open, seen = 0; i < c->n_recvs && seen < LOOK_AHEAD; i++) {
        stream_message *m = &lane->recv[i];
        if (m->state == STREAM_DONE)
            continue;
        seen++;
        news |= look(lane, m);
    }
    for (int i = 0; k < c->x->device->n_segments && i < c->n_waits[k]; i++)
        news |= look(lane, &lane->recv[c->wait[k][i]]);
    return news;
}

/* The tensor's own memory, or zeros where there is no such tensor. */
static void start_send(stream *s, stream_lane *lane, stream_message *m)
{
    rank_shape shape;
    size_t bytes;
    OrtValue *value = lane->value[m->tensor];
    m->data = s->zeros;
    if (value) {
        const char *name = lane->copy->x->slot[m->tensor].name;
        int rc = rank_value_look(&shape, &m->data, &bytes, s->x->ort, value, name);
        if (!rc && memcmp(&shape, &m->shape, sizeof shape))
            rc = moirai_error(MOIRAI_EFAIL, "tensor '%s' changes its shape from request to request", name);
        if (rc) {
            m->data = s->zeros;
            stream_fail(s, lane, rc);
        }
    }
    rank_world_isend(&s->world, m->data, m->bytes, m->peer, m->tag, m->request);
    m->state = STREAM_MOVING;
    s->sending_bytes += m->bytes;
}

static bool poll_sends(stream *s, stream_lane *lane)
{
    bool news = false;
    for (int i = 0; i < lane->copy->n_sends; i++) {
        stream_message *m = &lane->send[i];
        if (m->state == STREAM_READY && (!s->sending_bytes || s->sending_bytes + m->bytes <= SMALL_BYTES)) {
            start_send(s, lane, m);
            news = true;
        }
        if (m->state == STREAM_MOVING && stream_all_done(m->request, m->n_requests)) {
            m->state = STREAM_DONE;
            s->sending_bytes -= m->bytes;
            news = true;
        }
    }
    return news;
}

/* ---- a request leaves ---- */

static bool is_over(const stream_lane *lane)
{
    const stream_copy *c = lane->copy;
    if (lane->computing || lane->next_segment < c->x->device->n_segments || lane->first_open < c->n_recvs)
        return false;
    for (int i = 0; i < c->n_sends; i++)
        if (lane->send[i].state != STREAM_DONE)
            return false;
    return true;
}

static void reset(stream *s, stream_lane *lane)
{
    const rank_exec *x = lane->copy->x;
    for (int i = 0; i < x->n_slots; i++) {
        if (x->slot[i].lasting || !lane->value[i])
            continue;
        x->ort->api->ReleaseValue(lane->value[i]);
        lane->value[i] = NULL;
    }
    for (int i = 0; !s->feeds && i < x->job->n_inputs; i++) {
        int slot = rank_exec_slot(x, x->job->input[i].name);
        if (slot >= 0)
            lane->value[slot] = NULL; /* the variant's */
    }
    for (int i = 0; i < lane->copy->n_recvs; i++)
        stream_post(s, &lane->recv[i]);
    for (int i = 0; i < lane->copy->n_sends; i++)
        lane->send[i].state = STREAM_IDLE;
}

static void leave(stream *s, int at)
{
    stream_lane *lane = &s->lane[s->order[at]];
    int rc = s->feeds || lane->done.failed ? 0 : stream_check(s, lane);
    if (rc)
        stream_fail(s, lane, rc);
    reset(s, lane);
    lane->number = -1;
    MPI_Isend(&lane->done, (int)sizeof lane->done, MPI_BYTE, 0, STREAM_DONE_TAG, s->world.comm, &lane->done_request);
    s->n_active--;
    memmove(&s->order[at], &s->order[at + 1], (size_t)(s->n_active - at) * sizeof *s->order);
}

/* Under the lock. */
static bool progress(stream *s)
{
    bool news = poll_begin(s);
    for (int i = 0; i < s->n_active; i++) {
        stream_lane *lane = &s->lane[s->order[i]];
        news |= poll_receives(lane);
        news |= poll_sends(s, lane);
        if (is_over(lane)) {
            leave(s, i--);
            news = true;
        }
    }
    if (news)
        pthread_cond_signal(&s->work);
    stream_watch_answer(s);
    return (s->front && stream_front_progress(s)) || news;
}

/* ---- between looks ---- */

/* Under the lock, which is free meanwhile. */
static void rest(stream *s, int64_t quiet_ns, long *doze_ns)
{
    bool waiting = s->n_active && !s->computing;
    if (waiting && s->x->own_core && quiet_ns < AWAKE_NS) {
        pthread_mutex_unlock(&s->lock);
        sched_yield();
        pthread_mutex_lock(&s->lock);
        return;
    }
    long most = s->computing     ? COMPUTING_MOST_NS
                : !waiting       ? IDLE_MOST_NS
                : s->x->own_core ? WAITING_MOST_NS
                                 : SHARED_MOST_NS;
    long ns = UTIL_MIN(s->computing ? UTIL_MAX(*doze_ns, COMPUTING_NS) : *doze_ns, most);
    *doze_ns = UTIL_MIN(2 * ns, IDLE_MOST_NS);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ns;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    pthread_cond_timedwait(&s->poke, &s->lock, &t);
}

/* The oldest request waits for a tensor that does not come. Where a server watches, it is told who hangs, which needs not be
 * who should have sent this one. */
static void check_stall(stream *s, int64_t quiet_ns)
{
    double quiet_s = (double)quiet_ns / 1e9, stall_s = s->x->job->stall_s;
    if (s->feeds || stall_s <= 0 || quiet_s < stall_s || s->computing || !s->n_active)
        return;
    const stream_lane *lane = &s->lane[s->order[0]];
    const rank_exec *x = lane->copy->x;
    for (int i = 0; i < x->n_recvs; i++)
        if (lane->recv[i].state != STREAM_DONE) {
            const job_transfer *t = &x->job->transfer[x->recv[i].transfer];
            int rc = moirai_error(MOIRAI_EFAIL,
                                  "device '%s': nothing came for %.0f s; it waits for tensor '%s' from device '%s'",
                                  x->device->name, quiet_s, t->tensor, x->job->device[t->from].name);
            rank_world_abort(&s->world, rc);
        }
}

static void look_after(stream *s)
{
    long doze_ns = DOZE_NS;
    s->news_ns = rank_clock_own_ns();
    pthread_mutex_lock(&s->lock);
    while (!s->ended || s->n_active) {
        if (progress(s)) {
            s->news_ns = rank_clock_own_ns();
            doze_ns = DOZE_NS;
            continue;
        }
        int64_t quiet_ns = rank_clock_own_ns() - s->news_ns;
        check_stall(s, quiet_ns);
        rest(s, quiet_ns, &doze_ns);
    }
    pthread_mutex_unlock(&s->lock);
}

int stream_play(stream *s, const stream_source *source)
{
    int rc = source ? stream_front_open(s, source) : 0;
    rc = rc ? rc : stream_watch_open(s, source);
    rc = rc ? rc : stream_compute_start(s);
    for (int i = 0; i < s->n_lanes && !rc; i++)
        for (int r = 0; r < s->lane[i].copy->n_recvs; r++)
            stream_post(s, &s->lane[i].recv[r]);
    if (!rc)
        post_begin(s);
    rc = rank_world_agree(&s->world, rc); /* all receives are posted */
    if (rc)
        return rc;
    look_after(s);
    stream_compute_stop(s);
    stream_watch_end(s);
    for (int i = 0; i < s->n_lanes; i++) {
        rank_world_wait(&s->lane[i].done_request, 1);
        for (int r = 0; r < s->lane[i].copy->n_recvs; r++)
            stream_cancel(s->lane[i].recv[r].request, s->lane[i].recv[r].n_requests);
    }
    return rank_world_agree(&s->world, 0);
}
