/* Certificates of problems with more devices than a mask has (PROVE_MASK_DEVICES).
 *
 * Of these one form is taken: no cuts, nothing that floats, one class with one pair, that has prices of loads without cases,
 * messages and prices on bytes, or no prices at all. It proves the longest path and, for prices l(k) >= 0 of the devices, T * (sum of l) >=
 * sum over operators of the least over devices of l(k) time(i, k). Prices of ports and channels only add to the sum of l, and so make
 * less of it. An operator may be wherever it has a time; groups, which allow less, are left out. Nothing here reads `may`.
 *
 * Numbers: prices are at most 2^40, all times together below 2^61. O(E K^2), O(E K) where links are alike. */
#include <stdlib.h>
#include <yyjson.h>

#include "prove/prove_read.h"
#include "util/util.h"

typedef __int128 wide;

static int longest_path(int64_t *ns, const prove_problem *p)
{
    prove_block whole;
    int64_t *head;
    int rc = prove_block_new(&whole, p, p->n, NULL, false, false);
    if (!rc && !PROVE_TAKE(&whole.memory, head, (size_t)p->n * (size_t)p->K))
        rc = MOIRAI_EFAIL;
    if (!rc) {
        prove_reach(&whole, NULL, head, true);
        *ns = prove_longest(&whole, NULL, head, NULL);
        rc = prove_go_on(p);
    }
    prove_block_free(&whole);
    return rc;
}

static int load_bound(int64_t *ns, const prove_problem *p, yyjson_val *list)
{
    util_memory memory = {0};
    size_t R = (size_t)prove_resources(p);
    int64_t *price;
    wide sum = 0, total = 0;
    int rc = UTIL_TAKE(&memory, price, R) ? prove_read_prices(price, R, list, "prices of loads") : MOIRAI_EFAIL;
    for (size_t r = 0; r < R && !rc; r++)
        sum += price[r];
    for (int32_t i = 0; i < p->n && !rc; i++) {
        const int64_t *time = p->time + (int64_t)i * p->K;
        wide least = -1;
        for (int32_t k = 0; k < p->K; k++)
            if (time[k] >= 0 && (least < 0 || (wide)price[k] * time[k] < least))
                least = (wide)price[k] * time[k];
        total += least > 0 ? least : 0;
        rc = prove_look(p, i);
    }
    if (!rc && sum > 0 && (total + sum - 1) / sum < PROVE_MAX_TIME)
        *ns = UTIL_MAX(*ns, (int64_t)((total + sum - 1) / sum));
    util_release(&memory);
    return rc;
}

/* ---- the certificate ---- */

static bool has_any(yyjson_val *object, const char *const *keys)
{
    for (; *keys; keys++)
        if (prove_get(object, *keys))
            return true;
    return false;
}

/* Whether the certificate is of the one form; *loads: of its pair, or NULL. */
static bool is_plain(yyjson_val **loads, yyjson_val *root)
{
    static const char *const chains[] = {"floating", "memory", NULL}, *const more[] = {"leaves", "search", NULL},
                             *const prices[] = {"cases", "from", "to", "byte_prices", NULL};
    yyjson_val *classes = prove_get(root, "classes"), *pairs = prove_get(yyjson_arr_get_first(classes), "pairs"),
               *pair = yyjson_arr_get_first(pairs);
    *loads = prove_get(pair, "loads");
    return yyjson_arr_size(prove_get(root, "cuts")) == 0 && yyjson_arr_size(classes) == 1 &&
           yyjson_arr_size(pairs) <= 1 && !has_any(root, chains) && !has_any(pair, more) && !has_any(*loads, prices);
}

int prove_many(int64_t *ns, moirai_proof *proof, const prove_problem *p, yyjson_val *root)
{
    yyjson_val *loads = NULL;
    *ns = 0;
    if (proof->of_rate || !is_plain(&loads, root))
        return prove_too_large(
            "with more than 64 devices only prices of loads without cases, messages and cuts are taken");
    int rc = longest_path(ns, p);
    if (!rc && loads && prove_get(loads, "prices"))
        rc = load_bound(ns, p, prove_get(loads, "prices"));
    proof->classes = proof->pairs = 1;
    proof->leaves = loads != NULL;
    return rc;
}
