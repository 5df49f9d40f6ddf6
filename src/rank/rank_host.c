/* Processors of one host: what goes from one to another lies in memory that both have.
 *
 * MPI moves a large message when its receiver looks, and one after the other: a receiver that computes looks every now and
 * then, and the copy takes a core from its computing. Here the sender's segment writes its result where the receiver reads
 * it, and the message is empty: it says that the tensor is there, needs nobody to look, and waits for no other.
 *
 * The first run learns all sizes, by plain messages. Then the ranks settle: each takes one piece of memory for what it
 * sends to ranks of its host and lets them map it. A place is written once per run, and no run begins before all have
 * computed the last (rank_comm.c, let_go): nothing is overwritten that is still read. Where any rank can't map what it
 * should (processes in different containers), all keep to messages. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <moirai/cluster.h>
#include "rank/rank_exec.h"
#include "rank/host/rank_shared.h"

struct exec_host {
    int n_ranks;
    rank_shared *place; /* of every rank */
    int64_t *at;        /* of every transfer: where it lies in its sender's memory; -1: it is a message */
    int64_t *slot_at;   /* of every slot, in our own memory; -1: it has no place there */
    void *own;
    size_t own_bytes;
    void **mapped; /* memory of every rank, NULL where it is not needed */
};

static void host_free(exec_host *h)
{
    if (!h)
        return;
    for (int k = 0; h->mapped && h->place && k < h->n_ranks; k++)
        rank_shared_free(h->mapped[k], h->place[k].bytes);
    if (h->own)
        rank_shared_free(h->own, h->own_bytes);
    free(h->place);
    free(h->at);
    free(h->slot_at);
    free(h->mapped);
    free(h);
}

void rank_host_close(rank_exec *x)
{
    host_free(x->host);
    x->host = NULL;
}

static int host_new(exec_host **out, const rank_exec *x, const rank_world *w, const rank_job *job)
{
    exec_host *h = *out = util_alloc(1, sizeof *h);
    if (!h)
        return MOIRAI_EFAIL;
    h->n_ranks = w->size;
    h->place = util_alloc((size_t)w->size, sizeof *h->place);
    h->mapped = util_alloc((size_t)w->size, sizeof *h->mapped);
    h->at = util_alloc((size_t)job->n_transfers, sizeof *h->at);
    h->slot_at = util_alloc(x ? (size_t)x->n_slots : 1, sizeof *h->slot_at);
    for (int i = 0; h->at && i < job->n_transfers; i++)
        h->at[i] = -1;
    for (int i = 0; x && h->slot_at && i < x->n_slots; i++)
        h->slot_at[i] = -1;
    return h->place && h->mapped && h->at && h->slot_at ? 0 : MOIRAI_EFAIL;
}

/* ---- places ---- */

/* What is sent on as it came, or is an input, lies elsewhere already. */
static size_t lay_out(exec_host *h, const rank_exec *x)
{
    size_t used = RANK_SHARED_LINE;
    for (int i = 0; i < x->n_sends; i++) {
        const exec_send *s = &x->send[i];
        if (x->slot[s->slot].lasting || !rank_shared_can(&h->place[x->world->rank], &h->place[s->to]))
            continue;
        if (h->slot_at[s->slot] < 0) {
            h->slot_at[s->slot] = (int64_t)used;
            used += (s->bytes + RANK_SHARED_LINE - 1) / RANK_SHARED_LINE * RANK_SHARED_LINE + RANK_SHARED_LINE;
        }
        h->at[s->transfer] = h->slot_at[s->slot];
    }
    return used > RANK_SHARED_LINE ? used : 0;
}

static bool take(exec_host *h, const rank_exec *x)
{
    h->own_bytes = lay_out(h, x);
    h->own = h->own_bytes ? rank_shared_new(&h->place[x->world->rank], h->own_bytes) : NULL;
    return h->own || !h->own_bytes;
}

