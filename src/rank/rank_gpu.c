/* A device that is a GPU: its tensors stay there, and segments are bound to them once.
 *
 * The first run learns all sizes: outputs are made by ONNX Runtime as they come, received tensors and the network's
 * inputs are host tensors that it copies in, and what is sent goes through the host. Then the ranks settle. Every rank
 * takes one piece of GPU memory for all tensors that cross a segment's border, and one piece of pinned host memory for
 * those that travel through the host; it lets the other ranks of its host map the first (one handle per rank, a place
 * for each transfer), binds every segment to the places of its tensors, and never allocates again.
 *
 * Tensors do not share their places, though many are dead before others are made: a place that is written once per run
 * needs no acknowledgement by those who read it from outside, and is what a recorded CUDA graph can be replayed on. */
#include <stdlib.h>
#include <string.h>

#include <moirai/cluster.h>
#include "rank/rank_exec.h"
#include "rank/gpu/place.h"

enum { ALIGNMENT = 256, RECORDING_RUNS = 2 };

struct exec_gpu {
    char *memory, *pinned; /* all tensors'; all that goes through the host */
    size_t bytes, pinned_bytes;
    int n_ranks;
    rank_cuda_handle handle; /* of `memory` */
    rank_place *place;       /* of every rank */
    void **mapped;           /* memory of every rank, NULL where it is not needed */
    int64_t *at;             /* of every transfer that is mapped: where it lies in its sender's memory; else -1 */
    int64_t *slot_at;        /* of every slot: its place in our own memory; -1: it has none */
};

int rank_gpu_open(rank_exec *x)
{
    x->gpu = util_alloc(1, sizeof *x->gpu);
    return x->gpu ? 0 : MOIRAI_EFAIL;
}

void rank_gpu_let_go(rank_exec *x)
{
    exec_gpu *g = x->gpu;
    for (int k = 0; g && g->mapped && k < g->n_ranks; k++) {
        rank_cuda_unmap(x->ort->cuda, g->mapped[k]);
        g->mapped[k] = NULL;
    }
}

void rank_gpu_close(rank_exec *x)
{
    exec_gpu *g = x->gpu;
    if (!g)
        return;
    rank_gpu_let_go(x);
    for (int i = 0; i < x->n_sends && !g->pinned; i++) /* the first run's */
        free(x->send[i].by == &rank_transport_staged ? x->send[i].wire : NULL);
    rank_cuda_free(x->ort->cuda, g->memory);
    rank_cuda_host_free(x->ort->cuda, g->pinned);
    free(g->place);
    free(g->mapped);
    free(g->at);
    free(g->slot_at);
    free(g);
    x->gpu = NULL;
}

/* ---- computing ---- */

static int learn(rank_exec *x, int index)
{
    const job_segment *plan = &x->device->segment[index];
    exec_segment *s = &x->segment[index];
    int rc = 0;
    for (int i = 0; i < plan->n_inputs && !rc; i++)
        rc = rank_bound_in(&s->bound, plan->input[i], s->feed[i]);
    rc = rc ? rc : rank_bound_learn(&s->bound, plan->output, (size_t)plan->n_outputs, s->fetch, plan->file);
    for (int i = 0; i < plan->n_outputs && !rc; i++) {
        exec_slot *slot = &x->slot[s->out[i]];
        void *data;
        rc = rank_value_look(&slot->shape, &data, &slot->bytes, x->ort, s->fetch[i], slot->name);
    }
    return rc;
}

/* While CUDA records a graph, which ONNX Runtime does in the first run with fixed places, no other thread may touch the
 * GPU: the lock keeps the main thread from copying. */
int rank_gpu_compute(rank_exec *x, int index)
{
    bool alone = x->run < RECORDING_RUNS;
    if (alone)
        pthread_mutex_lock(&x->lock);
    int rc = x->run == 0 ? learn(x, index) : rank_bound_run(&x->segment[index].bound, x->device->segment[index].file);
    if (alone)
        pthread_mutex_unlock(&x->lock);
    return rc;
}

int rank_gpu_fetch(void **out, const rank_exec *x, const void *data, size_t bytes)
{
    *out = util_alloc(UTIL_MAX(bytes, (size_t)1), 1);
    return *out ? rank_cuda_get(x->ort->cuda, *out, data, bytes) : MOIRAI_EFAIL;
}

/* ---- places ---- */

static int64_t take(size_t *used, size_t bytes)
{
    size_t at = *used;
    *used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return (int64_t)at;
}

