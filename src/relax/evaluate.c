/* What the numbers of a leaf prove, in whole numbers: the sum of Theorem 15 (docs/theory.md), whose f and g are `from`
 * and `to`, divided by the sum of the prices.
 *
 * Devices within shifts and paths are resources like any other: loads and offsets are those of Lemmas 48 and 49. The
 * quotient is rounded up, since the makespan is whole. The time between requests is a mean, of plans by their shares,
 * which need not be whole: its bound is rounded down. All sums are in 128 bits: prices are at most 2^40, of bytes
 * 2^50, messages 2^62; all times of a problem together and all bytes are below 2^61. O(E K^2). */
#include "relax/view.h"

typedef __int128 wide;

#define MOST_PRICE (INT64_C(1) << 40)
#define MOST_BYTE_PRICE (INT64_C(1) << 50)
#define MOST_TIME (INT64_C(1) << 61)
#define LARGEST (INT64_C(1) << 62) /* message */
#define LOOK 100000                /* numbers of messages per look at the clock */

typedef struct judge {
    const moirai_problem *p;
    const relax_leaf *leaf;
    int32_t n, K;
    relax_view v;
    relax_case c;
    wide *message;         /* [op * K + device]: what messages add to the cost; NULL: there are none */
    const util_stop *stop; /* or NULL */
    int64_t work;          /* since the last look at it */
    bool late;
} judge;

static bool may(const judge *x, int32_t op, int32_t k)
{
    return x->c.devices[op] >> k & 1;
}

static bool reads(const moirai_problem *p, int32_t from, int32_t to)
{
    for (int32_t a = p->op_in_off[to]; a < p->op_in_off[to + 1]; a++)
        if (p->tensor_producer[p->op_in[a]] == from)
            return true;
    return false;
}

/* Operators in a row, each of which reads what the one before makes. */
static bool sound_paths(const judge *x)
{
    const relax_rows *rows = &x->leaf->rows;
    for (int32_t a = 0; a < rows->n_paths; a++)
        for (int32_t at = rows->path_off[a]; at < rows->path_off[a + 1]; at++) {
            int32_t i = rows->path_op[at];
            if (i < 0 || i >= x->n || (at > rows->path_off[a] && !reads(x->p, rows->path_op[at - 1], i)))
                return false;
        }
    return rows->n_paths <= RELAX_MOST_PATHS;
}

static bool within(const int64_t *a, int64_t n, int64_t least, int64_t most)
{
    for (int64_t i = 0; a && i < n; i++)
        if (a[i] < least || a[i] > most)
            return false;
    return true;
}

/* Numbers that sums can hold. */
static bool sound(const judge *x)
{
    const relax_leaf *leaf = x->leaf;
    for (int32_t s = 0; s < leaf->rows.n_shifts; s++)
        if (!within(&leaf->rows.shift[s].head_ns, 1, 0, MOST_TIME) ||
            !within(&leaf->rows.shift[s].tail_ns, 1, 0, MOST_TIME))
            return false;
    int64_t cells = (int64_t)x->p->n_edges * x->K;
    if (!within(leaf->price, relax_leaf_prices(leaf, x->p), 0, MOST_PRICE) ||
        !within(leaf->byte_price, x->K, 0, MOST_BYTE_PRICE) || !within(leaf->from, cells, -LARGEST, LARGEST) ||
        !within(leaf->to, cells, -LARGEST, LARGEST))
        return false;
    for (int32_t i = 0; i < leaf->n_fixed; i++)
        if (leaf->fixed[i].op < 0 || leaf->fixed[i].op >= x->n || leaf->fixed[i].device < 0 ||
            leaf->fixed[i].device >= x->K)
            return false;
    return sound_paths(x);
}

static wide above_zero(wide a)
{
    return a > 0 ? a : 0;
}

static wide transfer_cost(const judge *x, int32_t tensor, int32_t k, int32_t l)
{
    wide d = moirai_transfer_ns(x->p, tensor, k, l);
    schedule_held held = schedule_holds(x->p, k, l);
    return d * x->leaf->price[held.a] + (held.b == MOIRAI_NONE ? 0 : d * x->leaf->price[held.b]);
}

static bool is_late(judge *x, int64_t work)
{
    x->work += work;
    if (x->stop && x->work >= LOOK && !x->late) {
        x->work = 0;
        x->late = util_stopped(x->stop);
    }
    return x->late;
}

