/* Counters, and the page that shows them. */
#include "serve/serve_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

static const double bound_s[SERVE_BUCKETS] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                              0.25,   0.5,   1,      2.5,   5,    10,    1e300};

void serve_metrics_count(serve_metrics *m, int code, double seconds)
{
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < SERVE_MOST_CODES; i++)
        if (m->code[i] == code || !m->code[i]) {
            m->code[i] = code;
            m->n_code[i]++;
            break;
        }
    if (code == 200) {
        m->sum_s += seconds;
        for (int i = 0; i < SERVE_BUCKETS; i++)
            m->bucket[i] += seconds <= bound_s[i];
    }
    pthread_mutex_unlock(&m->lock);
}

/* Under the lock. NULL: no memory for one more. */
static serve_device *find(serve_metrics *m, const char *name)
{
    for (int i = 0; i < m->n_devices; i++)
        if (!strcmp(m->device[i].name, name))
            return &m->device[i];
    char *own = util_strdup(name);
    serve_device *all = own ? util_resize(m->device, (size_t)m->n_devices + 1, sizeof *all) : NULL;
    if (!all) {
        free(own);
        return NULL;
    }
    m->device = all;
    m->device[m->n_devices] = (serve_device){.name = own};
    return &m->device[m->n_devices++];
}

void serve_metrics_busy(serve_metrics *m, const char *const *device, const int64_t *busy_ns, int n)
{
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < n; i++) {
        serve_device *d = find(m, device[i]);
        if (d)
            d->busy_ns += busy_ns[i];
    }
    pthread_mutex_unlock(&m->lock);
}

void serve_tell_slowness(serve *s, const char *device, double slowness)
{
    pthread_mutex_lock(&s->metrics.lock);
    serve_device *d = find(&s->metrics, device);
    if (d)
        d->slowness = slowness;
    pthread_mutex_unlock(&s->metrics.lock);
}

void serve_tell_replanned(serve *s)
{
    pthread_mutex_lock(&s->metrics.lock);
    s->metrics.n_replanned++;
    pthread_mutex_unlock(&s->metrics.lock);
}

void serve_metrics_up(serve_metrics *m, const char *const *device, int n, bool up)
{
    pthread_mutex_lock(&m->lock);
    m->n_groups += up;
    for (int i = 0; i < m->n_devices && up; i++)
        m->device[i].up = false;
    for (int i = 0; i < n; i++) {
        serve_device *d = find(m, device[i]);
        if (d)
            d->up = up;
    }
    pthread_mutex_unlock(&m->lock);
}

void serve_metrics_free(serve_metrics *m)
{
    for (int i = 0; i < m->n_devices; i++)
        free(m->device[i].name);
    free(m->device);
    pthread_mutex_destroy(&m->lock);
}

/* ---- the page ---- */

static void head(FILE *f, const char *name, const char *type, const char *help)
{
    fprintf(f, "# HELP moirai_%s %s\n# TYPE moirai_%s %s\n", name, help, name, type);
}

/* A device's name in quotes, as the format wants it. */
static void write_label(FILE *f, const char *text)
{
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(f, "\\%c", *text);
        else
            fputc(*text == '\n' ? ' ' : *text, f);
}

/* moirai_NAME{device="A"} and, where there are several shapes, bucket="0". */
static void write_name(FILE *f, const char *name, const serve_device *d, int bucket)
{
    fprintf(f, "moirai_%s{device=\"", name);
    write_label(f, d->name);
    if (bucket >= 0)
        fprintf(f, "\",bucket=\"%d", bucket);
    fputs("\"} ", f);
}

typedef enum device_figure { DEVICE_UP, DEVICE_BUSY, DEVICE_SLOW } device_figure;

static void write_figure(FILE *f, serve *s, const char *name, device_figure what)
{
    for (int k = 0; k < s->n_all; k++) {
        serve_metrics *m = &s->all[k]->metrics;
        int bucket = s->n_all > 1 ? k : -1;
        pthread_mutex_lock(&m->lock);
        for (int i = 0; i < m->n_devices; i++) {
            const serve_device *d = &m->device[i];
            if (what == DEVICE_SLOW && d->slowness <= 0)
                continue;
            write_name(f, name, d, bucket);
            if (what == DEVICE_UP)
                fprintf(f, "%d\n", d->up);
            else
                fprintf(f, "%.9g\n", what == DEVICE_BUSY ? (double)d->busy_ns / 1e9 : d->slowness);
        }
        pthread_mutex_unlock(&m->lock);
    }
}