/* Inputs of the network, until now on the host. */
static int look_at_inputs(rank_exec *x)
{
    int rc = 0;
    for (int i = 0; i < x->job->n_inputs && !rc; i++) {
        int slot = rank_exec_slot(x, x->job->input[i].name);
        void *data;
        if (slot < 0 || !x->slot[slot].value)
            continue;
        rc = rank_value_look(&x->slot[slot].shape, &data, &x->slot[slot].bytes, x->ort, x->slot[slot].value,
                             x->slot[slot].name);
        x->gpu->slot_at[slot] = rc ? -1 : take(&x->gpu->bytes, x->slot[slot].bytes);
    }
    return rc;
}

static void lay_out_segments(rank_exec *x)
{
    for (int i = 0; i < x->device->n_segments; i++)
        for (int k = 0; k < x->device->segment[i].n_outputs; k++) {
            int slot = x->segment[i].out[k];
            x->gpu->slot_at[slot] = take(&x->gpu->bytes, x->slot[slot].bytes);
        }
}

static void lay_out_transfers(rank_exec *x)
{
    exec_gpu *g = x->gpu;
    for (int i = 0; i < x->n_sends; i++) {
        exec_send *s = &x->send[i];
        free(s->wire);
        s->wire = NULL;
        bool mapped = rank_place_mapped(&g->place[x->world->rank], &g->place[s->to]);
        s->by = mapped ? &rank_transport_mapped : &rank_transport_staged;
        g->at[s->transfer] = mapped ? g->slot_at[s->slot] : -1;
    }
    for (int i = 0; i < x->n_recvs; i++) {
        exec_recv *r = &x->recv[i];
        exec_slot *slot = &x->slot[r->slot];
        slot->shape = r->shape;
        slot->bytes = r->bytes;
        const rank_place *from = &g->place[r->from], *to = &g->place[x->world->rank];
        r->by = rank_place_mapped(from, to) ? &rank_transport_mapped : &rank_transport_staged;
        g->slot_at[r->slot] = rank_place_same_gpu(from, to) ? -1 : take(&g->bytes, r->bytes);
    }
}

/* Pinned memory for what goes through the host; what is mapped has an empty message. */
static int lay_out_wires(rank_exec *x)
{
    exec_gpu *g = x->gpu;
    for (int pass = 0; pass < 2; pass++) {
        size_t used = 0;
        for (int i = 0; i < x->n_sends + x->n_recvs; i++) {
            exec_send *s = i < x->n_sends ? &x->send[i] : NULL;
            exec_recv *r = s ? NULL : &x->recv[i - x->n_sends];
            bool mapped = (s ? s->by : r->by) == &rank_transport_mapped;
            size_t bytes = mapped ? 0 : s ? s->bytes : r->bytes;
            int64_t at = take(&used, bytes);
            *(s ? &s->wire : &r->wire) = pass && !mapped ? g->pinned + at : NULL;
            *(s ? &s->wire_bytes : &r->wire_bytes) = bytes;
            *(s ? &s->n_requests : &r->n_requests) = rank_world_chunks(x->world, bytes);
        }
        int rc = pass ? 0 : rank_cuda_host_alloc((void **)&g->pinned, x->ort->cuda, g->pinned_bytes = used);
        if (rc)
            return rc;
    }
    return 0;
}

static int lay_out(rank_exec *x)
{
    exec_gpu *g = x->gpu;
    for (int i = 0; i < x->n_slots; i++)
        g->slot_at[i] = -1;
    int rc = look_at_inputs(x);
    lay_out_segments(x);
    lay_out_transfers(x);
    rc = rc ? rc : lay_out_wires(x);
    rc = rc ? rc : rank_cuda_alloc((void **)&g->memory, x->ort->cuda, g->bytes);
    const rank_place *own = &g->place[x->world->rank];
    return rc || !rank_place_mapped(own, own) ? rc : rank_cuda_export(&g->handle, x->ort->cuda, g->memory);
}

/* ---- binding ---- */

static int map_sender(rank_exec *x, exec_recv *r)
{
    exec_gpu *g = x->gpu;
    int rc = g->mapped[r->from] ? 0 : rank_cuda_map(&g->mapped[r->from], x->ort->cuda, &g->place[r->from].memory);
    r->peer = rc ? NULL : (char *)g->mapped[r->from] + g->at[r->transfer];
    return rc;
}

/* The slot's value from now on: a tensor over `memory`, with the old one's numbers where it was a host tensor that
 * stays. */
