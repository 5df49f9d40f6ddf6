/* What the numbers of a leaf prove, in whole numbers.
 *
 * Let l(r) >= 0 be prices of resources, u(k) >= 0 of bytes, f(e, k) and g(e, k) numbers of any sign for edges. Take a plan in the
 * case, with operator i on k(i) and makespan T. For each resource, load(r) + offset(r) <= T (view.c has why; computed anew here), and
 * the bytes on k are at most cap(k). Add up with the prices:
 *
 * A device within a shift (H, Q), from H to Q before the end, is one more resource, which gets no transfers: load and offset are those of
 * `part` and `shift_offset` below (docs/theory.md, Lemma 48).
 *
 *     T * sum of l >= sum over r of l(r) (load(r) + offset(r)) + sum over k of u(k) (bytes(k) - cap(k)).
 *
 * Let packet j be sent from k to the set D of devices. For its edges e, with the reader on l(e),
 *
 *     sum of f(e, k) + g(e, l(e))  <=  sum over l in D of max(0, S(k, l)) + sum of max(0, f(e, k) + g(e, k)),   S(k, l) = sum over e of max(0, f(e, k) + g(e, l)),
 *
 * and what is above the priced cost c(k, l) of the transfer is loss(k), which the producer pays back on k:
 *
 *     loss(k) = sum over l other than k of max(0, S(k, l) - c(k, l)) + sum over e of max(0, f(e, k) + g(e, k)).
 *
 * So the right side is at least the sum over operators of the least over devices of
 *
 *     l(k) t(i, k) + u(k) m(i) + sum of f(e, k) of its outputs - loss(k) of its packets + sum of g(e, k) of its inputs,
 *
 * plus sum of l(r) offset(r), minus sum of u(k) cap(k). Divided by the sum of l and rounded up, since T is whole: the bound. The time
 * between requests is a mean, of plans by their shares, which need not be whole: its bound is rounded down. All sums
 * are in 128 bits: prices are at most 2^40, of bytes 2^50, messages 2^62; all times of a problem together and all bytes are below 2^61. O(E K^2). */
#include <stdlib.h>
#include <string.h>

#include "relax/relax.h"
#include "schedule/paths.h"
#include "util/util.h"

typedef __int128 wide;

#define MOST_PRICE (INT64_C(1) << 40)
#define MOST_BYTE_PRICE (INT64_C(1) << 50)
#define MOST_TIME (INT64_C(1) << 61)
#define LARGEST (INT64_C(1) << 62) /* message */
#define LOOK 16                    /* edges, packets, operators per look at the clock */

typedef struct judge {
    const moirai_problem *p;
    const relax_leaf *leaf;
    int32_t n, K, R;
    uint64_t *devices;
    int64_t *head, *tail;
    int64_t *first, *last; /* per resource: head and tail of all that it may get */
    int64_t path;          /* the longest */
    wide *message;         /* [op * K + device]: what messages add to the cost; NULL: there are none */
    const util_stop *stop; /* or NULL */
} judge;

static bool time_is_up(const judge *x, int32_t i)
{
    return x->stop && i % LOOK == 0 && util_stopped(x->stop);
}

/* What holds the send side of a transfer, and the receive side; MOIRAI_NONE where a channel is one for both. */
static int32_t sends(const judge *x, int32_t k, int32_t l)
{
    bool device = x->p->congestion == MOIRAI_CONGESTION_DEVICE, port = x->p->congestion == MOIRAI_CONGESTION_PORT;
    return device ? k : port ? x->K + k : x->K + k * x->K + l;
}

static int32_t receives(const judge *x, int32_t l)
{
    bool device = x->p->congestion == MOIRAI_CONGESTION_DEVICE, port = x->p->congestion == MOIRAI_CONGESTION_PORT;
    return device ? l : port ? 2 * x->K + l : MOIRAI_NONE;
}

static int32_t resources(const moirai_problem *p)
{
    int32_t K = p->n_devices;
    return p->congestion == MOIRAI_CONGESTION_PORT ? 3 * K : p->congestion == MOIRAI_CONGESTION_CHANNEL ? K + K * K : K;
}

static bool may(const judge *x, int32_t op, int32_t k)
{
    return x->devices[op] >> k & 1;
}

