/* HTTP by libmicrohttpd. A request's body is collected up to the length that the model's shapes allow, read, and put into
 * the queue; its connection sleeps until the answer is there. Nothing here waits for a client: one that takes too long to
 * send its request, or between two, is cut off by a thread that looks after time. */
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include <microhttpd.h>

#include "serve/serve_route.h"
#include "serve/serve_state.h"
#include "util/util.h"

enum { HTTP_THREADS = 2, HEADER_BYTES = 1 << 15, TICK_NS = 10000000, DRAIN_S = 5 };
#define CROWDED_S 1.0

/* A client. */
typedef struct client {
    struct client *next, **back;
    int fd;
    double since_s; /* when it began to send, or to be silent */
    bool sending;   /* false: the server has its request and works on it */
} client;

/* One request of a client. */
typedef struct call {
    serve_http *h;
    client *client;
    struct MHD_Connection *connection;
    serve_route route;
    char *body;
    size_t length, capacity, dropped;
    double begin_s;
    bool infers;   /* its address is one of inferences, be it of another model */
    bool asked;    /* the queue has it */
    bool hopeless; /* its body is not even waited for */
    int code;      /* not 0: what is wrong */
    char text[1100];
    serve *shape; /* the server of the request's shapes, once it was read */
    serve_job *job;
} call;

struct serve_http {
    serve *s;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* for the clients and the number of calls */
    client *client;
    int64_t n_clients, n_calls;
    pthread_t ticker;
    bool has_ticker;
    atomic_bool stop;
    int port;
};

/* ---- answers ---- */

/* `allow`: the methods of an address that was asked by another one, or NULL. */
static enum MHD_Result respond_by(struct MHD_Connection *c, int code, const char *type, char *body, size_t length,
                                  size_t json_bytes, const char *allow)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(length, body, MHD_RESPMEM_MUST_FREE);
    char number[32];
    if (!r) {
        free(body);
        return MHD_NO;
    }
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (json_bytes) {
        snprintf(number, sizeof number, "%zu", json_bytes);
        MHD_add_response_header(r, "Inference-Header-Content-Length", number);
    }
    if (code == 429 || code == 503)
        MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (allow)
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, allow);
    enum MHD_Result result = MHD_queue_response(c, (unsigned)code, r);
    MHD_destroy_response(r);
    return result;
}

static enum MHD_Result respond(struct MHD_Connection *c, int code, const char *type, char *body, size_t length,
                               size_t json_bytes)
{
    return respond_by(c, code, type, body, length, json_bytes, NULL);
}

static enum MHD_Result refuse_by(struct MHD_Connection *c, int code, const char *text, const char *allow)
{
    char *body;
    size_t length;
    if (serve_error_write(&body, &length, text))
        return MHD_NO;
    return respond_by(c, code, "application/json", body, length, 0, allow);
}

static enum MHD_Result refuse(struct MHD_Connection *c, int code, const char *text)
{
    return refuse_by(c, code, text, NULL);
}

static int code_of(int rc)
{
    return rc == MOIRAI_EINPUT ? 400 : 500;
}

static enum MHD_Result answer(const call *k)
{
    const serve_model *m = k->shape->model;
    char *body;
    size_t length, json_bytes;
    if (serve_answer_write(&body, &length, &json_bytes, m, &k->job->request, k->job->output))
        return refuse(k->connection, 500, moirai_error_message());
    bool binary = json_bytes < length;
    return respond(k->connection, 200, binary ? "application/octet-stream" : "application/json", body, length,
                   binary ? json_bytes : 0);
}

/* For all shapes. */
static bool is_ready(const serve *s)
{
    bool ready = true;
    for (int i = 0; i < s->n_all; i++)
        ready = ready && atomic_load(&s->all[i]->n_links) > 0 && !s->all[i]->queue.closed;
    return ready;
}

static enum MHD_Result tell(const call *k)
{
    serve *s = k->h->s;
    char *body = NULL;
    size_t length = 0;
    bool metrics = k->route.what == SERVE_METRICS;
    int rc = 0;
    if (k->route.what == SERVE_READY && !is_ready(s))
        return refuse(k->connection, 503, "no devices are ready");
    if (k->route.what == SERVE_LIVE || k->route.what == SERVE_READY)
        rc = (body = util_strdup("{}")) ? (length = 2, 0) : MOIRAI_EFAIL;
    else if (metrics)
        rc = serve_metrics_write(&body, &length, s);
    else
        rc = k->route.what == SERVE_ABOUT ? serve_about_server(&body, &length)
                                          : serve_about_model(&body, &length, s->models, s->n_all);
    if (rc)
        return refuse(k->connection, 500, moirai_error_message());
    return respond(k->connection, 200, metrics ? "text/plain; version=0.0.4" : "application/json", body, length, 0);
}