static void write_devices(FILE *f, serve *s)
{
    head(f, "device_up", "gauge", "1 where a device of this name is at work.");
    write_figure(f, s, "device_up", DEVICE_UP);
    head(f, "device_busy_seconds_total", "counter", "Time that a device has computed.");
    write_figure(f, s, "device_busy_seconds_total", DEVICE_BUSY);
    head(f, "device_slowness", "gauge", "Time that a device takes by what it was expected to take, beside the others.");
    write_figure(f, s, "device_slowness", DEVICE_SLOW);
}

static void write_requests(FILE *f, const serve_metrics *m)
{
    head(f, "requests_total", "counter", "Inference requests by their status code.");
    for (int i = 0; i < SERVE_MOST_CODES && m->code[i]; i++)
        fprintf(f, "moirai_requests_total{code=\"%d\"} %lld\n", m->code[i], (long long)m->n_code[i]);
    head(f, "request_seconds", "histogram", "From a request's arrival to its answer, of those with status code 200.");
    for (int i = 0; i + 1 < SERVE_BUCKETS; i++)
        fprintf(f, "moirai_request_seconds_bucket{le=\"%g\"} %lld\n", bound_s[i], (long long)m->bucket[i]);
    fprintf(f, "moirai_request_seconds_bucket{le=\"+Inf\"} %lld\n", (long long)m->bucket[SERVE_BUCKETS - 1]);
    fprintf(f, "moirai_request_seconds_sum %.9g\nmoirai_request_seconds_count %lld\n", m->sum_s,
            (long long)m->bucket[SERVE_BUCKETS - 1]);
}

/* Of the queues and groups of all shapes together. */
static void write_queues(FILE *f, serve *s)
{
    int64_t n_waiting = 0, n_sent = 0, n_repeated = 0, n_groups = 0, n_replanned = 0;
    for (int k = 0; k < s->n_all; k++) {
        serve *each = s->all[k];
        int64_t waiting, sent;
        serve_queue_count(&each->queue, &waiting, &sent);
        n_waiting += waiting;
        n_sent += sent;
        n_repeated += each->queue.n_repeated;
        pthread_mutex_lock(&each->metrics.lock);
        n_groups += each->metrics.n_groups;
        n_replanned += each->metrics.n_replanned;
        pthread_mutex_unlock(&each->metrics.lock);
    }
    head(f, "waiting_requests", "gauge", "Requests that were accepted and not sent to the devices yet.");
    fprintf(f, "moirai_waiting_requests %lld\n", (long long)n_waiting);
    head(f, "in_flight_requests", "gauge", "Requests that the devices have.");
    fprintf(f, "moirai_in_flight_requests %lld\n", (long long)n_sent);
    head(f, "repeated_requests_total", "counter", "Requests sent again after devices had gone.");
    fprintf(f, "moirai_repeated_requests_total %lld\n", (long long)n_repeated);
    head(f, "groups_total", "counter", "Groups of devices that were started and used.");
    fprintf(f, "moirai_groups_total %lld\n", (long long)n_groups);
    head(f, "replans_total", "counter", "Plans that were made around a device that is slow.");
    fprintf(f, "moirai_replans_total %lld\n", (long long)n_replanned);
}

int serve_metrics_write(char **body, size_t *length, serve *s)
{
    FILE *f = open_memstream(body, length);
    if (!f)
        return moirai_error(MOIRAI_EFAIL, "out of memory for the metrics");
    pthread_mutex_lock(&s->metrics.lock);
    write_requests(f, &s->metrics);
    pthread_mutex_unlock(&s->metrics.lock);
    write_queues(f, s);
    write_devices(f, s);
    return fclose(f) ? moirai_error(MOIRAI_EFAIL, "out of memory for the metrics") : 0;
}