/* Numbers that sums can hold. */
static bool sound(const judge *x)
{
    const relax_leaf *leaf = x->leaf;
    for (int32_t s = 0; s < leaf->n_shifts; s++)
        if (leaf->shift[s].head_ns < 0 || leaf->shift[s].head_ns > MOST_TIME || leaf->shift[s].tail_ns < 0 ||
            leaf->shift[s].tail_ns > MOST_TIME)
            return false;
    for (int32_t r = 0; r < x->R + leaf->n_shifts * x->K; r++)
        if (leaf->price[r] < 0 || leaf->price[r] > MOST_PRICE)
            return false;
    for (int32_t k = 0; k < x->K && leaf->byte_price; k++)
        if (leaf->byte_price[k] < 0 || leaf->byte_price[k] > MOST_BYTE_PRICE)
            return false;
    for (int64_t at = 0; at < (int64_t)x->p->n_edges * x->K && leaf->from; at++)
        if (leaf->from[at] > LARGEST || leaf->from[at] < -LARGEST || leaf->to[at] > LARGEST || leaf->to[at] < -LARGEST)
            return false;
    for (int32_t i = 0; i < leaf->n_fixed; i++)
        if (leaf->fixed[i].op < 0 || leaf->fixed[i].op >= x->n || leaf->fixed[i].device < 0 ||
            leaf->fixed[i].device >= x->K)
            return false;
    return true;
}

/* ---- offsets ---- */

static void meet(judge *x, int32_t r, int64_t before, int64_t after)
{
    x->first[r] = UTIL_MIN(x->first[r], before);
    x->last[r] = UTIL_MIN(x->last[r], after);
}

/* Of an operator on each device: the end after its head (`before`) or the start before its tail; SCHEDULE_NEVER_NS where it may not be. */
static void ends(int64_t *out, const judge *x, int32_t op, const int64_t *path)
{
    for (int32_t k = 0; k < x->K; k++) {
        int64_t at = (int64_t)op * x->K + k;
        out[k] = may(x, op, k) ? path[at] + moirai_op_ns(x->p, op, k) : SCHEDULE_NEVER_NS;
    }
}

/* beside[k]: the least of all values but the k-th. O(K). */
static void find_beside(int64_t *beside, const int64_t *value, int32_t K)
{
    int64_t least = SCHEDULE_NEVER_NS, second = SCHEDULE_NEVER_NS;
    int32_t first = MOIRAI_NONE;
    for (int32_t k = 0; k < K; k++) {
        bool less = value[k] < least;
        second = less ? least : UTIL_MIN(second, value[k]);
        least = less ? value[k] : least;
        first = less ? k : first;
    }
    for (int32_t k = 0; k < K; k++)
        beside[k] = k == first ? second : least;
}

/* An edge as a transfer of its own: for windows that is the same, shared or not. A port, or a device that is held, sees its own end of
 * the transfer and the best of all others; a channel has both ends given. */
static void meet_edge(judge *x, int32_t e)
{
    const moirai_problem *p = x->p;
    int64_t before[MOIRAI_MASK_DEVICES], after[MOIRAI_MASK_DEVICES], before_beside[MOIRAI_MASK_DEVICES],
        after_beside[MOIRAI_MASK_DEVICES];
    int32_t K = x->K;
    ends(before, x, p->tensor_producer[p->edge_tensor[e]], x->head);
    ends(after, x, p->edge_reader[e], x->tail);
    if (p->congestion == MOIRAI_CONGESTION_CHANNEL) {
        for (int32_t i = 0; i < K * K; i++)
            if (i / K != i % K && before[i / K] < SCHEDULE_NEVER_NS && after[i % K] < SCHEDULE_NEVER_NS)
                meet(x, K + i, before[i / K], after[i % K]);
        return;
    }
    find_beside(before_beside, before, K);
    find_beside(after_beside, after, K);
    for (int32_t k = 0; k < K; k++) {
        if (before[k] < SCHEDULE_NEVER_NS && after_beside[k] < SCHEDULE_NEVER_NS)
            meet(x, sends(x, k, MOIRAI_NONE), before[k], after_beside[k]);
        if (after[k] < SCHEDULE_NEVER_NS && before_beside[k] < SCHEDULE_NEVER_NS)
            meet(x, receives(x, k), before_beside[k], after[k]);
    }
}

