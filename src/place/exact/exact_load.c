/* The load bound: work shared out over unequal devices.
 *
 * For any weights w >= 0 over the devices, not all 0, a plan of length T has sum over k of w_k * load_k <= T * sum of
 * w_k, and the left side is at least the sum over operators of their cheapest w_k * time on a device that is left. On a
 * device that is surely used nothing runs before the least head, nor after the least tail, of what may run
 * there: both are added to its load. Good weights equalise the loads: each node starts from its parent's and takes a
 * few steps. The sum is exact (128 bits), so that any weights give a valid bound. With the same sum an operator
 * loses the devices that would lift it to below_ns.
 *
 * Complexity: O(V K) per step. */
#include "place/exact/exact_search.h"

#define STEPS 4
#define ONE 65536

typedef struct sharing {
    __int128 sum;    /* of w * (least head + load + least tail) */
    int64_t weights; /* sum of w */
} sharing;

/* The unit's weighted time on device k. */
static __int128 price(const moirai_exact_search *s, const moirai_exact_state *st, int32_t u, int32_t k)
{
    __int128 ns = 0;
    for (int32_t a = s->unit_off[u]; a < s->unit_off[u + 1]; a++)
        ns += s->p->op_time_ns[(int64_t)s->unit_op[a] * s->K + k];
    return ns * st->weight[k];
}

/* Idle time at both ends of a device that is surely used. */
static int64_t idle_ends(const moirai_exact_search *s, const moirai_exact_state *st, int32_t k)
{
    int64_t head = EXACT_NONE_NS, tail = EXACT_NONE_NS;
    bool used = false;
    for (int32_t i = 0; i < s->n; i++) {
        int64_t at = (int64_t)i * s->K + k;
        if (!(st->dom[i] >> k & 1) || s->p->op_time_ns[at] == 0)
            continue;
        used |= EXACT_ONLY(st->dom[i]);
        head = MOIRAI_MIN(head, st->head[at]);
        tail = MOIRAI_MIN(tail, st->tail[at]);
    }
    return used ? head + tail : 0;
}

static sharing share(const moirai_exact_search *s, const moirai_exact_state *st, const int64_t *ends, double *load)
{
    sharing r = {0, 0};
    for (int32_t k = 0; k < s->K; k++) {
        r.sum += (__int128)ends[k] * st->weight[k];
        r.weights += st->weight[k];
        load[k] = (double)ends[k];
    }
    for (int32_t u = 0; u < s->n_units; u++) {
        __int128 least = -1;
        int32_t where = 0;
        for (uint64_t m = st->dom[s->unit_op[s->unit_off[u]]]; m != 0; m &= m - 1) {
            int32_t k = EXACT_FIRST(m);
            __int128 one = price(s, st, u, k);
            if (least < 0 || one < least) {
                least = one;
                where = k;
            }
        }
        r.sum += least;
        if (st->weight[where] > 0)
            load[where] += (double)least / st->weight[where];
    }
    return r;
}

static void step(moirai_exact_state *st, int32_t K, const double *load, double size)
{
    double mean = 0, total = 0;
    for (int32_t k = 0; k < K; k++) {
        mean += load[k] * st->weight[k];
        total += st->weight[k];
    }
    mean /= total;
    if (!(mean > 0))
        return;
    for (int32_t k = 0; k < K; k++) {
        double off = MOIRAI_MAX(-1.0, MOIRAI_MIN(1.0, load[k] / mean - 1));
        double w = st->weight[k] * (1 + size * off);
        st->weight[k] = (int32_t)MOIRAI_MAX(16.0, MOIRAI_MIN(w, 64.0 * ONE));
    }
}

static bool strike(moirai_exact_search *s, moirai_exact_state *st, sharing best, bool *changed)
{
    __int128 limit = (__int128)s->below_ns * best.weights;
    for (int32_t u = 0; u < s->n_units; u++) {
        int32_t i = s->unit_op[s->unit_off[u]];
        if (EXACT_ONLY(st->dom[i]))
            continue;
        __int128 least = -1;
        for (uint64_t m = st->dom[i]; m != 0; m &= m - 1) {
            __int128 one = price(s, st, u, EXACT_FIRST(m));
            least = least < 0 || one < least ? one : least;
        }
        uint64_t keep = ~(uint64_t)0;
        for (uint64_t m = st->dom[i]; m != 0; m &= m - 1)
            if (best.sum - least + price(s, st, u, EXACT_FIRST(m)) > limit - best.weights)
                keep &= ~(m & -m);
        if (!moirai_exact_restrict(s, st, i, keep, changed))
            return false;
    }
    return true;
}

bool moirai_exact_load(moirai_exact_search *s, moirai_exact_state *st, bool *changed)
{
    int64_t ends[MOIRAI_MAX_DEVICES];
    double load[MOIRAI_MAX_DEVICES];
    int32_t best[MOIRAI_MAX_DEVICES];
    sharing top = {0, 1};
    double size = 0.3;
    int steps = s->nodes <= 1 ? 60 : STEPS;
    for (int32_t k = 0; k < s->K; k++)
        ends[k] = idle_ends(s, st, k);
    for (int n = 0; n < steps; n++, size *= n > 20 ? 0.93 : 0.9) {
        sharing now = share(s, st, ends, load);
        if (n == 0 || now.sum * top.weights > top.sum * now.weights) {
            top = now;
            for (int32_t k = 0; k < s->K; k++)
                best[k] = st->weight[k];
        }
        step(st, s->K, load, size);
    }
    for (int32_t k = 0; k < s->K; k++)
        st->weight[k] = best[k];
    int64_t lb = (int64_t)((top.sum + top.weights - 1) / top.weights);
    st->lb_ns = MOIRAI_MAX(st->lb_ns, lb);
    return lb < s->below_ns && strike(s, st, top, changed);
}
