/* Operator -> the weights that it shares with others. Private. */
#ifndef MOIRAI_RATE_OP_WEIGHTS_H
#define MOIRAI_RATE_OP_WEIGHTS_H

#include <moirai/problem.h>

typedef struct rate_op_weights {
    int32_t *off, *weight; /* CSR */
} rate_op_weights;

int rate_op_weights_open(rate_op_weights *w, const moirai_problem *p);
void rate_op_weights_close(rate_op_weights *w);

#endif
