/* Making the lanes of a stream: what each holds is known from the run that was played before. */
#include "rank/stream/stream.h"

#include <stdlib.h>
#include <string.h>

int stream_tag(const stream *s, int index, int lane)
{
    return STREAM_FIRST_TAG + index * s->n_lanes + lane;
}

int stream_message_init(stream_message *m, const stream *s, int peer, int tag, int tensor, const rank_shape *shape)
{
    *m = (stream_message){.peer = peer, .tag = tag, .tensor = tensor, .shape = *shape};
    int rc = rank_shape_bytes(&m->bytes, shape);
    if (rc)
        return rc;
    m->n_requests = rank_world_chunks(&s->world, m->bytes);
    m->request = util_alloc(m->n_requests, sizeof *m->request);
    for (size_t i = 0; m->request && i < m->n_requests; i++)
        m->request[i] = MPI_REQUEST_NULL;
    return m->request ? 0 : MOIRAI_EFAIL;
}

/* ---- who has a part ---- */

bool stream_takes_part(const rank_job *job, int rank)
{
    bool any = false;
    for (int k = 0; k < job->n_devices; k++)
        any |= job->device[k].rank == rank && job->device[k].n_segments;
    for (int i = 0; i < job->n_outputs; i++)
        any |= rank_job_owner(job, job->output[i].name) == rank;
    return any;
}

bool stream_reads(const rank_job *job, int rank, const char *input)
{
    for (int k = 0; k < job->n_devices; k++)
        for (int g = 0; job->device[k].rank == rank && g < job->device[k].n_segments; g++)
            for (int i = 0; i < job->device[k].segment[g].n_inputs; i++)
                if (!strcmp(job->device[k].segment[g].input[i], input))
                    return true;
    return rank == 0 && stream_takes_part(job, 0); /* it has all of them: an input may be an output, too */
}

/* ---- shapes ---- */

static int check_tags(const stream *s)
{
    const rank_job *job = s->x->job;
    int *limit = NULL, flag = 0;
    int64_t n_transfers = 0;
    for (int c = 0; c < s->n_copies; c++)
        n_transfers = UTIL_MAX(n_transfers, s->copy[c].x->job->n_transfers);
    int64_t most = STREAM_FIRST_TAG + (n_transfers + job->n_inputs + job->n_outputs) * s->n_lanes;
    MPI_Comm_get_attr(s->world.comm, MPI_TAG_UB, &limit, &flag);
    return flag && most > *limit ? moirai_error(MOIRAI_EFAIL, "%d requests in flight need %lld tags, MPI has %d",
                                                s->n_lanes, (long long)most, *limit)
                                 : 0;
}

/* Of every output, from the rank that made it. Collective. */
static int share_outputs(stream *s)
{
    const rank_exec *x = s->x;
    const rank_job *job = x->job;
    s->out_shape = util_alloc((size_t)job->n_outputs, sizeof *s->out_shape);
    s->out_bytes = util_alloc((size_t)job->n_outputs, sizeof *s->out_bytes);
    int rc = rank_world_agree(&s->world, s->out_shape && s->out_bytes ? 0 : MOIRAI_EFAIL);
    for (int i = 0; i < job->n_outputs && !rc; i++) {
        const char *name = job->output[i].name;
        int owner = rank_job_owner(job, name), slot = rank_exec_slot(x, name);
        void *data;
        if (owner == s->world.rank)
            rc = slot >= 0 && x->slot[slot].value
                     ? rank_value_look(&s->out_shape[i], &data, &s->out_bytes[i], x->ort, x->slot[slot].value, name)
                     : moirai_error(MOIRAI_EFAIL, "output '%s' was not made", name);
        rc = rank_world_agree(&s->world, rc);
        if (rc)
            return rc;
        rank_world_bcast(&s->world, &s->out_shape[i], sizeof *s->out_shape, owner);
        rc = rank_shape_bytes(&s->out_bytes[i], &s->out_shape[i]);
    }
    return rc;
}

/* ---- lanes ---- */

/* A receive has memory of its own, which is the tensor's. */
static int add_recv(stream *s, int at, int lane, int peer, int index, int tensor, const rank_shape *shape)
{
    stream_lane *l = &s->lane[lane];
    stream_message *m = &l->recv[at];
    int rc = stream_message_init(m, s, peer, stream_tag(s, index, lane), tensor, shape);
    return rc ? rc : rank_value_new(&l->value[tensor], &m->data, s->x->ort, shape);
}

