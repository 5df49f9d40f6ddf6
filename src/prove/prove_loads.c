/* The proof of a pair, or of a period, by prices on loads, judged in whole numbers. Statement and proof, in the letters that are used
 * here: docs/certificate.md, "Prices of loads" and "The time between requests".
 *
 * Of a period: loads per request add up over plans by their shares, so that the same holds without offsets, shifts, paths and cases for
 * any mixture of plans. Rounded down: a mean. Numbers: prices are at most 2^40, of bytes 2^50, messages 2^62; all times together are below
 * 2^61. Every sum is below 2^122. O(E K^2) for each case. */
#include <string.h>
#include <yyjson.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define NEVER INT64_MAX
#define LARGEST (INT64_C(1) << 62)        /* message */
#define MOST_ROW_PRICE (INT64_C(1) << 40) /* of a shift or a path */
#define MOST_ROWS 65536                   /* shifts, and paths */
#define MOST ((wide)1 << 126)             /* no cost reaches it */

typedef __int128 wide;

typedef struct court {
    const prove_block *b;
    int32_t K, R;
    bool rate, bytes;      /* of a period; some case has prices on bytes */
    uint64_t *may;         /* devices that are left to each operator in this case */
    int64_t *head, *tail;  /* [local * K + device] */
    int64_t *first, *last; /* per resource: the least head and tail of what it may get */
    int64_t *price, *byte_price;
    int64_t *from, *to;  /* [edge * K + device] */
    int64_t path;        /* the longest of this case; 0 of a period */
    wide *cost;          /* [local * K + device] */
    wide total, prices;  /* of this case: of what is less than T times the sum of prices, and that */
    moirai_proof *proof; /* counts leaves */
    util_memory memory;
} court;

/* ---- offsets ---- */

static void meet(court *x, int32_t r, int64_t before, int64_t after)
{
    x->first[r] = UTIL_MIN(x->first[r], before);
    x->last[r] = UTIL_MIN(x->last[r], after);
}

/* The ports, the channel or, where these are held, the devices of a transfer. */
static prove_held held(const court *x, int32_t from, int32_t to)
{
    return x->b->p->holds_devices ? (prove_held){{from, to}} : prove_held_by(x->b->p, from, to);
}

static void meet_edge(court *x, const prove_edge *e)
{
    int32_t K = x->K;
    for (int32_t k = 0; k < K; k++)
        for (int32_t l = 0; l < K; l++) {
            if (k == l || !(x->may[e->from] >> k & 1) || !(x->may[e->to] >> l & 1))
                continue;
            prove_held h = held(x, k, l);
            for (int y = 0; y < 2 && h.r[y] >= 0; y++)
                meet(x, h.r[y], x->head[(int64_t)e->from * K + k] + prove_op_ns(x->b, e->from, k),
                     x->tail[(int64_t)e->to * K + l] + prove_op_ns(x->b, e->to, l));
        }
}

static int meet_all(court *x)
{
    const prove_block *b = x->b;
    int32_t K = x->K;
    for (int32_t r = 0; r < x->R; r++)
        x->first[r] = x->last[r] = NEVER;
    for (int32_t i = 0; i < b->n; i++)
        for (int32_t k = 0; k < K; k++)
            if (x->may[i] >> k & 1)
                meet(x, k, x->head[(int64_t)i * K + k], x->tail[(int64_t)i * K + k]);
    int rc = 0;
    for (int32_t e = 0; e < b->n_edges && b->p->congestion != PROVE_FREE && !rc; e++) {
        meet_edge(x, &b->edge[e]);
        rc = prove_look(b->p, e);
    }
    return rc;
}

/* Heads and tails of this case; its longest path. */
static void find_path(court *x)
{
    size_t bytes = (size_t)x->b->n * (size_t)x->K * sizeof *x->head;
    memset(x->head, 0, bytes);
    memset(x->tail, 0, bytes);
    prove_reach(x->b, x->may, x->head, true);
    prove_reach(x->b, x->may, x->tail, false);
    x->path = prove_longest(x->b, x->may, x->head, x->tail);
}

static int add_offsets(court *x)
{
    int rc = meet_all(x);
    for (int32_t r = 0; r < x->R && !rc; r++) {
        bool any = x->first[r] < NEVER;
        x->total += (wide)x->price[r] * (any ? UTIL_MIN(x->first[r] + x->last[r], x->path) : x->path);
    }
    return rc;
}