/* sum of l(r) offset(r); where the time is up 0, since what was not looked at could begin sooner. */
static wide offsets(judge *x)
{
    const moirai_problem *p = x->p;
    wide sum = 0;
    schedule_paths paths = {.p = p, .devices = x->devices, .stop = x->stop};
    schedule_heads(x->head, &paths);
    schedule_tails(x->tail, &paths);
    for (int32_t r = 0; r < x->R; r++)
        x->first[r] = x->last[r] = SCHEDULE_NEVER_NS;
    for (int32_t i = 0; i < x->n; i++) {
        int64_t least = SCHEDULE_NEVER_NS;
        for (int32_t k = 0; k < x->K; k++) {
            int64_t at = (int64_t)i * x->K + k;
            if (!may(x, i, k))
                continue;
            meet(x, k, x->head[at], x->tail[at]);
            least = UTIL_MIN(least, x->head[at] + moirai_op_ns(p, i, k) + x->tail[at]);
        }
        x->path = UTIL_MAX(x->path, least);
    }
    for (int32_t e = 0; e < p->n_edges && p->congestion != MOIRAI_CONGESTION_NONE; e++) {
        if (time_is_up(x, e))
            return 0;
        meet_edge(x, e);
    }
    for (int32_t r = 0; r < x->R; r++)
        sum += (wide)x->leaf->price[r] *
               (x->first[r] < SCHEDULE_NEVER_NS ? UTIL_MIN(x->first[r] + x->last[r], x->path) : x->path);
    return sum;
}

/* ---- shifts ---- */

/* What of an operator on k lies within a shift at least. Where it may begin before the shift and end behind it, that is all of the shift, of
 * which the longest path knows a part. */
static int64_t part(const judge *x, relax_shift s, int32_t op, int32_t k)
{
    int64_t t = moirai_op_ns(x->p, op, k), head = x->head[(int64_t)op * x->K + k],
            tail = x->tail[(int64_t)op * x->K + k];
    int64_t least = UTIL_MIN(t, UTIL_MIN(head + t - s.head_ns, tail + t - s.tail_ns));
    if (head < s.head_ns && tail < s.tail_ns)
        least = UTIL_MIN(least, x->path - s.head_ns - s.tail_ns);
    return least > 0 ? least : 0;
}

/* An operator's parts in shifts, priced. */
static wide cost_of_parts(const judge *x, int32_t op, int32_t k)
{
    const relax_leaf *leaf = x->leaf;
    wide sum = 0;
    for (int32_t s = 0; s < leaf->n_shifts; s++)
        sum += (wide)leaf->price[x->R + s * x->K + k] * part(x, leaf->shift[s], op, k);
    return sum;
}

static wide shift_offset(const judge *x, int32_t s)
{
    return UTIL_MIN(x->leaf->shift[s].head_ns + x->leaf->shift[s].tail_ns, x->path);
}

/* ---- costs ---- */

static wide above_zero(wide a)
{
    return a > 0 ? a : 0;
}

static wide transfer_cost(const judge *x, int32_t tensor, int32_t k, int32_t l)
{
    wide d = moirai_transfer_ns(x->p, tensor, k, l);
    if (x->p->congestion == MOIRAI_CONGESTION_NONE)
        return 0;
    int32_t r = receives(x, l);
    return d * x->leaf->price[sends(x, k, l)] + (r == MOIRAI_NONE ? 0 : d * x->leaf->price[r]);
}

/* What the edges first .. last - 1 of one packet take beyond the cost of its transfers, where its producer is on k. */
static wide loss(const judge *x, int32_t first, int32_t last, int32_t k)
{
    int32_t K = x->K, tensor = x->p->edge_tensor[first];
    wide sum = 0;
    for (int32_t l = 0; l < K; l++) {
        wide taken = 0;
        for (int32_t e = first; e < last; e++)
            if (may(x, x->p->edge_reader[e], l))
                taken += above_zero((wide)x->leaf->from[(int64_t)e * K + k] + x->leaf->to[(int64_t)e * K + l]);
        sum += above_zero(taken - (l == k ? 0 : transfer_cost(x, tensor, k, l)));
    }
    return sum;
}

