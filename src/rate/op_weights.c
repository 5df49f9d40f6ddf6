/* The problem has the readers of every shared weight; searches ask the other way round. */
#include "rate/op_weights.h"

#include <stdlib.h>

#include "util/util.h"

int rate_op_weights_open(rate_op_weights *x, const moirai_problem *p)
{
    int32_t n_reads = p->n_weights > 0 ? p->weight_reader_off[p->n_weights] : 0;
    x->off = util_alloc((size_t)p->n_ops + 1, sizeof *x->off);
    x->weight = util_alloc((size_t)n_reads, sizeof *x->weight);
    if (!x->off || !x->weight)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < n_reads; i++)
        x->off[p->weight_reader[i] + 1]++;
    for (int32_t i = 0; i < p->n_ops; i++)
        x->off[i + 1] += x->off[i];
    for (int32_t w = p->n_weights - 1; w >= 0; w--) /* ends run back to beginnings */
        for (int32_t i = p->weight_reader_off[w]; i < p->weight_reader_off[w + 1]; i++)
            x->weight[--x->off[p->weight_reader[i] + 1]] = w;
    for (int32_t i = 0; i < p->n_ops; i++)
        x->off[i] = x->off[i + 1];
    x->off[p->n_ops] = n_reads;
    return 0;
}

void rate_op_weights_close(rate_op_weights *x)
{
    free(x->off);
    free(x->weight);
}
