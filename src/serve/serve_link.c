/* The link to a group of ranks: a thread that sends requests to rank 0, as many as may be under way, and one that receives
 * answers, each with the number of its request. When the socket ends before the link does, the group is dead, and what it had goes
 * back to the queue. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/serve_state.h"
#include "util/util.h"

enum { CLOSE_S = 5 };        /* for a group that was told to end */
enum { LAST_REQUESTS = 32 }; /* that tell how fast a device is: older ones count less and less */

struct serve_link {
    serve *s;
    int fd, n_ranks;
    char **device;
    int64_t most;
    pthread_mutex_t lock;
    pthread_cond_t news; /* an answer came, or an end */
    int64_t n_sent;      /* not answered yet */
    atomic_bool stop;    /* the sender may end */
    bool dead;           /* the socket has ended */
    bool sent_all;       /* the sender has ended */
    bool asked;          /* it was ever sent a request: before that a group sleeps */
    bool heard;          /* anything; when that was last, or could have begun; the last look: */
    double heard_s, looked_s;
    serve_hang hang;     /* as rank 0 says, once it has a text */
    int n_copies;        /* of the plan; 0: nothing is expected. The following under the lock: */
    int64_t *planned_ns; /* [copy * n_ranks + rank] */
    double *spent, *due; /* [rank] ns computed and planned, of the last requests */
    int64_t n_seen;
    pthread_t sender, receiver;
};

/* ---- bytes ---- */

static bool get(int fd, void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = recv(fd, (char *)data + done, bytes - done, 0);
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

/* ---- hello ---- */

/* Once it is set it stays, since answers are written by it meanwhile. */
static int take_tensor(serve_tensor *t, const serve_hello_tensor *h)
{
    if (!t->type)
        return serve_tensor_set(t, t->name, serve_type_of_onnx(h->type), h->rank, h->dim);
    bool same = t->type->onnx == h->type && t->rank == h->rank;
    return same && !memcmp(t->dim, h->dim, (size_t)t->rank * sizeof *t->dim)
               ? 0
               : moirai_error(MOIRAI_EFAIL, "output '%s' has another shape or type than before", t->name);
}

int serve_hello_read(serve_model *m, int fd, int *n_ranks, double limit_s)
{
    serve_hello hello;
    struct pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, (int)UTIL_MIN(limit_s * 1000, 2e9)) <= 0 || !get(fd, &hello, sizeof hello) ||
        hello.magic != SERVE_MAGIC || hello.n_outputs != m->n_outputs)
        return moirai_error(MOIRAI_EFAIL, "the first device did not say what it serves");
    for (int i = 0; i < m->n_outputs; i++) {
        serve_hello_tensor t;
        if (!get(fd, &t, sizeof t))
            return moirai_error(MOIRAI_EFAIL, "the first device did not say what it serves");
        int rc = take_tensor(&m->output[i], &t);
        if (rc)
            return rc;
    }
    *n_ranks = (int)hello.n_ranks;
    return 0;
}

/* ---- the two threads ---- */

static void die(serve_link *l)
{
    pthread_mutex_lock(&l->lock);
    l->dead = true;
    pthread_cond_broadcast(&l->news);
    pthread_mutex_unlock(&l->lock);
    serve_queue_wake(&l->s->queue);
}

/* Until one more may be under way. False: no more. */
static bool has_room(serve_link *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->n_sent >= l->most && !atomic_load(&l->stop) && !l->dead)
        pthread_cond_wait(&l->news, &l->lock);
    bool more = !atomic_load(&l->stop) && !l->dead;
    pthread_mutex_unlock(&l->lock);
    return more;
}

