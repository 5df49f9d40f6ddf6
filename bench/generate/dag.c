/* Building task graphs. */
#include "generate/dag.h"

#include <stdlib.h>

int32_t generate_draw(generate_dag *d, int32_t n)
{
    return (int32_t)util_rng_below(&d->rng, (uint32_t)n);
}

int32_t generate_between(generate_dag *d, int32_t from, int32_t to)
{
    return from + generate_draw(d, to - from + 1);
}

/* Works of a kind differ by up to 1.7 of the mean, and one in twenty of a graph with heavy ones is four times as much. */
int32_t generate_add(generate_dag *d, int32_t kind, int32_t work)
{
    int32_t factor = d->even ? 1000 : generate_between(d, 300, 1700);
    if (d->heavy && generate_draw(d, 20) == 0)
        factor *= 4;
    if (util_grow(&d->op, &d->op_room, d->n_ops + 1, sizeof *d->op)) {
        d->result = MOIRAI_EFAIL;
        return 0;
    }
    d->op[d->n_ops] = (generate_op){kind % GENERATE_KINDS, (int32_t)((int64_t)work * factor / 1000), MOIRAI_NONE};
    return (int32_t)d->n_ops++;
}

int32_t generate_any(generate_dag *d)
{
    return generate_add(d, generate_draw(d, GENERATE_KINDS), 1000);
}

static int32_t add_tensor(generate_dag *d, int32_t producer)
{
    size_t n = d->n_tensors;
    int32_t size = 250 + 1500 * generate_draw(d, GENERATE_SIZES) / (GENERATE_SIZES - 1);
    if (util_grow(&d->tensor_producer, &d->producer_room, n + 1, sizeof *d->tensor_producer) ||
        util_grow(&d->tensor_size, &d->size_room, n + 1, sizeof *d->tensor_size)) {
        d->result = MOIRAI_EFAIL;
        return 0;
    }
    d->tensor_producer[n] = producer;
    d->tensor_size[n] = size;
    d->n_tensors++;
    return (int32_t)n;
}

void generate_edge(generate_dag *d, int32_t from, int32_t to)
{
    if (d->result)
        return;
    int32_t tensor = d->shared ? d->op[from].output : MOIRAI_NONE;
    if (tensor == MOIRAI_NONE)
        tensor = d->op[from].output = add_tensor(d, from);
    if (util_grow(&d->read, &d->read_room, d->n_reads + 1, sizeof *d->read))
        d->result = MOIRAI_EFAIL;
    else
        d->read[d->n_reads++] = (generate_read){tensor, to};
}

void generate_dag_free(generate_dag *d)
{
    free(d->op);
    free(d->tensor_producer);
    free(d->tensor_size);
    free(d->read);
}
