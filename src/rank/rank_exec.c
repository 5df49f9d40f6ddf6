/* Loading a device's segments, and the thread that computes them in the plan's order. A segment starts when all that it
 * waits for has arrived; results stay on the device, in ONNX Runtime's own values, and what must leave is sent from
 * here at once: no other thread must wake for it (rank_comm.c). */
#include "rank/rank_exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AWAKE_NS = 100000 };

/* ---- slots ---- */

static int slot_of(rank_exec *x, const char *name)
{
    int32_t at = util_names_put(x->names, name, x->n_slots);
    if (at == x->n_slots) {
        x->slot[at].name = name;
        x->slot[at].last_use = -1;
        x->n_slots++;
    }
    return at;
}

static int open_slots(rank_exec *x)
{
    const job_device *d = x->device;
    size_t most = (size_t)(x->job->n_inputs + x->job->n_transfers);
    for (int i = 0; i < d->n_segments; i++)
        most += (size_t)(d->segment[i].n_inputs + d->segment[i].n_outputs);
    x->slot = util_alloc(most, sizeof *x->slot);
    x->names = util_names_new(most);
    x->segment = util_alloc((size_t)d->n_segments, sizeof *x->segment);
    x->segment_start_ns = util_alloc((size_t)d->n_segments, sizeof(int64_t));
    x->segment_finish_ns = util_alloc((size_t)d->n_segments, sizeof(int64_t));
    return x->slot && x->names && x->segment && x->segment_start_ns && x->segment_finish_ns ? 0 : MOIRAI_EFAIL;
}

/* ---- transfers ---- */

static int open_transfers(rank_exec *x)
{
    const rank_job *job = x->job;
    int me = (int)(x->device - job->device);
    x->recv = util_alloc((size_t)job->n_transfers, sizeof *x->recv);
    x->send = util_alloc((size_t)job->n_transfers, sizeof *x->send);
    if (!x->recv || !x->send)
        return MOIRAI_EFAIL;
    for (int i = 0; i < job->n_transfers; i++) {
        const job_transfer *t = &job->transfer[i];
        int slot = t->to == me || t->from == me ? slot_of(x, t->tensor) : 0;
        if (slot < 0)
            return MOIRAI_EFAIL;
        if (t->to == me) {
            x->recv[x->n_recvs++] = (exec_recv){.transfer = i,
                                                .slot = slot,
                                                .from = job->device[t->from].rank,
                                                .state = RECV_DONE,
                                                .by = &rank_transport_direct};
            x->slot[slot].lasting = true;
        }
        if (t->from == me) {
            x->send[x->n_sends++] = (exec_send){.transfer = i,
                                                .slot = slot,
                                                .to = job->device[t->to].rank,
                                                .by = x->gpu ? &rank_transport_staged : &rank_transport_direct};
            x->slot[slot].kept = true;
        }
    }
    return 0;
}

/* ---- segments ---- */

static int fill_slots(rank_exec *x, int index, int **out, const char *const *name, int n)
{
    *out = util_alloc((size_t)n, sizeof **out);
    for (int i = 0; *out && i < n; i++) {
        if (((*out)[i] = slot_of(x, name[i])) < 0)
            return MOIRAI_EFAIL;
        x->slot[(*out)[i]].last_use = index;
    }
    return *out ? 0 : MOIRAI_EFAIL;
}

static int open_segment(rank_exec *x, int index)
{
    const job_segment *plan = &x->device->segment[index];
    exec_segment *s = &x->segment[index];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", x->job->folder, plan->file);
    int rc = fill_slots(x, index, &s->in, plan->input, plan->n_inputs);
    rc = rc ? rc : fill_slots(x, index, &s->out, plan->output, plan->n_outputs);
    if (rc)
        return rc;
    s->feed = util_alloc((size_t)plan->n_inputs, sizeof *s->feed);
    s->fetch = util_alloc((size_t)plan->n_outputs, sizeof *s->fetch);
    s->wait = util_alloc((size_t)plan->n_inputs, sizeof *s->wait);
    if (!s->feed || !s->fetch || !s->wait)
        return MOIRAI_EFAIL;
    for (int i = 0; i < plan->n_inputs; i++)
        for (int r = 0; r < x->n_recvs; r++)
            if (x->recv[r].slot == s->in[i])
                s->wait[s->n_waits++] = r;
    rc = rank_ort_session(&s->session, x->ort, path);
    return rc || !x->gpu ? rc : rank_bound_open(&s->bound, x->ort, s->session);
}

