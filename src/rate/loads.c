/* Loads that follow every change of an operator's device, exactly.
 *
 * A packet is sent to a device as long as one of its readers is there: counts of readers say when a transfer begins and ends to be needed. The same with weights that
 * operators share. */
#include "rate/loads.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

static void add_bytes(rate_balance *b, int32_t k, int64_t bytes)
{
    int64_t most = b->v->p->device_memory_bytes[k];
    b->n_over -= b->bytes[k] > most;
    b->bytes[k] += bytes;
    b->n_over += b->bytes[k] > most;
}

static void add_transfer(rate_balance *b, int32_t packet, int32_t k, int32_t l, int64_t sign)
{
    const relax_view *v = b->v;
    int64_t ns = sign * relax_transfers(v, packet)[k * v->K + l];
    schedule_held held = schedule_holds(v->p, k, l);
    b->sent_ns += ns;
    b->load_ns[held.a] += ns;
    if (held.b != MOIRAI_NONE)
        b->load_ns[held.b] += ns;
}

static void move_inputs(rate_balance *b, int32_t op, int32_t a, int32_t c)
{
    const relax_view *v = b->v;
    const moirai_problem *p = v->p;
    for (int32_t i = p->op_in_off[op]; i < p->op_in_off[op + 1]; i++) {
        int32_t e = p->op_in_edge[i], j = relax_packet_of(v, e), k = b->device[relax_producer(v, j)];
        int32_t *readers = b->readers + (int64_t)j * v->K;
        if (--readers[a] == 0 && a != k)
            add_transfer(b, j, k, a, -1);
        if (readers[c]++ == 0 && c != k)
            add_transfer(b, j, k, c, 1);
    }
}

static void move_outputs(rate_balance *b, int32_t op, int32_t a, int32_t c)
{
    const relax_view *v = b->v;
    for (int32_t o = v->out_off[op]; o < v->out_off[op + 1]; o++)
        for (int32_t l = 0, j = v->out[o]; l < v->K; l++)
            if (b->readers[(int64_t)j * v->K + l] > 0) {
                if (l != a)
                    add_transfer(b, j, a, l, -1);
                if (l != c)
                    add_transfer(b, j, c, l, 1);
            }
}

void rate_balance_move(rate_balance *b, int32_t op, int32_t c)
{
    const relax_view *v = b->v;
    const moirai_problem *p = v->p;
    int32_t a = b->device[op];
    b->load_ns[a] -= moirai_op_ns(p, op, a);
    b->load_ns[c] += moirai_op_ns(p, op, c);
    add_bytes(b, a, -p->op_memory_bytes[op]);
    add_bytes(b, c, p->op_memory_bytes[op]);
    for (int32_t i = b->shares.off[op]; i < b->shares.off[op + 1]; i++) {
        int32_t w = b->shares.weight[i], *users = b->users + (int64_t)w * v->K;
        if (--users[a] == 0)
            add_bytes(b, a, -p->weight_bytes[w]);
        if (users[c]++ == 0)
            add_bytes(b, c, p->weight_bytes[w]);
    }
    if (v->n_packets > 0) {
        move_inputs(b, op, a, c);
        move_outputs(b, op, a, c);
    }
    b->device[op] = (uint8_t)c;
}

/* Counts and bytes of the assignment as it is. */
static void count(rate_balance *b)
{
    const relax_view *v = b->v;
    const moirai_problem *p = v->p;
    relax_loads(b->load_ns, v, b->device);
    for (int32_t j = 0; j < v->n_packets; j++)
        for (int32_t e = v->packet_off[j]; e < v->packet_off[j + 1]; e++)
            b->readers[(int64_t)j * v->K + b->device[p->edge_reader[e]]]++;
    for (int32_t r = 0; r < v->n_resources && v->n_packets > 0; r++) /* each transfer counts on all that it holds */
        b->sent_ns += b->load_ns[r];
    for (int32_t i = 0; i < v->n && v->n_packets > 0; i++)
        b->sent_ns -= moirai_op_ns(p, i, b->device[i]);
    b->sent_ns /= p->congestion == MOIRAI_CONGESTION_CHANNEL ? 1 : 2;
    for (int32_t i = 0; i < v->n; i++) {
        add_bytes(b, b->device[i], p->op_memory_bytes[i]);
        for (int32_t s = b->shares.off[i]; s < b->shares.off[i + 1]; s++)
            if (b->users[(int64_t)b->shares.weight[s] * v->K + b->device[i]]++ == 0)
                add_bytes(b, b->device[i], p->weight_bytes[b->shares.weight[s]]);
    }
}

int rate_balance_open(rate_balance *b, const relax_view *v, const int32_t *device)
{
    *b = (rate_balance){.v = v};
    size_t K = (size_t)v->K;
    b->device = util_alloc((size_t)v->n, sizeof *b->device);
    b->load_ns = util_alloc((size_t)v->n_resources, sizeof *b->load_ns);
    b->bytes = util_alloc(K, sizeof *b->bytes);
    b->readers = util_alloc((size_t)v->n_packets * K, sizeof *b->readers);
    b->users = util_alloc((size_t)v->p->n_weights * K, sizeof *b->users);
    if (!b->device || !b->load_ns || !b->bytes || !b->readers || !b->users || rate_op_weights_open(&b->shares, v->p))
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < v->n; i++)
        b->device[i] = (uint8_t)device[i];
    count(b);
    return 0;
}

void rate_balance_close(rate_balance *b)
{
    free(b->device);
    free(b->load_ns);
    free(b->bytes);
    free(b->readers);
    free(b->users);
    rate_op_weights_close(&b->shares);
}
