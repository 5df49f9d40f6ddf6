/* Rank 0 as the front of a stream: begins requests in the order in which its source has them, as lanes become free, and
 * hands them back, those of a copy in the same order, when every rank of the copy has said that it is done. Where the
 * stream feeds, inputs leave from here to every rank that reads them, and outputs come back.
 *
 * Which copy has the next request (docs/rate.md): with slots, one that has a free lane, of several the one with the
 * largest part of its lanes free and, among equals, the fastest alone. Without, the copy that is furthest behind its
 * share, as the simulator has it. */
#include "rank/stream/stream.h"

#include <stdlib.h>
#include <string.h>

enum { LAST_REQUESTS = 16 }; /* that tell how long one takes */

typedef struct front_lane {
    bool busy;
    int copy;
    int n_done; /* ranks that are done with it */
    int first_open;
    void *token; /* the source's */
    stream_begin begin;
    MPI_Request *begin_request; /* [rank] */
    stream_done done;           /* of all ranks: the first failure; busy_ns is the sum */
    int64_t *busy_ns;           /* [rank] */
    stream_message *in, *out;   /* [front_copy.n_in], [stream_front.n_out] */
    void **output;              /* [job output] */
} front_lane;

typedef struct front_copy {
    int n_in, *input;     /* [n_in] which of the job's; sent in this order */
    int n_ranks, *rank;   /* that take part */
    int64_t next, oldest; /* of its requests: to begin next, to hand back next */
    int64_t n_chosen;     /* that the front gave it */
    int64_t news_ns;      /* when a rank was done with one of them, or the first of them began */
} front_copy;

struct stream_front {
    stream_source source;
    front_lane *lane;
    front_copy *copy;
    int n_out;
    void **input;              /* [job input] of the request that begins */
    stream_done *done;         /* [rank] what comes next from it */
    MPI_Request *done_request; /* [rank] */
    int64_t n_begun, n_over;   /* requests of all copies */
    int64_t n_chosen;          /* of them, those whose copy was chosen here */
    int64_t usual_ns;          /* from the begin of a request to its end, of the last ones */
    bool over, ended;
};

/* ---- opening ---- */

static int open_inputs(stream *s, front_lane *l, int lane)
{
    front_copy *c = &s->front->copy[l->copy];
    const rank_exec *x = s->copy[l->copy].x;
    const rank_job *job = x->job;
    int n = 0, rc = 0;
    for (int i = 0; i < job->n_inputs && !rc; i++) {
        rank_shape shape;
        void *data;
        size_t bytes;
        OrtValue *value = x->slot[rank_exec_slot(x, job->input[i].name)].value;
        rc = rank_value_look(&shape, &data, &bytes, x->ort, value, job->input[i].name);
        for (int r = 0; r < s->world.size && !rc; r++) {
            if (!stream_reads(job, r, job->input[i].name))
                continue;
            c->input[n] = i;
            rc = stream_message_init(&l->in[n++], s, r, stream_tag(s, job->n_transfers + i, lane), -1, &shape);
        }
    }
    c->n_in = n;
    return rc;
}

