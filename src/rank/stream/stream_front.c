/* Rank 0 as the front of a stream: begins requests in the order in which its source has them, as lanes become free, and
 * hands them back in the same order when every rank has said that it is done. Where the stream feeds, inputs leave from
 * here to every rank that reads them, and outputs come back. */
#include "rank/stream/stream.h"

#include <stdlib.h>
#include <string.h>

typedef struct front_lane {
    bool busy;
    int n_done; /* ranks that are done with it */
    int first_open;
    stream_begin begin;
    MPI_Request *begin_request; /* [rank] */
    stream_done done;           /* of all ranks: the first failure; busy_ns is the sum */
    int64_t *busy_ns;           /* [rank] */
    stream_message *in, *out;   /* [stream_front.n_in], [job output] */
    void **input, **output;     /* [job input], [job output] */
} front_lane;

struct stream_front {
    stream_source source;
    front_lane *lane;
    int n_in, n_out;
    int *input;                /* [n_in] which of the job's */
    stream_done *done;         /* [rank] what comes next from it */
    MPI_Request *done_request; /* [rank] */
    int64_t next, oldest;      /* requests: to begin next, to hand back next */
    bool over;
};

/* ---- opening ---- */

static bool reads(const rank_job *job, int rank, const char *input)
{
    for (int k = 0; k < job->n_devices; k++)
        for (int g = 0; job->device[k].rank == rank && g < job->device[k].n_segments; g++)
            for (int i = 0; i < job->device[k].segment[g].n_inputs; i++)
                if (!strcmp(job->device[k].segment[g].input[i], input))
                    return true;
    return rank == 0; /* it has all of them: an input may be an output, too */
}

static int open_inputs(stream *s, front_lane *l, int lane)
{
    stream_front *f = s->front;
    const rank_job *job = s->x->job;
    int n = 0, rc = 0;
    for (int i = 0; i < job->n_inputs && !rc; i++) {
        rank_shape shape;
        void *data;
        size_t bytes;
        OrtValue *value = s->x->slot[rank_exec_slot(s->x, job->input[i].name)].value;
        rc = rank_value_look(&shape, &data, &bytes, s->x->ort, value, job->input[i].name);
        for (int r = 0; r < s->world.size && !rc; r++) {
            if (!reads(job, r, job->input[i].name))
                continue;
            f->input[n] = i;
            rc = stream_message_init(&l->in[n++], s, r, stream_tag(s, job->n_transfers + i, lane), -1, &shape);
        }
    }
    f->n_in = n;
    return rc;
}

static int open_outputs(stream *s, front_lane *l, int lane)
{
    const rank_job *job = s->x->job;
    int rc = 0;
    for (int i = 0; i < job->n_outputs && !rc; i++) {
        rc = stream_message_init(&l->out[i], s, rank_job_owner(job, job->output[i].name),
                                 stream_tag(s, job->n_transfers + job->n_inputs + i, lane), -1, &s->out_shape[i]);
        l->output[i] = l->out[i].data = util_alloc(s->out_bytes[i], 1);
        rc = rc ? rc : l->output[i] ? 0 : MOIRAI_EFAIL;
    }
    s->front->n_out = job->n_outputs;
    return rc;
}

static int open_lane(stream *s, int lane)
{
    front_lane *l = &s->front->lane[lane];
    const rank_job *job = s->x->job;
    size_t n_ranks = (size_t)s->world.size;
    l->begin_request = util_alloc(n_ranks, sizeof *l->begin_request);
    l->busy_ns = util_alloc(n_ranks, sizeof *l->busy_ns);
    l->in = util_alloc((size_t)job->n_inputs * n_ranks, sizeof *l->in);
    l->out = util_alloc((size_t)job->n_outputs, sizeof *l->out);
    l->input = util_alloc((size_t)job->n_inputs, sizeof *l->input);
    l->output = util_alloc((size_t)job->n_outputs, sizeof *l->output);
    if (!l->begin_request || !l->busy_ns || !l->in || !l->out || !l->input || !l->output)
        return MOIRAI_EFAIL;
    for (size_t r = 0; r < n_ranks; r++)
        l->begin_request[r] = MPI_REQUEST_NULL;
    int rc = s->feeds ? open_inputs(s, l, lane) : 0;
    return rc || !s->feeds ? rc : open_outputs(s, l, lane);
}

static void post_done(stream *s, int rank)
{
    stream_front *f = s->front;
    MPI_Irecv(&f->done[rank], (int)sizeof *f->done, MPI_BYTE, rank, STREAM_DONE_TAG, s->world.comm,
              &f->done_request[rank]);
}