/* ---- a request ---- */

static void fail(call *k, int code, const char *text)
{
    if (k->code)
        return;
    k->code = code;
    snprintf(k->text, sizeof k->text, "%s", text);
}

static const char *header(const call *k, const char *name)
{
    return MHD_lookup_connection_value(k->connection, MHD_HEADER_KIND, name);
}

/* A whole number of decimal digits; -1: it is none. */
static int64_t digits(const char *text)
{
    int64_t n = 0;
    for (const char *at = text; *at; at++)
        if (!isdigit((unsigned char)*at) || !util_mul64(&n, n, 10) || !util_add64(&n, n, *at - '0'))
            return -1;
    return *text ? n : -1;
}

/* Of any shapes. */
static size_t most_bytes(const serve *s)
{
    size_t most = 0;
    for (int i = 0; i < s->n_all; i++)
        most = UTIL_MAX(most, serve_model_most_bytes(s->models[i]));
    return most;
}

typedef struct framing {
    int lengths, codings;
    bool chunked;
    bool blank; /* a name ends with one: "Content-Length : 5" is no length here, but to others it may be */
} framing;

static enum MHD_Result look_at(void *data, enum MHD_ValueKind kind, const char *name, const char *value)
{
    framing *f = data;
    size_t n = strlen(name);
    (void)kind;
    f->blank |= n > 0 && (name[n - 1] == ' ' || name[n - 1] == '\t');
    f->lengths += !strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (!strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        f->codings++;
        f->chunked = value && !strcasecmp(value, "chunked");
    }
    return MHD_YES;
}

/* Where two headers say where a body ends, a proxy in front may believe the other one, and what follows is a request to one of them alone. */
static bool ends_clearly(const call *k)
{
    framing f = {0};
    MHD_get_connection_values(k->connection, MHD_HEADER_KIND, look_at, &f);
    return !f.blank && f.lengths + f.codings <= 1 && (f.codings == 0 || f.chunked);
}

static void check_headers(call *k)
{
    const char *length = header(k, MHD_HTTP_HEADER_CONTENT_LENGTH),
               *coding = header(k, MHD_HTTP_HEADER_CONTENT_ENCODING);
    size_t most = most_bytes(k->h->s);
    char text[160];
    if (!ends_clearly(k)) {
        k->code = 0;
        fail(k, 400,
             "Content-Length and Transfer-Encoding: one of them, once, no blank before the colon of any header, and no "
             "coding but chunked");
        k->hopeless = true;
        return;
    }
    if (length && (digits(length) < 0 || (uint64_t)digits(length) > most)) {
        snprintf(text, sizeof text, "the body has %.40s bytes, a request of this model at most %zu", length, most);
        k->code = 0;
        fail(k, 413, text);
        k->hopeless = true;
    }
    if (k->route.what != SERVE_INFER)
        return;
    if (coding && strcasecmp(coding, "identity"))
        fail(k, 415, "the body is compressed (Content-Encoding), which is not known here");
}

/* False: the client sends so much more than it may that it is cut off. */
static bool collect(call *k, const char *data, size_t n)
{
    size_t most = most_bytes(k->h->s);
    char text[160];
    if (!k->code && k->route.what == SERVE_INFER && k->length + n > most) {
        snprintf(text, sizeof text, "the body has more than %zu bytes, the most of a request of this model", most);
        fail(k, 413, text);
    }
    if (k->code || k->route.what != SERVE_INFER) {
        k->dropped += n;
        return k->dropped <= most;
    }
    if (util_grow(&k->body, &k->capacity, k->length + n, 1)) {
        fail(k, 500, moirai_error_message());
        return true;
    }
    memcpy(k->body + k->length, data, n);
    k->length += n;
    return true;
}

static void wake(void *owner)
{
    MHD_resume_connection(((call *)owner)->connection);
}

static void set_sending(call *k, bool sending)
{
    if (!k->client)
        return;
    pthread_mutex_lock(&k->h->lock);
    k->client->sending = sending;
    k->client->since_s = util_seconds();
    pthread_mutex_unlock(&k->h->lock);
}

