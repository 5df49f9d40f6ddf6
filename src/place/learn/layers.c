#include "place/learn/layers.h"

#include <math.h>
#include <string.h>

/* ---- dense ---- */

learn_dense learn_dense_new(learn_params *q, const char *w_name, const char *b_name, int32_t in, int32_t out)
{
    learn_dense d = {.in = in, .out = out};
    d.w = learn_params_add(q, w_name, in, out);
    d.b = learn_params_add(q, b_name, 1, out);
    return d;
}

void learn_dense_forward(const learn_dense *d, const learn_real *value, int32_t rows, const learn_real *x,
                         learn_real *y)
{
    const learn_real *b = value + d->b;
    for (int32_t r = 0; r < rows; r++)
        memcpy(y + (size_t)r * (size_t)d->out, b, (size_t)d->out * sizeof *y);
    learn_product(LEARN_PLAIN, LEARN_PLAIN, rows, d->out, d->in, x, value + d->w, true, y);
}

void learn_dense_backward(const learn_dense *d, const learn_real *value, learn_real *grad, int32_t rows,
                          const learn_real *x, const learn_real *dy, learn_real *dx)
{
    learn_real *db = grad + d->b;
    for (int32_t r = 0; r < rows; r++) {
        const learn_real *row = dy + (size_t)r * (size_t)d->out;
        for (int32_t j = 0; j < d->out; j++)
            db[j] += row[j];
    }
    learn_product(LEARN_TURNED, LEARN_PLAIN, d->in, d->out, rows, x, dy, true, grad + d->w);
    if (dx)
        learn_product(LEARN_PLAIN, LEARN_TURNED, rows, d->in, d->out, dy, value + d->w, false, dx);
}

/* ---- relu ---- */

void learn_relu_forward(size_t n, learn_real *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > 0 ? x[i] : 0;
}

void learn_relu_backward(size_t n, const learn_real *y, learn_real *dy)
{
    for (size_t i = 0; i < n; i++)
        dy[i] = y[i] > 0 ? dy[i] : 0;
}

/* ---- pair ---- */

learn_pair learn_pair_new(learn_params *q, const char *const names[4], int32_t in, int32_t hidden, int32_t out)
{
    learn_pair d;
    d.first = learn_dense_new(q, names[0], names[1], in, hidden);
    d.second = learn_dense_new(q, names[2], names[3], hidden, out);
    return d;
}

void learn_pair_forward(const learn_pair *d, const learn_real *value, int32_t rows, const learn_real *x,
                        learn_real *hidden, learn_real *y)
{
    learn_dense_forward(&d->first, value, rows, x, hidden);
    learn_relu_forward((size_t)rows * (size_t)d->first.out, hidden);
    learn_dense_forward(&d->second, value, rows, hidden, y);
}

void learn_pair_backward(const learn_pair *d, const learn_real *value, learn_real *grad, int32_t rows,
                         const learn_real *x, const learn_real *hidden, const learn_real *dy, learn_real *spare,
                         learn_real *dx)
{
    learn_dense_backward(&d->second, value, grad, rows, hidden, dy, spare);
    learn_relu_backward((size_t)rows * (size_t)d->first.out, hidden, spare);
    learn_dense_backward(&d->first, value, grad, rows, x, spare, dx);
}

/* ---- gather ---- */

void learn_gather(int32_t samples, int32_t n, int32_t width, const int32_t *off, const int32_t *adjacent,
                  const learn_real *x, learn_real *y)
{
    size_t w = (size_t)width;
    memset(y, 0, (size_t)samples * (size_t)n * w * sizeof *y);
    for (int32_t s = 0; s < samples; s++) {
        const learn_real *from = x + (size_t)s * (size_t)n * w;
        learn_real *to = y + (size_t)s * (size_t)n * w;
        for (int32_t v = 0; v < n; v++, to += w)
            for (int32_t j = off[v]; j < off[v + 1]; j++) {
                const learn_real *row = from + (size_t)adjacent[j] * w;
                for (size_t i = 0; i < w; i++)
                    to[i] += row[i];
            }
    }
}

/* ---- choices ---- */

static bool is_open(const uint64_t *mask, int32_t i)
{
    return !mask || (*mask >> i & 1);
}

void learn_softmax(int32_t n, const uint64_t *mask, learn_real *z)
{
    learn_real most = (learn_real)-INFINITY, sum = 0;
    for (int32_t i = 0; i < n; i++)
        if (is_open(mask, i) && z[i] > most)
            most = z[i];
    for (int32_t i = 0; i < n; i++) {
        z[i] = is_open(mask, i) ? (learn_real)exp(z[i] - most) : 0;
        sum += z[i];
    }
    for (int32_t i = 0; i < n; i++)
        z[i] /= sum;
}

int32_t learn_draw(int32_t n, const learn_real *probability, util_rng *rng)
{
    double left = util_rng_real(rng);
    int32_t last = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!(probability[i] > 0))
            continue;
        last = i; /* rounding may leave a little over: the last open choice takes it */
        left -= (double)probability[i];
        if (left < 0)
            break;
    }
    return last;
}

int32_t learn_likeliest(int32_t n, const learn_real *probability)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (probability[i] > probability[best])
            best = i;
    return best;
}

double learn_entropy(int32_t n, const learn_real *probability)
{
    double h = 0;
    for (int32_t i = 0; i < n; i++)
        if (probability[i] > 0)
            h -= (double)probability[i] * log((double)probability[i]);
    return h;
}

void learn_choice_backward(int32_t n, const learn_real *probability, int32_t chosen, double advantage, double bonus,
                           learn_real *dz)
{
    double h = bonus != 0 ? learn_entropy(n, probability) : 0;
    for (int32_t i = 0; i < n; i++) {
        double p = (double)probability[i];
        double slope = advantage * (p - (i == chosen));
        if (bonus != 0 && p > 0)
            slope += bonus * p * (log(p) + h);
        dz[i] += (learn_real)slope;
    }
}
