/* Layers with hand-written derivatives. Private.
 *
 * A layer knows where its numbers lie in the flat array of a learn_params; `value` is that array, `grad` one of the
 * same length that derivatives are added to. Rows are samples. A backward pass takes the derivative of the loss by the
 * layer's output and gives that by its input (dx, overwritten; NULL where nobody wants it).
 * tests/place/test_place_learn_gradients.c compares every one with finite differences. */
#ifndef MOIRAI_PLACE_LEARN_LAYERS_H
#define MOIRAI_PLACE_LEARN_LAYERS_H

#include "place/learn/params.h"
#include "util/util.h"

/* ---- y = x w + b ---- */
typedef struct learn_dense {
    int32_t in, out;
    size_t w, b;
} learn_dense;

learn_dense learn_dense_new(learn_params *q, const char *w_name, const char *b_name, int32_t in, int32_t out);
void learn_dense_forward(const learn_dense *d, const learn_real *value, int32_t rows, const learn_real *x,
                         learn_real *y);
void learn_dense_backward(const learn_dense *d, const learn_real *value, learn_real *grad, int32_t rows,
                          const learn_real *x, const learn_real *dy, learn_real *dx);

/* ---- max(0, x), in place ---- */
void learn_relu_forward(size_t n, learn_real *x);
/* dy becomes the derivative by the layer's input; y is its output. */
void learn_relu_backward(size_t n, const learn_real *y, learn_real *dy);

/* ---- two layers: relu between, none after ---- */
typedef struct learn_pair {
    learn_dense first, second;
} learn_pair;

/* names: first w, first b, second w, second b. */
learn_pair learn_pair_new(learn_params *q, const char *const names[4], int32_t in, int32_t hidden, int32_t out);
void learn_pair_forward(const learn_pair *d, const learn_real *value, int32_t rows, const learn_real *x,
                        learn_real *hidden, learn_real *y);
/* `spare` has room for rows x hidden. */
void learn_pair_backward(const learn_pair *d, const learn_real *value, learn_real *grad, int32_t rows,
                         const learn_real *x, const learn_real *hidden, const learn_real *dy, learn_real *spare,
                         learn_real *dx);

/* ---- sums over neighbours ----
 * `samples` copies of one graph of n nodes lie one after the other; y[v] is the sum of x[u] over u in
 * adjacent[off[v]..]. The backward pass is the same call with the edges turned round. */
void learn_gather(int32_t samples, int32_t n, int32_t width, const int32_t *off, const int32_t *adjacent,
                  const learn_real *x, learn_real *y);

/* ---- choices ---- */
/* Logits to probabilities, in place; choices outside the mask (NULL: all are open) get 0. n <= 64 with a mask. */
void learn_softmax(int32_t n, const uint64_t *mask, learn_real *z);
/* A draw, or the likeliest. */
int32_t learn_draw(int32_t n, const learn_real *probability, util_rng *rng);
int32_t learn_likeliest(int32_t n, const learn_real *probability);
double learn_entropy(int32_t n, const learn_real *probability);
/* The derivative, by the logits, of -advantage log p(chosen) - bonus * entropy, added to dz. */
void learn_choice_backward(int32_t n, const learn_real *probability, int32_t chosen, double advantage, double bonus,
                           learn_real *dz);

#endif