/* The body is there: read it and wait for the answer. */
static int ask(call *k)
{
    serve *s = k->h->s;
    const char *json = header(k, "Inference-Header-Content-Length");
    int64_t json_bytes = json ? digits(json) : -1;
    if (json && json_bytes < 0)
        return moirai_error(MOIRAI_EINPUT, "Inference-Header-Content-Length '%.40s' is no number", json);
    if (!(k->job = serve_job_new()))
        return MOIRAI_EFAIL;
    int which, rc = serve_request_read_any(&k->job->request, &which, s->models, s->n_all, k->body ? k->body : "",
                                           k->length, json_bytes);
    k->shape = s->all[which];
    free(k->body);
    k->body = NULL;
    if (rc)
        return rc;
    double limit_s = s->options.timeout_s, wanted_s = k->job->request.timeout_s;
    k->job->arrived_s = k->begin_s;
    k->job->deadline_s = k->begin_s + (wanted_s > 0 && wanted_s < limit_s ? wanted_s : limit_s);
    k->job->wake = wake;
    k->job->owner = k;
    k->asked = true;
    MHD_suspend_connection(k->connection);
    serve_queue_put(&k->shape->queue, k->job); /* what it refuses is answered, too */
    return 0;
}

/* Before the answer leaves, so that whoever has it finds it counted. */
static void count(const call *k, int code)
{
    serve_metrics_count(&k->h->s->metrics, code, util_seconds() - k->begin_s);
}

static enum MHD_Result refuse_call(const call *k)
{
    if (k->infers)
        count(k, k->code);
    return refuse_by(k->connection, k->code, k->text,
                     k->code != 405                 ? NULL
                     : k->route.what == SERVE_INFER ? MHD_HTTP_METHOD_POST
                                                    : MHD_HTTP_METHOD_GET ", " MHD_HTTP_METHOD_HEAD);
}

static enum MHD_Result finish(call *k)
{
    if (k->asked) {
        set_sending(k, true); /* to take its answer, it has as long as to send a request */
        count(k, k->job->code);
        if (k->job->code == 200)
            return answer(k);
        return refuse(k->connection, k->job->code, k->job->text);
    }
    if (k->code)
        return refuse_call(k);
    if (k->route.what != SERVE_INFER)
        return tell(k);
    set_sending(k, false);
    int rc = ask(k);
    if (!rc)
        return MHD_YES;
    fail(k, code_of(rc), moirai_error_message());
    return refuse_call(k);
}

static call *begin(serve_http *h, struct MHD_Connection *c, const char *url, const char *method)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    call *k = util_alloc(1, sizeof *k);
    if (!k)
        return NULL;
    *k = (call){.h = h,
                .connection = c,
                .client = info ? info->socket_context : NULL,
                .infers = strstr(url, "/infer") != NULL,
                .begin_s = util_seconds()};
    pthread_mutex_lock(&h->lock);
    h->n_calls++;
    pthread_mutex_unlock(&h->lock);
    int code = serve_route_find(&k->route, h->s->model->name, url, method);
    if (code)
        fail(k, code, moirai_error_message());
    check_headers(k);
    return k;
}

static enum MHD_Result handle(void *data, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *upload, size_t *n_upload, void **own)
{
    call *k = *own;
    (void)version;
    if (!k) {
        *own = k = begin(data, c, url, method);
        if (!k)
            return MHD_NO;
        return k->hopeless ? refuse_call(k) : MHD_YES;
    }
    if (!*n_upload)
        return finish(k);
    bool more = collect(k, upload, *n_upload);
    *n_upload = 0;
    return more ? MHD_YES : MHD_NO;
}