/* ---- costs ---- */

static wide above_zero(wide a)
{
    return a > 0 ? a : 0;
}

static wide transfer_cost(const court *x, int32_t e, int32_t k, int32_t l)
{
    prove_held h = held(x, k, l);
    wide sum = 0;
    for (int y = 0; y < 2 && h.r[y] >= 0 && k != l; y++)
        sum += (wide)prove_edge_ns(x->b, e, k, l) * x->price[h.r[y]];
    return sum;
}

/* What the edges first .. end - 1 of one packet take beyond the cost of its transfers, where its producer is on k. */
static wide loss(const court *x, int32_t first, int32_t end, int32_t k)
{
    wide sum = 0;
    for (int32_t l = 0; l < x->K; l++) {
        wide taken = 0;
        for (int32_t e = first; e < end; e++)
            if (x->may[x->b->edge[e].to] >> l & 1)
                taken += above_zero((wide)x->from[(int64_t)e * x->K + k] + x->to[(int64_t)e * x->K + l]);
        sum += above_zero(taken - transfer_cost(x, first, k, l));
    }
    return sum;
}

/* Without messages a packet takes nothing, and loses nothing. */
static bool is_silent(const court *x, int32_t first, int32_t end)
{
    for (int64_t at = (int64_t)first * x->K; at < (int64_t)end * x->K; at++)
        if (x->from[at] || x->to[at])
            return false;
    return true;
}

static int add_packets(court *x)
{
    const prove_block *b = x->b;
    int32_t K = x->K;
    int rc = 0;
    for (int32_t first = 0, end; first < b->n_edges && !rc; first = end) {
        int32_t i = b->edge[first].from;
        end = prove_packet_end(b, first);
        for (int32_t k = 0; k < K && !rc && !is_silent(x, first, end); k++) {
            x->cost[(int64_t)i * K + k] -= x->may[i] >> k & 1 ? loss(x, first, end, k) : 0;
            for (int32_t e = first; e < end; e++) {
                x->cost[(int64_t)i * K + k] += x->from[(int64_t)e * K + k];
                x->cost[(int64_t)b->edge[e].to * K + k] += x->to[(int64_t)e * K + k];
            }
            rc = prove_go_on(b->p);
        }
    }
    return rc;
}

/* The sum of the cheapest devices. */
static wide cheapest(const court *x)
{
    wide sum = 0;
    for (int32_t i = 0; i < x->b->n; i++) {
        wide least = MOST;
        for (int32_t k = 0; k < x->K; k++)
            if (x->may[i] >> k & 1)
                least = UTIL_MIN(least, x->cost[(int64_t)i * x->K + k]);
        sum += least;
    }
    return sum;
}

/* ---- shifts ---- */

/* What the operator, on k, takes at least of the time from H to T - Q of a plan that takes T: a(i, k) of docs/theory.md, Lemma 48. */
static int64_t part_of(const court *x, int32_t i, int32_t k, int64_t H, int64_t Q)
{
    int64_t at = (int64_t)i * x->K + k, t = prove_op_ns(x->b, i, k);
    int64_t after = x->head[at] + t - H, before = x->tail[at] + t - Q, a = UTIL_MIN(t, UTIL_MIN(after, before));
    if (x->head[at] < H && x->tail[at] < Q)
        a = UTIL_MIN(a, x->path - H - Q);
    return UTIL_MAX(a, 0);
}

/* Two numbers and the prices of all devices. */
static int judge_shift(court *x, const int64_t *number)
{
    int64_t H = number[0], Q = number[1];
    for (int32_t k = 0; k < x->K; k++) {
        wide price = number[2 + k];
        if (price > MOST_ROW_PRICE)
            return prove_wrong("a price of a shift is too large");
        x->prices += price;
        x->total += price * UTIL_MIN(H + Q, x->path);
        for (int32_t i = 0; price > 0 && i < x->b->n; i++)
            if (x->may[i] >> k & 1)
                x->cost[(int64_t)i * x->K + k] += price * part_of(x, i, k, H, Q);
    }
    return prove_go_on(x->b->p);
}

