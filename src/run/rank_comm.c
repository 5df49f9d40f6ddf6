/* The communication of one device during a run, in the main thread.
 *
 * Every receive is posted before the run starts, into a buffer that stays. Sends leave in the plan's order, one at a
 * time: the next one starts when the one before has been taken over and its own tensor is there. So transfers overlap
 * with computing and never block it, and MPI is called from one thread only (MPI_THREAD_FUNNELED is enough).
 *
 * Sizes are learned, not trusted: in the first run a small header precedes each tensor, and its buffer is made when the
 * header has come. Later runs have the same inputs, so the same sizes. */
#include "run/rank_exec.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MARGIN_NS 1000000 /* from the announcement of a run to its start */
/* Sleeps between two looks, twice as long each time while nothing happens; longer where ranks share cores. */
enum { DOZE_NS = 20000, DOZE_MOST_NS = 40000, DOZE_MOST_SHARED_NS = 160000 };

static void fail(const rank_exec *x, int rc)
{
    moirai_error_prefix(rc, "device '%s'", x->device->name);
    moirai_world_abort(x->world, rc);
}

static int tag_of(const rank_exec *x, int transfer)
{
    return x->job->transfer[transfer].tag;
}

/* ---- receives ---- */

static void post_header(rank_exec *x, exec_recv *r)
{
    r->request = moirai_alloc(1, sizeof *r->request);
    if (!r->request)
        fail(x, MOIRAI_EFAIL);
    r->n_requests = 1;
    r->state = RECV_HEADER;
    MPI_Irecv(&r->shape, (int)sizeof r->shape, MPI_BYTE, r->from, tag_of(x, r->transfer), MPI_COMM_WORLD, r->request);
}

static void post_data(rank_exec *x, exec_recv *r)
{
    moirai_world_irecv(x->world, r->data, r->bytes, r->from, tag_of(x, r->transfer), r->request);
    r->state = RECV_DATA;
}

static void learn(rank_exec *x, exec_recv *r)
{
    int rc = moirai_rank_shape_bytes(&r->bytes, &r->shape);
    rc = rc ? rc : moirai_rank_value_new(&x->slot[r->slot].value, &r->data, x->ort, &r->shape);
    free(r->request);
    r->n_requests = rc ? 0 : moirai_world_chunks(x->world, r->bytes);
    r->request = rc ? NULL : moirai_alloc(r->n_requests, sizeof *r->request);
    if (rc || !r->request)
        fail(x, rc ? rc : MOIRAI_EFAIL);
    post_data(x, r);
}

static bool all_done(MPI_Request *request, size_t n)
{
    MPI_Status status[16];
    for (size_t at = 0; at < n; at += 16) {
        int done;
        MPI_Testall((int)MOIRAI_MIN(n - at, (size_t)16), request + at, &done, status);
        if (!done)
            return false;
    }
    return true;
}

/* Returns how many receives are still open; *progress if something happened. */
static int poll_receives(rank_exec *x, bool *progress)
{
    int open = 0;
    for (int i = 0; i < x->n_recvs; i++) {
        exec_recv *r = &x->recv[i];
        if (r->state == RECV_DONE)
            continue;
        open++;
        if (!all_done(r->request, r->n_requests))
            continue;
        *progress = true;
        if (r->state == RECV_HEADER) {
            learn(x, r);
            continue;
        }
        r->finish_ns = moirai_clock_own_ns();
        open--;
        pthread_mutex_lock(&x->lock);
        r->state = RECV_DONE;
        pthread_cond_signal(&x->news);
        pthread_mutex_unlock(&x->lock);
    }
    return open;
}

/* ---- sends ---- */

static void start_send(rank_exec *x, exec_send *s, bool first_run)
{
    rank_shape shape;
    size_t bytes;
    void *data;
    int tag = tag_of(x, s->transfer);
    int rc = moirai_rank_value_look(&shape, &data, &bytes, x->ort, x->slot[s->slot].value, x->slot[s->slot].name);
    if (rc)
        fail(x, rc);
    s->start_ns = moirai_clock_own_ns();
    if (first_run) {
        s->shape = shape;
        s->bytes = bytes;
        s->n_requests = moirai_world_chunks(x->world, bytes);
        if (!(s->request = moirai_alloc(s->n_requests, sizeof *s->request)))
            fail(x, MOIRAI_EFAIL);
        moirai_world_send(x->world, &s->shape, sizeof s->shape, s->to, tag); /* small: sent at once */
    } else if (memcmp(&shape, &s->shape, sizeof shape)) {
        fail(x, moirai_error(MOIRAI_EFAIL, "tensor '%s' changes its shape from run to run", x->slot[s->slot].name));
    }
    moirai_world_isend(x->world, data, bytes, s->to, tag, s->request);
}

