/* The communication of one device during a run.
 *
 * Every receive is posted before the run starts, into a buffer that stays. Sends leave in the plan's order, each when
 * its tensor is there and the one before has been taken over; small ones do not wait for that, since MPI may call a
 * message taken over only when its receiver looks.
 *
 * Two threads look after messages, one at a time (MPI_THREAD_SERIALIZED). The computing thread does it whenever it has
 * nothing to compute or has just made what leaves: no other thread must wake for that, which would take longer than
 * most messages. While it computes, the main thread looks every now and then, so that transfers overlap with computing.
 * As often as that is, it is what an arrival may be noted late while nobody waits for it. What lies in memory of both
 * ends (rank_host.c) is a message without content, which needs no looking after.
 *
 * Sizes are learned, not trusted: in the first run a small header precedes each tensor, and its buffer is made when the
 * header has come. Later runs have the same inputs, so the same sizes. */
#include "rank/rank_exec.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* From the announcement of a run to its start: for messages that take TRIPS round trips, and threads that wake up. */
enum { MARGIN_NS = 300000, MARGIN_MOST_NS = 1000000, TRIPS = 8 };
/* Between two looks, while a device waits: none, then sleeps that double; longer where ranks share cores. */
enum { AWAKE_NS = 5000000, DOZE_NS = 20000, DOZE_MOST_NS = 40000, DOZE_MOST_SHARED_NS = 160000 };
/* Between two looks, while it computes. */
enum { TICK_NS = 200000, TICK_MOST_NS = 1000000, NO_TICK_NS = 20000000 };
/* Sends that need not wait for each other, in sum; and messages that MPI carries over without our looking. */
enum { SMALL_BYTES = 1 << 17, EAGER_BYTES = 1 << 15, LOOK_AHEAD = 4 };

static void fail(const rank_exec *x, int rc)
{
    moirai_error_prefix(rc, "device '%s'", x->device->name);
    rank_world_abort(x->world, rc);
}

static int tag_of(const rank_exec *x, int transfer)
{
    return x->job->transfer[transfer].tag;
}

/* ---- receives ---- */

static void post_header(rank_exec *x, exec_recv *r)
{
    r->request = util_alloc(1, sizeof *r->request);
    if (!r->request)
        fail(x, MOIRAI_EFAIL);
    r->n_requests = 1;
    r->state = RECV_HEADER;
    MPI_Irecv(&r->shape, (int)sizeof r->shape, MPI_BYTE, r->from, tag_of(x, r->transfer), x->world->comm, r->request);
}

static void post_data(rank_exec *x, exec_recv *r)
{
    rank_world_irecv(x->world, r->wire, r->wire_bytes, r->from, tag_of(x, r->transfer), r->request);
    r->state = RECV_DATA;
}

static void learn(rank_exec *x, exec_recv *r)
{
    int rc = rank_shape_bytes(&r->bytes, &r->shape);
    rc = rc ? rc : rank_value_new(&x->slot[r->slot].value, &r->data, x->ort, &r->shape);
    r->wire = r->data;
    r->wire_bytes = r->bytes;
    free(r->request);
    r->n_requests = rc ? 0 : rank_world_chunks(x->world, r->bytes);
    r->request = rc ? NULL : util_alloc(r->n_requests, sizeof *r->request);
    if (rc || !r->request)
        fail(x, rc ? rc : MOIRAI_EFAIL);
    post_data(x, r);
}

static bool all_done(MPI_Request *request, size_t n)
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

/* True if something happened. */
static bool look(rank_exec *x, exec_recv *r)
{
    if (r->state == RECV_DONE || !all_done(r->request, r->n_requests))
        return false;
    if (r->state == RECV_HEADER) {
        learn(x, r);
        return true;
    }
    int rc = r->by->arrive(x, r);
    if (rc)
        fail(x, rc);
    r->finish_ns = rank_clock_own_ns();
    r->state = RECV_DONE;
    return true;
}

/* The first ones that are open, in the plan's order: looking at one moves all messages on, and MPI keeps the order of
 * each sender. In the first run all of them: behind a header comes a message that can't be taken before its header has
 * been, and its sender may have to be rid of it before it sends what those before it in the plan's order wait for. */
static bool poll_receives(rank_exec *x)
{
    int most = x->run ? LOOK_AHEAD : x->n_recvs;
    bool progress = false;
    while (x->first_open < x->n_recvs && x->recv[x->first_open].state == RECV_DONE)
        x->first_open++;
    for (int i = x->first_open, seen = 0; i < x->n_recvs && seen < most; i++) {
        seen += x->recv[i].state != RECV_DONE;
        progress |= look(x, &x->recv[i]);
    }
    return progress;
}

