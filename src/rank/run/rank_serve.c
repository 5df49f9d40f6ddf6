/* moirai-rank serve JOB SOCKET: a group of ranks that stays. Rank 0 has a socket to the server (serve/serve_wire.h), with a
 * thread that reads requests from it and one that writes answers: the main thread, which looks after messages, never waits
 * for either. Until the first request comes, a group sleeps. It ends when the server shuts the socket and all that came
 * before is answered. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rank/rank.h"
#include "rank/run/rank_copies.h"
#include "rank/run/rank_play.h"
#include "rank/stream/stream.h"
#include "serve/serve_wire.h"
#include "util/util.h"

enum { STAND_BY_NS = 4000000 }; /* between looks of a rank that stands by: the first request may wait as long */

/* A request that came or an answer that goes. */
typedef struct parcel {
    struct parcel *next;
    int64_t id;
    size_t bytes;
    char data[];
} parcel;

typedef struct list {
    parcel *first, **last;
} list;

typedef struct server {
    stream *s;
    int fd;
    size_t n_ranks;
    size_t in_bytes, out_bytes; /* of a request, of its outputs */
    pthread_mutex_t lock;       /* for the lists */
    pthread_cond_t news;        /* for the writer */
    list came, goes;
    bool over, stop; /* no more will come; the writer may end */
    pthread_t reader, writer;
} server;

/* ---- bytes ---- */