/* An address with a zero inside is none: it stays as it is. */
static size_t unescape(void *data, struct MHD_Connection *c, char *text)
{
    (void)data;
    (void)c;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

static void completed(void *data, struct MHD_Connection *c, void **own, enum MHD_RequestTerminationCode why)
{
    serve_http *h = data;
    call *k = *own;
    (void)c;
    (void)why;
    if (!k)
        return;
    set_sending(k, true);
    if (k->job)
        serve_job_let_go(&(k->shape ? k->shape : h->s)->queue, k->job);
    free(k->body);
    free(k);
    *own = NULL;
    pthread_mutex_lock(&h->lock);
    h->n_calls--;
    pthread_mutex_unlock(&h->lock);
}

/* ---- clients ---- */

static void come(serve_http *h, struct MHD_Connection *c, void **context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    client *k = util_alloc(1, sizeof *k);
    *context = k;
    if (!k)
        return;
    *k = (client){.fd = info ? info->connect_fd : -1, .since_s = util_seconds(), .sending = true};
    pthread_mutex_lock(&h->lock);
    k->next = h->client;
    k->back = &h->client;
    if (k->next)
        k->next->back = &k->next;
    h->client = k;
    h->n_clients++;
    pthread_mutex_unlock(&h->lock);
}

static void go(serve_http *h, void **context)
{
    client *k = *context;
    if (!k)
        return;
    pthread_mutex_lock(&h->lock);
    *k->back = k->next;
    if (k->next)
        k->next->back = k->back;
    h->n_clients--;
    pthread_mutex_unlock(&h->lock);
    free(k);
    *context = NULL;
}

static void notice(void *data, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        come(data, c, context);
    else
        go(data, context);
}

/* Those who let us wait are cut off: libmicrohttpd then closes. Where all connections are taken, others wait for one: whoever holds one without a
 * whole request has a second, not --idle, or a few hundred silent clients would keep everybody else out. */
static void cut_off(serve_http *h, double now_s)
{
    pthread_mutex_lock(&h->lock);
    bool crowded = h->n_clients >= h->s->options.most_connections;
    double patience_s = crowded ? UTIL_MIN(h->s->options.idle_s, CROWDED_S) : h->s->options.idle_s;
    for (client *k = h->client; k; k = k->next)
        if (k->sending && k->fd >= 0 && now_s - k->since_s > patience_s)
            shutdown(k->fd, SHUT_RDWR);
    pthread_mutex_unlock(&h->lock);
}

static void *tick(void *data)
{
    serve_http *h = data;
    while (!atomic_load(&h->stop)) {
        double now_s = util_seconds();
        for (int i = 0; i < h->s->n_all; i++)
            serve_queue_expire(&h->s->all[i]->queue, now_s);
        cut_off(h, now_s);
        nanosleep(&(struct timespec){0, TICK_NS}, NULL);
    }
    return NULL;
}

/* ---- the daemon ---- */

static int address_of(struct sockaddr_storage *a, const serve_options *o)
{
    struct sockaddr_in *four = (struct sockaddr_in *)a;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)a;
    memset(a, 0, sizeof *a);
    if (inet_pton(AF_INET, o->address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)o->port);
        return 0;
    }
    if (inet_pton(AF_INET6, o->address, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)o->port);
        return 0;
    }
    return moirai_error(MOIRAI_EUSAGE, "serve: --address '%s' is no IP address", o->address);
}

int serve_http_open(serve_http **out, serve *s)
{
    struct sockaddr_storage a;
    serve_http *h = *out = util_alloc(1, sizeof *h);
    if (!h)
        return MOIRAI_EFAIL;
    h->s = s;
    pthread_mutex_init(&h->lock, NULL);
    int rc = address_of(&a, &s->options);
    if (rc)
        return rc;
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (a.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    h->daemon = MHD_start_daemon(
        flags, (uint16_t)s->options.port, NULL, NULL, handle, h, MHD_OPTION_SOCK_ADDR, &a, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)HTTP_THREADS, MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->options.most_connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_NOTIFY_COMPLETED, completed, h,
        MHD_OPTION_NOTIFY_CONNECTION, notice, h, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_END);
    if (!h->daemon)
        return moirai_error(MOIRAI_EFAIL, "can't listen on %s port %d: %s", s->options.address, s->options.port,
                            strerror(errno));
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
    h->port = info && info->port ? info->port : s->options.port;
    h->has_ticker = !pthread_create(&h->ticker, NULL, tick, h);
    return h->has_ticker ? 0 : moirai_error(MOIRAI_EFAIL, "can't start a thread");
}

int serve_http_port(const serve_http *h)
{
    return h->port;
}

/* Answers that are on their way have some seconds; a client that does not take its own loses it. */
static void drain(serve_http *h)
{
    for (double end_s = util_seconds() + DRAIN_S; util_seconds() < end_s;) {
        pthread_mutex_lock(&h->lock);
        bool idle = h->n_calls == 0;
        pthread_mutex_unlock(&h->lock);
        if (idle)
            return;
        nanosleep(&(struct timespec){0, TICK_NS}, NULL);
    }
}

void serve_http_close(serve_http *h)
{
    if (!h)
        return;
    if (h->has_ticker) {
        drain(h);
        for (int i = 0; i < h->s->n_all; i++) /* sleeping connections must not be there when it stops */
            serve_queue_expire(&h->s->all[i]->queue, 1e300);
        atomic_store(&h->stop, true);
        pthread_join(h->ticker, NULL);
    }
    if (h->daemon)
        MHD_stop_daemon(h->daemon);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
