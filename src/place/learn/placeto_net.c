/* Placeto's policy network (Addanki, Bojja Venkatakrishnan, Gupta, Mao, Alizadeh 2019), forwards and backwards.
 *
 * Features of a node become h by a two-layer net. Twice, along the edges (from parents) and against them (from
 * children), eight rounds: x <- h + relu(g(sum over neighbours of relu(f(x)))), f and g two-layer nets of their own for
 * either direction, shared by the rounds. A node's embedding joins both x. The node to be placed sees its own embedding
 * and the means of those of its ancestors, its descendants and the nodes beside it; two hidden layers give a logit per
 * device.
 *
 * What differs: means instead of sums in the pooling, so that a policy meets numbers of the same size in a larger
 * graph.
 *
 * All nodes of all states of a batch are the rows of one matrix: a round costs four products per direction, 4 KB and
 * about 16,000 multiplications and additions a row in all, and twice that on the way back. */
#include "place/learn/placeto_net.h"

#include <stdlib.h>
#include <string.h>

#define W PLACETO_WIDTH
#define H PLACETO_HIDDEN

void placeto_net_declare(placeto_net *net, learn_params *q, int32_t n_devices)
{
    static const char *const input[] = {"input.w1", "input.b1", "input.w2", "input.b2"};
    static const char *const f[2][4] = {{"parents.f.w1", "parents.f.b1", "parents.f.w2", "parents.f.b2"},
                                        {"children.f.w1", "children.f.b1", "children.f.w2", "children.f.b2"}};
    static const char *const g[2][4] = {{"parents.g.w1", "parents.g.b1", "parents.g.w2", "parents.g.b2"},
                                        {"children.g.w1", "children.g.b1", "children.g.w2", "children.g.b2"}};
    net->n_devices = n_devices;
    net->n_features = PLACETO_FEATURES(n_devices);
    net->input = learn_pair_new(q, input, net->n_features, H, W);
    for (int d = 0; d < 2; d++) {
        net->f[d] = learn_pair_new(q, f[d], W, H, W);
        net->g[d] = learn_pair_new(q, g[d], W, H, W);
    }
    net->head[0] = learn_dense_new(q, "head.w1", "head.b1", PLACETO_HEAD, 32);
    net->head[1] = learn_dense_new(q, "head.w2", "head.b2", 32, 16);
    net->head[2] = learn_dense_new(q, "head.w3", "head.b3", 16, n_devices);
}

/* ---- memory ---- */

static learn_real *take(learn_real **store, size_t n)
{
    learn_real *from = *store;
    *store = !from ? NULL : from + n;
    return from;
}

/* Lays everything out from `store`; returns where it ends. With NULL nothing is set. */
static size_t lay_out(placeto_work *w, const placeto_net *net, size_t rows, learn_real *store)
{
    size_t s = (size_t)w->samples, K = (size_t)net->n_devices;
    size_t need = rows * (H + W) + 2 * PLACETO_ROUNDS * rows * (4 * W + 2 * H) + 2 * rows * W + rows * (5 * W + H) +
                  2 * s * (PLACETO_HEAD + 32 + 16 + K);
    if (!store)
        return need;
    w->input_hidden = take(&store, rows * H);
    w->h = take(&store, rows * W);
    for (int d = 0; d < 2; d++) {
        for (int r = 0; r < PLACETO_ROUNDS; r++)
            w->round[d][r] = (placeto_round){.x = take(&store, rows * W),
                                             .f_hidden = take(&store, rows * H),
                                             .message = take(&store, rows * W),
                                             .sum = take(&store, rows * W),
                                             .g_hidden = take(&store, rows * H),
                                             .update = take(&store, rows * W)};
        w->x[d] = take(&store, rows * W);
        w->dx[d] = take(&store, rows * W);
    }
    w->dh = take(&store, rows * W);
    w->dmessage = take(&store, rows * W);
    w->dsum = take(&store, rows * W);
    w->dhidden = take(&store, rows * H);
    w->pooled = take(&store, s * PLACETO_HEAD);
    w->dpooled = take(&store, s * PLACETO_HEAD);
    w->head1 = take(&store, s * 32);
    w->dhead1 = take(&store, s * 32);
    w->head2 = take(&store, s * 16);
    w->dhead2 = take(&store, s * 16);
    w->z = take(&store, s * K);
    w->dz = take(&store, s * K);
    return need;
}

int placeto_work_open(placeto_work *w, const placeto_net *net, const placeto_graph *g, int32_t samples)
{
    size_t rows = (size_t)samples * (size_t)g->n;
    *w = (placeto_work){.samples = samples};
    w->store = util_alloc(lay_out(w, net, rows, NULL), sizeof *w->store);
    if (!w->store)
        return MOIRAI_EFAIL;
    lay_out(w, net, rows, w->store);
    return 0;
}

void placeto_work_close(placeto_work *w)
{
    free(w->store);
}

/* ---- forwards ---- */

static void pass_messages(const placeto_net *net, const placeto_graph *g, const learn_real *value, int32_t samples,
                          placeto_work *w, int d)
{
    int32_t rows = samples * g->n;
    size_t n = (size_t)rows * W;
    const int32_t *off = d == 0 ? g->parent_off : g->child_off, *adjacent = d == 0 ? g->parent : g->child;
    memcpy(w->round[d][0].x, w->h, n * sizeof *w->h);
    for (int r = 0; r < PLACETO_ROUNDS; r++) {
        placeto_round *a = &w->round[d][r];
        learn_real *next = r + 1 < PLACETO_ROUNDS ? w->round[d][r + 1].x : w->x[d];
        learn_pair_forward(&net->f[d], value, rows, a->x, a->f_hidden, a->message);
        learn_relu_forward(n, a->message);
        learn_gather(samples, g->n, W, off, adjacent, a->message, a->sum);
        learn_pair_forward(&net->g[d], value, rows, a->sum, a->g_hidden, a->update);
        learn_relu_forward(n, a->update);
        for (size_t i = 0; i < n; i++)
            next[i] = w->h[i] + a->update[i];
    }
}

