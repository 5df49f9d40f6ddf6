/* What the multipliers of a static proof add up to: the least of every term, in 128 bits
 * (prove_static.c has the argument). */
#include "prove/prove_static.h"

#include "util/util.h"

#define UNIT ((__int128)1 << 22)
#define NEVER INT64_MAX
#define MAX_SUM ((__int128)1 << 120) /* of all that is added up */

static bool shares(const prove_judge *x, int32_t e)
{
    return !x->b->p->by_edge && x->b->edge[e].readers > 1;
}

/* Sum of the multipliers of the load rows in which operator i on k counts. */
static __int128 device_price(const prove_judge *x, const int64_t *price, int32_t i, int32_t k)
{
    __int128 sum = 0;
    for (int64_t r = 0; r < x->n_loads; r++) {
        const int64_t *row = x->load + 4 * r;
        if (row[0] == 0 && row[1] == k && x->head[i * x->K + k] >= row[2] && x->tail[i * x->K + k] >= row[3])
            sum += price[r];
    }
    return sum;
}

/* The same for the tensor of edges first .. last sent from k to l. */
static __int128 line_price(const prove_judge *x, const int64_t *price, int32_t first, int32_t last, int32_t k,
                           int32_t l)
{
    int32_t i = x->b->edge[first].from;
    int64_t after = NEVER;
    __int128 sum = 0;
    for (int32_t e = first; e <= last; e++)
        if (prove_may(x, x->b->edge[e].to, l))
            after = UTIL_MIN(after, prove_op_ns(x->b, x->b->edge[e].to, l) + x->tail[x->b->edge[e].to * x->K + l]);
    for (int64_t r = 0; r < x->n_loads && k != l; r++) {
        const int64_t *row = x->load + 4 * r;
        bool here =
            (row[0] == 1 && row[1] == k) || (row[0] == 2 && row[1] == l) || (row[0] == 3 && row[1] == k * x->K + l);
        if (here && prove_may(x, i, k) && x->head[i * x->K + k] + prove_op_ns(x->b, i, k) >= row[2] && after >= row[3])
            sum += price[r];
    }
    return sum;
}

static void less(__int128 *least, bool *any, __int128 value)
{
    if (!*any || value < *least)
        *least = value;
    *any = true;
}

/* Least over the devices and the start of an operator. */
static __int128 term_of_op(const prove_judge *x, int32_t i, const int64_t *out, const int64_t *in, const int64_t *path,
                           const int64_t *end, const int64_t *load)
{
    const prove_block *b = x->b;
    __int128 behind = end[i], before = 0, least = 0;
    int64_t first = NEVER, after = NEVER;
    bool any = false;
    for (int32_t e = 0; e < b->n_edges; e++) {
        behind += b->edge[e].from == i ? path[e] : 0;
        before += b->edge[e].to == i ? path[e] : 0;
    }
    for (int32_t k = 0; k < x->K; k++) {
        if (!prove_may(x, i, k))
            continue;
        __int128 cost = (behind + device_price(x, load, i, k)) * prove_op_ns(x->b, i, k);
        for (int32_t e = 0; e < b->n_edges; e++) {
            cost += b->edge[e].from == i ? out[e * x->K + k] : 0;
            cost += b->edge[e].to == i ? in[e * x->K + k] : 0;
        }
        less(&least, &any, cost);
        first = UTIL_MIN(first, x->head[i * x->K + k]);
        after = UTIL_MIN(after, prove_op_ns(x->b, i, k) + x->tail[i * x->K + k]);
    }
    __int128 slope = behind - before;
    return least + slope * (slope > 0 ? first : x->upper_ns - after);
}

