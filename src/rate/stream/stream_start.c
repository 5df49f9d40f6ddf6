/* Who starts now: devices, and ports, channels or pairs of devices.
 *
 * Every queue is in the order of (request, rank), which is total: a free device takes the first operator of its queue, and a transfer is as
 * urgent as its most urgent reader. Nothing waits on purpose. Where transfers hold their devices, operators and transfers compete: then a transfer that
 * finds both free goes first, whatever its age, since two devices are seldom free at the same moment. */
#include "rate/stream/stream_state.h"
#include "util/util.h"

/* What a task's finish will ask for: 64 requests are at as many places of the network, and its description is larger than the nearest caches. */
static void foresee(const rate_sim *x, int32_t slot, int32_t op)
{
    __builtin_prefetch(&rate_sim_route(x, slot)->op[op]);
    __builtin_prefetch(&x->slot[slot].missing[op]);
}

static void start_op(rate_sim *x, int32_t k)
{
    rate_item item = rate_heap_pop(&x->ready[k]);
    x->running[k] = item;
    x->busy |= UINT64_C(1) << k;
    if (x->ready[k].n == 0)
        x->queued &= ~(UINT64_C(1) << k);
    const rate_route *r = rate_sim_route(x, item.slot);
    const rate_op *op = &r->op[item.what];
    if (op->n_local > 0)
        foresee(x, item.slot, r->local[op->local]);
    x->until_ns[k] = x->now_ns + op->ns;
    rate_hold_outputs(x, op);
}

static void start_ops(rate_sim *x)
{
    for (uint64_t on = x->queued & ~x->busy; on; on &= on - 1)
        start_op(x, __builtin_ctzll(on));
}

static void start_send(rate_sim *x, int32_t from, int32_t to)
{
    rate_heap *queue = &x->waiting[from * x->p->n_devices + to];
    rate_item item = rate_heap_pop(queue);
    const rate_route *r = rate_sim_route(x, item.slot);
    const rate_send *s = &r->send[item.what];
    foresee(x, item.slot, r->reader[s->first]);
    if (queue->n == 0)
        x->waits[from] &= ~(UINT64_C(1) << to);
    if (x->waits[from] == 0)
        x->senders &= ~(UINT64_C(1) << from);
    rate_hold_there(x, item.slot, s);
    rate_fail_if(x, rate_heap_push(&x->flying, (rate_item){(uint64_t)(x->now_ns + s->ns), item.slot, item.what}));
    x->sending |= UINT64_C(1) << from;
    x->receiving |= UINT64_C(1) << to;
    x->channel_busy[from] |= UINT64_C(1) << to;
}

/* The most urgent transfer between ends that are not busy; its key, UINT64_MAX where there is none. */
static uint64_t first_send(const rate_sim *x, uint64_t busy_from, uint64_t busy_to, int32_t *from, int32_t *to)
{
    int32_t K = x->p->n_devices;
    uint64_t best = UINT64_MAX;
    for (uint64_t who = x->senders & ~busy_from; who; who &= who - 1) {
        int32_t k = __builtin_ctzll(who);
        for (uint64_t open = x->waits[k] & ~busy_to; open; open &= open - 1) {
            int32_t l = __builtin_ctzll(open);
            uint64_t key = x->waiting[k * K + l].item[0].key;
            if (key < best)
                best = key, *from = k, *to = l;
        }
    }
    return best;
}

/* The most urgent transfer of all pairs of free ports, until no pair is left. */
static void start_on_ports(rate_sim *x)
{
    int32_t from = 0, to = 0;
    while (first_send(x, x->sending, x->receiving, &from, &to) != UINT64_MAX)
        start_send(x, from, to);
}

static void start_on_channels(rate_sim *x)
{
    for (uint64_t who = x->senders; who; who &= who - 1) {
        int32_t from = __builtin_ctzll(who);
        for (uint64_t open = x->waits[from] & ~x->channel_busy[from]; open; open &= open - 1)
            start_send(x, from, __builtin_ctzll(open));
    }
}

/* Transfers, and then operators, for the devices themselves. */
static void start_on_devices(rate_sim *x)
{
    uint64_t busy = x->held | x->busy;
    for (int32_t from = 0, to = 0; first_send(x, busy, busy, &from, &to) != UINT64_MAX; busy |= x->held) {
        start_send(x, from, to);
        x->held |= UINT64_C(1) << from | UINT64_C(1) << to;
    }
    for (uint64_t on = x->queued & ~busy; on; on &= on - 1)
        start_op(x, __builtin_ctzll(on));
}

void rate_start(rate_sim *x)
{
    if (x->p->congestion == MOIRAI_CONGESTION_DEVICE)
        start_on_devices(x);
    else
        start_ops(x);
    if (x->p->congestion == MOIRAI_CONGESTION_PORT && x->stirred)
        start_on_ports(x);
    else if (x->p->congestion == MOIRAI_CONGESTION_CHANNEL && x->stirred)
        start_on_channels(x);
    x->stirred = false;
    for (; x->grown; x->grown &= x->grown - 1) {
        int32_t k = __builtin_ctzll(x->grown);
        x->most_live[k] = UTIL_MAX(x->most_live[k], x->live[k]);
    }
}