/* `at` is the send that is next or under way; returns the one after what is done. */
static int poll_sends(rank_exec *x, int at, bool *started, bool first_run, bool *progress)
{
    while (at < x->n_sends) {
        exec_send *s = &x->send[at];
        if (!*started) {
            if (!atomic_load(&x->slot[s->slot].ready))
                return at;
            start_send(x, s, first_run);
            *started = *progress = true;
        }
        if (!all_done(s->request, s->n_requests))
            return at;
        s->finish_ns = moirai_clock_own_ns();
        *started = false;
        *progress = true;
        at++;
    }
    return at;
}

/* ---- a run ---- */

static void prepare(rank_exec *x, int run)
{
    for (int i = 0; i < x->n_slots; i++) {
        exec_slot *slot = &x->slot[i];
        atomic_store(&slot->ready, false);
        if (slot->lasting || !slot->value)
            continue;
        x->ort->api->ReleaseValue(slot->value);
        slot->value = NULL;
    }
    for (int i = 0; i < x->n_recvs; i++)
        run == 0 ? post_header(x, &x->recv[i]) : post_data(x, &x->recv[i]);
}

static void let_go(rank_exec *x, int run, int64_t *begin_common_ns)
{
    moirai_world_barrier(); /* every receive is posted */
    *begin_common_ns = moirai_clock_common_ns(&x->clock, moirai_clock_own_ns()) + MARGIN_NS;
    moirai_world_bcast(x->world, begin_common_ns, sizeof *begin_common_ns, 0);
    pthread_mutex_lock(&x->lock);
    x->begin_ns = moirai_clock_from_common_ns(&x->clock, *begin_common_ns);
    x->go = run + 1;
    pthread_cond_signal(&x->news);
    pthread_mutex_unlock(&x->lock);
}

static void check_stall(rank_exec *x, int64_t quiet_since_ns, int next_send, bool computing)
{
    double quiet_s = (double)(moirai_clock_own_ns() - quiet_since_ns) / 1e9;
    if (computing || x->job->stall_s <= 0 || quiet_s < x->job->stall_s)
        return;
    for (int i = 0; i < x->n_recvs; i++)
        if (x->recv[i].state != RECV_DONE) {
            const job_transfer *t = &x->job->transfer[x->recv[i].transfer];
            fail(x, moirai_error(MOIRAI_EFAIL, "nothing came for %.0f s; it waits for tensor '%s' from device '%s'",
                                 quiet_s, t->tensor, x->job->device[t->from].name));
        }
    if (next_send < x->n_sends) {
        const job_transfer *t = &x->job->transfer[x->send[next_send].transfer];
        fail(x, moirai_error(MOIRAI_EFAIL, "device '%s' has not taken tensor '%s' for %.0f s",
                             x->job->device[t->to].name, t->tensor, quiet_s));
    }
}

/* Until the computing thread has something to send, or for a moment. */
static void doze(rank_exec *x, long *doze_ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += *doze_ns;
    *doze_ns = MOIRAI_MIN(2 * *doze_ns, x->looks ? DOZE_MOST_NS : DOZE_MOST_SHARED_NS);
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    pthread_mutex_lock(&x->lock);
    pthread_cond_timedwait(&x->poke, &x->lock, &t);
    pthread_mutex_unlock(&x->lock);
}

void moirai_comm_run(rank_exec *x, int run, int64_t *begin_common_ns)
{
    prepare(x, run);
    let_go(x, run, begin_common_ns);
    int next = 0, looks = 0;
    long doze_ns = DOZE_NS;
    bool started = false;
    int64_t quiet_since_ns = moirai_clock_own_ns();
    for (;;) {
        bool progress = false, computed = atomic_load(&x->done) > run;
        int open = poll_receives(x, &progress);
        next = poll_sends(x, next, &started, run == 0, &progress);
        int rc = atomic_load(&x->failed);
        if (rc) {
            moirai_error(rc, "%s", x->message);
            moirai_world_abort(x->world, rc);
        }
        if (computed && !open && next == x->n_sends)
            return;
        if (progress || (!computed && !atomic_load(&x->waiting)))
            quiet_since_ns = moirai_clock_own_ns();
        check_stall(x, quiet_since_ns, next, !computed && !atomic_load(&x->waiting));
        /* While the device itself waits, its core is free to look out for what it waits for: no sleep yet. */
        bool idle = computed || atomic_load(&x->waiting);
        looks = progress || !idle ? 0 : looks + 1;
        doze_ns = progress ? DOZE_NS : doze_ns;
        if (progress || (idle && looks < x->looks))
            sched_yield();
        else
            doze(x, &doze_ns);
    }
}
