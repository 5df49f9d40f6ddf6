/* The server as a whole. */
#include <stdlib.h>
#include <string.h>

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
    return 0;
}

/* ---- several shapes ---- */

static int differs(const serve_model *m, const char *what, const char *name)
{
    return moirai_error(MOIRAI_EINPUT, "model '%s': its plans for other shapes do not belong together: %s '%s' differs",
                        m->name, what, name);
}

/* Names, types and numbers of dimensions are the same? */
static int compare(const serve_model *m, const serve_tensor *a, int n_a, const serve_tensor *b, int n_b,
                   const char *what)
{
    if (n_a != n_b)
        return differs(m, "the number of", what);
    for (int i = 0; i < n_a; i++)
        if (strcmp(a[i].name, b[i].name) || a[i].type != b[i].type || a[i].rank != b[i].rank)
            return differs(m, what, b[i].name);
    return 0;
}

static bool same_shapes(const serve_model *a, const serve_model *b)
{
    bool same = true;
    for (int i = 0; i < a->n_inputs; i++)
        for (int64_t d = 0; d < a->input[i].rank; d++)
            same = same && a->input[i].dim[d] == b->input[i].dim[d];
    return same;
}

static int check_siblings(const serve_model *const *m, int n)
{
    char shape[256];
    int rc = 0;
    for (int i = 1; i < n && !rc; i++) {
        rc = compare(m[0], m[0]->input, m[0]->n_inputs, m[i]->input, m[i]->n_inputs, "input");
        rc = rc ? rc : compare(m[0], m[0]->output, m[0]->n_outputs, m[i]->output, m[i]->n_outputs, "output");
        for (int j = 0; j < i && !rc; j++) {
            if (!same_shapes(m[i], m[j]))
                continue;
            serve_shape_text(shape, sizeof shape, m[i]->n_inputs ? m[i]->input[0].dim : NULL,
                             m[i]->n_inputs ? m[i]->input[0].rank : 0);
            rc = moirai_error(MOIRAI_EINPUT, "model '%s': two plans are for the same shapes, as input '%s' of %s",
                              m[0]->name, m[i]->n_inputs ? m[i]->input[0].name : "", shape);
        }
    }
    return rc;
}

int serve_listen(serve *const *all, int n)
{
    serve *s = all[0];
    s->all = util_alloc((size_t)n, sizeof(serve *));
    s->models = util_alloc((size_t)n, sizeof(serve_model *));
    if (!s->all || !s->models)
        return MOIRAI_EFAIL;
    s->n_all = n;
    for (int i = 0; i < n; i++) {
        s->all[i] = all[i];
        s->models[i] = all[i]->model;
    }
    int rc = check_siblings(s->models, n);
    return rc ? rc : serve_http_open(&s->http, s);
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
    free(s->all);
    free(s->models);
    serve_queue_end(&s->queue);
    serve_metrics_free(&s->metrics);
    serve_model_free(s->model);
    free(s);
}
