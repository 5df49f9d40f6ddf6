/* Edges over cuts: what a change of device costs the plan that no block's plan can see.
 *
 * A residual connection leads from one cut to a later one, past the heads that lie between. Where they change the device, its tensor has
 * to follow. Composed plans send it when the last block in between has ended (compose.c): ports are what good plans of such a block are
 * short of. So it is late by its transfer less what runs between that block and its reader: of gpt3-13B on inter-server 1.15 ms in every
 * second layer of the path that is cheapest without.
 *
 * Blocks of one class differ in what leads over them, so this is known of blocks; where that table would be too large (blocks x
 * devices^2), blocks of a class share their mean. It is an estimate for choosing paths, with producer and reader on the devices of the
 * block's two cuts; plans are simulated with all that they send. O(E K^2) where tensors are read a few cuts further on, since the walk
 * from the reader backwards ends where there is time enough for the transfer. */
#include <stdlib.h>

#include "bytes/bytes_state.h"
#include "util/util.h"

typedef struct walk {
    bytes_prices *m;
    int32_t *at;                            /* per operator: 2 b in block b, 2 b + 1 for the cut behind it */
    int64_t hidden_ns[MOIRAI_MASK_DEVICES]; /* per device: what runs from a block's exit there to the reader */
} walk;

static void number(walk *x)
{
    const decompose_cuts *s = x->m->c->s;
    const moirai_problem *p = x->m->c->p;
    for (int32_t b = 0; b < s->n_blocks; b++) {
        for (int32_t i = 0; i < s->block_size[b]; i++)
            x->at[p->topo[s->block_first[b] + i]] = 2 * b;
        if (b < s->n_cuts)
            x->at[s->cut[b]] = 2 * b + 1;
    }
}

/* The cut behind block b lies between the blocks before and the reader. */
static void hide_behind_cut(walk *x, int32_t b)
{
    const moirai_problem *p = x->m->c->p;
    int32_t cut = x->m->c->s->cut[b];
    for (int32_t k = 0; k < x->m->K; k++)
        x->hidden_ns[k] += p->op_devices[cut] >> k & 1 ? moirai_op_ns(p, cut, k) : 0;
}

/* What the tensor adds to block b's change of device; false where it is hidden whatever the devices. */
static bool charge(walk *x, int32_t b, int32_t tensor)
{
    bytes_prices *m = x->m;
    int64_t *row = m->jump.ns + (int64_t)m->jump.row[b] * m->K * m->K;
    bool any = false;
    for (int32_t k = 0; k < m->K; k++)
        for (int32_t l = 0; l < m->K; l++) {
            int64_t late = k == l ? 0 : moirai_transfer_ns(m->c->p, tensor, k, l) - x->hidden_ns[l];
            row[k * m->K + l] += UTIL_MAX(late, 0);
            any |= late > 0;
        }
    return any;
}

/* Blocks over which the tensor jumps to the reader at position `to`, the last first, as far as an earlier reader. */
static void walk_back(walk *x, int32_t tensor, int32_t from, int32_t to, int32_t earlier)
{
    const pair_chain *c = x->m->c;
    for (int32_t k = 0; k < x->m->K; k++)
        x->hidden_ns[k] = 0;
    int32_t b = to % 2 ? to / 2 : to / 2 - 1;
    if (to % 2 == 0 && b >= 0)
        hide_behind_cut(x, b);
    for (; 2 * b - 1 >= from && 2 * b + 1 > earlier; b--) {
        if (to - from == 2 || !charge(x, b, tensor)) /* from a cut to the next one: in the block's own problem */
            return;
        for (int32_t k = 0; k < x->m->K; k++)
            x->hidden_ns[k] += c->floor_ns[c->s->block_class[b]];
        if (b > 0)
            hide_behind_cut(x, b - 1);
    }
}

static void walk_tensor(walk *x, int32_t tensor)
{
    const moirai_problem *p = x->m->c->p;
    int32_t from = p->tensor_producer[tensor] >= 0 ? x->at[p->tensor_producer[tensor]] : INT32_MAX;
    for (int32_t e = p->tensor_edge_off[tensor]; e < p->tensor_edge_off[tensor + 1] && from != INT32_MAX; e++) {
        int32_t to = x->at[p->edge_reader[e]], earlier = -1;
        bool again = false; /* another reader at the same place */
        if (to - from < 2)
            continue;
        for (int32_t f = p->tensor_edge_off[tensor]; f < p->tensor_edge_off[tensor + 1]; f++) {
            int32_t other = x->at[p->edge_reader[f]];
            again |= other == to && f < e;
            earlier = other < to ? UTIL_MAX(earlier, other) : earlier;
        }
        if (!again)
            walk_back(x, tensor, from, to, earlier);
    }
}

/* Sums over the blocks of a class become means. */
static void take_means(bytes_prices *m)
{
    const decompose_cuts *s = m->c->s;
    int64_t cells = (int64_t)m->K * m->K;
    for (int32_t i = 0; i < s->n_classes; i++)
        for (int64_t j = i * cells; j < (i + 1) * cells; j++)
            m->jump.ns[j] /= UTIL_MAX(s->class_count[i], 1);
}

int bytes_find_jumps(bytes_prices *m, double most_bytes)
{
    const pair_chain *c = m->c;
    const decompose_cuts *s = c->s;
    walk x = {.m = m};
    size_t cells = (size_t)c->K * (size_t)c->K;
    bool by_class = (double)s->n_blocks * (double)cells * sizeof *m->jump.ns > most_bytes;
    UTIL_TAKE(&m->memory, m->jump.ns, (size_t)(by_class ? s->n_classes : s->n_blocks) * cells);
    UTIL_TAKE(&m->memory, m->jump.row, (size_t)s->n_blocks);
    x.at = util_alloc((size_t)c->p->n_ops, sizeof *x.at);
    bool done = m->jump.ns && m->jump.row && x.at;
    for (int32_t b = 0; b < s->n_blocks && done; b++)
        m->jump.row[b] = by_class ? s->block_class[b] : b;
    if (done) {
        number(&x);
        for (int32_t t = 0; t < c->p->n_tensors; t++)
            walk_tensor(&x, t);
    }
    if (done && by_class)
        take_means(m);
    free(x.at);
    return done ? 0 : MOIRAI_EFAIL;
}
