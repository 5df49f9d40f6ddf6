/* What the parts of the server share. */
#ifndef MOIRAI_SERVE_SERVE_STATE_H
#define MOIRAI_SERVE_SERVE_STATE_H

#include <stdatomic.h>

#include "serve/serve.h"
#include "serve/serve_queue.h"

enum { SERVE_MOST_CODES = 16, SERVE_BUCKETS = 15 };

typedef struct serve_device {
    char *name;
    int64_t busy_ns;
    bool up;
    double slowness; /* 0: not known */
} serve_device;

typedef struct serve_metrics {
    pthread_mutex_t lock;
    int code[SERVE_MOST_CODES]; /* 0: not used */
    int64_t n_code[SERVE_MOST_CODES];
    int64_t bucket[SERVE_BUCKETS]; /* of answers with 200, by their time */
    double sum_s;
    int n_devices;
    serve_device *device;
    int64_t n_groups;    /* that were attached */
    int64_t n_replanned; /* plans around a device that is slow */
} serve_metrics;

typedef struct serve_http serve_http;

struct serve {
    serve_model *model;
    serve_options options;
    serve_queue queue;
    serve_metrics metrics;
    atomic_int n_links; /* that take requests */
    serve_http *http;   /* NULL: another one has the clients */
    int n_all;          /* servers of other shapes behind the same clients, this one included */
    serve **all;
    const serve_model **models; /* theirs */
};

/* ---- serve_metrics.c ---- */
void serve_metrics_count(serve_metrics *m, int code, double seconds);
void serve_metrics_busy(serve_metrics *m, const char *const *device, const int64_t *busy_ns, int n);
void serve_metrics_up(serve_metrics *m, const char *const *device, int n, bool up);
void serve_metrics_free(serve_metrics *m);
/* The page of /metrics, in the text format of Prometheus. */
int serve_metrics_write(char **body, size_t *length, serve *s);
/* ---- serve_http.c ---- */
int serve_http_open(serve_http **out, serve *s);
int serve_http_port(const serve_http *h);
void serve_http_close(serve_http *h);

#endif