int stream_front_open(stream *s, const stream_source *source)
{
    stream_front *f = s->front = util_alloc(1, sizeof *f);
    size_t n_ranks = (size_t)s->world.size;
    if (!f)
        return MOIRAI_EFAIL;
    f->source = *source;
    f->lane = util_alloc((size_t)s->n_lanes, sizeof *f->lane);
    f->input = util_alloc((size_t)s->x->job->n_inputs * n_ranks, sizeof *f->input);
    f->done = util_alloc(n_ranks, sizeof *f->done);
    f->done_request = util_alloc(n_ranks, sizeof *f->done_request);
    int rc = f->lane && f->input && f->done && f->done_request ? 0 : MOIRAI_EFAIL;
    for (int i = 0; i < s->n_lanes && !rc; i++)
        rc = open_lane(s, i);
    for (int r = 0; r < s->world.size && !rc; r++)
        post_done(s, r);
    return rc;
}

void stream_front_close(stream *s)
{
    stream_front *f = s->front;
    for (int i = 0; f && f->lane && i < s->n_lanes; i++) {
        front_lane *l = &f->lane[i];
        for (int k = 0; k < f->n_in; k++)
            free(l->in[k].request);
        for (int k = 0; k < f->n_out; k++) {
            free(l->out[k].request);
            free(l->output[k]);
        }
        free(l->begin_request);
        free(l->busy_ns);
        free(l->in);
        free(l->out);
        free(l->input);
        free(l->output);
    }
    if (f) {
        free(f->lane);
        free(f->input);
        free(f->done);
        free(f->done_request);
    }
    free(f);
    s->front = NULL;
}

/* ---- a request begins ---- */

static void tell_all(stream *s, front_lane *l)
{
    rank_world_wait(l->begin_request, (size_t)s->world.size);
    for (int r = 0; r < s->world.size; r++)
        MPI_Isend(&l->begin, (int)sizeof l->begin, MPI_BYTE, r, STREAM_BEGIN_TAG, s->world.comm, &l->begin_request[r]);
}

static void end_all(stream *s)
{
    front_lane *l = &s->front->lane[0];
    l->begin = (stream_begin){-1, 0};
    tell_all(s, l);
    rank_world_wait(l->begin_request, (size_t)s->world.size);
    for (int r = 0; r < s->world.size; r++) {
        MPI_Cancel(&s->front->done_request[r]);
        MPI_Request_free(&s->front->done_request[r]);
    }
}

static void begin(stream *s, front_lane *l, int64_t variant)
{
    stream_front *f = s->front;
    l->busy = true;
    l->n_done = l->first_open = 0;
    l->done = (stream_done){.number = f->next};
    l->begin = (stream_begin){f->next++, variant};
    for (int i = 0; i < f->n_out; i++)
        stream_post(s, &l->out[i]);
    tell_all(s, l);
    for (int i = 0; i < f->n_in; i++) {
        stream_message *m = &l->in[i];
        rank_world_isend(&s->world, l->input[f->input[i]], m->bytes, m->peer, m->tag, m->request);
    }
}

static bool begin_more(stream *s)
{
    stream_front *f = s->front;
    bool news = false;
    while (!f->over && !f->lane[f->next % s->n_lanes].busy) {
        front_lane *l = &f->lane[f->next % s->n_lanes];
        int64_t variant = 0;
        int got = f->source.next(f->source.data, f->next, &variant, l->input);
        f->over = got < 0;
        if (got <= 0)
            break;
        begin(s, l, variant);
        news = true;
    }
    return news;
}

/* ---- and leaves ---- */

static bool poll_done(stream *s)
{
    stream_front *f = s->front;
    bool news = false;
    for (int r = 0; r < s->world.size; r++) {
        while (stream_all_done(&f->done_request[r], 1)) {
            const stream_done *d = &f->done[r];
            front_lane *l = &f->lane[d->number % s->n_lanes];
            l->busy_ns[r] = d->busy_ns;
            l->done.busy_ns += d->busy_ns;
            if (d->failed && !l->done.failed) {
                l->done.failed = d->failed;
                memcpy(l->done.text, d->text, sizeof l->done.text);
            }
            l->n_done++;
            post_done(s, r);
            news = true;
        }
    }
    return news;
}

static bool is_over(const stream *s, front_lane *l)
{
    const stream_front *f = s->front;
    if (!l->busy || l->n_done < s->world.size)
        return false;
    for (; l->first_open < f->n_out; l->first_open++)
        if (!stream_all_done(l->out[l->first_open].request, l->out[l->first_open].n_requests))
            return false;
    for (int i = 0; i < f->n_in; i++) /* they were received, but MPI wants to be asked */
        if (!stream_all_done(l->in[i].request, l->in[i].n_requests))
            return false;
    return true;
}

static bool hand_back(stream *s)
{
    stream_front *f = s->front;
    bool news = false;
    for (front_lane *l; is_over(s, l = &f->lane[f->oldest % s->n_lanes]); f->oldest++) {
        f->source.finished(f->source.data, &l->done, s->feeds ? l->output : NULL, l->busy_ns);
        l->busy = false;
        news = true;
    }
    return news;
}

bool stream_front_progress(stream *s)
{
    stream_front *f = s->front;
    bool was_over = f->over && f->oldest == f->next;
    bool news = poll_done(s);
    news |= hand_back(s);
    news |= begin_more(s);
    if (!was_over && f->over && f->oldest == f->next)
        end_all(s);
    return news;
}