/* What the edges of a packet take beyond the cost of its transfers, where its producer is on k. A packet may have as many edges as there are operators. */
static wide loss(judge *x, int32_t packet, int32_t k)
{
    int32_t K = x->K, tensor = relax_tensor_of(&x->v, packet);
    wide sum = 0;
    for (int32_t l = 0; l < K && !is_late(x, x->v.packet_off[packet + 1] - x->v.packet_off[packet] + 1); l++) {
        wide taken = 0;
        for (int32_t e = x->v.packet_off[packet]; e < x->v.packet_off[packet + 1]; e++)
            if (may(x, x->p->edge_reader[e], l))
                taken += above_zero((wide)x->leaf->from[(int64_t)e * K + k] + x->leaf->to[(int64_t)e * K + l]);
        sum += above_zero(taken - (l == k ? 0 : transfer_cost(x, tensor, k, l)));
    }
    return sum;
}

static void add_packets(judge *x)
{
    int32_t K = x->K;
    for (int64_t at = 0; at < (int64_t)x->v.n_packets * K && !x->late; at++) {
        int32_t packet = (int32_t)(at / K), k = (int32_t)(at % K), i = relax_producer(&x->v, packet);
        if (may(x, i, k))
            x->message[(int64_t)i * K + k] -= loss(x, packet, k);
        for (int32_t e = x->v.packet_off[packet]; e < x->v.packet_off[packet + 1]; e++) {
            x->message[(int64_t)i * K + k] += x->leaf->from[(int64_t)e * K + k];
            x->message[(int64_t)x->p->edge_reader[e] * K + k] += x->leaf->to[(int64_t)e * K + k];
        }
    }
}

static wide cost_of(const judge *x, int32_t op, int32_t k)
{
    const relax_leaf *leaf = x->leaf;
    int64_t at = (int64_t)op * x->K + k;
    wide sum = (wide)leaf->price[k] * moirai_op_ns(x->p, op, k) + (x->message ? x->message[at] : 0);
    for (int64_t j = relax_first_part(&x->c, at); j < relax_first_part(&x->c, at + 1); j++)
        sum += (wide)leaf->price[x->c.part[j].resource] * x->c.part[j].ns;
    return sum + (leaf->byte_price ? (wide)leaf->byte_price[k] * x->p->op_memory_bytes[op] : 0);
}

/* The sum of the cheapest devices. */
static wide cheapest(judge *x)
{
    wide sum = 0;
    for (int32_t i = 0; i < x->n && !is_late(x, x->K); i++) {
        wide least = 0;
        bool any = false;
        for (int32_t k = 0; k < x->K; k++) {
            wide cost = may(x, i, k) ? cost_of(x, i, k) : 0;
            if (may(x, i, k) && (!any || cost < least)) {
                least = cost;
                any = true;
            }
        }
        sum += least;
    }
    return sum;
}

static int64_t verdict(judge *x, bool rate)
{
    const relax_leaf *leaf = x->leaf;
    wide total = 0, prices = 0;
    if (leaf->from)
        add_packets(x);
    for (int32_t r = 0; r < x->v.n_resources; r++) { /* offsets of a period are 0 */
        total += (wide)leaf->price[r] * x->c.offset_ns[r];
        prices += leaf->price[r];
    }
    total += cheapest(x);
    for (int32_t k = 0; k < x->K && leaf->byte_price; k++)
        total -= (wide)leaf->byte_price[k] * x->p->device_memory_bytes[k];
    if (x->late || total <= 0 || prices <= 0)
        return 0;
    wide bound = (total + (rate ? 0 : prices - 1)) / prices;
    return bound > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)bound;
}

int relax_evaluate(int64_t *lower_ns, const moirai_problem *p, const relax_leaf *leaf, bool rate, const util_stop *stop)
{
    static const util_stop never;
    judge x = {.p = p, .leaf = leaf, .n = p->n_ops, .K = p->n_devices, .stop = stop, .work = LOOK};
    *lower_ns = 0;
    if (!sound(&x) || (rate && leaf->rows.n_shifts + leaf->rows.n_paths > 0))
        return 0;
    int rc = relax_view_open(&x.v, p, 100);
    if (leaf->from && !rc)
        UTIL_TAKE(&x.v.memory, x.message, (size_t)x.n * (size_t)x.K);
    rc = rc || x.v.memory.failed ? MOIRAI_EFAIL : 0;
    relax_view_take_rows(&x.v, &leaf->rows);
    rc = rc ? rc : relax_case_open(&x.c, &x.v, leaf->fixed, leaf->n_fixed, rate, stop ? stop : &never);
    if (!rc)
        *lower_ns = verdict(&x, rate);
    relax_case_close(&x.c);
    relax_view_close(&x.v);
    return rc;
}
