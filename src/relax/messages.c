/* Costs and messages at given prices: f and g of docs/theory.md, Theorem 15, are `from` and `to`, with which no packet has a loss.
 *
 * A packet with several readers on one device is sent there once: its edges share the cost of (k, l), and what they take together,
 * the positive parts of from + to, is kept in `used`. Where the case fixes a reader, the producer pays, and nobody else for what gets there.
 *
 * **Sweeps** are those of sequential tree-reweighted message passing (Kolmogorov 2006): in the order of the graph, each operator
 * hands 1 / max(inputs, outputs) of its costs to each of its outputs, and the message's other side becomes the largest that is feasible;
 * then the same backwards. On trees one sweep is exact; elsewhere the value never falls. New prices leave `from` as it is, and the
 * first pass forwards makes `to` feasible again, so that sweeps go on from where they were. */
#include "relax/messages.h"

#include <math.h>
#include <string.h>

#include "util/util.h"

#define NEVER 1e300
#define PACKETS_PER_LOOK 64 /* at the clock */

/* Which edges are live, and how many packets have several. */
static int32_t find_live(relax_state *s)
{
    const relax_view *v = s->v;
    int32_t n_shared = 0;
    for (int32_t j = 0; j < v->n_packets; j++) {
        for (int32_t e = v->packet_off[j]; e < v->packet_off[j + 1]; e++)
            if (relax_live(s, e)) {
                s->open[j]++;
                s->n_out[relax_producer(v, j)]++;
                s->n_in[v->p->edge_reader[e]]++;
            } else {
                s->served[j] |= s->c->devices[v->p->edge_reader[e]];
            }
        s->shared[j] = s->open[j] > 1 ? n_shared++ : MOIRAI_NONE;
    }
    return n_shared;
}

int relax_state_open(relax_state *s, const relax_view *v, const relax_case *c)
{
    size_t n = (size_t)v->n, K = (size_t)v->K, P = (size_t)v->n_packets;
    *s = (relax_state){.v = v, .c = c, .n_messages = P > 0 ? (size_t)v->p->n_edges * K : 0};
    UTIL_TAKE(&s->memory, s->price, (size_t)v->n_resources);
    UTIL_TAKE(&s->memory, s->byte_price, K);
    UTIL_TAKE(&s->memory, s->unary, n * K);
    UTIL_TAKE(&s->memory, s->open, P);
    UTIL_TAKE(&s->memory, s->served, P);
    UTIL_TAKE(&s->memory, s->shared, P);
    UTIL_TAKE(&s->memory, s->there, P);
    UTIL_TAKE(&s->memory, s->n_in, n);
    UTIL_TAKE(&s->memory, s->n_out, n);
    if (s->memory.failed)
        return MOIRAI_EFAIL;
    UTIL_TAKE(&s->memory, s->from, s->n_messages);
    UTIL_TAKE(&s->memory, s->to, s->n_messages);
    UTIL_TAKE(&s->memory, s->used, (size_t)find_live(s) * K * K);
    return util_taken_all(&s->memory);
}

void relax_state_close(relax_state *s)
{
    util_release(&s->memory);
    *s = (relax_state){0};
}

/* ---- costs without messages ---- */

/* Messages to readers on known devices: the producer pays, once for each device. */
static void pay_for_served(relax_state *s, int32_t packet)
{
    const relax_view *v = s->v;
    const int64_t *d = relax_transfers(v, packet);
    uint64_t left = s->served[packet], from = s->c->devices[relax_producer(v, packet)];
    for (int32_t e = v->packet_off[packet]; s->served[packet] && e < v->packet_off[packet + 1]; e++) {
        uint64_t to = s->c->devices[v->p->edge_reader[e]];
        if (!relax_single(to))
            continue;
        for (int32_t k = 0, l = __builtin_ctzll(to); k < v->K; k++) {
            s->from[(int64_t)e * v->K + k] = k != l && left & to && from >> k & 1 ? relax_cost(s, d, k, l) : 0;
            s->to[(int64_t)e * v->K + k] = 0;
        }
        left &= ~to;
    }
}

