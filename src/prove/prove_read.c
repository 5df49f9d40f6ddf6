/* Numbers and leaves of a certificate, where the problem says what their range is. What is out of range proves nothing:
 * MOIRAI_EVERIFY. */
#include <string.h>
#include <yyjson.h>

#include "prove/prove_read.h"
#include "util/util.h"

#define MAX_STEPS 65536
#define MAX_BUCKETS 4096
#define MAX_COUNTS 1024 /* questions of one leaf: the cover is looked at by recursion over them */
#define MAX_LEAVES ((size_t)1 << 20)

int prove_wrong(const char *what)
{
    return moirai_error(MOIRAI_EVERIFY, "%s", what);
}

int prove_too_large(const char *what)
{
    return moirai_error(MOIRAI_EVERIFY, PROVE_LIMITS "%s", what);
}

yyjson_val *prove_get(yyjson_val *object, const char *key)
{
    yyjson_val *value = yyjson_obj_get(object, key);
    return yyjson_is_null(value) ? NULL : value;
}

int64_t prove_number(yyjson_val *object, const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(object, key));
}

int32_t prove_index(yyjson_val *object, const char *key, int32_t n)
{
    int64_t number = prove_number(object, key);
    return number < n ? (int32_t)number : PROVE_NONE;
}

int prove_list(int64_t **out, size_t *n, util_memory *m, yyjson_val *array, int64_t most, const char *what)
{
    size_t i, max;
    yyjson_val *value;
    *n = yyjson_arr_size(array);
    if (!PROVE_TAKE(m, *out, *n))
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(array, i, max, value) {
        (*out)[i] = yyjson_get_sint(value);
        if ((*out)[i] > most)
            return moirai_error(MOIRAI_EVERIFY, "%s: number %zu is out of range", what, i);
    }
    return 0;
}

int prove_list32(int32_t **out, size_t *n, util_memory *m, yyjson_val *array, int32_t most, const char *what)
{
    int64_t *wide;
    int rc = prove_list(&wide, n, m, array, most, what);
    if (rc || !PROVE_TAKE(m, *out, *n))
        return rc ? rc : MOIRAI_EFAIL;
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = (int32_t)wide[i];
    return 0;
}

int prove_rows(int64_t **out, size_t *n, util_memory *m, yyjson_val *list, size_t each, const char *wrong)
{
    int rc = prove_list(out, n, m, list, INT64_MAX, wrong);
    return rc || *n % each == 0 ? rc : prove_wrong(wrong);
}

int prove_read_prices(int64_t *out, size_t n, yyjson_val *list, const char *what)
{
    size_t i, max;
    yyjson_val *value;
    memset(out, 0, n * sizeof *out);
    if (list && yyjson_arr_size(list) != n)
        return moirai_error(MOIRAI_EVERIFY, "%s has %zu numbers, not %zu", what, yyjson_arr_size(list), n);
    yyjson_arr_foreach(list, i, max, value)
        out[i] = yyjson_get_sint(value);
    return 0;
}

/* ---- a leaf ---- */

/* Times end at PROVE_MAX_TIME, or never: INT64_MAX. */
static bool count_exists(const prove_leaf *leaf, const prove_block *b, const int64_t *x)
{
    if (x[2] < 0 || x[2] >= b->p->K || x[3] < 0 || x[4] < 0 || x[3] > PROVE_MAX_TIME ||
        (x[4] > PROVE_MAX_TIME && x[4] != INT64_MAX))
        return false;
    if (x[0] == PROVE_ARRIVAL || x[0] == PROVE_LENGTH)
        return x[1] == 0 && (leaf->fixed || x[0] == PROVE_LENGTH);
    return x[0] >= 0 && x[0] < b->n_kinds && x[1] >= 0 && x[1] < prove_interior(&b->kind[x[0]].one) &&
           x[3] <= INT32_MAX && x[4] <= INT32_MAX;
}

static int read_counts(prove_leaf *leaf, util_memory *m, const prove_block *b, yyjson_val *object)
{
    int64_t *number;
    size_t n;
    int rc = prove_list(&number, &n, m, prove_get(object, "counts"), INT64_MAX, "counts");
    if (!rc && n / 5 > MAX_COUNTS)
        rc = prove_too_large("a leaf asks more than 1024 questions");
    if (rc || !UTIL_TAKE(m, leaf->branch, n / 5))
        return rc ? rc : MOIRAI_EFAIL;
    for (const int64_t *x = number; x < number + n; x += 5) {
        if (!count_exists(leaf, b, x))
            return prove_wrong("a count is of a kind, operator or device that is not there");
        leaf->branch[leaf->n_branches++] = (prove_branch){(int32_t)x[0], (int32_t)x[1], (int32_t)x[2], x[3], x[4]};
    }
    return 0;
}

