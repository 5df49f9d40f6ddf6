/* Prices on loads within stretches of time, judged in whole numbers.
 *
 * A shift (H, Q) is the time from H to T - Q of a plan that takes T between the cuts. Let P <= T be the longest path of the case, and of an operator
 * on k with head h, time t and tail q let
 *
 *     a = the least of t, h + t - H, q + t - Q and, where h < H and q < Q, P - H - Q; 0 where that is negative.
 *
 * Then the sum of a over all operators on k, plus min(H + Q, P), is at most T. If all of them are 0, P <= T says so. Otherwise some a > 0, and T > H +
 * Q: where h >= H or q >= Q, since T >= h + t + q, which is at least H + Q + a (a <= h + t - H is used where q >= Q, a <= q + t - Q where h >= H); else since P
 * - H - Q > 0. The operator runs from some s >= h to s + t <= T - q, and what of that lies between H and T - Q is the least of t, s + t - H, T - Q - s and T - Q - H. The first
 * three are at least t, h + t - H and q + t - Q. The last is at least one of these where h >= H (q + t - Q <= T - h - Q) or q >= Q (h + t - H <=
 * T - q - H), else at least P - H - Q. So it is at least a; and k runs one operator at a time, within T - Q - H.
 *
 * So a device within a shift is one more resource of prove_loads.c, which gets parts of operators and no transfers. */
#include "prove/prove_read.h"
#include "util/util.h"

#define MOST_SHIFTS 65536
#define MOST_PRICE (INT64_C(1) << 40)

static int64_t part_of(const prove_shifted *x, int32_t i, int32_t k, int64_t H, int64_t Q)
{
    int64_t at = (int64_t)i * x->b->p->K + k, t = prove_op_ns(x->b, i, k);
    int64_t after = x->head[at] + t - H, before = x->tail[at] + t - Q, a = UTIL_MIN(t, UTIL_MIN(after, before));
    if (x->head[at] < H && x->tail[at] < Q)
        a = UTIL_MIN(a, x->path - H - Q);
    return UTIL_MAX(a, 0);
}

/* Two numbers and the prices of all devices. */
static int judge_shift(prove_shifted *x, const int64_t *number)
{
    int32_t K = x->b->p->K;
    int64_t H = number[0], Q = number[1];
    for (int32_t k = 0; k < K; k++) {
        __int128 price = number[2 + k];
        if (price > MOST_PRICE)
            return prove_wrong("a price of a shift is too large");
        x->prices += price;
        x->total += price * UTIL_MIN(H + Q, x->path);
        for (int32_t i = 0; price > 0 && i < x->b->n; i++)
            if (x->may[i] >> k & 1)
                x->cost[(int64_t)i * K + k] += price * part_of(x, i, k, H, Q);
    }
    return prove_go_on(x->b->p);
}

int prove_shifts(prove_shifted *x, yyjson_val *list)
{
    size_t each = (size_t)x->b->p->K + 2, i, max;
    int64_t number[PROVE_MAX_DEVICES + 2];
    yyjson_val *value;
    int rc = 0;
    if (yyjson_arr_size(list) % each)
        return prove_wrong("shifts have not two times and one price per device");
    if (yyjson_arr_size(list) / each > MOST_SHIFTS)
        return prove_too_large("more shifts than the verifier takes");
    yyjson_arr_foreach(list, i, max, value) {
        number[i % each] = yyjson_get_sint(value);
        rc = rc || i % each != each - 1 ? rc : judge_shift(x, number);
    }
    return rc;
}
