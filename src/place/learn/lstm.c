#include "place/learn/lstm.h"

#include <math.h>
#include <string.h>

learn_lstm learn_lstm_new(learn_params *q, const char *const names[3], int32_t in, int32_t width)
{
    learn_lstm l = {.in = in, .width = width};
    l.wx = learn_params_add(q, names[0], in, 4 * width);
    l.wh = learn_params_add(q, names[1], width, 4 * width);
    l.b = learn_params_add(q, names[2], 1, 4 * width);
    return l;
}

static learn_real sigmoid(learn_real x)
{
#ifdef LEARN_DOUBLE
    return 1 / (1 + exp(-x));
#else
    return 1 / (1 + expf(-x));
#endif
}

static learn_real squash(learn_real x)
{
    return 2 * sigmoid(2 * x) - 1;
}

void learn_lstm_forward(const learn_lstm *l, const learn_real *value, int32_t rows, const learn_real *x,
                        const learn_real *state_before, const learn_real *cell_before, learn_real *gates,
                        learn_real *cell, learn_real *squashed, learn_real *state)
{
    size_t w = (size_t)l->width;
    for (int32_t r = 0; r < rows; r++)
        memcpy(gates + (size_t)r * 4 * w, value + l->b, 4 * w * sizeof *gates);
    learn_product(LEARN_PLAIN, LEARN_PLAIN, rows, 4 * l->width, l->in, x, value + l->wx, true, gates);
    learn_product(LEARN_PLAIN, LEARN_PLAIN, rows, 4 * l->width, l->width, state_before, value + l->wh, true, gates);
    for (int32_t r = 0; r < rows; r++) {
        learn_real *g = gates + (size_t)r * 4 * w;
        size_t at = (size_t)r * w;
        for (size_t j = 0; j < w; j++) {
            learn_real in = sigmoid(g[j]), forget = sigmoid(g[w + j]), out = sigmoid(g[2 * w + j]);
            learn_real candidate = squash(g[3 * w + j]);
            g[j] = in, g[w + j] = forget, g[2 * w + j] = out, g[3 * w + j] = candidate;
            cell[at + j] = forget * cell_before[at + j] + in * candidate;
            squashed[at + j] = squash(cell[at + j]);
            state[at + j] = out * squashed[at + j];
        }
    }
}

void learn_lstm_backward(const learn_lstm *l, const learn_real *value, int32_t rows, const learn_real *gates,
                         const learn_real *squashed, const learn_real *cell_before, const learn_real *dstate,
                         learn_real *dcell, learn_real *dgates, learn_real *dx, learn_real *dstate_before)
{
    size_t w = (size_t)l->width;
    for (int32_t r = 0; r < rows; r++) {
        const learn_real *g = gates + (size_t)r * 4 * w;
        learn_real *d = dgates + (size_t)r * 4 * w;
        size_t at = (size_t)r * w;
        for (size_t j = 0; j < w; j++) {
            learn_real in = g[j], forget = g[w + j], out = g[2 * w + j], candidate = g[3 * w + j], t = squashed[at + j];
            learn_real dc = dcell[at + j] + dstate[at + j] * out * (1 - t * t);
            d[j] = dc * candidate * in * (1 - in);
            d[w + j] = dc * cell_before[at + j] * forget * (1 - forget);
            d[2 * w + j] = dstate[at + j] * t * out * (1 - out);
            d[3 * w + j] = dc * in * (1 - candidate * candidate);
            dcell[at + j] = dc * forget;
        }
    }
    if (dx)
        learn_product(LEARN_PLAIN, LEARN_TURNED, rows, l->in, 4 * l->width, dgates, value + l->wx, false, dx);
    learn_product(LEARN_PLAIN, LEARN_TURNED, rows, l->width, 4 * l->width, dgates, value + l->wh, false, dstate_before);
}

void learn_lstm_weights(const learn_lstm *l, learn_real *grad, int32_t rows, const learn_real *x,
                        const learn_real *state_before, const learn_real *dgates)
{
    size_t w = 4 * (size_t)l->width;
    for (int32_t r = 0; r < rows; r++)
        for (size_t j = 0; j < w; j++)
            grad[l->b + j] += dgates[(size_t)r * w + j];
    learn_product(LEARN_TURNED, LEARN_PLAIN, l->in, 4 * l->width, rows, x, dgates, true, grad + l->wx);
    learn_product(LEARN_TURNED, LEARN_PLAIN, l->width, 4 * l->width, rows, state_before, dgates, true, grad + l->wh);
}

/* ---- attention ---- */

static learn_real dot(int32_t n, const learn_real *a, const learn_real *b)
{
    /* Four sums: without them the compiler, bound to the order of additions, could not use wide registers. */
    learn_real s[4] = {0};
    int32_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int32_t j = 0; j < 4; j++)
            s[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        s[0] += a[i] * b[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

void learn_attend_forward(int32_t n, int32_t width, const learn_real *query, const learn_real *key, size_t stride,
                          learn_real *weight, learn_real *context)
{
    learn_real scale = 1 / (learn_real)sqrt((double)width);
    for (int32_t i = 0; i < n; i++)
        weight[i] = scale * dot(width, query, key + (size_t)i * stride);
    learn_softmax(n, NULL, weight);
    memset(context, 0, (size_t)width * sizeof *context);
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < width; j++)
            context[j] += weight[i] * key[(size_t)i * stride + (size_t)j];
}

void learn_attend_backward(int32_t n, int32_t width, const learn_real *query, const learn_real *key, size_t stride,
                           const learn_real *weight, const learn_real *dcontext, learn_real *spare, learn_real *dquery,
                           learn_real *dkey)
{
    learn_real scale = 1 / (learn_real)sqrt((double)width), mean = 0;
    for (int32_t i = 0; i < n; i++) {
        spare[i] = dot(width, dcontext, key + (size_t)i * stride); /* by the weight */
        mean += weight[i] * spare[i];
    }
    memset(dquery, 0, (size_t)width * sizeof *dquery);
    for (int32_t i = 0; i < n; i++) {
        learn_real slope = scale * weight[i] * (spare[i] - mean);
        const learn_real *k = key + (size_t)i * stride;
        learn_real *d = dkey + (size_t)i * stride;
        for (int32_t j = 0; j < width; j++) {
            dquery[j] += slope * k[j];
            d[j] += slope * query[j] + weight[i] * dcontext[j];
        }
    }
}