static int read_grid(prove_leaf *leaf, util_memory *m, yyjson_val *object)
{
    size_t n;
    leaf->length_ns = prove_number(object, "length_ns");
    leaf->step_ns = prove_number(object, "step_ns");
    if (leaf->length_ns / leaf->step_ns >= MAX_STEPS)
        return prove_too_large("a leaf's length has too many steps");
    leaf->n_steps = (int32_t)(leaf->length_ns / leaf->step_ns) + 1;
    int rc = prove_list32(&leaf->bucket, &n, m, prove_get(object, "buckets"), leaf->n_steps, "buckets");
    if (rc)
        return rc;
    if (n > MAX_BUCKETS)
        return prove_too_large("a leaf has more than 4096 buckets");
    if (n < 2 || leaf->bucket[0] != 0 || leaf->bucket[n - 1] != leaf->n_steps)
        return prove_wrong("a leaf's buckets do not cover its steps");
    for (size_t i = 1; i < n; i++)
        if (leaf->bucket[i] <= leaf->bucket[i - 1])
            return prove_wrong("a leaf's buckets do not ascend");
    leaf->n_buckets = (int32_t)n - 1;
    return 0;
}

static int read_prices(prove_leaf *leaf, util_memory *m, const prove_block *b, yyjson_val *object)
{
    int32_t R = prove_resources(b->p);
    int64_t *number, *paid;
    size_t n, counts;
    int rc = prove_list(&number, &n, m, prove_get(object, "prices"), INT64_MAX, "prices");
    rc = rc ? rc : prove_list(&paid, &counts, m, prove_get(object, "count_prices"), INT64_MAX, "count_prices");
    UTIL_TAKE(m, leaf->price, (size_t)R * (size_t)leaf->n_buckets);
    UTIL_TAKE(m, leaf->branch_price, (size_t)leaf->n_branches);
    if (rc || m->failed)
        return rc ? rc : MOIRAI_EFAIL;
    for (const int64_t *x = number; x < number + n; x += 3) {
        if (x[0] >= R || x[1] >= leaf->n_buckets || leaf->price[x[0] * leaf->n_buckets + x[1]])
            return prove_wrong("a price is on a resource or bucket that is not there, or is the second there");
        leaf->price[x[0] * leaf->n_buckets + x[1]] = x[2];
    }
    if (counts > (size_t)leaf->n_branches)
        return prove_wrong("more prices on counts than counts");
    for (size_t i = 0; i < counts; i++) {
        if (leaf->branch[i].kind < 0 && paid[i])
            return prove_wrong("a time has a price");
        leaf->branch_price[i] = paid[i];
    }
    return 0;
}

static int read_sending(prove_leaf *leaf, const prove_block *b, int32_t a, yyjson_val *list)
{
    uint64_t seen = UINT64_C(1) << a;
    leaf->fixed = list;
    if (!leaf->fixed)
        return 0;
    if (b->shared < 0 || yyjson_arr_size(list) >= (size_t)b->p->K)
        return prove_wrong("a leaf lists receivers of a tensor that is not there");
    size_t i, max;
    yyjson_val *value;
    yyjson_arr_foreach(list, i, max, value) {
        int64_t k = yyjson_get_sint(value);
        if (k >= b->p->K || (seen >> k & 1))
            return prove_wrong("a leaf's list of receivers has a wrong device");
        seen |= UINT64_C(1) << k;
        leaf->receiver[leaf->n_receivers++] = (int32_t)k;
    }
    return 0;
}

static int read_leaf(prove_leaf *leaf, util_memory *m, const prove_block *b, int32_t a, yyjson_val *object)
{
    int rc = read_sending(leaf, b, a, prove_get(object, "receivers"));
    leaf->open = yyjson_is_true(prove_get(object, "open"));
    if (!rc && leaf->open && (!leaf->fixed || b->p->congestion != PROVE_PORT))
        rc = prove_wrong("a leaf without an order of receivers is open");
    rc = rc ? rc : read_counts(leaf, m, b, object);
    leaf->priced = prove_get(object, "prices");
    rc = rc || !leaf->priced ? rc : read_grid(leaf, m, object);
    return rc || !leaf->priced ? rc : read_prices(leaf, m, b, object);
}

int prove_read_leaves(prove_leaf **out, int32_t *n, util_memory *m, const prove_block *b, int32_t a, int32_t z,
                      yyjson_val *list, bool equals)
{
    size_t i, max, count = yyjson_arr_size(list);
    yyjson_val *object;
    *n = 0;
    if (count > MAX_LEAVES)
        return prove_too_large("a pair has too many leaves");
    if (!PROVE_TAKE(m, *out, count))
        return MOIRAI_EFAIL;
    yyjson_arr_foreach(list, i, max, object) {
        int rc = prove_go_on(b->p);
        rc = rc ? rc : read_leaf(&(*out)[(*n)++], m, b, a, object);
        if (rc)
            return rc;
    }
    if (!*n || prove_cover(b, a, z, *out, *n, equals))
        return 0;
    int rc = prove_go_on(b->p);
    return rc ? rc : prove_wrong("the leaves leave cases out");
}