static int add_shifts(court *x, util_memory *m, yyjson_val *list)
{
    size_t each = (size_t)x->K + 2, n;
    int64_t *number;
    int rc = prove_rows(&number, &n, m, list, each, "shifts have not two times and one price per device");
    if (!rc && n / each > MOST_ROWS)
        rc = prove_too_large("more shifts than the verifier takes");
    for (size_t i = 0; i < n && !rc; i += each)
        rc = judge_shift(x, &number[i]);
    return rc;
}

/* ---- paths ---- */

/* Of operators each of which reads what the one before makes one runs at a time, so that they take at most T together: a path is a resource
 * of all devices, whose price is added to what its operators cost. */
static int judge_path(court *x, int64_t price, const int64_t *op, int64_t n)
{
    const prove_block *b = x->b;
    for (int64_t i = 0; i < n; i++) {
        if (op[i] < 0 || op[i] >= b->n || (i > 0 && !prove_reads(b, (int32_t)op[i - 1], (int32_t)op[i])))
            return prove_wrong("a path's operator does not read what the one before makes");
        for (int32_t k = 0; k < x->K; k++)
            if (x->may[op[i]] >> k & 1)
                x->cost[op[i] * x->K + k] += (wide)price * prove_op_ns(b, (int32_t)op[i], k);
    }
    x->prices += price;
    return prove_go_on(b->p);
}

/* Of each a price, how many operators, and these. */
static int add_paths(court *x, util_memory *m, yyjson_val *list)
{
    size_t n, paths = 0;
    int64_t *number;
    int rc = prove_list(&number, &n, m, list, INT64_MAX, "paths");
    for (size_t left = n; left > 0 && !rc;) {
        const int64_t *at = &number[n - left];
        if (left >= 2 && (at[1] < 1 || at[1] > x->b->n))
            return prove_wrong("a path has no operators, or more than there are");
        if (left < 2 || (size_t)at[1] > left - 2)
            return prove_wrong("a path ends early");
        if (at[0] > MOST_ROW_PRICE)
            return prove_wrong("a price of a path is too large");
        rc = ++paths > MOST_ROWS ? prove_too_large("more paths than the verifier takes")
                                 : judge_path(x, at[0], at + 2, at[1]);
        left -= 2 + (size_t)at[1];
    }
    return rc;
}

static int judge_prices(court *x, util_memory *m, yyjson_val *leaf)
{
    const prove_block *b = x->b;
    if (x->rate && (prove_get(leaf, "shifts") || prove_get(leaf, "paths")))
        return prove_wrong("loads of a period have shifts or paths");
    x->total = x->prices = 0;
    for (int32_t i = 0; i < b->n; i++)
        for (int32_t k = 0; k < x->K; k++) {
            wide bytes = prove_is_cut(b, i) ? 0 : b->p->bytes[b->op[i]];
            x->cost[(int64_t)i * x->K + k] =
                x->may[i] >> k & 1 ? (wide)x->price[k] * prove_op_ns(b, i, k) + x->byte_price[k] * bytes : 0;
        }
    int rc = x->rate ? 0 : add_offsets(x);
    rc = rc ? rc : add_shifts(x, m, prove_get(leaf, "shifts"));
    rc = rc ? rc : add_paths(x, m, prove_get(leaf, "paths"));
    rc = rc ? rc : add_packets(x);
    x->total += cheapest(x);
    for (int32_t r = 0; r < x->R; r++)
        x->prices += x->price[r];
    for (int32_t k = 0; k < x->K; k++)
        x->total -= (wide)x->byte_price[k] * b->p->capacity[k];
    return rc;
}

/* ---- reading ---- */

/* Edges ascend, each with a number per device. */
static int read_messages(court *x, int64_t *out, util_memory *m, yyjson_val *list, int64_t unit)
{
    size_t each = (size_t)x->K + 1, n;
    int64_t *number, edge = -1;
    int rc = prove_rows(&number, &n, m, list, each, "messages have not one number per device");
    memset(out, 0, (size_t)x->b->n_edges * (size_t)x->K * sizeof *out);
    for (const int64_t *row = number; !rc && row < number + n; row += each) {
        if (row[0] <= edge || row[0] >= x->b->n_edges)
            return prove_wrong("messages of no edge, or edges that do not ascend");
        edge = row[0];
        for (int32_t k = 0; k < x->K; k++) {
            wide message = (wide)row[1 + k] * unit;
            if (message > LARGEST || message < -LARGEST)
                return prove_wrong("a message is too large");
            out[edge * x->K + k] = (int64_t)message;
        }
    }
    return rc;
}

