/* The pool's labels, what they cost at prices per time, and the next prices. */
#include <math.h>

#include "pair/pair_tuning.h"
#include "pair/pool_state.h"
#include "util/util.h"

#define PRICE_BITS 59 /* weights * integral of the price stays below */

static bool allowed(const pair_pool_trial *x, int32_t i, int32_t k)
{
    return x->q->op_devices[i] >> k & 1;
}

static int64_t latest(const pair_pool_trial *x, int32_t i, int32_t k)
{
    return x->length_ns - moirai_op_ns(x->q, i, k) - x->tail[(int64_t)i * x->K + k];
}

/* ---- labels ---- */

void pair_pool_find_windows(pair_pool_trial *x)
{
    for (int32_t i = 0; i < x->n; i++) {
        int64_t first = INT64_MAX, last = INT64_MIN;
        for (int32_t k = 0; k < x->K; k++)
            if (allowed(x, i, k) && x->head[(int64_t)i * x->K + k] <= latest(x, i, k)) {
                first = UTIL_MIN(first, x->head[(int64_t)i * x->K + k]);
                last = UTIL_MAX(last, latest(x, i, k));
            }
        x->impossible |= first > last;
        x->label.offset[i] = first;
        x->label.n[i] = first > last ? 1 : (int32_t)((last - first) / x->step_ns + 1);
    }
}

void pair_pool_find_lateness(pair_pool_trial *x)
{
    const pair_pool_arcs *arcs = x->arcs;
    for (int32_t e = 0; e < x->E; e++) {
        const pair_pool_arc *a = &arcs->arc[e];
        x->label.late[e] = (int32_t)pair_pool_up(x->label.offset[a->to] - x->label.offset[a->from] - a->ns, x->step_ns);
    }
    /* Nothing is later than what follows it allows. */
    for (int32_t z = x->n - 1; z >= 0; z--) {
        int32_t i = x->q->topo[z];
        for (int32_t o = arcs->out_off[i]; o < arcs->out_off[i + 1]; o++) {
            int32_t e = arcs->out[o];
            x->label.n[i] = UTIL_MIN(x->label.n[i], x->label.n[arcs->arc[e].to] + x->label.late[e]);
        }
        x->impossible |= x->label.n[i] < 1;
        x->label.n[i] = UTIL_MAX(x->label.n[i], 1);
    }
}

/* ---- costs ---- */

static int64_t integral(const pair_pool_trial *x, int64_t u)
{
    int64_t b = UTIL_MIN(u / x->bucket_ns, x->proof.n_buckets - 1);
    return x->sale.paid[b] + x->sale.price[b] * (u - b * x->bucket_ns);
}

/* The least integral over [u, u + ns) for u in [from, to], and where. It is linear between the points where u or u + ns
 * enters a bucket. */
static int64_t least_pay(const pair_pool_trial *x, int64_t from, int64_t to, int64_t ns, int64_t *where)
{
    int64_t best = integral(x, from + ns) - integral(x, from), last = integral(x, to + ns) - integral(x, to);
    *where = from;
    if (last < best) {
        best = last;
        *where = to;
    }
    for (int side = 0; side < 2; side++) {
        int64_t shift = side ? ns : 0;
        for (int64_t u = ((from + shift) / x->bucket_ns + 1) * x->bucket_ns - shift; u < to; u += x->bucket_ns) {
            int64_t pay = integral(x, u + ns) - integral(x, u);
            if (pay < best) {
                best = pay;
                *where = u;
            }
        }
    }
    return best;
}

/* The cheapest device and start of label g, -1: none. */
static int64_t label_cost(const pair_pool_trial *x, int32_t i, int32_t g, int32_t *device, int64_t *start)
{
    int64_t best = -1, from = x->label.offset[i] + g * x->step_ns, to = from + x->step_ns - 1;
    for (int32_t k = 0; k < x->K; k++) {
        int64_t a = UTIL_MAX(from, x->head[(int64_t)i * x->K + k]), b, at;
        if (!allowed(x, i, k) || a > (b = UTIL_MIN(to, latest(x, i, k))))
            continue;
        int64_t pay = x->weight[k] * least_pay(x, a, b, moirai_op_ns(x->q, i, k), &at);
        if (best < 0 || pay < best) {
            best = pay;
            *device = k;
            *start = at;
        }
    }
    return best;
}

