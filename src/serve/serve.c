/* The server as a whole. */
#include <stdlib.h>

#include "serve/serve_state.h"
#include "util/util.h"

int serve_open(serve **out, serve_model *model, const serve_options *options)
{
    serve *s = *out = util_alloc(1, sizeof *s);
    if (!s) {
        serve_model_free(model);
        return MOIRAI_EFAIL;
    }
    s->model = model;
    s->options = *options;
    serve_queue_init(&s->queue, options->most_waiting);
    pthread_mutex_init(&s->metrics.lock, NULL);
    int rc = serve_http_open(&s->http, s);
    if (rc) {
        serve_close(s);
        *out = NULL;
    }
    return rc;
}

int serve_port(const serve *s)
{
    return serve_http_port(s->http);
}

const serve_model *serve_model_of(const serve *s)
{
    return s->model;
}

void serve_close_door(serve *s)
{
    serve_queue_close(&s->queue);
}

void serve_counts(serve *s, int64_t *n_accepted, int64_t *n_repeated)
{
    pthread_mutex_lock(&s->queue.lock);
    *n_accepted = s->queue.n_accepted;
    *n_repeated = s->queue.n_repeated;
    pthread_mutex_unlock(&s->queue.lock);
}

bool serve_is_idle(serve *s)
{
    return serve_queue_idle(&s->queue);
}

void serve_close(serve *s)
{
    if (!s)
        return;
    serve_queue_close(&s->queue);
    serve_http_close(s->http);
    serve_queue_end(&s->queue);
    serve_metrics_free(&s->metrics);
    serve_model_free(s->model);
    free(s);
}