static int move(rank_exec *x, exec_slot *slot, void *memory, bool with_numbers)
{
    rank_shape shape;
    void *data;
    size_t bytes;
    int rc = 0;
    if (with_numbers) {
        rc = rank_value_look(&shape, &data, &bytes, x->ort, slot->value, slot->name);
        rc = rc ? rc : rank_cuda_put(x->ort->cuda, memory, data, bytes);
    }
    if (slot->value)
        x->ort->api->ReleaseValue(slot->value);
    slot->value = NULL;
    slot->lasting = true;
    return rc ? rc : rank_gpu_value(&slot->value, x->ort, memory, slot->bytes, &slot->shape);
}

static int move_all(rank_exec *x)
{
    exec_gpu *g = x->gpu;
    int rc = 0;
    for (int i = 0; i < x->job->n_inputs && !rc; i++) {
        int slot = rank_exec_slot(x, x->job->input[i].name);
        if (slot >= 0 && g->slot_at[slot] >= 0)
            rc = move(x, &x->slot[slot], g->memory + g->slot_at[slot], true);
    }
    for (int i = 0; i < x->device->n_segments && !rc; i++)
        for (int k = 0; k < x->device->segment[i].n_outputs && !rc; k++) {
            int slot = x->segment[i].out[k];
            rc = move(x, &x->slot[slot], g->memory + g->slot_at[slot], false);
        }
    for (int i = 0; i < x->n_recvs && !rc; i++) {
        exec_recv *r = &x->recv[i];
        rc = r->by == &rank_transport_mapped ? map_sender(x, r) : 0;
        r->data = g->slot_at[r->slot] >= 0 ? g->memory + g->slot_at[r->slot] : r->peer;
        rc = rc ? rc : move(x, &x->slot[r->slot], r->data, false);
    }
    return rc;
}

static int bind_segments(rank_exec *x)
{
    int rc = 0;
    for (int i = 0; i < x->device->n_segments && !rc; i++) {
        const job_segment *plan = &x->device->segment[i];
        exec_segment *s = &x->segment[i];
        for (int k = 0; k < plan->n_inputs && !rc; k++)
            rc = rank_bound_in(&s->bound, plan->input[k], x->slot[s->in[k]].value);
        for (int k = 0; k < plan->n_outputs && !rc; k++) {
            s->fetch[k] = x->slot[s->out[k]].value;
            rc = rank_bound_out(&s->bound, plan->output[k], s->fetch[k]);
        }
    }
    return rc;
}

/* ---- settling ---- */

static bool has_gpu(const rank_job *job)
{
    bool any = false;
    for (int k = 0; k < job->n_devices; k++)
        any |= moirai_ep_gpu(job->device[k].ort.ep) >= 0;
    return any;
}

static void share_transfers(exec_gpu *g, const rank_world *w, const rank_job *job)
{
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, g->at, job->n_transfers, MPI_INT64_T, MPI_MAX, w->comm, &request);
    rank_world_wait(&request, 1);
}

static int make_room(exec_gpu *g, const rank_exec *x, const rank_world *w, const rank_job *job)
{
    g->n_ranks = w->size;
    g->place = util_alloc((size_t)w->size, sizeof *g->place);
    g->mapped = util_alloc((size_t)w->size, sizeof *g->mapped);
    g->at = util_alloc((size_t)job->n_transfers, sizeof *g->at);
    g->slot_at = util_alloc(x ? (size_t)x->n_slots : 1, sizeof *g->slot_at);
    for (int i = 0; g->at && i < job->n_transfers; i++)
        g->at[i] = -1;
    return g->place && g->mapped && g->at && g->slot_at ? 0 : MOIRAI_EFAIL;
}

int rank_gpu_settle(rank_exec *x, const rank_world *w, const rank_job *job)
{
    exec_gpu guest = {0},
             *g = x && x->gpu ? x->gpu : &guest; /* a rank without a GPU takes part in what is collective */
    if (!has_gpu(job))
        return 0;
    int rc = rank_world_agree(w, make_room(g, x, w, job));
    if (!rc) {
        rank_place_share(g->place, w->comm, w->rank, x && x->gpu ? x->ort->cuda : NULL, &g->handle);
        rc = x && x->gpu ? lay_out(x) : 0;
        rc = rank_world_agree(w, rc ? moirai_error_prefix(rc, "device '%s'", x->device->name) : 0);
    }
    if (!rc) {
        rank_place_share(g->place, w->comm, w->rank, x && x->gpu ? x->ort->cuda : NULL, &g->handle);
        share_transfers(g, w, job);
        rc = x && x->gpu ? move_all(x) : 0;
        rc = rc || !x || !x->gpu ? rc : bind_segments(x);
        rc = rank_world_agree(w, rc ? moirai_error_prefix(rc, "device '%s'", x->device->name) : 0);
    }
    free(guest.place);
    free(guest.mapped);
    free(guest.at);
    free(guest.slot_at);
    return rc;
}