double relax_own_cost(const relax_state *s, int32_t i, int32_t k)
{
    const relax_view *v = s->v;
    const relax_part *part = s->c->part;
    int64_t at = (int64_t)i * v->K + k;
    double cost = s->price[k] * (double)moirai_op_ns(v->p, i, k) + s->byte_price[k] * (double)v->p->op_memory_bytes[i];
    for (int64_t j = relax_first_part(s->c, at); j < relax_first_part(s->c, at + 1); j++)
        cost += s->price[part[j].resource] * (double)part[j].ns;
    return cost;
}

void relax_set_costs(relax_state *s)
{
    const relax_view *v = s->v;
    int32_t K = v->K;
    for (int32_t i = 0; i < v->n; i++)
        for (int32_t k = 0; k < K; k++)
            s->unary[(int64_t)i * K + k] = s->c->devices[i] >> k & 1 ? relax_own_cost(s, i, k) : NEVER;
    for (int32_t j = 0; j < v->n_packets; j++)
        pay_for_served(s, j);
}

/* ---- messages ---- */

/* What an operator costs on each device, with all messages. */
static void costs_of(double *cost, const relax_state *s, int32_t i)
{
    const relax_view *v = s->v;
    const moirai_problem *p = v->p;
    int32_t K = v->K;
    memcpy(cost, s->unary + (int64_t)i * K, sizeof *cost * (size_t)K);
    if (s->n_in[i] > 0)
        for (int32_t a = p->op_in_off[i]; a < p->op_in_off[i + 1]; a++)
            for (int32_t k = 0; k < K; k++)
                cost[k] += s->to[(int64_t)p->op_in_edge[a] * K + k];
    for (int32_t o = v->out_off[i]; o < v->out_off[i + 1] && s->n_messages > 0; o++)
        for (int32_t e = v->packet_off[v->out[o]]; e < v->packet_off[v->out[o] + 1]; e++)
            for (int32_t k = 0; k < K; k++)
                cost[k] += s->from[(int64_t)e * K + k];
}

static double take(double a, double b)
{
    return a + b > 0 ? a + b : 0;
}

/* cost[k * K + l], for all k in `from`, as all tables below: of the packet, 0 where it gets to l in any case. */
static void packet_costs(double *cost, const relax_state *s, int32_t packet, uint64_t from)
{
    const int64_t *d = relax_transfers(s->v, packet);
    int32_t K = s->v->K;
    for (; from; from &= from - 1)
        for (int32_t l = 0, k = __builtin_ctzll(from); l < K; l++)
            cost[k * K + l] = l == k || s->served[packet] >> l & 1 ? 0 : relax_cost(s, d, k, l);
}

/* The largest `to` that `from` and the edge's part of the costs allow. */
static void answer_forwards(relax_state *s, int32_t e, const double *cost, uint64_t from, uint64_t to)
{
    int32_t K = s->v->K;
    double best[MOIRAI_MASK_DEVICES];
    for (int32_t l = 0; l < K; l++)
        best[l] = NEVER;
    for (; from; from &= from - 1) {
        int32_t k = __builtin_ctzll(from);
        double own = s->from[(int64_t)e * K + k];
        for (int32_t l = 0; l < K; l++)
            best[l] = UTIL_MIN(best[l], cost[k * K + l] - own);
    }
    for (int32_t l = 0; l < K; l++)
        s->to[(int64_t)e * K + l] = to >> l & 1 ? best[l] : 0;
}

static void answer_backwards(relax_state *s, int32_t e, const double *cost, uint64_t from, uint64_t to)
{
    int32_t K = s->v->K;
    for (int32_t k = 0; k < K; k++) {
        double best = NEVER;
        for (uint64_t left = from >> k & 1 ? to : 0; left; left &= left - 1) {
            int32_t l = __builtin_ctzll(left);
            best = UTIL_MIN(best, cost[k * K + l] - s->to[(int64_t)e * K + l]);
        }
        s->from[(int64_t)e * K + k] = from >> k & 1 ? best : 0;
    }
}