static int open_outputs(stream *s, front_lane *l, int lane)
{
    const rank_job *job = s->copy[l->copy].x->job;
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

static int open_lane(stream *s, int copy, int lane)
{
    front_lane *l = &s->front->lane[lane];
    const rank_job *job = s->x->job;
    size_t n_ranks = (size_t)s->world.size;
    l->copy = copy;
    l->begin_request = util_alloc(n_ranks, sizeof *l->begin_request);
    l->busy_ns = util_alloc(n_ranks, sizeof *l->busy_ns);
    l->in = util_alloc((size_t)job->n_inputs * n_ranks, sizeof *l->in);
    l->out = util_alloc((size_t)job->n_outputs, sizeof *l->out);
    l->output = util_alloc((size_t)job->n_outputs, sizeof *l->output);
    if (!l->begin_request || !l->busy_ns || !l->in || !l->out || !l->output)
        return MOIRAI_EFAIL;
    for (size_t r = 0; r < n_ranks; r++)
        l->begin_request[r] = MPI_REQUEST_NULL;
    int rc = s->feeds ? open_inputs(s, l, lane) : 0;
    return rc || !s->feeds ? rc : open_outputs(s, l, lane);
}

static int open_copy(stream *s, int copy)
{
    front_copy *c = &s->front->copy[copy];
    const stream_copy *x = &s->copy[copy];
    c->input = util_alloc((size_t)s->x->job->n_inputs * (size_t)s->world.size, sizeof *c->input);
    c->rank = util_alloc((size_t)s->world.size, sizeof *c->rank);
    if (!c->input || !c->rank)
        return MOIRAI_EFAIL;
    for (int r = 0; r < s->world.size; r++)
        if (stream_takes_part(x->x->job, r))
            c->rank[c->n_ranks++] = r;
    int rc = 0;
    for (int i = 0; i < x->n_lanes && !rc; i++)
        rc = open_lane(s, copy, x->first_lane + i);
    return rc;
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
    f->copy = util_alloc((size_t)s->n_copies, sizeof *f->copy);
    f->input = util_alloc((size_t)s->x->job->n_inputs, sizeof *f->input);
    f->done = util_alloc(n_ranks, sizeof *f->done);
    f->done_request = util_alloc(n_ranks, sizeof *f->done_request);
    int rc = f->lane && f->copy && f->input && f->done && f->done_request ? 0 : MOIRAI_EFAIL;
    for (int c = 0; c < s->n_copies && !rc; c++)
        rc = open_copy(s, c);
    for (int r = 0; r < s->world.size && !rc; r++)
        post_done(s, r);
    return rc;
}

static void close_lane(const stream_front *f, front_lane *l)
{
    for (int k = 0; l->in && k < f->copy[l->copy].n_in; k++)
        free(l->in[k].request);
    for (int k = 0; l->out && k < f->n_out; k++) {
        free(l->out[k].request);
        free(l->output[k]);
    }
    free(l->begin_request);
    free(l->busy_ns);
    free(l->in);
    free(l->out);
    free(l->output);
}

void stream_front_close(stream *s)
{
    stream_front *f = s->front;
    if (!f)
        return;
    for (int i = 0; f->lane && f->copy && i < s->n_lanes; i++)
        close_lane(f, &f->lane[i]);
    for (int c = 0; f->copy && c < s->n_copies; c++) {
        free(f->copy[c].input);
        free(f->copy[c].rank);
    }
    free(f->lane);
    free(f->copy);
    free(f->input);
    free(f->done);
    free(f->done_request);
    free(f);
    s->front = NULL;
}

/* ---- a request begins ---- */

static void end_all(stream *s)
{
    front_lane *l = &s->front->lane[0];
    rank_world_wait(l->begin_request, (size_t)s->world.size);
    l->begin = (stream_begin){.number = -1};
    for (int r = 0; r < s->world.size; r++)
        MPI_Isend(&l->begin, (int)sizeof l->begin, MPI_BYTE, r, STREAM_BEGIN_TAG, s->world.comm, &l->begin_request[r]);
    rank_world_wait(l->begin_request, (size_t)s->world.size);
    for (int r = 0; r < s->world.size; r++) {
        MPI_Cancel(&s->front->done_request[r]);
        MPI_Request_free(&s->front->done_request[r]);
    }
}

static int next_lane(const stream *s, int copy)
{
    return s->copy[copy].first_lane + (int)(s->front->copy[copy].next % s->copy[copy].n_lanes);
}

/* The copy with the largest part of its lanes free, the fastest of these; or -1. */
static int choose_by_slots(const stream *s)
{
    const stream_front *f = s->front;
    int best = -1;
    double least = 1;
    for (int c = 0; c < s->n_copies; c++) {
        double busy = (double)(f->copy[c].next - f->copy[c].oldest) / s->copy[c].n_lanes;
        if (f->lane[next_lane(s, c)].busy)
            continue;
        if (best < 0 || busy < least ||
            (busy == least && s->copy[c].x->job->makespan_ns < s->copy[best].x->job->makespan_ns)) {
            best = c;
            least = busy;
        }
    }
    return best;
}

static int choose_by_shares(const stream *s)
{
    const stream_front *f = s->front;
    const rank_job *job = s->x->job;
    double most = -1e300, all = 0;
    int best = 0;
    for (int c = 0; c < s->n_copies; c++)
        all += (double)job->copy[c].share_ppm;
    for (int c = 0; c < s->n_copies; c++) {
        double behind = (double)(f->n_chosen + 1) * (double)job->copy[c].share_ppm - (double)f->copy[c].n_chosen * all;
        if (behind > most) {
            most = behind;
            best = c;
        }
    }
    return f->n_begun - f->n_over < job->in_flight && !f->lane[next_lane(s, best)].busy ? best : -1;
}

static void begin(stream *s, const stream_next *n)
{
    stream_front *f = s->front;
    front_copy *c = &f->copy[n->copy];
    int lane = next_lane(s, n->copy);
    front_lane *l = &f->lane[lane];
    l->busy = true;
    l->n_done = l->first_open = 0;
    l->token = n->token;
    l->done = (stream_done){.number = n->number, .lane = lane, .copy = n->copy, .begin_ns = rank_clock_own_ns()};
    if (c->next == c->oldest)
        c->news_ns = l->done.begin_ns;
    rank_world_wait(l->begin_request, (size_t)s->world.size);
    l->begin = (stream_begin){n->number, n->variant, lane};
    c->next++;
    c->n_chosen += !n->forced;
    f->n_begun++;
    f->n_chosen += !n->forced;
    for (int i = 0; i < f->n_out; i++)
        stream_post(s, &l->out[i]);
    for (int i = 0; i < c->n_ranks; i++)
        MPI_Isend(&l->begin, (int)sizeof l->begin, MPI_BYTE, c->rank[i], STREAM_BEGIN_TAG, s->world.comm,
                  &l->begin_request[i]);
    for (int i = 0; i < c->n_in; i++) {
        stream_message *m = &l->in[i];
        rank_world_isend(&s->world, n->input[c->input[i]], m->bytes, m->peer, m->tag, m->request);
    }
}

static bool begin_more(stream *s)
{
    stream_front *f = s->front;
    bool news = false, by_shares = s->n_copies > 1 && !s->x->job->copy[0].slots;
    while (!f->over) {
        stream_next n = {.number = f->n_begun, .input = f->input};
        n.copy = by_shares ? choose_by_shares(s) : choose_by_slots(s);
        int got = n.copy < 0 ? 0 : f->source.next(f->source.data, &n);
        f->over = got < 0;
        if (got <= 0)
            break;
        begin(s, &n);
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
            front_lane *l = &f->lane[d->lane];
            l->busy_ns[r] = d->busy_ns;
            l->done.busy_ns += d->busy_ns;
            if (d->failed && !l->done.failed) {
                l->done.failed = d->failed;
                memcpy(l->done.text, d->text, sizeof l->done.text);
            }
            l->n_done++;
            f->copy[l->copy].news_ns = rank_clock_own_ns();
            post_done(s, r);
            news = true;
        }
    }
    return news;
}

