/* Certificates of problems with more devices than a mask has (PROVE_MASK_DEVICES).
 *
 * Of these one form is taken: no cuts, nothing that floats, one class with one pair, that has prices of loads without cases,
 * messages and prices on bytes, or no prices at all. It proves the longest path,
 *
 *     head(j, k) = max over edges (i, j) of the least over devices l of head(i, l) + time(i, l) + transfer(l, k),
 *
 * and, for prices l(k) >= 0 of the devices, T * (sum of l) >= sum over operators of the least over devices of l(k) time(i, k):
 * load(k) <= T, and each operator is on some device. Prices of ports and channels only add to the sum of l, and so make
 * less of it. An operator may be wherever it has a time; groups, which allow less, are left out. Nothing here reads `may`.
 *
 * Numbers: prices are at most 2^40, all times together below 2^61. O(E K^2), O(E K) where links are alike. */
#include <stdlib.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define NEVER (INT64_MAX / 2)
#define LOOK 16 /* edges per look at the clock */

typedef __int128 wide;

static int64_t time_ns(const prove_problem *p, int32_t i, int32_t k)
{
    return p->time[(int64_t)i * p->K + k];
}

/* ---- the longest path ---- */

/* What operator j can have from one of its edges. */
static void reach(int64_t *head, const prove_problem *p, const prove_edge *e)
{
    int32_t K = p->K;
    int64_t at[PROVE_MAX_DEVICES], least = NEVER;
    const int64_t *from = head + (int64_t)e->from * K;
    int64_t *to = head + (int64_t)e->to * K;
    for (int32_t l = 0; l < K; l++) {
        at[l] = time_ns(p, e->from, l) < 0 ? NEVER : from[l] + time_ns(p, e->from, l);
        least = UTIL_MIN(least, at[l]);
    }
    for (int32_t k = 0; k < K; k++) {
        int64_t soonest = at[k];
        if (e->even_ns >= 0)
            soonest = UTIL_MIN(soonest, least + e->even_ns);
        for (int32_t l = 0; l < K && e->even_ns < 0; l++)
            if (at[l] < NEVER)
                soonest = UTIL_MIN(soonest, at[l] + e->ns[(int64_t)l * K + k]);
        to[k] = UTIL_MAX(to[k], soonest);
    }
}

static int longest_path(int64_t *ns, const prove_problem *p)
{
    int64_t *head = prove_alloc((size_t)p->n * (size_t)p->K, sizeof *head);
    int rc = head ? 0 : MOIRAI_EFAIL;
    *ns = 0;
    for (int32_t e = 0; e < p->n_edges && !rc;
         e++) { /* by producer, in topological order: a head is final before it is passed on */
        rc = e % LOOK ? 0 : prove_go_on(p);
        if (!rc)
            reach(head, p, &p->edge[e]);
    }
    for (int32_t i = 0; i < p->n && !rc; i++) {
        int64_t least = NEVER;
        for (int32_t k = 0; k < p->K; k++)
            if (time_ns(p, i, k) >= 0)
                least = UTIL_MIN(least, head[(int64_t)i * p->K + k] + time_ns(p, i, k));
        *ns = UTIL_MAX(*ns, least);
    }
    free(head);
    return rc;
}

/* ---- loads ---- */

static int read_prices(int64_t *price, wide *sum, const prove_problem *p, yyjson_val *list)
{
    size_t i, max, R = (size_t)prove_resources(p);
    yyjson_val *value;
    if (yyjson_arr_size(list) != R)
        return moirai_error(MOIRAI_EVERIFY, "prices of loads has %zu numbers, not %zu", yyjson_arr_size(list), R);
    yyjson_arr_foreach(list, i, max, value) {
        int64_t number = yyjson_get_sint(value);
        *sum += number;
        if (i < (size_t)p->K)
            price[i] = number;
    }
    return 0;
}

static int load_bound(int64_t *ns, const prove_problem *p, yyjson_val *list)
{
    int64_t price[PROVE_MAX_DEVICES] = {0};
    wide sum = 0, total = 0;
    int rc = read_prices(price, &sum, p, list);
    for (int32_t i = 0; i < p->n && !rc; i++) {
        wide least = -1;
        for (int32_t k = 0; k < p->K; k++) {
            wide cost = (wide)price[k] * time_ns(p, i, k);
            if (time_ns(p, i, k) >= 0 && (least < 0 || cost < least))
                least = cost;
        }
        total += least > 0 ? least : 0;
        rc = i % LOOK ? 0 : prove_go_on(p);
    }
    if (!rc && sum > 0 && (total + sum - 1) / sum < PROVE_MAX_TIME)
        *ns = UTIL_MAX(*ns, (int64_t)((total + sum - 1) / sum));
    return rc;
}

/* ---- the certificate ---- */

static int other_form(void)
{
    return prove_too_large("with more than 64 devices only prices of loads without cases, messages and cuts are taken");
}

/* The loads of the one pair, or NULL. */
static int find_loads(yyjson_val **out, yyjson_val *root)
{
    static const char *const never[] = {"leaves", "search"}, *const plain[] = {"cases", "from", "to", "byte_prices"};
    yyjson_val *class_ = yyjson_arr_get_first(prove_get(root, "classes"));
    yyjson_val *pairs = prove_get(class_, "pairs"), *pair = pairs ? yyjson_arr_get_first(pairs) : NULL;
    if (yyjson_arr_size(prove_get(root, "cuts")) || prove_get(root, "floating") || prove_get(root, "memory") ||
        prove_get(root, "windows") || yyjson_arr_size(prove_get(root, "classes")) != 1 ||
        (pairs && yyjson_arr_size(pairs) > 1))
        return other_form();
    for (size_t i = 0; pair && i < 2; i++)
        if (prove_get(pair, never[i]))
            return other_form();
    *out = pair ? prove_get(pair, "loads") : NULL;
    for (size_t i = 0; *out && i < 4; i++)
        if (prove_get(*out, plain[i]))
            return other_form();
    return 0;
}

int prove_many(int64_t *ns, moirai_proof *proof, const prove_problem *p, yyjson_val *root)
{
    yyjson_val *loads = NULL;
    *ns = 0;
    int rc = proof->of_rate ? other_form() : find_loads(&loads, root);
    rc = rc ? rc : longest_path(ns, p);
    if (!rc && loads && prove_get(loads, "prices"))
        rc = load_bound(ns, p, prove_get(loads, "prices"));
    proof->classes = proof->pairs = 1;
    proof->leaves = loads != NULL;
    return rc;
}