static bool get(int fd, void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(fd, (char *)data + done, bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool put(int fd, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(fd, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static void append(list *l, parcel *p)
{
    p->next = NULL;
    *(l->first ? l->last : &l->first) = p;
    l->last = &p->next;
}

static parcel *take(list *l)
{
    parcel *p = l->first;
    if (p)
        l->first = p->next;
    return p;
}

static parcel *parcel_new(int64_t id, size_t bytes)
{
    parcel *p = malloc(sizeof *p + bytes);
    if (p) {
        p->id = id;
        p->bytes = bytes;
    }
    return p;
}

/* ---- the two threads of the socket ---- */

static parcel *read_request(const server *v)
{
    serve_ask ask;
    if (!get(v->fd, &ask, sizeof ask) || ask.magic != SERVE_MAGIC || ask.bytes != (int64_t)v->in_bytes)
        return NULL;
    parcel *p = parcel_new(ask.id, v->in_bytes);
    if (p && get(v->fd, p->data, v->in_bytes))
        return p;
    free(p);
    return NULL;
}

static void *read_all(void *data)
{
    server *v = data;
    for (bool more = true; more;) {
        parcel *p = read_request(v);
        more = p != NULL;
        pthread_mutex_lock(&v->lock);
        if (p)
            append(&v->came, p);
        v->over = !more;
        pthread_mutex_unlock(&v->lock);
        pthread_mutex_lock(&v->s->lock);
        pthread_cond_signal(&v->s->poke);
        pthread_mutex_unlock(&v->s->lock);
    }
    return NULL;
}

static void *write_all(void *data)
{
    server *v = data;
    bool fine = true;
    pthread_mutex_lock(&v->lock);
    for (;;) {
        parcel *p = take(&v->goes);
        if (!p && v->stop)
            break;
        if (!p) {
            pthread_cond_wait(&v->news, &v->lock);
            continue;
        }
        pthread_mutex_unlock(&v->lock);
        fine = fine && put(v->fd, p->data, p->bytes); /* a server that is gone: the reader sees it, too */
        free(p);
        pthread_mutex_lock(&v->lock);
    }
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

/* ---- the source ---- */

static int next(void *data, stream_next *n)
{
    server *v = data;
    const rank_job *job = v->s->x->job;
    pthread_mutex_lock(&v->lock);
    parcel *p = take(&v->came);
    bool over = v->over;
    pthread_mutex_unlock(&v->lock);
    if (!p)
        return over ? -1 : 0;
    n->token = p;
    char *at = p->data;
    for (int i = 0; i < job->n_inputs; i++) {
        size_t bytes = 0;
        n->input[i] = at;
        rank_shape_bytes(&bytes, &job->input[i].shape); /* fits: rank_serve has asked */
        at += bytes;
    }
    return 1;
}

static void fill(const server *v, char *at, const stream_done *done, void *const *output)
{
    if (done->failed) {
        memcpy(at, done->text, strlen(done->text));
        return;
    }
    for (int i = 0; i < v->s->x->job->n_outputs; i++) {
        memcpy(at, output[i], v->s->out_bytes[i]);
        at += v->s->out_bytes[i];
    }
}

static void finished(void *data, const stream_done *done, void *const *output, const int64_t *busy_ns, void *token)
{
    server *v = data;
    parcel *asked = token;
    size_t bytes = done->failed ? strlen(done->text) : v->out_bytes, busy_bytes = v->n_ranks * sizeof *busy_ns;
    serve_reply head = {SERVE_MAGIC, asked->id, done->failed, (int64_t)bytes, done->copy};
    parcel *p = parcel_new(asked->id, sizeof head + busy_bytes + bytes);
    if (!p)
        rank_world_abort(&v->s->world, moirai_error(MOIRAI_EFAIL, "out of memory for an answer of %zu bytes", bytes));
    memcpy(p->data, &head, sizeof head);
    memcpy(p->data + sizeof head, busy_ns, busy_bytes);
    fill(v, p->data + sizeof head + busy_bytes, done, output);
    free(asked);
    pthread_mutex_lock(&v->lock);
    append(&v->goes, p);
    pthread_cond_signal(&v->news);
    pthread_mutex_unlock(&v->lock);
}

/* Out of turn for the main thread, in turn for the socket. What finds no memory is left out: the next one comes soon. */
static void sign(void *data, int rank, const char *text)
{
    server *v = data;
    size_t bytes = text ? strlen(text) : 0;
    serve_reply head = {SERVE_MAGIC, SERVE_SIGN, text != NULL, (int64_t)bytes, rank};
    parcel *p = parcel_new(SERVE_SIGN, sizeof head + bytes);
    if (!p)
        return;
    memcpy(p->data, &head, sizeof head);
    if (text)
        memcpy(p->data + sizeof head, text, bytes);
    pthread_mutex_lock(&v->lock);
    append(&v->goes, p);
    pthread_cond_signal(&v->news);
    pthread_mutex_unlock(&v->lock);
}

/* ---- opening ---- */

static int dial(int *fd, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path)
        return moirai_error(MOIRAI_EFAIL, "%s: too long for the name of a socket", path);
    strcpy(a.sun_path, path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || connect(*fd, (const struct sockaddr *)&a, sizeof a))
        return moirai_error(MOIRAI_EFAIL, "%s: can't reach the server: %s", path, strerror(errno));
    return 0;
}

static int say_hello(const server *v)
{
    const stream *s = v->s;
    serve_hello hello = {SERVE_MAGIC, s->world.size, s->x->job->n_outputs};
    bool fine = put(v->fd, &hello, sizeof hello);
    for (int i = 0; i < s->x->job->n_outputs && fine; i++) {
        serve_hello_tensor t = {.type = s->out_shape[i].type, .rank = s->out_shape[i].rank};
        memcpy(t.dim, s->out_shape[i].dim, sizeof t.dim);
        fine = put(v->fd, &t, sizeof t);
    }
    return fine ? 0 : moirai_error(MOIRAI_EFAIL, "the server is gone");
}

static int open_server(server *v, const char *path)
{
    const rank_job *job = v->s->x->job;
    int rc = 0;
    for (int i = 0; i < job->n_inputs && !rc; i++) {
        size_t bytes = 0;
        if (job->input[i].shape.rank < 0)
            rc = moirai_error(MOIRAI_EINPUT, "input '%s': its shape is not known", job->input[i].name);
        rc = rc ? rc : rank_shape_bytes(&bytes, &job->input[i].shape);
        v->in_bytes += bytes;
    }
    for (int i = 0; i < job->n_outputs; i++)
        v->out_bytes += v->s->out_bytes[i];
    v->n_ranks = (size_t)v->s->world.size;
    rc = rc ? rc : dial(&v->fd, path);
    return rc ? rc : say_hello(v);
}

static int start_threads(server *v)
{
    if (pthread_create(&v->reader, NULL, read_all, v) || pthread_create(&v->writer, NULL, write_all, v))
        return moirai_error(MOIRAI_EFAIL, "can't start a thread");
    return 0;
}

/* A group may be loaded long before it is needed. Until the server has something to say, all ranks sleep. */
static void stand_by(const server *v, const rank_world *w)
{
    struct pollfd p = {v->fd, POLLIN, 0};
    while (w->rank == 0 && poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
    rank_world_meet(w, STAND_BY_NS);
}

static void close_server(server *v)
{
    pthread_mutex_lock(&v->lock);
    v->stop = true;
    pthread_cond_signal(&v->news);
    pthread_mutex_unlock(&v->lock);
    pthread_join(v->writer, NULL);
    pthread_join(v->reader, NULL); /* it has ended before: else there would have been more */
    close(v->fd);
}

/* Every copy once, which shows all sizes. */
static int play_once(const rank_copies *c)
{
    int64_t begin_ns;
    int rc = rank_copies_begin(c);
    for (int i = 0; i < c->n && !rc; i++) {
        rank_exec *x = c->x[i];
        rank_clock_align(&x->clock, x->world, 0);
        rank_comm_run(x, x->n_played++, &begin_ns);
    }
    return rc;
}

static int serve(const rank_copies *c, const char *socket_path)
{
    server v = {.fd = -1};
    const stream_source source = {next, finished, sign, &v};
    const rank_world *w = c->x[0]->world;
    int64_t start_ns = rank_clock_own_ns();
    int rc = rank_world_agree(w, play_once(c));
    int64_t alone_ns = rank_clock_own_ns() - start_ns;
    rc = rc ? rc : stream_open(&v.s, c->x, true, 0);
    if (rc)
        return rc;
    v.s->alone_ns = alone_ns;
    pthread_mutex_init(&v.lock, NULL);
    pthread_cond_init(&v.news, NULL);
    bool front = w->rank == 0;
    rc = rank_world_agree(w, front ? open_server(&v, socket_path) : 0);
    if (!rc)
        stand_by(&v, w);
    rc = rc ? rc : rank_world_agree(w, front ? start_threads(&v) : 0);
    if (!rc) {
        rc = stream_play(v.s, front ? &source : NULL);
        if (front)
            close_server(&v);
    }
    stream_close(v.s);
    return rank_world_agree(w, rc);
}

static int serve_job(const rank_world *w, const char *path, const char *socket_path)
{
    rank_copies c;
    int rc = rank_copies_read(&c, w, path);
    const job_device *d = rc ? NULL : rank_play_device(c.job[0], w->rank);
    rc = rc || d ? rc : moirai_error(MOIRAI_EFAIL, "%s: a rank without a device", path);
    rc = rc ? rc : rank_copies_load(&c, w, d);
    rc = rank_world_agree(w, rc);
    rc = rc ? rc : serve(&c, socket_path);
    rank_copies_close(&c);
    return rc;
}

int rank_serve(int argc, char **argv)
{
    rank_world w;
    char path[2][4096];
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s", argc > i ? argv[i] : "");
    int rc = rank_world_open(&w, &argc, &argv);
    if (rc) {
        fprintf(stderr, "moirai-rank: error %d 0 %s\n", -rc, moirai_error_message());
        return -rc;
    }
    rc = serve_job(&w, path[0], path[1]);
    rank_world_close();
    return -rc;
}