static void *send_all(void *data)
{
    serve_link *l = data;
    while (has_room(l)) {
        serve_job *j = serve_queue_take(&l->s->queue, l, &l->stop);
        if (!j)
            continue;
        pthread_mutex_lock(&l->lock);
        l->n_sent++;
        if (!l->asked)
            l->heard_s = util_seconds();
        l->asked = true;
        pthread_mutex_unlock(&l->lock);
        serve_ask ask = {SERVE_MAGIC, j->id, (int64_t)l->s->model->in_bytes};
        if (!put(l->fd, &ask, sizeof ask) || !put(l->fd, j->request.input, l->s->model->in_bytes))
            die(l);
        serve_job_let_go(&l->s->queue, j);
    }
    pthread_mutex_lock(&l->lock);
    l->sent_all = true;
    pthread_cond_broadcast(&l->news);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void compare(serve_link *l, const int64_t *busy_ns, int64_t copy)
{
    pthread_mutex_lock(&l->lock);
    for (int r = 0; copy >= 0 && copy < l->n_copies && r < l->n_ranks; r++) {
        double due = (double)l->planned_ns[copy * l->n_ranks + r], keep = 1 - 1.0 / LAST_REQUESTS;
        if (due <= 0)
            continue; /* not its request */
        l->spent[r] = keep * l->spent[r] + (double)busy_ns[r];
        l->due[r] = keep * l->due[r] + due;
    }
    l->n_seen++;
    pthread_mutex_unlock(&l->lock);
}

int serve_link_expect(serve_link *l, const int64_t *planned_ns, int n_copies)
{
    size_t n = (size_t)n_copies * (size_t)l->n_ranks;
    int64_t *own = util_alloc(n, sizeof *own);
    double *spent = util_alloc((size_t)l->n_ranks, sizeof *spent), *due = util_alloc((size_t)l->n_ranks, sizeof *due);
    if (!own || !spent || !due) {
        free(own);
        free(spent);
        free(due);
        return MOIRAI_EFAIL;
    }
    memcpy(own, planned_ns, n * sizeof *own);
    pthread_mutex_lock(&l->lock);
    l->planned_ns = own;
    l->spent = spent;
    l->due = due;
    l->n_copies = n_copies;
    pthread_mutex_unlock(&l->lock);
    return 0;
}

int64_t serve_link_ratio(serve_link *l, double *ratio)
{
    pthread_mutex_lock(&l->lock);
    for (int r = 0; r < l->n_ranks; r++)
        ratio[r] = l->n_copies && l->due[r] > 0 ? l->spent[r] / l->due[r] : 0;
    int64_t n = l->n_copies ? l->n_seen : 0;
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* The group is there, or something in it hangs. */
static bool take_sign(serve_link *l, const serve_reply *head)
{
    serve_hang hang = {.rank = (int)head->copy};
    if (head->bytes < 0 || head->bytes >= (int64_t)sizeof hang.text || !get(l->fd, hang.text, (size_t)head->bytes))
        return false;
    pthread_mutex_lock(&l->lock);
    if (head->failed)
        l->hang = hang;
    pthread_mutex_unlock(&l->lock);
    return true;
}

/* One answer; false: none will come. */
static bool take_answer(serve_link *l, const serve_reply *head, int64_t *busy_ns)
{
    if (!get(l->fd, busy_ns, (size_t)l->n_ranks * sizeof *busy_ns))
        return false;
    if (head->bytes < 0 || (head->failed ? head->bytes > 4096 : head->bytes != (int64_t)l->s->model->out_bytes))
        return false;
    char *data = malloc((size_t)head->bytes + 1);
    if (!data || !get(l->fd, data, (size_t)head->bytes)) {
        free(data);
        return false;
    }
    data[head->bytes] = '\0';
    serve_metrics_busy(&l->s->metrics, (const char *const *)l->device, busy_ns, l->n_ranks);
    if (!head->failed)
        compare(l, busy_ns, head->copy);
    bool fits = serve_queue_answer(&l->s->queue, l, head->id, head->failed ? NULL : data, head->failed ? data : NULL);
    if (head->failed)
        free(data);
    pthread_mutex_lock(&l->lock);
    l->n_sent -= fits;
    pthread_cond_broadcast(&l->news);
    pthread_mutex_unlock(&l->lock);
    return fits;
}

static void *receive_all(void *data)
{
    serve_link *l = data;
    serve_reply head;
    int64_t *busy_ns = util_alloc((size_t)l->n_ranks, sizeof *busy_ns);
    while (busy_ns && get(l->fd, &head, sizeof head) && head.magic == SERVE_MAGIC &&
           (head.id == SERVE_SIGN ? take_sign(l, &head) : take_answer(l, &head, busy_ns))) {
        pthread_mutex_lock(&l->lock);
        l->heard = true;
        l->heard_s = util_seconds();
        pthread_mutex_unlock(&l->lock);
    }
    free(busy_ns);
    die(l);
    return NULL;
}

/* ---- the whole ---- */

static void link_free(serve_link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    for (int i = 0; l->device && i < l->n_ranks; i++)
        free(l->device[i]);
    free(l->device);
    free(l->planned_ns);
    free(l->spent);
    free(l->due);
    pthread_cond_destroy(&l->news);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

int serve_attach(serve_link **out, serve *s, int fd, int n_ranks, const char *const *device, int64_t most)
{
    serve_link *l = *out = util_alloc(1, sizeof *l);
    if (!l) {
        close(fd);
        return MOIRAI_EFAIL;
    }
    *l = (serve_link){.s = s, .fd = fd, .n_ranks = n_ranks, .most = most};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->news, NULL);
    l->device = util_alloc((size_t)n_ranks, sizeof *l->device);
    int rc = l->device ? 0 : MOIRAI_EFAIL;
    for (int i = 0; i < n_ranks && !rc; i++)
        rc = (l->device[i] = util_strdup(device[i])) ? 0 : MOIRAI_EFAIL;
    if (!rc && pthread_create(&l->receiver, NULL, receive_all, l))
        rc = moirai_error(MOIRAI_EFAIL, "can't start a thread");
    if (!rc && pthread_create(&l->sender, NULL, send_all, l)) {
        rc = moirai_error(MOIRAI_EFAIL, "can't start a thread");
        shutdown(fd, SHUT_RDWR);
        pthread_join(l->receiver, NULL);
    }
    if (rc) {
        link_free(l);
        *out = NULL;
        return rc;
    }
    serve_metrics_up(&s->metrics, device, n_ranks, true);
    atomic_fetch_add(&s->n_links, 1);
    return 0;
}

bool serve_link_is_dead(serve_link *l)
{
    pthread_mutex_lock(&l->lock);
    bool dead = l->dead;
    pthread_mutex_unlock(&l->lock);
    return dead;
}

bool serve_link_hangs(serve_link *l, double stall_s, serve_hang *hang)
{
    double now_s = util_seconds();
    pthread_mutex_lock(&l->lock);
    if (now_s - l->looked_s > stall_s / 4) /* who was held up can't say that others were */
        l->heard_s = now_s;
    l->looked_s = now_s;
    *hang = l->hang;
    double quiet_s = now_s - l->heard_s;
    if (!*hang->text && l->asked && stall_s > 0 && quiet_s > stall_s) {
        hang->rank = l->heard ? 0 : -1;
        if (l->heard)
            snprintf(hang->text, sizeof hang->text, "device '%.60s' (rank 0) hangs: no sign of life for %.3g s",
                     l->device[0], quiet_s);
        else
            snprintf(hang->text, sizeof hang->text,
                     "no device has begun to work for %.3g s, and which one hangs can't be told", quiet_s);
    }
    pthread_mutex_unlock(&l->lock);
    return *hang->text;
}

int64_t serve_detach(serve_link *l, double limit_s)
{
    serve *s = l->s;
    atomic_fetch_sub(&s->n_links, 1);
    pthread_mutex_lock(&l->lock);
    atomic_store(&l->stop, true);
    pthread_cond_broadcast(&l->news);
    pthread_mutex_unlock(&l->lock);
    serve_queue_wake(&s->queue);
    pthread_mutex_lock(&l->lock);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)limit_s + 1;
    while ((l->n_sent || !l->sent_all) && !l->dead && pthread_cond_timedwait(&l->news, &l->lock, &until) != ETIMEDOUT)
        ;
    bool dead = l->dead || l->n_sent || !l->sent_all;
    shutdown(l->fd, dead ? SHUT_RDWR : SHUT_WR); /* rank 0 ends its group and closes */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_S;
    while (!l->dead && pthread_cond_timedwait(&l->news, &l->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&l->lock);
    shutdown(l->fd, SHUT_RDWR);
    pthread_join(l->sender, NULL);
    pthread_join(l->receiver, NULL);
    if (dead)
        serve_metrics_up(&s->metrics, (const char *const *)l->device, l->n_ranks, false);
    int64_t n = serve_queue_return(&s->queue, l);
    link_free(l);
    return n;
}
