/* Bytes of tensors in a stream of requests.
 *
 * A tensor is held on its producer's device from the start of the producer to its last reader there and its last departure, elsewhere from the first
 * departure to the last reader there, by every request for itself. What nobody reads is held until its request ends. */
#include "rate/stream_state.h"

void rate_hold_outputs(rate_sim *x, int32_t slot, int32_t op)
{
    const rate_route *r = rate_sim_route(x, slot);
    const moirai_problem *p = x->p;
    for (int32_t o = p->op_out_off[op]; o < p->op_out_off[op + 1]; o++)
        x->live[r->device[op]] += p->tensor_bytes[p->op_out[o]];
}

void rate_use_home(rate_sim *x, int32_t slot, int32_t t)
{
    if (--x->slot[slot].home_left[t] == 0)
        x->live[rate_sim_route(x, slot)->device[x->p->tensor_producer[t]]] -= x->p->tensor_bytes[t];
}

void rate_release_inputs(rate_sim *x, int32_t slot, int32_t op)
{
    const rate_route *r = rate_sim_route(x, slot);
    const moirai_problem *p = x->p;
    for (int32_t a = p->op_in_off[op]; a < p->op_in_off[op + 1]; a++) {
        int32_t h = r->in_hold[a];
        if (h == MOIRAI_NONE)
            rate_use_home(x, slot, p->op_in[a]);
        else if (--x->slot[slot].hold_left[h] == 0)
            x->live[r->hold_device[h]] -= p->tensor_bytes[p->op_in[a]];
    }
}

void rate_hold_there(rate_sim *x, int32_t slot, const rate_send *s)
{
    const rate_route *r = rate_sim_route(x, slot);
    int32_t *left = &x->slot[slot].hold_left[s->hold];
    if (*left < 0) { /* the first departure */
        *left = r->hold_uses[s->hold];
        x->live[s->to] += x->p->tensor_bytes[s->tensor];
    }
}

void rate_release_results(rate_sim *x, int32_t slot)
{
    const rate_route *r = rate_sim_route(x, slot);
    for (int32_t t = 0; t < x->p->n_tensors; t++)
        if (r->home_uses[t] == 0)
            x->live[r->device[x->p->tensor_producer[t]]] -= x->p->tensor_bytes[t];
}