/* Shares of a packet's costs for one edge: what it takes now, less where all take too much, more where some is left. */
static void share_of(double *part, const relax_state *s, int32_t e, uint64_t from, int32_t packet, const double *cost,
                     const double *used)
{
    int32_t K = s->v->K;
    const double *f = s->from + (int64_t)e * K, *to = s->to + (int64_t)e * K;
    for (; from; from &= from - 1)
        for (int32_t l = 0, k = __builtin_ctzll(from); l < K; l++) {
            double c = cost[k * K + l], u = used[k * K + l], own = k == l ? 0 : take(f[k], to[l]);
            part[k * K + l] = u > c ? own * (c / u) : own + (c - u) / s->open[packet];
        }
}

static void add_use(double *used, const relax_state *s, int32_t e, uint64_t from, double sign)
{
    int32_t K = s->v->K;
    const double *f = s->from + (int64_t)e * K, *to = s->to + (int64_t)e * K;
    for (; from; from &= from - 1)
        for (int32_t l = 0, k = __builtin_ctzll(from); l < K; l++)
            if (k != l)
                used[k * K + l] += sign * take(f[k], to[l]);
}

/* All live edges of a packet, whose producer hands `push` to each. */
static void send_forwards(relax_state *s, int32_t packet, const double *push, double *cost, double *part, double *old)
{
    const relax_view *v = s->v;
    int32_t K = v->K;
    uint64_t from = s->c->devices[relax_producer(v, packet)];
    double *used = s->shared[packet] == MOIRAI_NONE ? NULL : s->used + (int64_t)s->shared[packet] * K * K;
    packet_costs(cost, s, packet, from);
    if (used) { /* as the messages are now, whatever prices they were made at */
        memset(used, 0, sizeof *used * (size_t)K * (size_t)K);
        for (int32_t e = v->packet_off[packet]; e < v->packet_off[packet + 1]; e++)
            if (relax_live(s, e))
                add_use(used, s, e, from, 1);
        memcpy(old, used, sizeof *used * (size_t)K * (size_t)K);
        memset(used, 0, sizeof *used * (size_t)K * (size_t)K);
    }
    for (int32_t e = v->packet_off[packet]; e < v->packet_off[packet + 1]; e++) {
        if (!relax_live(s, e))
            continue;
        if (used)
            share_of(part, s, e, from, packet, cost, old);
        for (int32_t k = 0; k < K; k++)
            s->from[(int64_t)e * K + k] -= from >> k & 1 ? push[k] : 0;
        answer_forwards(s, e, used ? part : cost, from, s->c->devices[v->p->edge_reader[e]]);
        if (used)
            add_use(used, s, e, from, 1);
    }
}

static void send_backwards(relax_state *s, int32_t e, const double *push, double *cost)
{
    const relax_view *v = s->v;
    int32_t K = v->K, packet = relax_packet_of(v, e);
    uint64_t from = s->c->devices[relax_producer(v, packet)], to = s->c->devices[v->p->edge_reader[e]];
    double *used = s->shared[packet] == MOIRAI_NONE ? NULL : s->used + (int64_t)s->shared[packet] * K * K;
    packet_costs(cost, s, packet, from);
    if (used) {
        add_use(used, s, e, from, -1);
        for (uint64_t left = from; left; left &= left - 1)
            for (int32_t at = __builtin_ctzll(left) * K, end = at + K; at < end; at++)
                cost[at] = take(cost[at], -UTIL_MAX(used[at], 0));
    }
    for (int32_t l = 0; l < K; l++)
        s->to[(int64_t)e * K + l] -= to >> l & 1 ? push[l] : 0;
    answer_backwards(s, e, cost, from, to);
    if (used)
        add_use(used, s, e, from, 1);
}