static int read_leaf(court *x, util_memory *m, yyjson_val *object)
{
    yyjson_val *bytes = prove_get(object, "byte_prices");
    int64_t unit = prove_get(object, "unit") ? prove_number(object, "unit") : 1;
    int rc = prove_read_prices(x->price, (size_t)x->R, prove_get(object, "prices"), "prices of loads");
    rc = rc ? rc : prove_read_prices(x->byte_price, (size_t)x->K, bytes, "byte_prices of loads");
    x->bytes |= bytes != NULL;
    rc = rc ? rc : read_messages(x, x->from, m, prove_get(object, "from"), unit);
    return rc ? rc : read_messages(x, x->to, m, prove_get(object, "to"), unit);
}

/* ---- cases ---- */

static int judge_leaf(int64_t *ns, court *x, yyjson_val *object)
{
    int rc = prove_go_on(x->b->p);
    if (!rc && !x->rate)
        find_path(x);
    *ns = x->path;
    x->proof->leaves++;
    if (rc || !prove_get(object, "prices"))
        return rc;
    util_memory lists = {0};
    rc = read_leaf(x, &lists, object);
    rc = rc ? rc : judge_prices(x, &lists, object);
    util_release(&lists);
    if (rc || x->total <= 0 || x->prices == 0)
        return rc;
    wide bound = (x->total + (x->rate ? 0 : x->prices - 1)) / x->prices;
    *ns = UTIL_MAX(*ns, bound > PROVE_MAX_TIME / 2 ? PROVE_MAX_TIME / 2 : (int64_t)bound);
    return 0;
}

/* The operator is on one of the devices that it may use: the least of these cases. */
static int judge_case(int64_t *ns, court *x, yyjson_val *object)
{
    yyjson_val *list = prove_get(object, "cases"), *value;
    if (!list)
        return judge_leaf(ns, x, object);
    int32_t op = prove_index(object, "op", x->b->n);
    if (op < 0 || x->rate || yyjson_arr_size(list) != (size_t)x->K)
        return prove_wrong(x->rate ? "loads of a period go by cases" : "cases of loads are not one per device");
    uint64_t all = x->may[op];
    size_t k, max;
    int rc = 0;
    *ns = INT64_MAX;
    yyjson_arr_foreach(list, k, max, value) {
        int64_t one = 0;
        if (rc || !(all >> k & 1))
            continue;
        x->may[op] = UINT64_C(1) << k;
        rc = judge_case(&one, x, value);
        *ns = UTIL_MIN(*ns, one);
    }
    x->may[op] = all;
    return rc;
}

static int open_court(court *x, int32_t a, int32_t z)
{
    size_t n = (size_t)x->b->n, K = (size_t)x->K, R = (size_t)x->R, messages = (size_t)x->b->n_edges * K;
    util_memory *m = &x->memory;
    UTIL_TAKE(m, x->may, n);
    PROVE_TAKE(m, x->head, n * K);
    PROVE_TAKE(m, x->tail, n * K);
    UTIL_TAKE(m, x->first, R);
    UTIL_TAKE(m, x->last, R);
    UTIL_TAKE(m, x->price, R);
    UTIL_TAKE(m, x->byte_price, K);
    PROVE_TAKE(m, x->from, messages);
    PROVE_TAKE(m, x->to, messages);
    PROVE_TAKE(m, x->cost, n * K);
    for (int32_t i = 0; !m->failed && i < x->b->n; i++)
        x->may[i] = prove_allowed(x->b, i, a, z);
    return util_taken_all(m);
}

int prove_loads(int64_t *ns, bool *by_bytes, moirai_proof *proof, const prove_block *b, int32_t a, int32_t z, bool rate,
                yyjson_val *object)
{
    court x = {.b = b, .K = b->p->K, .rate = rate, .proof = proof};
    x.R = b->p->holds_devices ? x.K : prove_resources(b->p);
    int rc = open_court(&x, a, z);
    rc = rc ? rc : judge_case(ns, &x, object);
    *by_bytes = x.bytes;
    util_release(&x.memory);
    return rc;
}