static void add_packet(judge *x, int32_t first, int32_t last)
{
    const moirai_problem *p = x->p;
    int32_t K = x->K, i = p->tensor_producer[p->edge_tensor[first]];
    for (int32_t k = 0; k < K; k++) {
        if (may(x, i, k))
            x->message[(int64_t)i * K + k] -= loss(x, first, last, k);
        for (int32_t e = first; e < last; e++) {
            x->message[(int64_t)i * K + k] += x->leaf->from[(int64_t)e * K + k];
            x->message[(int64_t)p->edge_reader[e] * K + k] += x->leaf->to[(int64_t)e * K + k];
        }
    }
}

/* Whether all of them were added. */
static bool add_packets(judge *x)
{
    const moirai_problem *p = x->p;
    bool apart = p->flow == MOIRAI_FLOW_EDGE;
    for (int32_t i = 0; i < (apart ? p->n_edges : p->n_tensors); i++) {
        int32_t first = apart ? i : p->tensor_edge_off[i], last = apart ? i + 1 : p->tensor_edge_off[i + 1];
        if (time_is_up(x, i))
            return false;
        if (first < last)
            add_packet(x, first, last);
    }
    return true;
}

static wide cost_of(const judge *x, int32_t op, int32_t k)
{
    const relax_leaf *leaf = x->leaf;
    wide time = (wide)leaf->price[k] * moirai_op_ns(x->p, op, k);
    wide bytes = leaf->byte_price ? (wide)leaf->byte_price[k] * x->p->op_memory_bytes[op] : 0;
    return time + bytes + cost_of_parts(x, op, k) + (x->message ? x->message[(int64_t)op * x->K + k] : 0);
}

/* The sum of the cheapest devices. */
static wide cheapest(const judge *x)
{
    wide sum = 0;
    for (int32_t i = 0; i < x->n; i++) {
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
    const moirai_problem *p = x->p;
    const relax_leaf *leaf = x->leaf;
    wide total = rate ? 0 : offsets(x), prices = 0;
    for (int32_t r = x->R; r < x->R + leaf->n_shifts * x->K; r++) {
        total += leaf->price[r] * shift_offset(x, (r - x->R) / x->K);
        prices += leaf->price[r];
    }
    if (leaf->from && !add_packets(x))
        return 0;
    total += cheapest(x);
    for (int32_t k = 0; k < x->K && leaf->byte_price; k++)
        total -= (wide)leaf->byte_price[k] * p->device_memory_bytes[k];
    for (int32_t r = 0; r < x->R; r++)
        prices += leaf->price[r];
    if (total <= 0 || prices <= 0)
        return 0;
    wide bound = (total + (rate ? 0 : prices - 1)) / prices;
    return bound > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)bound;
}

int relax_evaluate(int64_t *lower_ns, const moirai_problem *p, const relax_leaf *leaf, bool rate, const util_stop *stop)
{
    judge x = {.p = p, .leaf = leaf, .n = p->n_ops, .K = p->n_devices, .R = resources(p), .stop = stop};
    size_t n = (size_t)x.n, cells = n * (size_t)x.K, windows = rate ? 0 : cells;
    util_memory memory = {0};
    *lower_ns = 0;
    if (!sound(&x) || (rate && leaf->n_shifts > 0))
        return 0;
    UTIL_TAKE(&memory, x.devices, n);
    UTIL_TAKE(&memory, x.head, windows);
    UTIL_TAKE(&memory, x.tail, windows);
    UTIL_TAKE(&memory, x.first, (size_t)x.R);
    UTIL_TAKE(&memory, x.last, (size_t)x.R);
    if (leaf->from)
        UTIL_TAKE(&memory, x.message, cells);
    int rc = util_taken_all(&memory);
    if (!rc) {
        memcpy(x.devices, p->op_devices, sizeof *x.devices * n);
        for (int32_t i = 0; i < leaf->n_fixed; i++)
            x.devices[leaf->fixed[i].op] &= UINT64_C(1) << leaf->fixed[i].device;
        *lower_ns = verdict(&x, rate);
    }
    util_release(&memory);
    return rc;
}