static int fill_recvs(stream *s, stream_copy *c, int lane)
{
    const rank_exec *x = c->x;
    const rank_job *job = x->job;
    int n = 0, rc = 0;
    for (int i = 0; i < x->n_recvs && !rc; i++)
        rc = add_recv(s, n++, lane, x->recv[i].from, x->recv[i].transfer, x->recv[i].slot, &x->recv[i].shape);
    for (int i = 0; s->feeds && i < job->n_inputs && !rc; i++) {
        int slot = rank_exec_slot(x, job->input[i].name);
        rank_shape shape;
        void *data;
        size_t bytes;
        if (slot < 0)
            continue;
        rc = rank_value_look(&shape, &data, &bytes, x->ort, x->slot[slot].value, job->input[i].name);
        rc = rc ? rc : add_recv(s, n++, lane, 0, job->n_transfers + i, slot, &shape);
    }
    c->n_recvs = n;
    return rc;
}

static int fill_sends(stream *s, stream_copy *c, int lane)
{
    const rank_exec *x = c->x;
    const rank_job *job = x->job;
    stream_lane *l = &s->lane[lane];
    int n = 0, rc = 0;
    for (int i = 0; i < x->n_sends && !rc; i++)
        rc = stream_message_init(&l->send[n++], s, x->send[i].to, stream_tag(s, x->send[i].transfer, lane),
                                 x->send[i].slot, &x->send[i].shape);
    for (int i = 0; s->feeds && i < job->n_outputs && !rc; i++)
        if (rank_job_owner(job, job->output[i].name) == s->world.rank)
            rc = stream_message_init(&l->send[n++], s, 0, stream_tag(s, job->n_transfers + job->n_inputs + i, lane),
                                     rank_exec_slot(x, job->output[i].name), &s->out_shape[i]);
    c->n_sends = n;
    return rc;
}

static int open_lane(stream *s, stream_copy *c, int lane)
{
    const rank_exec *x = c->x;
    stream_lane *l = &s->lane[lane];
    l->copy = c;
    l->number = -1;
    l->done_request = MPI_REQUEST_NULL;
    if (!c->takes_part)
        return 0;
    l->value = util_alloc((size_t)x->n_slots, sizeof *l->value);
    l->recv = util_alloc((size_t)(x->n_recvs + x->job->n_inputs), sizeof *l->recv);
    l->send = util_alloc((size_t)(x->n_sends + x->job->n_outputs), sizeof *l->send);
    int rc = l->value && l->recv && l->send ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : fill_recvs(s, c, lane);
    return rc ? rc : fill_sends(s, c, lane);
}

static int open_lanes(stream *s)
{
    size_t longest = 1;
    s->lane = util_alloc((size_t)s->n_lanes, sizeof *s->lane);
    s->order = util_alloc((size_t)s->n_lanes, sizeof *s->order);
    int rc = s->lane && s->order ? 0 : MOIRAI_EFAIL;
    for (int c = 0; c < s->n_copies; c++) {
        stream_copy *copy = &s->copy[c];
        for (int i = 0; i < copy->n_lanes && !rc; i++)
            rc = open_lane(s, copy, copy->first_lane + i);
        for (int i = 0; i < copy->n_sends && !rc; i++)
            longest = UTIL_MAX(longest, s->lane[copy->first_lane].send[i].bytes);
    }
    return rc ? rc : (s->zeros = util_alloc(longest, 1)) ? 0 : MOIRAI_EFAIL;
}

/* Which receives each segment needs. */
static int open_waits(const stream *s, stream_copy *c)
{
    const job_device *d = c->x->device;
    c->wait = util_alloc((size_t)d->n_segments, sizeof *c->wait);
    c->n_waits = util_alloc((size_t)d->n_segments, sizeof *c->n_waits);
    for (int k = 0; c->wait && c->n_waits && k < d->n_segments; k++) {
        int n_inputs = d->segment[k].n_inputs;
        if (!(c->wait[k] = util_alloc((size_t)n_inputs, sizeof **c->wait)))
            return MOIRAI_EFAIL;
        for (int i = 0; i < n_inputs; i++)
            for (int r = 0; r < c->n_recvs; r++)
                if (s->lane[c->first_lane].recv[r].tensor == c->x->segment[k].in[i])
                    c->wait[k][c->n_waits[k]++] = r;
    }
    return c->wait && c->n_waits ? 0 : MOIRAI_EFAIL;
}

/* ---- variants ---- */

static bool has_input(const stream *s, const char *name)
{
    bool any = false;
    for (int c = 0; c < s->n_copies; c++)
        any |= rank_exec_slot(s->copy[c].x, name) >= 0;
    return any;
}

static int open_variant(stream *s, int64_t v)
{
    rank_job job = *s->x->job;
    job.seed += v;
    s->variant[v] = util_alloc((size_t)job.n_inputs, sizeof **s->variant);
    int rc = s->variant[v] ? 0 : MOIRAI_EFAIL;
    for (int c = 0; c < s->n_copies && !rc; c++)
        rc = (s->copy[c].alone[v] = util_alloc((size_t)job.n_outputs, sizeof **s->copy[c].alone)) ? 0 : MOIRAI_EFAIL;
    for (int i = 0; i < job.n_inputs && !rc; i++)
        if (has_input(s, job.input[i].name))
            rc = rank_job_input(&s->variant[v][i], &job, s->x->ort, i);
    return rc;
}