/* ---- sends ---- */

static void start_send(rank_exec *x, exec_send *s, bool first_run)
{
    rank_shape shape;
    size_t bytes;
    void *data;
    int tag = tag_of(x, s->transfer);
    int rc = rank_value_look(&shape, &data, &bytes, x->ort, x->slot[s->slot].value, x->slot[s->slot].name);
    if (rc)
        fail(x, rc);
    s->start_ns = rank_clock_own_ns();
    if (first_run) {
        s->shape = shape;
        s->bytes = s->wire_bytes = bytes;
        if (x->gpu && !(s->wire = util_alloc(bytes, 1))) /* until the pinned one is there */
            fail(x, MOIRAI_EFAIL);
        s->n_requests = rank_world_chunks(x->world, bytes);
        if (!(s->request = util_alloc(s->n_requests, sizeof *s->request)))
            fail(x, MOIRAI_EFAIL);
        rank_world_send(x->world, &s->shape, sizeof s->shape, s->to, tag); /* small: sent at once */
    } else if (memcmp(&shape, &s->shape, sizeof shape)) {
        fail(x, moirai_error(MOIRAI_EFAIL, "tensor '%s' changes its shape from run to run", x->slot[s->slot].name));
    }
    if ((rc = s->by->leave(x, s, data)))
        fail(x, rc);
    rank_world_isend(x->world, s->wire, s->wire_bytes, s->to, tag, s->request);
}

static bool may_start(const rank_exec *x)
{
    if (x->next_send == x->n_sends || !x->slot[x->send[x->next_send].slot].ready)
        return false;
    const exec_send *s = &x->send[x->next_send];
    size_t bytes = x->run ? s->wire_bytes : (size_t)x->job->transfer[s->transfer].bytes;
    return x->first_sent == x->next_send || x->sending_bytes + bytes <= SMALL_BYTES;
}

static bool poll_sends(rank_exec *x)
{
    bool progress = false;
    for (;;) {
        exec_send *s = &x->send[x->first_sent];
        if (may_start(x)) {
            exec_send *next = &x->send[x->next_send++];
            start_send(x, next, x->run == 0);
            x->sending_bytes += next->wire_bytes;
        } else if (x->first_sent < x->next_send && all_done(s->request, s->n_requests)) {
            s->finish_ns = rank_clock_own_ns();
            x->sending_bytes -= s->wire_bytes;
            x->first_sent++;
        } else {
            return progress;
        }
        progress = true;
    }
}

/* ---- both threads ---- */

bool rank_comm_progress(rank_exec *x)
{
    bool sent = poll_sends(x), received = poll_receives(x);
    if (sent || received)
        x->news_ns = rank_clock_own_ns();
    return sent || received;
}

/* Between two looks: where the core is the device's own, its thread stays awake for AWAKE_NS. */
static void rest(const rank_exec *x, int64_t since_ns, long *doze_ns)
{
    if (x->own_core && rank_clock_own_ns() - since_ns < AWAKE_NS) {
        sched_yield();
        return;
    }
    struct timespec t = {0, *doze_ns};
    nanosleep(&t, NULL);
    *doze_ns = UTIL_MIN(2 * *doze_ns, x->own_core ? DOZE_MOST_NS : DOZE_MOST_SHARED_NS);
}

static bool all_there(rank_exec *x, const int *recv, int n)
{
    for (int i = 0; i < n; i++) {
        exec_recv *r = &x->recv[recv[i]];
        while (r->state != RECV_DONE)
            if (!look(x, r)) {
                rank_comm_progress(x);
                return false;
            }
    }
    return true;
}

bool rank_comm_await(rank_exec *x, const int *recv, int n)
{
    bool go_on = true;
    int64_t since_ns = 0;
    long doze_ns = DOZE_NS;
    for (bool there = n == 0; !there && go_on;) {
        pthread_mutex_lock(&x->lock);
        there = all_there(x, recv, n);
        go_on = !x->stop;
        atomic_store(&x->waiting, !there);
        pthread_mutex_unlock(&x->lock);
        since_ns = since_ns ? since_ns : rank_clock_own_ns();
        if (!there)
            rest(x, since_ns, &doze_ns);
    }
    return go_on;
}

/* ---- a run ---- */

static void prepare(rank_exec *x, int run)
{
    x->run = run;
    x->first_open = x->first_sent = x->next_send = 0;
    x->sending_bytes = 0;
    x->news_ns = rank_clock_own_ns();
    for (int i = 0; i < x->n_slots; i++) {
        exec_slot *slot = &x->slot[i];
        slot->ready = false;
        if (slot->lasting || slot->placed || !slot->value)
            continue;
        x->ort->api->ReleaseValue(slot->value);
        slot->value = NULL;
    }
    for (int i = 0; i < x->n_recvs; i++)
        run == 0 ? post_header(x, &x->recv[i]) : post_data(x, &x->recv[i]);
}