static void find_costs(pair_pool_trial *x)
{
    int32_t k;
    int64_t at;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t g = 0; g < x->label.n[i]; g++)
            x->label.cost[x->label.off[i] + g] = label_cost(x, i, g, &k, &at);
}

void pair_pool_set_prices(pair_pool_trial *x)
{
    double most = 0, sum = 0, weights = 0;
    int64_t T = x->length_ns;
    for (int32_t k = 0; k < x->K; k++)
        weights += (double)x->weight[k];
    for (int32_t b = 0; b < x->proof.n_buckets; b++) {
        most = fmax(most, x->sale.shape[b]);
        sum += x->sale.shape[b] * (double)UTIL_MIN(x->bucket_ns, T - b * x->bucket_ns);
    }
    double scale = weights * sum > 0 ? ldexp(1, PRICE_BITS) / (weights * sum) : 0; /* nothing to sell within no time */
    int64_t paid = 0;
    for (int32_t b = 0; b < x->proof.n_buckets; b++) {
        x->sale.price[b] = (int64_t)(x->sale.shape[b] * scale);
        x->sale.paid[b] = paid;
        paid += x->sale.price[b] * UTIL_MIN(x->bucket_ns, T - b * x->bucket_ns);
    }
    x->sale.paid[x->proof.n_buckets] = paid;
    find_costs(x);
}

int64_t pair_pool_capacity(const pair_pool_trial *x)
{
    int64_t weights = 0;
    for (int32_t k = 0; k < x->K; k++)
        weights += x->weight[k];
    return weights * x->sale.paid[x->proof.n_buckets];
}

/* ---- prices ---- */

/* How much of each bucket the cheapest labels use, in parts of all devices together. */
static void find_use(pair_pool_trial *x)
{
    double weights = 0;
    for (int32_t k = 0; k < x->K; k++)
        weights += (double)x->weight[k];
    for (int32_t b = 0; b < x->proof.n_buckets; b++)
        x->sale.use[b] = 0;
    for (int32_t i = 0; i < x->n; i++) {
        int32_t k = 0;
        int64_t u = 0;
        if (label_cost(x, i, pair_pool_cheapest_label(x, i), &k, &u) < 0)
            continue;
        for (int64_t end = u + moirai_op_ns(x->q, i, k), b = u / x->bucket_ns; u < end; b++) {
            int64_t until = UTIL_MIN(end, (b + 1) * x->bucket_ns);
            b = UTIL_MIN(b, x->proof.n_buckets - 1);
            x->sale.use[b] += (double)x->weight[k] * (double)(until - u);
            u = until;
        }
    }
    for (int32_t b = 0; b < x->proof.n_buckets; b++)
        x->sale.use[b] /= weights * (double)UTIL_MAX(UTIL_MIN(x->bucket_ns, x->length_ns - b * x->bucket_ns), 1);
}

void pair_pool_update_shape(pair_pool_trial *x, int32_t round)
{
    double rate = PAIR_POOL_PRICES_RATE / sqrt(1 + round / PAIR_POOL_PRICES_RATE_ROUNDS), most = 0;
    find_use(x);
    for (int32_t b = 0; b < x->proof.n_buckets; b++) {
        x->sale.mean[b] += PAIR_POOL_PRICES_LATEST * (x->sale.use[b] - x->sale.mean[b]);
        x->sale.shape[b] *= exp(rate * fmin(x->sale.mean[b] - 1, 1));
        most = fmax(most, x->sale.shape[b]);
    }
    for (int32_t b = 0; b < x->proof.n_buckets; b++)
        x->sale.shape[b] = fmax(x->sale.shape[b] / most, PAIR_POOL_PRICES_LEAST_SHAPE);
}
