/* Long short-term memory and attention, with hand-written derivatives. Private. */
#ifndef MOIRAI_PLACE_LEARN_LSTM_H
#define MOIRAI_PLACE_LEARN_LSTM_H

#include "place/learn/layers.h"

/* Gates in the order input, forget, output, candidate. */
typedef struct learn_lstm {
    int32_t in, width;
    size_t wx, wh, b;
} learn_lstm;

/* names: input w, state w, b. */
learn_lstm learn_lstm_new(learn_params *q, const char *const names[3], int32_t in, int32_t width);

/* One step of `rows` samples. gates (rows x 4 width), cell, squashed (tanh of cell) and state (rows x width) are kept
 * for the way back. */
void learn_lstm_forward(const learn_lstm *l, const learn_real *value, int32_t rows, const learn_real *x,
                        const learn_real *state_before, const learn_real *cell_before, learn_real *gates,
                        learn_real *cell, learn_real *squashed, learn_real *state);
/* Back through one step. dstate: by this step's state, all ways. dcell: by this step's cell from the step after;
 * becomes that by the cell before. dgates (rows x 4 width) gets the derivative by the gates' sums; dx (NULL: nobody
 * wants it) and dstate_before are overwritten. */
void learn_lstm_backward(const learn_lstm *l, const learn_real *value, int32_t rows, const learn_real *gates,
                         const learn_real *squashed, const learn_real *cell_before, const learn_real *dstate,
                         learn_real *dcell, learn_real *dgates, learn_real *dx, learn_real *dstate_before);
/* The weights' derivatives of many steps at once: rows counts all steps, x, states before and dgates lie one after the
 * other. */
void learn_lstm_weights(const learn_lstm *l, learn_real *grad, int32_t rows, const learn_real *x,
                        const learn_real *state_before, const learn_real *dgates);

/* Multiplicative attention of one query on `n` keys, all of one width; key i begins at key + i * stride. weight (n) are
 * the softmax of the products over sqrt(width), context the keys' weighted sum. */
void learn_attend_forward(int32_t n, int32_t width, const learn_real *query, const learn_real *key, size_t stride,
                          learn_real *weight, learn_real *context);
/* dquery is overwritten, dkey (as key) is added to; spare has room for n. */
void learn_attend_backward(int32_t n, int32_t width, const learn_real *query, const learn_real *key, size_t stride,
                           const learn_real *weight, const learn_real *dcontext, learn_real *spare, learn_real *dquery,
                           learn_real *dkey);

#endif
