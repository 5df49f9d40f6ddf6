/* Random moves: an operator, or a region around it, of 2 to 32 steps along edges. */
#include "place/moves.h"

#define MOST_DOUBLINGS 6

/* A random operator next to this one, or MOIRAI_NONE. */
static int32_t neighbour(place_moves *m, int32_t op)
{
    const moirai_problem *p = m->p;
    int32_t n_in = p->op_in_off[op + 1] - p->op_in_off[op], n_out = p->op_out_off[op + 1] - p->op_out_off[op];
    if (n_in + n_out == 0)
        return MOIRAI_NONE;
    int32_t which = (int32_t)util_rng_below(&m->rng, (uint32_t)(n_in + n_out));
    if (which < n_in)
        return p->tensor_producer[p->op_in[p->op_in_off[op] + which]];
    int32_t t = p->op_out[p->op_out_off[op] + which - n_in], n = p->tensor_edge_off[t + 1] - p->tensor_edge_off[t];
    return n == 0 ? MOIRAI_NONE : p->edge_reader[p->tensor_edge_off[t] + (int32_t)util_rng_below(&m->rng, (uint32_t)n)];
}

static void put(const place_moves *m, int32_t *device, int32_t unit, int32_t k)
{
    const place_units *u = m->units;
    for (int32_t i = u->off[unit]; i < u->off[unit + 1] && place_unit_may(u, unit, k); i++)
        device[u->op[i]] = k;
}

void place_move(place_moves *m, int32_t *device)
{
    int32_t op = (int32_t)util_rng_below(&m->rng, (uint32_t)m->p->n_ops), own = device[op];
    int32_t next = util_rng_below(&m->rng, 2) ? neighbour(m, op) : MOIRAI_NONE;
    int32_t k = next == MOIRAI_NONE || device[next] == own ? (int32_t)util_rng_below(&m->rng, (uint32_t)m->p->n_devices)
                                                           : device[next];
    uint32_t steps = UINT32_C(1) << util_rng_below(&m->rng, MOST_DOUBLINGS);
    for (uint32_t i = 0; i < steps && op != MOIRAI_NONE; i++) {
        if (device[op] == own)
            put(m, device, m->units->of_op[op], k);
        op = neighbour(m, op);
    }
}