static void let_go(rank_exec *x, int run, int64_t *begin_common_ns)
{
    rank_world_barrier(x->world); /* every receive is posted */
    int64_t margin_ns = UTIL_MIN(UTIL_MAX(TRIPS * x->clock.round_trip_ns, MARGIN_NS), MARGIN_MOST_NS);
    *begin_common_ns = rank_clock_common_ns(&x->clock, rank_clock_own_ns()) + margin_ns;
    rank_world_bcast(x->world, begin_common_ns, sizeof *begin_common_ns, 0);
    pthread_mutex_lock(&x->lock);
    x->begin_ns = rank_clock_from_common_ns(&x->clock, *begin_common_ns);
    x->go = run + 1;
    pthread_cond_signal(&x->news);
    pthread_mutex_unlock(&x->lock);
}

static bool all_over(const rank_exec *x)
{
    return atomic_load(&x->done) > x->run && x->first_open == x->n_recvs && x->first_sent == x->n_sends;
}

/* Under the lock. */
static void check_stall(rank_exec *x)
{
    if (atomic_load(&x->done) <= x->run && !atomic_load(&x->waiting))
        x->news_ns = rank_clock_own_ns(); /* it computes */
    double quiet_s = (double)(rank_clock_own_ns() - x->news_ns) / 1e9;
    double planned_s = (double)x->job->makespan_ns / 1e9;
    if (x->job->stall_s <= 0 || quiet_s < UTIL_MAX(x->job->stall_s, RANK_STALL_TIMES * planned_s))
        return;
    for (int i = 0; i < x->n_recvs; i++)
        if (x->recv[i].state != RECV_DONE) {
            const job_transfer *t = &x->job->transfer[x->recv[i].transfer];
            fail(x, moirai_error(MOIRAI_EFAIL, "nothing came for %.0f s; it waits for tensor '%s' from device '%s'",
                                 quiet_s, t->tensor, x->job->device[t->from].name));
        }
    if (x->first_sent < x->n_sends) {
        const job_transfer *t = &x->job->transfer[x->send[x->first_sent].transfer];
        fail(x, moirai_error(MOIRAI_EFAIL, "device '%s' has not taken tensor '%s' for %.0f s",
                             x->job->device[t->to].name, t->tensor, quiet_s));
    }
}

/* Under the lock, which is free meanwhile: until all is computed, or for a moment. */
static void doze(rank_exec *x, long ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ns;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    pthread_cond_timedwait(&x->poke, &x->lock, &t);
}

/* Small messages arrive without us. The others need both sides to look. */
static bool has_large(const rank_exec *x)
{
    for (int i = x->first_sent; i < x->next_send; i++)
        if (x->send[i].wire_bytes > EAGER_BYTES)
            return true;
    for (int i = x->first_open; i < x->n_recvs; i++)
        if (x->recv[i].state != RECV_DONE && (x->run == 0 || x->recv[i].wire_bytes > EAGER_BYTES))
            return true;
    return false;
}

/* The main thread while segments are computed: large messages go on, unless the computing thread sees to them. A look
 * takes the core for 10 to 30 us, so it does not come often. */
static void look_after(rank_exec *x)
{
    long tick_ns = TICK_NS;
    while (atomic_load(&x->done) <= x->run && !atomic_load(&x->failed)) {
        bool large = has_large(x);
        doze(x, large ? tick_ns : NO_TICK_NS);
        bool progress = large && !atomic_load(&x->waiting) && rank_comm_progress(x);
        tick_ns = progress ? TICK_NS : UTIL_MIN(2 * tick_ns, TICK_MOST_NS);
        check_stall(x);
    }
}

void rank_comm_run(rank_exec *x, int run, int64_t *begin_common_ns)
{
    prepare(x, run);
    let_go(x, run, begin_common_ns);
    pthread_mutex_lock(&x->lock);
    look_after(x);
    int64_t since_ns = rank_clock_own_ns();
    long doze_ns = DOZE_NS;
    for (;;) { /* what is still under way */
        int rc = atomic_load(&x->failed);
        if (rc) {
            moirai_error(rc, "%s", x->message);
            rank_world_abort(x->world, rc);
        }
        rank_comm_progress(x);
        if (all_over(x))
            break;
        check_stall(x);
        rest(x, since_ns, &doze_ns);
    }
    pthread_mutex_unlock(&x->lock);
}