static bool is_over(const stream *s, front_lane *l)
{
    const stream_front *f = s->front;
    const front_copy *c = &f->copy[l->copy];
    if (!l->busy || l->n_done < c->n_ranks)
        return false;
    for (; l->first_open < f->n_out; l->first_open++)
        if (!stream_all_done(l->out[l->first_open].request, l->out[l->first_open].n_requests))
            return false;
    for (int i = 0; i < c->n_in; i++) /* they were received, but MPI wants to be asked */
        if (!stream_all_done(l->in[i].request, l->in[i].n_requests))
            return false;
    return true;
}

static bool hand_back(stream *s, int copy)
{
    stream_front *f = s->front;
    front_copy *c = &f->copy[copy];
    front_lane *first = &f->lane[s->copy[copy].first_lane];
    bool news = false;
    for (front_lane *l; is_over(s, l = &first[c->oldest % s->copy[copy].n_lanes]); c->oldest++) {
        f->source.finished(f->source.data, &l->done, s->feeds ? l->output : NULL, l->busy_ns, l->token);
        memset(l->busy_ns, 0, (size_t)s->world.size * sizeof *l->busy_ns);
        l->busy = false;
        f->n_over++;
        f->usual_ns += (rank_clock_own_ns() - l->done.begin_ns - f->usual_ns) / LAST_REQUESTS;
        news = true;
    }
    return news;
}

bool stream_front_progress(stream *s)
{
    stream_front *f = s->front;
    bool news = poll_done(s);
    for (int c = 0; c < s->n_copies; c++)
        news |= hand_back(s, c);
    news |= begin_more(s);
    bool over = f->over && f->n_over == f->n_begun;
    if (!over)
        stream_watch_look(s);
    else if (!f->ended && stream_watch_is_over(s)) {
        f->ended = true;
        end_all(s);
    }
    return news;
}

int64_t stream_front_usual_ns(const stream *s)
{
    return UTIL_MAX(s->alone_ns, s->front->usual_ns);
}

int64_t stream_front_quiet_ns(const stream *s, int64_t now_ns)
{
    int64_t longest = 0;
    for (int c = 0; c < s->n_copies; c++) {
        const front_copy *copy = &s->front->copy[c];
        if (copy->next > copy->oldest)
            longest = UTIL_MAX(longest, now_ns - copy->news_ns);
    }
    return longest;
}