static int open_inputs(rank_exec *x)
{
    for (int i = 0; i < x->job->n_inputs; i++) {
        int slot = rank_exec_slot(x, x->job->input[i].name);
        bool wanted = slot >= 0 || x->world->rank == 0; /* rank 0 may have to hand an input out as an output */
        if (slot < 0 && wanted)
            slot = slot_of(x, x->job->input[i].name);
        if (slot < 0)
            continue;
        x->slot[slot].lasting = true;
        int rc = rank_job_input(&x->slot[slot].value, x->job, x->ort, i);
        if (rc)
            return rc;
    }
    return 0;
}

int rank_exec_open(rank_exec **out, const rank_world *w, const rank_job *job, const job_device *device,
                   const rank_ort *ort)
{
    *out = NULL;
    rank_exec *x = util_alloc(1, sizeof *x);
    if (!x)
        return MOIRAI_EFAIL;
    x->world = w;
    x->job = job;
    x->device = device;
    x->ort = ort;
    pthread_mutex_init(&x->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&x->news, NULL);
    pthread_cond_init(&x->poke, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int rc = ort->cuda ? rank_gpu_open(x) : 0;
    rc = rc ? rc : open_slots(x);
    rc = rc ? rc : open_transfers(x);
    for (int i = 0; i < device->n_segments && !rc; i++)
        rc = open_segment(x, i);
    rc = rc ? rc : open_inputs(x);
    for (int i = 0; i < job->n_outputs && !rc; i++) {
        int slot = rank_exec_slot(x, job->output[i].name);
        if (slot >= 0)
            x->slot[slot].kept = true;
    }
    if (rc) {
        rank_exec_close(x);
        return rc;
    }
    *out = x;
    return 0;
}

void rank_exec_close(rank_exec *x)
{
    if (!x)
        return;
    if (x->has_thread) {
        pthread_mutex_lock(&x->lock);
        x->stop = true;
        pthread_cond_broadcast(&x->news);
        pthread_mutex_unlock(&x->lock);
        pthread_join(x->thread, NULL);
    }
    for (int i = 0; x->segment && i < x->device->n_segments; i++) {
        exec_segment *s = &x->segment[i];
        rank_bound_close(&s->bound);
        if (s->session)
            x->ort->api->ReleaseSession(s->session);
        free(s->in);
        free(s->out);
        free(s->wait);
        free(s->feed);
        free(s->fetch);
    }
    for (int i = 0; i < x->n_slots; i++)
        if (x->slot[i].value)
            x->ort->api->ReleaseValue(x->slot[i].value);
    for (int i = 0; i < x->n_recvs; i++)
        free(x->recv[i].request);
    for (int i = 0; i < x->n_sends; i++)
        free(x->send[i].request);
    rank_gpu_close(x);
    rank_host_close(x);
    free(x->recv);
    free(x->send);
    free(x->slot);
    free(x->segment);
    free(x->segment_start_ns);
    free(x->segment_finish_ns);
    util_names_free(x->names);
    pthread_cond_destroy(&x->news);
    pthread_cond_destroy(&x->poke);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

/* ---- computing ---- */

static void release_dead(rank_exec *x, int index)
{
    const job_segment *plan = &x->device->segment[index];
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? plan->n_outputs : plan->n_inputs); i++) {
            exec_slot *slot = &x->slot[side ? x->segment[index].out[i] : x->segment[index].in[i]];
            if (slot->lasting || slot->kept || slot->placed || slot->last_use != index || !slot->value)
                continue;
            x->ort->api->ReleaseValue(slot->value);
            slot->value = NULL;
        }
}

