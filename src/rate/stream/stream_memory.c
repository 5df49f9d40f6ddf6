/* Bytes of tensors in a stream of requests.
 *
 * A tensor is held on its producer's device from the start of the producer to its last reader there and its last departure, elsewhere from the first
 * departure to the last reader there, by every request for itself. What nobody reads is held until its request ends. */
#include "rate/stream/stream_state.h"

void rate_hold_outputs(rate_sim *x, const rate_op *op)
{
    x->live[op->device] += op->out_bytes;
    x->grown |= UINT64_C(1) << op->device;
}

/* One use less. */
static void use(rate_sim *x, int32_t slot, int32_t buffer)
{
    if (--x->slot[slot].left[buffer] > 0)
        return;
    const rate_buffer *b = &rate_sim_route(x, slot)->buffer[buffer];
    x->live[b->device] -= b->bytes;
}

void rate_release_inputs(rate_sim *x, int32_t slot, const rate_op *op)
{
    const rate_route *r = rate_sim_route(x, slot);
    x->live[op->device] -= op->in_bytes;
    for (int32_t i = 0; i < op->n_shared; i++)
        use(x, slot, r->shared[op->shared + i]);
}

void rate_hold_there(rate_sim *x, int32_t slot, const rate_send *s)
{
    if (s->there != MOIRAI_NONE) {
        int32_t *left = &x->slot[slot].left[s->there];
        if (*left >= 0) /* not the first departure */
            return;
        *left = rate_sim_route(x, slot)->buffer[s->there].uses;
    }
    x->live[s->to] += s->bytes;
    x->grown |= UINT64_C(1) << s->to;
}

void rate_release_sent(rate_sim *x, int32_t slot, const rate_send *s)
{
    if (s->home == MOIRAI_NONE)
        x->live[s->from] -= s->bytes;
    else
        use(x, slot, s->home);
}

void rate_release_results(rate_sim *x, int32_t slot)
{
    const rate_route *r = rate_sim_route(x, slot);
    for (int32_t k = 0; k < x->p->n_devices; k++)
        x->live[k] -= r->result_bytes[k];
}