/* Own, ancestors, descendants, parallel: 2 W each. */
static void pool(const placeto_graph *g, int32_t sample, int32_t current, placeto_work *w)
{
    learn_real *to = w->pooled + (size_t)sample * PLACETO_HEAD;
    const uint8_t *relation = g->relation + (size_t)current * (size_t)g->n;
    int32_t count[4] = {0};
    memset(to, 0, PLACETO_HEAD * sizeof *to);
    for (int32_t u = 0; u < g->n; u++) {
        size_t row = ((size_t)sample * (size_t)g->n + (size_t)u) * W;
        learn_real *part = to + relation[u] * 2 * W;
        count[relation[u]]++;
        for (int i = 0; i < W; i++) {
            part[i] += w->x[0][row + (size_t)i];
            part[W + i] += w->x[1][row + (size_t)i];
        }
    }
    for (int c = 1; c < 4; c++)
        for (int i = 0; i < 2 * W && count[c] > 1; i++)
            to[c * 2 * W + i] /= (learn_real)count[c];
}

void placeto_net_forward(const placeto_net *net, const placeto_graph *g, const learn_real *value, int32_t samples,
                         const learn_real *features, const int32_t *current, placeto_work *w)
{
    learn_pair_forward(&net->input, value, samples * g->n, features, w->input_hidden, w->h);
    for (int d = 0; d < 2; d++)
        pass_messages(net, g, value, samples, w, d);
    for (int32_t s = 0; s < samples; s++)
        pool(g, s, current[s], w);
    learn_dense_forward(&net->head[0], value, samples, w->pooled, w->head1);
    learn_relu_forward((size_t)samples * 32, w->head1);
    learn_dense_forward(&net->head[1], value, samples, w->head1, w->head2);
    learn_relu_forward((size_t)samples * 16, w->head2);
    learn_dense_forward(&net->head[2], value, samples, w->head2, w->z);
}

/* ---- backwards ---- */

static void unpool(const placeto_graph *g, int32_t sample, int32_t current, placeto_work *w)
{
    const learn_real *from = w->dpooled + (size_t)sample * PLACETO_HEAD;
    const uint8_t *relation = g->relation + (size_t)current * (size_t)g->n;
    learn_real share[4] = {0};
    for (int32_t u = 0; u < g->n; u++)
        share[relation[u]]++;
    for (int c = 0; c < 4; c++)
        share[c] = share[c] > 1 ? 1 / share[c] : 1;
    for (int32_t u = 0; u < g->n; u++) {
        size_t row = ((size_t)sample * (size_t)g->n + (size_t)u) * W;
        const learn_real *part = from + relation[u] * 2 * W;
        for (int i = 0; i < W; i++) {
            w->dx[0][row + (size_t)i] = share[relation[u]] * part[i];
            w->dx[1][row + (size_t)i] = share[relation[u]] * part[W + i];
        }
    }
}

static void pass_back(const placeto_net *net, const placeto_graph *g, const learn_real *value, int32_t samples,
                      placeto_work *w, int d, learn_real *grad)
{
    int32_t rows = samples * g->n;
    size_t n = (size_t)rows * W;
    /* Messages went along the edges: derivatives go against them. */
    const int32_t *off = d == 0 ? g->child_off : g->parent_off, *adjacent = d == 0 ? g->child : g->parent;
    learn_real *dx = w->dx[d];
    for (int r = PLACETO_ROUNDS - 1; r >= 0; r--) {
        placeto_round *a = &w->round[d][r];
        for (size_t i = 0; i < n; i++)
            w->dh[i] += dx[i];
        learn_relu_backward(n, a->update, dx);
        learn_pair_backward(&net->g[d], value, grad, rows, a->sum, a->g_hidden, dx, w->dhidden, w->dsum);
        learn_gather(samples, g->n, W, off, adjacent, w->dsum, w->dmessage);
        learn_relu_backward(n, a->message, w->dmessage);
        learn_pair_backward(&net->f[d], value, grad, rows, a->x, a->f_hidden, w->dmessage, w->dhidden, dx);
    }
    for (size_t i = 0; i < n; i++)
        w->dh[i] += dx[i];
}

void placeto_net_backward(const placeto_net *net, const placeto_graph *g, const learn_real *value, int32_t samples,
                          const learn_real *features, const int32_t *current, placeto_work *w, learn_real *grad)
{
    int32_t rows = samples * g->n;
    learn_dense_backward(&net->head[2], value, grad, samples, w->head2, w->dz, w->dhead2);
    learn_relu_backward((size_t)samples * 16, w->head2, w->dhead2);
    learn_dense_backward(&net->head[1], value, grad, samples, w->head1, w->dhead2, w->dhead1);
    learn_relu_backward((size_t)samples * 32, w->head1, w->dhead1);
    learn_dense_backward(&net->head[0], value, grad, samples, w->pooled, w->dhead1, w->dpooled);
    for (int32_t s = 0; s < samples; s++)
        unpool(g, s, current[s], w);
    memset(w->dh, 0, (size_t)rows * W * sizeof *w->dh);
    for (int d = 0; d < 2; d++)
        pass_back(net, g, value, samples, w, d, grad);
    learn_pair_backward(&net->input, value, grad, rows, features, w->input_hidden, w->dh, w->dhidden, NULL);
}