/* Results exist from now on, and what can leave, leaves. */
static void hand_out(rank_exec *x, int index)
{
    const job_segment *plan = &x->device->segment[index];
    bool leaves = false;
    pthread_mutex_lock(&x->lock);
    for (int i = 0; i < plan->n_outputs; i++) {
        exec_slot *slot = &x->slot[x->segment[index].out[i]];
        slot->value = x->segment[index].fetch[i];
        slot->ready = true;
        leaves |= slot->kept;
    }
    if (leaves)
        rank_comm_progress(x);
    pthread_mutex_unlock(&x->lock);
}

static int compute_on_host(rank_exec *x, int index)
{
    const job_segment *plan = &x->device->segment[index];
    exec_segment *s = &x->segment[index];
    for (int i = 0; i < plan->n_outputs; i++)
        s->fetch[i] = x->slot[s->out[i]].placed ? x->slot[s->out[i]].value : NULL; /* else ONNX Runtime makes it */
    return rank_ort_check(x->ort,
                          x->ort->api->Run(s->session, NULL, plan->input, s->feed, (size_t)plan->n_inputs, plan->output,
                                           (size_t)plan->n_outputs, s->fetch),
                          plan->file);
}

static int compute(rank_exec *x, int index)
{
    const job_segment *plan = &x->device->segment[index];
    exec_segment *s = &x->segment[index];
    for (int i = 0; i < plan->n_inputs; i++)
        if (!(s->feed[i] = x->slot[s->in[i]].value))
            return moirai_error(MOIRAI_EFAIL, "%s: input '%s' is not there", plan->file, plan->input[i]);
    x->segment_start_ns[index] = rank_clock_own_ns();
    int rc = x->gpu ? rank_gpu_compute(x, index) : compute_on_host(x, index);
    x->segment_finish_ns[index] = rank_clock_own_ns();
    if (!rc) {
        hand_out(x, index);
        release_dead(x, index);
    }
    return rc;
}

/* Sleeps are a little late: the last moment is waited for awake. */
static void begin_run(const rank_exec *x)
{
    int64_t until_ns = x->begin_ns - (x->own_core ? AWAKE_NS : 0);
    struct timespec t = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
    while (rank_clock_own_ns() < x->begin_ns)
        ;
}

static void end_run(rank_exec *x, int run)
{
    pthread_mutex_lock(&x->lock);
    atomic_store(&x->done, run + 1);
    pthread_cond_signal(&x->poke);
    pthread_mutex_unlock(&x->lock);
}

/* True after a failure, which the main thread tells. */
static bool give_up(rank_exec *x, int rc)
{
    if (!rc)
        return false;
    snprintf(x->message, sizeof x->message, "device '%s': %s", x->device->name, moirai_error_message());
    atomic_store(&x->failed, rc);
    return true;
}

static void *work(void *data)
{
    rank_exec *x = data;
    if (x->gpu && give_up(x, rank_cuda_use(x->ort->cuda)))
        return NULL;
    for (int run = 0;; run++) {
        pthread_mutex_lock(&x->lock);
        while (x->go <= run && !x->stop)
            pthread_cond_wait(&x->news, &x->lock);
        bool stop = x->stop;
        pthread_mutex_unlock(&x->lock);
        if (stop)
            return NULL;
        begin_run(x);
        for (int i = 0; i < x->device->n_segments; i++) {
            if (!rank_comm_await(x, x->segment[i].wait, x->segment[i].n_waits))
                return NULL;
            if (give_up(x, compute(x, i)))
                return NULL;
        }
        end_run(x, run);
    }
}

int rank_exec_start(rank_exec *x)
{
    int error = pthread_create(&x->thread, NULL, work, x);
    if (error)
        return moirai_error(MOIRAI_EFAIL, "can't start a thread: %s", strerror(error));
    x->has_thread = true;
    return 0;
}