/* Whether it is time to end; looked at before every so many packets. */
static bool is_late(const util_stop *stop, int32_t *n)
{
    return (*n)++ % PACKETS_PER_LOOK == 0 && util_stopped(stop);
}

bool relax_sweep(relax_state *s, const util_stop *stop)
{
    int32_t n = 0;
    const relax_view *v = s->v;
    const moirai_problem *p = v->p;
    double push[MOIRAI_MASK_DEVICES], cost[MOIRAI_MASK_DEVICES * MOIRAI_MASK_DEVICES],
        part[MOIRAI_MASK_DEVICES * MOIRAI_MASK_DEVICES], old[MOIRAI_MASK_DEVICES * MOIRAI_MASK_DEVICES];
    for (int32_t z = 0; z < v->n && s->n_messages > 0; z++) {
        int32_t i = p->topo[z];
        if (s->n_out[i] == 0)
            continue;
        costs_of(push, s, i);
        for (int32_t k = 0; k < v->K; k++)
            push[k] /= UTIL_MAX(s->n_in[i], s->n_out[i]);
        for (int32_t o = v->out_off[i]; o < v->out_off[i + 1]; o++)
            if (s->open[v->out[o]]) {
                if (is_late(stop, &n))
                    return false;
                send_forwards(s, v->out[o], push, cost, part, old);
            }
    }
    for (int32_t z = v->n - 1; z >= 0 && s->n_messages > 0; z--) {
        int32_t i = p->topo[z];
        if (s->n_in[i] == 0)
            continue;
        costs_of(push, s, i);
        for (int32_t k = 0; k < v->K; k++)
            push[k] /= UTIL_MAX(s->n_in[i], s->n_out[i]);
        for (int32_t a = p->op_in_off[i]; a < p->op_in_off[i + 1]; a++) {
            if (is_late(stop, &n))
                return false;
            send_backwards(s, p->op_in_edge[a], push, cost);
        }
    }
    return true;
}

double relax_value(const relax_state *s)
{
    double sum = 0, cost[MOIRAI_MASK_DEVICES];
    for (int32_t i = 0; i < s->v->n; i++) {
        double least = NEVER;
        costs_of(cost, s, i);
        for (int32_t k = 0; k < s->v->K; k++)
            least = UTIL_MIN(least, cost[k]);
        sum += least;
    }
    return sum;
}

/* ---- assignments ---- */

/* An operator's inputs cost what their producers' devices say, its outputs what the messages say. */
void relax_decode(uint8_t *device, const relax_state *s)
{
    const relax_view *v = s->v;
    const moirai_problem *p = v->p;
    int32_t K = v->K;
    double cost[MOIRAI_MASK_DEVICES];
    for (int32_t j = 0; j < v->n_packets; j++)
        s->there[j] = s->served[j];
    for (int32_t z = 0; z < v->n; z++) {
        int32_t i = p->topo[z], best = __builtin_ctzll(s->c->devices[i]);
        costs_of(cost, s, i);
        for (int32_t a = p->op_in_off[i]; a < p->op_in_off[i + 1] && s->n_in[i] > 0; a++) {
            int32_t e = p->op_in_edge[a];
            int32_t packet = relax_packet_of(v, e), k = device[relax_producer(v, packet)];
            uint64_t there = s->there[packet] | UINT64_C(1) << k;
            const int64_t *d = relax_transfers(v, packet);
            for (int32_t l = 0; l < K; l++)
                cost[l] += (there >> l & 1 ? 0 : relax_cost(s, d, k, l)) - s->to[(int64_t)e * K + l];
        }
        for (int32_t k = 0; k < K; k++)
            if (s->c->devices[i] >> k & 1 && cost[k] < cost[best])
                best = k;
        device[i] = (uint8_t)best;
        for (int32_t a = p->op_in_off[i]; a < p->op_in_off[i + 1] && s->n_in[i] > 0; a++)
            s->there[relax_packet_of(v, p->op_in_edge[a])] |= UINT64_C(1) << best;
    }
}