static bool map_senders(exec_host *h, const rank_exec *x)
{
    for (int i = 0; i < x->n_recvs; i++) {
        const exec_recv *r = &x->recv[i];
        if (h->at[r->transfer] >= 0 && !h->mapped[r->from])
            h->mapped[r->from] = rank_shared_map(&h->place[r->from]);
        if (h->at[r->transfer] >= 0 && !h->mapped[r->from])
            return false;
    }
    return true;
}

/* ---- from now on ---- */

static int move(rank_exec *x, exec_slot *slot, void *memory, const rank_shape *shape, size_t bytes)
{
    if (slot->value)
        x->ort->api->ReleaseValue(slot->value);
    slot->value = NULL;
    slot->placed = true;
    return rank_value_over(&slot->value, x->ort, memory, bytes, shape);
}

static int move_all(rank_exec *x)
{
    const exec_host *h = x->host;
    int rc = 0;
    for (int i = 0; i < x->n_sends && !rc; i++) {
        exec_send *s = &x->send[i];
        if (h->slot_at[s->slot] >= 0 && !x->slot[s->slot].placed)
            rc = move(x, &x->slot[s->slot], (char *)h->own + h->slot_at[s->slot], &s->shape, s->bytes);
        if (h->at[s->transfer] < 0)
            continue;
        s->by = &rank_transport_mapped;
        s->wire = NULL;
        s->wire_bytes = 0;
        s->n_requests = 1;
    }
    for (int i = 0; i < x->n_recvs && !rc; i++) {
        exec_recv *r = &x->recv[i];
        if (h->at[r->transfer] < 0)
            continue;
        r->by = &rank_transport_mapped;
        r->data = r->peer = (char *)h->mapped[r->from] + h->at[r->transfer];
        r->wire = NULL;
        r->wire_bytes = 0;
        r->n_requests = 1;
        rc = move(x, &x->slot[r->slot], r->data, &r->shape, r->bytes);
    }
    return rc;
}

/* ---- settling ---- */

static bool between_processors(const rank_job *job)
{
    for (int i = 0; i < job->n_transfers; i++)
        if (moirai_ep_gpu(job->device[job->transfer[i].from].ort.ep) < 0 &&
            moirai_ep_gpu(job->device[job->transfer[i].to].ort.ep) < 0)
            return true;
    return false;
}

static bool all_say(const rank_world *w, bool yes)
{
    int mine = yes, all = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_MIN, w->comm, &request);
    rank_world_wait(&request, 1);
    return all != 0;
}

/* True: every tensor that has a place is where its receivers see it. Collective. */
static bool find_places(exec_host *h, const rank_exec *x, const rank_world *w, const rank_job *job)
{
    MPI_Request request;
    rank_shared *own = &h->place[w->rank];
    rank_shared_self(own, x != NULL);
    rank_shared_tell(h->place, w->comm);
    bool fine = all_say(w, !x || take(h, x));
    if (fine) {
        rank_shared_tell(h->place, w->comm);
        MPI_Iallreduce(MPI_IN_PLACE, h->at, job->n_transfers, MPI_INT64_T, MPI_MAX, w->comm, &request);
        rank_world_wait(&request, 1);
        fine = all_say(w, !x || map_senders(h, x));
    }
    if (own->fd >= 0)
        close(own->fd); /* who should have it, has it */
    return fine;
}

int rank_host_settle(rank_exec *x, const rank_world *w, const rank_job *job)
{
    exec_host *h = NULL;
    rank_exec *own = x && !x->gpu ? x : NULL; /* others take part in what is collective */
    if (!between_processors(job))
        return 0;
    int rc = rank_world_agree(w, host_new(&h, own, w, job));
    bool found = !rc && find_places(h, own, w, job);
    for (int i = 0; found && x && i < job->n_transfers; i++)
        x->n_shared += h->at[i] >= 0;
    if (!found || !own) {
        host_free(h);
        return rc || !found ? rc : rank_world_agree(w, 0);
    }
    x->host = h;
    rc = move_all(x);
    return rank_world_agree(w, rc ? moirai_error_prefix(rc, "device '%s'", x->device->name) : 0);
}