/* Least over the devices of the edges of one tensor, and over whether it is sent. */
static __int128 term_of_tensor(const prove_judge *x, int32_t first, int32_t last, const int64_t *out, const int64_t *in,
                               const int64_t *share, const int64_t *path, const int64_t *load)
{
    int32_t K = x->K;
    __int128 sum = 0;
    for (int32_t e = first; e <= last; e++) {
        __int128 least = 0;
        bool any = false;
        for (int32_t k = 0; k < K; k++)
            for (int32_t l = 0; l < K; l++) {
                if (!prove_may_cross(x, e, k, l))
                    continue;
                bool once = shares(x, e) && k != l;
                __int128 price = once ? path[e] : path[e] + line_price(x, load, e, shares(x, e) ? e : last, k, l);
                less(&least, &any,
                     price * prove_edge_ns(x->b, e, k, l) - out[e * K + k] - in[e * K + l] +
                         (once ? share[(e * K + k) * K + l] : 0));
            }
        sum += least;
    }
    for (int32_t k = 0; k < K && shares(x, first); k++)
        for (int32_t l = 0; l < K; l++) {
            __int128 cost = line_price(x, load, first, last, k, l) * prove_edge_ns(x->b, first, k, l);
            for (int32_t e = first; e <= last && k != l; e++)
                cost -= share[(e * K + k) * K + l];
            bool sends = false; /* else v = 0 */
            for (int32_t e = first; e <= last && cost < 0 && !sends; e++)
                sends = prove_may_cross(x, e, k, l);
            sum += sends ? cost : 0;
        }
    return sum;
}

static __int128 sum_of(const int64_t *dual, int64_t n)
{
    __int128 sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += dual[i] < 0 ? -(__int128)dual[i] : dual[i];
    return sum;
}

/* No sum of the verdict can leave 128 bits. Multipliers of (path), (end) and (load) meet times: at most `upper`, what
 * is proven, and all tasks of the block at their longest; those of the other rows stand alone, twice. */
bool prove_static_fits(const prove_judge *x)
{
    const prove_block *b = x->b;
    int64_t E = b->n_edges, K = x->K, flat = 2 * E * K + E * K * K, timed = E + b->n + x->n_loads;
    __int128 span = (__int128)x->upper_ns + x->proven_ns + 1, alone = 2 * sum_of(x->dual, flat),
             multiplied = sum_of(x->dual + flat, timed) + UNIT;
    for (int32_t i = 0; i < b->n; i++) {
        int64_t most = 0;
        for (int32_t k = 0; k < K; k++)
            most = UTIL_MAX(most, prove_op_ns(x->b, i, k));
        span += most;
    }
    for (int32_t e = 0; e < E; e++) {
        int64_t most = 0;
        for (int32_t k = 0; k < K * K; k++)
            most = UTIL_MAX(most, prove_edge_ns(x->b, e, k / (int32_t)K, k % (int32_t)K));
        span += most;
    }
    return alone < MAX_SUM && multiplied <= (MAX_SUM - alone) / span;
}

int64_t prove_static_sum(const prove_judge *x)
{
    const prove_block *b = x->b;
    int64_t E = b->n_edges, K = x->K;
    const int64_t *out = x->dual, *in = out + E * K, *share = in + E * K, *path = share + E * K * K, *end = path + E,
                  *load = end + b->n;
    __int128 sum = 0, slope = UNIT;
    for (int64_t r = 0; r < x->n_loads; r++) {
        sum += (__int128)load[r] * (x->load[4 * r + 2] + x->load[4 * r + 3]);
        slope -= load[r];
    }
    for (int32_t i = 0; i < b->n; i++) {
        slope -= end[i];
        sum += term_of_op(x, i, out, in, path, end, load);
    }
    for (int32_t first = 0; first < b->n_edges; first = prove_packet_end(b, first))
        sum += term_of_tensor(x, first, prove_packet_end(b, first) - 1, out, in, share, path, load);
    sum += slope * (slope > 0 ? x->proven_ns : x->upper_ns);
    if (sum <= 0)
        return 0;
    __int128 bound = (sum + UNIT - 1) / UNIT;
    return bound > x->upper_ns ? x->upper_ns : (int64_t)bound;
}