static int open_variants(stream *s)
{
    s->variant = util_alloc((size_t)s->n_variants, sizeof *s->variant);
    int rc = s->variant ? 0 : MOIRAI_EFAIL;
    for (int c = 0; c < s->n_copies && !rc; c++)
        rc = (s->copy[c].alone = util_alloc((size_t)s->n_variants, sizeof *s->copy[c].alone)) ? 0 : MOIRAI_EFAIL;
    for (int64_t v = 0; v < s->n_variants && !rc; v++)
        rc = open_variant(s, v);
    return rc;
}

/* ---- the whole ---- */

/* Copies that take turns by shares may have all requests in flight, each of them. */
static int open_copies(stream *s, rank_exec *const *x)
{
    const rank_job *job = x[0]->job;
    s->copy = util_alloc((size_t)job->n_copies, sizeof *s->copy);
    if (!s->copy)
        return MOIRAI_EFAIL;
    s->n_copies = job->n_copies;
    for (int c = 0; c < s->n_copies; c++) {
        s->copy[c] = (stream_copy){.x = x[c],
                                   .takes_part = stream_takes_part(x[c]->job, s->world.rank),
                                   .first_lane = s->n_lanes,
                                   .n_lanes = (int)(job->copy[c].slots ? job->copy[c].slots : job->in_flight)};
        s->n_lanes += s->copy[c].n_lanes;
    }
    return check_tags(s);
}

int stream_open(stream **out, rank_exec *const *x, bool feeds, int64_t n_variants)
{
    *out = NULL;
    stream *s = util_alloc(1, sizeof *s);
    int rc = rank_world_agree(x[0]->world, s ? 0 : MOIRAI_EFAIL);
    if (rc) {
        free(s);
        return rc;
    }
    s->x = x[0];
    s->feeds = feeds;
    s->n_variants = feeds ? 0 : n_variants;
    s->begin_request = MPI_REQUEST_NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->poke, NULL);
    rank_world_part(&s->world, x[0]->world, 0);
    rc = rank_world_agree(&s->world, open_copies(s, x));
    rc = rc ? rc : share_outputs(s);
    int made = rc ? rc : open_lanes(s);
    for (int c = 0; c < s->n_copies && !made; c++)
        made = open_waits(s, &s->copy[c]);
    made = made ? made : open_variants(s);
    rc = rc ? rc : rank_world_agree(&s->world, made);
    if (rc) {
        stream_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

static void close_lane(stream_lane *l)
{
    const rank_exec *x = l->copy ? l->copy->x : NULL;
    for (int i = 0; l->value && i < x->n_slots; i++)
        if (l->value[i])
            x->ort->api->ReleaseValue(l->value[i]);
    for (int i = 0; l->recv && i < x->n_recvs + x->job->n_inputs; i++)
        free(l->recv[i].request);
    for (int i = 0; l->send && i < x->n_sends + x->job->n_outputs; i++)
        free(l->send[i].request);
    free(l->value);
    free(l->recv);
    free(l->send);
}

static void close_copy(const stream *s, stream_copy *c)
{
    for (int k = 0; c->wait && k < c->x->device->n_segments; k++)
        free(c->wait[k]);
    for (int64_t v = 0; c->alone && v < s->n_variants; v++) {
        for (int i = 0; c->alone[v] && i < s->x->job->n_outputs; i++)
            free(c->alone[v][i]);
        free(c->alone[v]);
    }
    free(c->wait);
    free(c->n_waits);
    free(c->alone);
}

static void close_variant(const stream *s, int64_t v)
{
    for (int i = 0; s->variant[v] && i < s->x->job->n_inputs; i++)
        if (s->variant[v][i])
            s->x->ort->api->ReleaseValue(s->variant[v][i]);
    free(s->variant[v]);
}

void stream_close(stream *s)
{
    if (!s)
        return;
    stream_compute_stop(s);
    stream_front_close(s);
    stream_watch_close(s);
    for (int i = 0; s->lane && i < s->n_lanes; i++)
        close_lane(&s->lane[i]);
    for (int c = 0; c < s->n_copies; c++)
        close_copy(s, &s->copy[c]);
    for (int64_t v = 0; s->variant && v < s->n_variants; v++)
        close_variant(s, v);
    free(s->copy);
    free(s->lane);
    free(s->order);
    free(s->variant);
    free(s->out_shape);
    free(s->out_bytes);
    free(s->zeros);
    rank_world_part_close(&s->world);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->poke);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
